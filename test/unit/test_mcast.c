/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast in a core: who gets a copy of a datagram to a group, and who does not; what is sent to a group; limits, quotas, hostile requests; and that nothing is left. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "machine.h"
#include "raw_client.h"
#include "ud.h"

#define QPS 4u
#define FRAMES 16u
#define SECOND UINT64_C(1000000000)
#define QKEY 0x11u

struct fixture {
	uint64_t now;
	struct core *core;
	struct raw_client c;
	struct raw_memory m;
	struct raw_cq send_cq, recv_cq;
	struct raw_qp qp[QPS];
	struct packet sent[FRAMES]; /* RoCE packets that left */
	uint8_t frame[FRAMES][CORE_FRAME_MAX];
	uint8_t way[FRAMES];        /* to_core of each */
	unsigned n;
};

static int set_up_ud(struct fixture *x, const struct raw_qp *q, uint32_t qkey)
{
	struct abi_req r = { .type = ABI_MODIFY_QP, .modify_qp = { .qp = q->handle, .attr = { .port_num = 1, .qkey = qkey } } };
	for (uint32_t from = ABI_QP_RESET; from < ABI_QP_RTS; from++) {
		r.modify_qp.mask = ABI_QP_STATE | qp_transitions[ABI_SERVICE_UD][from][from + 1].required;
		r.modify_qp.attr.state = (uint8_t)(from + 1);
		int rc = raw_ask(&x->c, &r);
		if (rc)
			return rc;
	}
	return 0;
}

static struct fixture *open_with(uint32_t core_index, uint32_t cores, uint32_t flags)
{
	static struct fixture fixtures[2];
	static const struct abi_qp_cap cap = { 64, 64, 1, 1, 512 };
	struct fixture *x = &fixtures[core_index];
	struct gid gid;
	uint32_t index;
	*x = (struct fixture){ .now = SECOND };
	x->core = raw_core_new(core_index, cores, x->now);
	gid_parse("fd00::1", &gid);
	assert_int_equal(addr_gid_add(core_addr(x->core), &gid, VLAN_NONE, 64, &index), 0);
	raw_open(&x->c, x->core, &x->now);
	raw_memory_new(&x->c, 1 << 20, &x->m);
	raw_cq_new(&x->c, 1024, 0, &x->send_cq);
	raw_cq_new(&x->c, 1024, 0, &x->recv_cq);
	x->c.service = ABI_SERVICE_UD;
	x->c.flags = flags;
	for (unsigned i = 0; i < QPS; i++) {
		raw_qp_new(&x->c, &x->send_cq, &x->recv_cq, &cap, &x->qp[i]);
		assert_int_equal(set_up_ud(x, &x->qp[i], QKEY), 0);
	}
	return x;
}

static struct fixture *open_fixture(void)
{
	return open_with(0, 1, 0);
}

static struct abi_req group_request(enum abi_msg type, uint32_t qp, const char *group)
{
	struct abi_req r = { .type = type, .group.qp = qp };
	struct gid gid;
	assert_int_equal(gid_parse(group, &gid), 0);
	memcpy(r.group.gid, gid.b, 16);
	return r;
}

static int change(struct fixture *x, enum abi_msg type, unsigned i, const char *group)
{
	struct abi_req r = group_request(type, x->qp[i].handle, group);
	return raw_ask(&x->c, &r);
}

static void attach(struct fixture *x, unsigned i, const char *group)
{
	assert_int_equal(change(x, ABI_ATTACH_MULTICAST, i, group), 0);
}

static void detach(struct fixture *x, unsigned i, const char *group)
{
	assert_int_equal(change(x, ABI_DETACH_MULTICAST, i, group), 0);
}

static uint32_t make_ah(struct fixture *x, const char *to)
{
	struct abi_req r = { .type = ABI_CREATE_AH, .create_ah = { .pd = x->c.pd, .av = { .hop_limit = 3 } } };
	struct gid gid;
	assert_int_equal(gid_parse(to, &gid), 0);
	r.create_ah.av.sgid_index = !gid_is_ip4(&gid);
	memcpy(r.create_ah.av.dgid, gid.b, 16);
	assert_int_equal(raw_ask(&x->c, &r), 0);
	return x->c.rep.handle;
}

/* Runs for a while, keeping the RoCE packets that are sent. */
static void run(struct fixture *x)
{
	static uint8_t spare[CORE_FRAME_MAX];
	for (unsigned i = 0; i < 8; i++, x->now += 20000) {
		struct core_frame f = { .data = x->n < FRAMES ? x->frame[x->n] : spare, .room = CORE_FRAME_MAX };
		core_run(x->core, x->now);
		core_scan(x->core);
		while (core_tx(x->core, x->now, &f, 1)) {
			struct packet p;
			if (packet_parse(&p, f.data, f.len, VLAN_NONE, NULL) != DROP_NONE || p.kind != PACKET_ROCE)
				continue;
			assert_true(x->n < FRAMES);
			x->way[x->n] = f.to_core;
			x->sent[x->n++] = p;
			f.data = x->n < FRAMES ? x->frame[x->n] : spare;
		}
	}
}

/* Each receive of QP i has 8 KiB of memory of its own; its wr_id is the QP's number here. */
static void post_receive(struct fixture *x, unsigned i)
{
	struct abi_recv_wqe r = { .wr_id = i, .num_sge = 1, .sge = { { i * 8192u, 8192, x->m.key } } };
	raw_post(&x->qp[i].rq, &r, 32);
}

static void post_send(struct fixture *x, unsigned i, uint32_t ah, uint32_t qpn, const char *text)
{
	struct abi_send_wqe w = { .wr_id = 100 + i, .opcode = ABI_OP_SEND, .flags = ABI_SEND_SIGNALED | ABI_SEND_INLINE, .ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY, .inline_len = (uint32_t)strlen(text) };
	memcpy(w.inline_data, text, strlen(text));
	raw_post(&x->qp[i].sq, &w, sizeof(w));
	raw_ring_doorbell(&x->c, &x->qp[i], &x->qp[i].sq);
}

/* Receives completed since the last call, a bit for each QP; their payload is text. */
static unsigned who_got(struct fixture *x, const char *text)
{
	struct abi_cqe c;
	unsigned got = 0;
	while (raw_poll(&x->recv_cq, &c)) {
		assert_int_equal(c.status, ABI_WC_SUCCESS);
		assert_int_equal(c.qpn, x->qp[c.wr_id].qpn);
		assert_int_equal(c.byte_len, GRH_BYTES + strlen(text));
		assert_int_equal(c.flags, ABI_WC_HAS_GRH);
		assert_memory_equal(x->m.host + c.wr_id * 8192 + GRH_BYTES, text, strlen(text));
		assert_false(got >> c.wr_id & 1); /* one copy */
		got |= 1u << c.wr_id;
	}
	return got;
}

/* A datagram of another host. */
struct datagram {
	const char *src, *dst, *text;
	uint32_t qpn, qkey, src_qpn;
	uint16_t vlan, pkey;
	bool has_bad_icrc;
};
static const struct datagram to_group = { "10.0.0.9", "239.1.2.3", "hello", QPN_MULTICAST, QKEY, 0x4242, VLAN_NONE, 0xffff, false };

static uint32_t write_datagram(uint8_t *frame, const struct datagram *d)
{
	struct template_fields f = { .smac = { 2, 0, 0, 0, 0, 9 }, .vlan = d->vlan, .ttl = 9, .udp_src_port = 0xc000 };
	struct bth b = { .op = opcode_find(SERVICE_UD, MESSAGE_SEND, OPCODE_FIRST | OPCODE_LAST), .dqpn = d->qpn, .pkey = d->pkey };
	unsigned n = (unsigned)strlen(d->text), pad = -n & 3;
	struct template t;
	gid_parse(d->src, &f.src);
	gid_parse(d->dst, &f.dst);
	gid_group_mac(&f.dst, f.dmac);
	template_build(&t, &f);
	uint8_t *to = deth_write(bth_write(template_lay(frame, &t), &b, pad), d->qkey, d->src_qpn);
	memcpy(to, d->text, n);
	memset(to + n, 0, pad);
	uint32_t len = packet_finish(frame, &t, to + n + pad);
	frame[len - 1] ^= d->has_bad_icrc;
	return len;
}

static void hear(struct fixture *x, const struct datagram *d, bool is_looped)
{
	uint8_t frame[512];
	struct core_frame f = { .data = frame, .len = write_datagram(frame, d), .vlan_tci = VLAN_NONE, .is_looped = is_looped };
	core_rx(x->core, x->now, &f, 1);
}

static uint64_t drops(const struct fixture *x, enum drop d)
{
	return core_drops(x->core)->count[d];
}

static struct core_stats stats(const struct fixture *x)
{
	struct core_stats s;
	core_stats(x->core, &s);
	return s;
}

/* ---- reception ---- */

/* known-bugs: 30 */
static void test_each_member_gets_its_own_copy(void **state)
{
	static const struct {
		const char *src, *group, *other;
	} families[] = { { "10.0.0.9", "239.1.2.3", "239.1.2.4" }, { "fd00::9", "ff15::1:2:3", "ff15::1:2:4" } };
	for (unsigned k = 0; k < 2; k++) {
		struct fixture *x = open_fixture();
		struct datagram d = to_group;
		d.src = families[k].src;
		d.dst = families[k].group;
		attach(x, 0, families[k].group);
		attach(x, 1, families[k].group);
		attach(x, 2, families[k].other);
		for (unsigned i = 0; i < QPS; i++)
			for (unsigned n = 0; n < 8; n++)
				post_receive(x, i);
		hear(x, &d, false);
		assert_int_equal(who_got(x, "hello"), 1 << 0 | 1 << 1);
		assert_int_equal(stats(x).group_copies, 2);
		detach(x, 0, families[k].group);
		hear(x, &d, false);
		assert_int_equal(who_got(x, "hello"), 1 << 1);
		attach(x, 3, families[k].group);
		attach(x, 3, families[k].group); /* twice is once */
		hear(x, &d, false);
		assert_int_equal(who_got(x, "hello"), 1 << 1 | 1 << 3);
		assert_int_equal(drops(x, DROP_NONE), 3);
		detach(x, 3, families[k].group);
		assert_int_equal(raw_ask_handle(&x->c, ABI_DESTROY_QP, x->qp[1].handle), 0); /* which detaches it */
		hear(x, &d, false);
		assert_int_equal(who_got(x, "hello"), 0);
		assert_int_equal(drops(x, DROP_GROUP_UNKNOWN), 1);
		core_free(x->core);
	}
}

/* Q_Key, P_Key, receives and states are each member's own business. */
static void test_a_member_that_cannot(void **state)
{
	struct fixture *x = open_fixture();
	for (unsigned i = 0; i < QPS; i++)
		attach(x, i, "239.1.2.3");
	for (unsigned i = 1; i < QPS; i++)
		post_receive(x, i);
	struct abi_req r = { .type = ABI_MODIFY_QP, .modify_qp = { .qp = x->qp[2].handle, .mask = ABI_QP_QKEY, .attr = { .qkey = 0x12 } } };
	assert_int_equal(raw_ask(&x->c, &r), 0);
	assert_int_equal(raw_set_state(&x->c, &x->qp[3], ABI_QP_ERR), 0);
	run(x);
	struct abi_cqe flushed;
	assert_true(raw_poll(&x->recv_cq, &flushed));
	hear(x, &to_group, false);
	assert_int_equal(who_got(x, "hello"), 1 << 1); /* 0 has no receive, 2 another Q_Key, 3 is in ERR */
	assert_int_equal(drops(x, DROP_NONE), 1);
	assert_int_equal(stats(x).group_copies_dropped, 3);
	for (unsigned i = 0; i < QPS; i++) {
		assert_int_equal(raw_ask_handle(&x->c, ABI_QUERY_COUNTERS, x->qp[i].handle), 0);
		assert_int_equal(x->c.rep.counters.value[QP_DROPPED_PACKETS], i != 1);
	}
	/* when nobody takes it, the frame has the reason of one of them */
	detach(x, 1, "239.1.2.3");
	detach(x, 3, "239.1.2.3");
	detach(x, 0, "239.1.2.3");
	hear(x, &to_group, false);
	assert_int_equal(drops(x, DROP_QKEY), 1);
	core_free(x->core);
}

/* known-bugs: 22 30 */
static void test_what_is_no_datagram_to_a_group(void **state)
{
	static const struct {
		struct datagram d;
		enum drop drop;
	} rows[] = {
		{ { "10.0.0.9", "239.1.2.3", "x", 0xfffffe, QKEY, 1, VLAN_NONE, 0xffff, false }, DROP_IP_NOT_OURS },       /* another QP number */
		{ { "10.0.0.9", "239.1.2.3", "x", 0x777777, QKEY, 1, VLAN_NONE, 0xffff, false }, DROP_IP_NOT_OURS },       /* of no QP */
		{ { "10.0.0.9", "10.0.0.1", "x", QPN_MULTICAST, QKEY, 1, VLAN_NONE, 0xffff, false }, DROP_QP_RESERVED },     /* to a host */
		{ { "10.0.0.9", "239.1.2.9", "x", QPN_MULTICAST, QKEY, 1, VLAN_NONE, 0xffff, false }, DROP_GROUP_UNKNOWN },  /* a group that nobody is in */
		{ { "10.0.0.9", "239.129.2.3", "x", QPN_MULTICAST, QKEY, 1, VLAN_NONE, 0xffff, false }, DROP_GROUP_UNKNOWN }, /* with the same MAC address */
		{ { "10.0.0.9", "239.1.2.3", "x", QPN_MULTICAST, QKEY, 1, 7, 0xffff, false }, DROP_GROUP_UNKNOWN },          /* on a VLAN where we are nobody */
		{ { "10.0.0.9", "239.1.2.3", "x", QPN_MULTICAST, QKEY, 1, VLAN_NONE, 0xffff, true }, DROP_ICRC },
		{ { "10.0.0.9", "239.1.2.3", "x", QPN_MULTICAST, QKEY + 1, 1, VLAN_NONE, 0xffff, false }, DROP_QKEY },
		{ { "10.0.0.9", "239.1.2.3", "x", QPN_MULTICAST, QKEY, 1, VLAN_NONE, 0x8001, false }, DROP_PKEY },
		{ { "224.0.0.9", "239.1.2.3", "x", QPN_MULTICAST, QKEY, 1, VLAN_NONE, 0xffff, false }, DROP_IP_SOURCE },
	};
	struct fixture *x = open_fixture();
	attach(x, 0, "239.1.2.3");
	post_receive(x, 0);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t before = drops(x, rows[i].drop);
		struct datagram d = rows[i].d;
		if (i == 0)
			d.qpn = x->qp[0].qpn;
		hear(x, &d, false);
		assert_int_equal(drops(x, rows[i].drop), before + 1);
		assert_int_equal(who_got(x, "x"), 0);
	}
	/* every opcode: only those of UD are for it */
	for (unsigned byte = 0; byte < 256; byte++) {
		uint8_t frame[512];
		uint32_t len = write_datagram(frame, &to_group);
		frame[14 + 20 + 8] = (uint8_t)byte;
		icrc_store(frame + len - ICRC_LEN, icrc_compute(frame + 14, 4, len - 14 - ICRC_LEN));
		struct core_frame f = { .data = frame, .len = len, .vlan_tci = VLAN_NONE };
		core_rx(x->core, x->now, &f, 1);
		struct abi_cqe c;
		assert_int_equal(raw_poll(&x->recv_cq, &c), byte == 0x64 || byte == 0x65);
		if (byte == 0x64 || byte == 0x65)
			post_receive(x, 0);
	}
	core_free(x->core);
}

/* What a datagram brings to one QP of a group does not touch the others: one whose receive has a bad key ends alone. */
static void test_a_member_that_fails(void **state)
{
	struct fixture *x = open_fixture();
	struct abi_recv_wqe bad = { .wr_id = 0, .num_sge = 1, .sge = { { 0, 8192, 0xbad } } };
	struct abi_cqe c;
	attach(x, 0, "239.1.2.3");
	attach(x, 1, "239.1.2.3");
	raw_post(&x->qp[0].rq, &bad, 32);
	post_receive(x, 1);
	hear(x, &to_group, false);
	assert_true(raw_poll(&x->recv_cq, &c));
	assert_int_equal(c.status, ABI_WC_LOC_PROT_ERR);
	assert_int_equal(who_got(x, "hello"), 1 << 1);
	core_free(x->core);
}

/* ---- sending ---- */

static void test_sending(void **state)
{
	static const char *const groups[] = { "239.1.2.3", "ff15::1:2:3" };
	for (unsigned k = 0; k < 2; k++) {
		struct fixture *x = open_fixture();
		uint32_t ah = make_ah(x, groups[k]);
		struct gid group;
		struct abi_cqe c;
		uint8_t mac[6];
		gid_parse(groups[k], &group);
		gid_group_mac(&group, mac);
		for (unsigned i = 0; i < QPS; i++)
			post_receive(x, i);
		attach(x, 0, groups[k]); /* the sender */
		attach(x, 2, groups[k]);
		post_send(x, 0, ah, QPN_MULTICAST, "to all");
		run(x);
		assert_true(raw_poll(&x->send_cq, &c));
		assert_int_equal(c.status, ABI_WC_SUCCESS);
		assert_int_equal(who_got(x, "to all"), 1 << 0 | 1 << 2);
		assert_int_equal(x->n, 1);
		assert_int_equal(x->way[0], CORE_TO_WIRE);
		assert_int_equal(x->sent[0].dqpn, QPN_MULTICAST);
		assert_int_equal(x->sent[0].ttl, 3);
		assert_true(gid_is_equal(&x->sent[0].dst, &group));
		assert_memory_equal(x->sent[0].dmac, mac, 6);
		assert_true(packet_is_icrc_ok(&x->sent[0]));
		/* it comes back from the wire: our own source address */
		struct core_frame f = { .data = x->frame[0], .len = (uint32_t)(x->sent[0].l3 - x->frame[0]) + x->sent[0].l3_len, .vlan_tci = VLAN_NONE };
		post_receive(x, 0);
		core_rx(x->core, x->now, &f, 1);
		assert_int_equal(who_got(x, ""), 0);
		assert_int_equal(drops(x, DROP_FRAME_OWN_SOURCE), 1);
		/* nobody here is in it: only the wire */
		detach(x, 0, groups[k]);
		detach(x, 2, groups[k]);
		post_send(x, 0, ah, QPN_MULTICAST, "to none");
		run(x);
		assert_int_equal(x->n, 2);
		assert_int_equal(who_got(x, ""), 0);
		core_free(x->core);
	}
}

static void test_own_multicast_blocked(void **state)
{
	struct fixture *x = open_with(0, 1, ABI_QP_BLOCK_SELF_MCAST_LB);
	uint32_t ah = make_ah(x, "239.1.2.3");
	struct datagram d = to_group;
	attach(x, 0, "239.1.2.3");
	attach(x, 1, "239.1.2.3");
	for (unsigned i = 0; i < 2; i++)
		post_receive(x, i);
	post_send(x, 0, ah, QPN_MULTICAST, "to others");
	run(x);
	assert_int_equal(who_got(x, "to others"), 1 << 1);
	/* another host's QP may have the same number */
	d.src_qpn = x->qp[0].qpn;
	hear(x, &d, false);
	assert_int_equal(who_got(x, "hello"), 1 << 0);
	/* alone in the group, nothing is dropped */
	detach(x, 1, "239.1.2.3");
	uint64_t accepted = drops(x, DROP_NONE);
	post_send(x, 0, ah, QPN_MULTICAST, "to nobody");
	run(x);
	assert_int_equal(drops(x, DROP_NONE), accepted + 1);
	core_free(x->core);
}

/* known-bugs: 30 35 */
static void test_qpn_and_group_belong_together(void **state)
{
	struct fixture *x = open_fixture();
	uint32_t ah = make_ah(x, "239.1.2.3"), host = make_ah(x, "10.0.0.1");
	const struct {
		uint32_t ah, qpn;
	} rows[] = { { ah, x->qp[1].qpn }, { ah, 0xfffffe }, { host, QPN_MULTICAST } };
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct abi_cqe c;
		post_send(x, 0, rows[i].ah, rows[i].qpn, "x");
		run(x);
		assert_true(raw_poll(&x->send_cq, &c));
		assert_int_equal(c.status, ABI_WC_LOC_QP_OP_ERR);
		assert_int_equal(raw_set_state(&x->c, &x->qp[0], ABI_QP_RTS), 0);
	}
	assert_int_equal(x->n, 0);
	core_free(x->core);
}

/* The ring of packets to ourselves is full of copies: the sender waits, and none is lost. */
static void test_many_at_once(void **state)
{
	enum { MESSAGES = 60 };
	struct fixture *x = open_fixture();
	static uint8_t room[FRAMES * 16][512];
	struct core_frame frames[4];
	unsigned got[2] = { 0 }, sent = 0;
	uint32_t ah = make_ah(x, "239.1.2.3");
	struct abi_cqe c;
	attach(x, 1, "239.1.2.3");
	attach(x, 2, "239.1.2.3");
	for (unsigned i = 0; i < MESSAGES; i++) {
		post_receive(x, 1);
		post_receive(x, 2);
		post_send(x, 0, ah, QPN_MULTICAST, "x");
	}
	for (unsigned round = 0; round < 100; round++) {
		core_run(x->core, x->now += 1000);
		core_scan(x->core);
		for (unsigned i = 0; i < 4; i++)
			frames[i] = (struct core_frame){ .data = room[i], .room = sizeof(room[i]) };
		for (unsigned n; (n = core_tx(x->core, x->now, frames, 4));)
			for (unsigned i = 0; i < n; i++)
				sent += frames[i].len < 80; /* datagrams; reports are longer or have another type */
	}
	while (raw_poll(&x->recv_cq, &c))
		got[c.wr_id - 1]++;
	assert_int_equal(got[0], MESSAGES);
	assert_int_equal(got[1], MESSAGES);
	assert_in_range(sent, MESSAGES, MESSAGES + 4);
	core_free(x->core);
}

/* ---- several cores ---- */

static void test_cores_of_an_engine(void **state)
{
	static struct core_mcast_map map;
	struct fixture *x = open_with(0, 2, 0), *y = open_with(1, 2, 0);
	struct gid group;
	uint32_t ah = make_ah(x, "239.1.2.3");
	memset(&map, 0, sizeof(map));
	x->core->config.mcast_map = y->core->config.mcast_map = &map;
	gid_parse("239.1.2.3", &group);
	assert_int_equal(core_mcast_cores(&map, &group), 0);
	post_send(x, 0, ah, QPN_MULTICAST, "x");
	run(x);
	assert_int_equal(x->way[0], CORE_TO_WIRE);
	attach(y, 0, "239.1.2.3");
	attach(y, 1, "239.1.2.3");
	assert_int_equal(core_mcast_cores(&map, &group), 2);
	attach(x, 1, "239.1.2.3");
	assert_int_equal(core_mcast_cores(&map, &group), 3);
	post_receive(x, 1);
	post_receive(y, 0);
	post_receive(y, 1);
	post_send(x, 0, ah, QPN_MULTICAST, "to both");
	run(x);
	assert_int_equal(who_got(x, "to both"), 1 << 1);
	assert_int_equal(x->way[1], CORE_TO_GROUP);
	/* what whoever drives the cores makes of that */
	struct core_frame f = { .data = x->frame[1], .len = (uint32_t)(x->sent[1].l3 - x->frame[1]) + x->sent[1].l3_len, .vlan_tci = VLAN_NONE, .is_looped = true };
	core_rx(y->core, y->now, &f, 1);
	assert_int_equal(who_got(y, "to both"), 3);
	assert_int_equal(stats(y).rx_packets, 0);
	assert_int_equal(stats(y).loopback_packets, 1);
	/* a copy of a frame that another core got, and counts */
	uint8_t frame[512];
	f = (struct core_frame){ .data = frame, .len = write_datagram(frame, &to_group), .vlan_tci = VLAN_NONE, .is_copy = true };
	post_receive(y, 1);
	uint64_t counted = drops(y, DROP_NONE) + drops(y, DROP_RNR);
	core_rx(y->core, y->now, &f, 1);
	assert_int_equal(who_got(y, "hello"), 1 << 1);
	assert_int_equal(drops(y, DROP_NONE) + drops(y, DROP_RNR), counted);
	assert_int_equal(stats(y).rx_packets, 0);
	detach(y, 0, "239.1.2.3");
	assert_int_equal(core_mcast_cores(&map, &group), 3);
	detach(y, 1, "239.1.2.3");
	assert_int_equal(core_mcast_cores(&map, &group), 1);
	core_free(x->core);
	assert_int_equal(core_mcast_cores(&map, &group), 0);
	core_free(y->core);
}

/* ---- requests ---- */

static void test_requests(void **state)
{
	struct fixture *x = open_fixture();
	struct abi_qp_cap cap = { 4, 4, 1, 1, 0 };
	struct raw_qp rc;
	struct abi_req r;
	x->c.service = ABI_SERVICE_RC;
	raw_qp_new(&x->c, &x->send_cq, &x->recv_cq, &cap, &rc);
	for (unsigned type = ABI_ATTACH_MULTICAST; type <= ABI_DETACH_MULTICAST; type++) {
		static const char *const no_groups[] = { "10.0.0.1", "255.255.255.255", "0.0.0.0", "::", "fd00::1", "fe80::1" };
		for (unsigned i = 0; i < sizeof(no_groups) / sizeof(no_groups[0]); i++)
			assert_int_equal(change(x, type, 0, no_groups[i]), -EINVAL);
		r = group_request(type, rc.handle, "239.1.2.3");
		assert_int_equal(raw_ask(&x->c, &r), -EINVAL);
		assert_non_null(strstr(x->c.rep.text, "UD"));
		const uint32_t nothing[] = { 0, 0xffffffff, x->qp[0].handle + (1u << HANDLE_INDEX_BITS), x->c.pd };
		for (unsigned i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
			if (nothing[i] == x->qp[0].handle || nothing[i] == rc.handle)
				continue;
			r = group_request(type, nothing[i], "239.1.2.3");
			assert_int_equal(raw_ask(&x->c, &r), -ENOENT);
		}
	}
	assert_int_equal(change(x, ABI_DETACH_MULTICAST, 0, "239.1.2.3"), -EINVAL); /* it is not in it */
	assert_non_null(strstr(x->c.rep.text, "not in"));
	r = (struct abi_req){ .type = ABI_CREATE_QP, .create_qp = { .pd = x->c.pd, .send_cq = x->send_cq.handle, .recv_cq = x->recv_cq.handle, .service = ABI_SERVICE_UD, .cap = cap, .flags = 1 } };
	assert_int_equal(raw_ask(&x->c, &r), -EINVAL);
	/* a connected QP has no group for a peer */
	struct abi_req m = { .type = ABI_MODIFY_QP, .modify_qp = { .qp = rc.handle, .attr = { .port_num = 1, .path_mtu = 3, .dest_qpn = 5 } } };
	for (uint32_t to = ABI_QP_INIT; to <= ABI_QP_RTR; to++) {
		struct gid group;
		gid_parse("239.1.2.3", &group);
		memcpy(m.modify_qp.attr.av.dgid, group.b, 16);
		m.modify_qp.attr.state = (uint8_t)to;
		m.modify_qp.mask = ABI_QP_STATE | qp_transitions[ABI_SERVICE_RC][to - 1][to].required;
		assert_int_equal(raw_ask(&x->c, &m), to == ABI_QP_INIT ? 0 : -EINVAL);
	}
	assert_int_equal(raw_ask_handle(&x->c, ABI_QUERY_DEVICE, 0), 0);
	assert_int_equal(x->c.rep.device.max_mcast_grp, 1024);
	assert_int_equal(x->c.rep.device.max_mcast_qp_attach, 240);
	core_free(x->core);
}

static void test_limits_and_quota(void **state)
{
	struct fixture *x = open_fixture();
	struct core_usage most;
	x->core->config.max_groups = 2;
	x->core->config.max_group_qps = 3;
	attach(x, 0, "239.0.0.1");
	attach(x, 0, "ff15::1");
	assert_int_equal(change(x, ABI_ATTACH_MULTICAST, 0, "239.0.0.3"), -ENOSPC);
	assert_non_null(strstr(x->c.rep.text, "2 groups"));
	attach(x, 1, "239.0.0.1");
	attach(x, 2, "239.0.0.1");
	assert_int_equal(change(x, ABI_ATTACH_MULTICAST, 3, "239.0.0.1"), -ENOSPC);
	detach(x, 0, "ff15::1");
	attach(x, 0, "239.0.0.3");
	core_client_usage(x->c.k, &most);
	assert_int_equal(most.attachments, 4);
	x->core->config.max_group_qps = 240;
	core_client_set_quota(x->c.k, &most);
	assert_int_equal(change(x, ABI_ATTACH_MULTICAST, 1, "239.0.0.3"), -EDQUOT);
	attach(x, 1, "239.0.0.1"); /* it is in it: nothing more is asked for */
	detach(x, 1, "239.0.0.1");
	attach(x, 1, "239.0.0.3");
	assert_int_equal(raw_ask_handle(&x->c, ABI_DESTROY_QP, x->qp[0].handle), 0);
	core_client_usage(x->c.k, &most);
	assert_int_equal(most.attachments, 2);
	core_free(x->core);
}

static uint32_t query_group_qps(struct fixture *x)
{
	struct abi_req r = { .type = ABI_QUERY_DEVICE };
	assert_int_equal(raw_ask(&x->c, &r), 0);
	return x->c.rep.device.max_mcast_qp_attach;
}

/* A client with quotas, as many as it may want, has a quarter of the places of a group; each group anew, and those of others do not count. */
static void test_share_of_a_group(void **state)
{
	static const char *const groups[] = { "239.0.0.1", "ff15::1" };
	struct fixture *x = open_fixture();
	struct core_usage plenty;
	struct raw_client other;
	struct raw_cq cq;
	struct raw_qp qp;
	static const struct abi_qp_cap cap = { 16, 16, 1, 1, 0 };
	memset(&plenty, 0xff, sizeof(plenty));
	x->core->config.max_group_qps = 6; /* of which two are a quarter */
	assert_int_equal(query_group_qps(x), 6);
	raw_open(&other, x->core, &x->now);
	raw_cq_new(&other, 16, 0, &cq);
	other.service = ABI_SERVICE_UD;
	raw_qp_new(&other, &cq, &cq, &cap, &qp);
	for (unsigned k = 0; k < 2; k++) {
		struct abi_req r = group_request(ABI_ATTACH_MULTICAST, qp.handle, groups[k]);
		assert_int_equal(raw_ask(&other, &r), 0);
	}
	core_client_set_quota(x->c.k, &plenty);
	assert_int_equal(query_group_qps(x), 2);
	for (unsigned k = 0; k < 2; k++) {
		attach(x, 0, groups[k]);
		attach(x, 1, groups[k]);
		attach(x, 1, groups[k]); /* it is in it */
		assert_int_equal(change(x, ABI_ATTACH_MULTICAST, 2, groups[k]), -EDQUOT);
		assert_non_null(strstr(x->c.rep.text, groups[k]));
		detach(x, 0, groups[k]);
		attach(x, 2, groups[k]);
	}
	core_free(x->core);
}

struct told {
	unsigned joined, left;
	int refuse;
};

static int on_group(void *arg, const struct gid *group, bool is_joined)
{
	struct told *t = arg;
	if (is_joined && t->refuse)
		return t->refuse;
	*(is_joined ? &t->joined : &t->left) += 1;
	return 0;
}

/* The first member and the last one are told, and a refusal leaves nothing behind. */
static void test_who_is_told(void **state)
{
	struct fixture *x = open_fixture();
	struct told t = { 0 };
	x->core->config.on_group = on_group;
	x->core->config.on_group_arg = &t;
	attach(x, 0, "239.0.0.1");
	attach(x, 1, "239.0.0.1");
	assert_int_equal(t.joined, 1);
	detach(x, 0, "239.0.0.1");
	assert_int_equal(t.left, 0);
	detach(x, 1, "239.0.0.1");
	assert_int_equal(t.left, 1);
	t.refuse = -ENOSPC;
	assert_int_equal(change(x, ABI_ATTACH_MULTICAST, 0, "239.0.0.1"), -ENOSPC);
	assert_int_equal(HASH_COUNT(x->core->mcasts.groups), 0);
	assert_int_equal(x->c.k->usage.attachments, 0);
	t.refuse = 0;
	attach(x, 0, "239.0.0.1");
	attach(x, 2, "239.0.0.1");
	core_client_free(x->c.k); /* a client that dies */
	assert_int_equal(t.joined, 2);
	assert_int_equal(t.left, 2);
	assert_int_equal(HASH_COUNT(x->core->mcasts.groups), 0);
	core_free(x->core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_member_gets_its_own_copy),
		cmocka_unit_test(test_a_member_that_cannot),
		cmocka_unit_test(test_what_is_no_datagram_to_a_group),
		cmocka_unit_test(test_a_member_that_fails),
		cmocka_unit_test(test_sending),
		cmocka_unit_test(test_own_multicast_blocked),
		cmocka_unit_test(test_qpn_and_group_belong_together),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_cores_of_an_engine),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_limits_and_quota),
		cmocka_unit_test(test_share_of_a_group),
		cmocka_unit_test(test_who_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
