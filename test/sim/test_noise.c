/* SPDX-License-Identifier: BSD-3-Clause */
/* What arrives at a port and is nobody's business: packets of every opcode for whatever QP, packets of QPs that are gone, and all the other traffic of a network. Each is dropped under one name, none is
 * answered, and those who talk meanwhile lose nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "counters.h"
#include "frames.h"
#include "machine.h"
#include "rig.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define L3 14u
#define UDP_AT (L3 + 20)
#define BTH_AT (UDP_AT + 8)
#define QKEY 0x4321u

static const uint8_t mac_of[2][6] = { { 2, 0, 0, 0, 0, 1 }, { 2, 0, 0, 0, 0, 2 } };

static uint64_t all_drops(struct core *c)
{
	uint64_t n = 0;
	for (unsigned d = 1; d < DROP_COUNT; d++)
		n += core_drops(c)->count[d];
	return n;
}

static void deliver(struct rig *r, unsigned host, uint8_t *frame, uint32_t len)
{
	core_rx(sim_host_core(r->host[host]), sim_world_now(r->world), &(struct core_frame){ .data = frame, .len = len, .vlan_tci = VLAN_NONE }, 1);
}

static void finish_one(struct rig *r, const struct rig_end *from, const struct rig_end *to, enum uroce_opcode opcode, uint32_t len)
{
	struct uroce_sge sge;
	struct uroce_send_wr wr = rig_wr(from, to, &sge, opcode, len);
	struct uroce_wc wc;
	assert_int_equal(uroce_post_send(from->qp, &wr, 1), 1);
	assert_int_equal(rig_wait(r, from->host, &wc, 1, SECOND), 1);
	assert_int_equal(wc.status, UROCE_WC_SUCCESS);
}

/* ---- a frame of UDP to port 4791 ---- */

/* From host 0 to host 1: `len` bytes of a UDP payload follow at BTH_AT. Returns the frame's length. */
static uint32_t begin_frame(uint8_t *frame, uint32_t len)
{
	struct template_fields f = { .vlan = VLAN_NONE, .ttl = 64, .udp_src_port = 0xc001 };
	struct template t;
	memcpy(f.dmac, mac_of[1], 6);
	memcpy(f.smac, mac_of[0], 6);
	gid_parse("10.0.0.1", &f.src);
	gid_parse("10.0.0.2", &f.dst);
	template_build(&t, &f);
	template_lay(frame, &t);
	put_be16(frame + L3 + 2, (uint16_t)(28 + len));
	put_be16(frame + UDP_AT + 4, (uint16_t)(8 + len));
	return BTH_AT + len;
}

/* A BTH, and then whatever there is, with a right ICRC at its end. */
static uint32_t make_packet(uint8_t *frame, uint8_t opcode, uint32_t dqpn, uint32_t psn, uint32_t len)
{
	uint8_t bth[12] = { opcode, 0x40, 0xff, 0xff };
	put_be32(bth + 4, dqpn);
	put_be32(bth + 8, psn & 0xffffff);
	uint32_t all = begin_frame(frame, len);
	memset(frame + BTH_AT, 0x5a, len);
	memcpy(frame + BTH_AT, bth, len < sizeof(bth) ? len : sizeof(bth));
	frame_mend(frame + L3);
	return all;
}

struct tally {
	uint64_t sent;
};

static void count_sent(void *arg, const struct core_seen *seen)
{
	((struct tally *)arg)->sent += seen->is_tx;
}

static struct uroce_qp *open_ud(struct rig *r, unsigned host)
{
	struct uroce_qp_init init = { .service = UROCE_UD, .send_cq = r->cq[host], .recv_cq = r->cq[host], .cap = { .max_recv_wr = 4 } };
	struct uroce_qp_attr attr = { .qkey = QKEY };
	struct uroce_endpoint e;
	struct uroce_qp *qp;
	assert_int_equal(uroce_qp_create(r->pd[host], &init, &qp), 0);
	assert_int_equal(uroce_qp_endpoint(qp, 0, &e), 0);
	assert_int_equal(uroce_qp_connect(qp, &e, &e, &attr, UROCE_QP_QKEY), 0);
	return qp;
}

static void assert_datagram_passes(struct rig *r, struct uroce_qp *from, struct uroce_qp *to)
{
	struct rig_end *a = &r->near[0], *b = &r->far[0];
	struct uroce_sge source = { (uintptr_t)a->memory, 100, uroce_mr_lkey(a->mr) }, into = { (uintptr_t)b->memory, 200, uroce_mr_lkey(b->mr) };
	struct uroce_av av = { .sgid_index = 0 };
	struct uroce_ah *ah;
	struct uroce_wc wc;
	assert_int_equal(uroce_query_gid(r->ctx[1], 0, &av.dgid, NULL), 0);
	assert_int_equal(uroce_ah_create(r->pd[0], &av, &ah), 0);
	assert_int_equal(uroce_post_recv(to, &(struct uroce_recv_wr){ .sg_list = &into, .num_sge = 1 }, 1), 1);
	struct uroce_send_wr wr = { .sg_list = &source, .num_sge = 1, .ah = ah, .remote_qpn = uroce_qp_num(to), .remote_qkey = QKEY };
	assert_int_equal(uroce_post_send(from, &wr, 1), 1);
	assert_int_equal(rig_wait(r, 1, &wc, 1, SECOND), 1);
	assert_int_equal(wc.status, UROCE_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 140);
	assert_int_equal(uroce_ah_destroy(ah), 0);
}

/* Every opcode, to QPs that there are and to numbers that are none's, in every short length. Those for the RC QP have a PSN far from what is expected, those for the UD QP not its Q_Key: nothing of it is to be taken. */
/* known-bugs: 22 */
static void test_every_opcode_to_whatever_qp(void **state)
{
	struct rig r;
	struct tally t = { 0 };
	uint8_t frame[256];
	rig_open(&r, &(struct rig_config){ .first_psn = 100, .memory = 8192 });
	struct uroce_qp *ud[2] = { open_ud(&r, 0), open_ud(&r, 1) };
	struct core *core = sim_host_core(r.host[1]);
	const uint32_t qpns[] = { 0, 1, uroce_qp_num(r.far[0].qp), uroce_qp_num(ud[1]), 0xffffff };
	memset(r.far[0].memory, 0x77, 8192);
	core_set_tap(core, count_sent, &t);
	for (unsigned q = 0; q < sizeof(qpns) / sizeof(qpns[0]); q++)
		for (unsigned opcode = 0; opcode < 256; opcode++)
			for (uint32_t len = 8; len <= 64; len++) {
				uint64_t before = all_drops(core);
				deliver(&r, 1, frame, make_packet(frame, (uint8_t)opcode, qpns[q], 100 + 0x500000, len));
				assert_int_equal(all_drops(core), before + 1);
			}
	rig_run(&r, 10 * MS);
	assert_int_equal(t.sent, 0);
	for (unsigned i = 0; i < 8192; i++)
		assert_int_equal(r.far[0].memory[i], 0x77);
	struct uroce_qp_attr attr;
	struct uroce_qp *live[] = { r.far[0].qp, ud[1] };
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(uroce_qp_query(live[i], &attr), 0);
		assert_int_equal(attr.state, UROCE_QP_RTS);
	}
	core_set_tap(core, NULL, NULL);
	finish_one(&r, &r.near[0], &r.far[0], UROCE_OP_WRITE, 5000);
	assert_int_equal(rig_counter(r.near[0].qp, QP_RETRANSMITTED_PACKETS), 0);
	assert_datagram_passes(&r, ud[0], ud[1]);
	rig_close(&r);
}

/* ---- packets of QPs that are gone ---- */

#define KEPT 64u

struct keeper {
	unsigned n;
	uint32_t len[KEPT];
	uint8_t frame[KEPT][CORE_FRAME_MAX];
};

static void keep(void *arg, const struct core_seen *seen)
{
	struct keeper *k = arg;
	struct packet p;
	if (seen->is_tx || k->n == KEPT || packet_parse(&p, seen->frame, seen->len, VLAN_NONE, NULL) != DROP_NONE || p.kind != PACKET_ROCE)
		return;
	memcpy(k->frame[k->n], seen->frame, seen->len);
	k->len[k->n++] = seen->len;
}

static void receive_one(struct rig_end *e)
{
	struct uroce_sge into = { (uintptr_t)e->memory, 8192, uroce_mr_lkey(e->mr) };
	assert_int_equal(uroce_post_recv(e->qp, &(struct uroce_recv_wr){ .sg_list = &into, .num_sge = 1 }, 1), 1);
}

/* A QP is destroyed and another made in its place, with the same peer: what was sent to the first means nothing to the second, neither its number nor its PSNs. */
/* known-bugs: 20 */
static void test_packets_of_a_qp_that_is_gone(void **state)
{
	static const enum uroce_service services[] = { UROCE_RC, UROCE_UC };
	static struct keeper k;
	for (unsigned s = 0; s < 2; s++) {
		struct rig r;
		struct uroce_wc wc;
		k.n = 0;
		rig_open(&r, &(struct rig_config){ .service = services[s], .memory = 8192 });
		struct rig_end *far = &r.far[0];
		struct core *core = sim_host_core(r.host[1]);
		core_set_tap(core, keep, &k);
		for (unsigned i = 0; i < 8; i++) {
			receive_one(far);
			finish_one(&r, &r.near[0], far, i % 2 ? UROCE_OP_SEND : UROCE_OP_WRITE, 6000);
		}
		rig_run(&r, MS);
		core_set_tap(core, NULL, NULL);
		assert_int_equal(k.n, 16);
		uint32_t qpn = uroce_qp_num(far->qp);
		assert_int_equal(uroce_qp_destroy(far->qp), 0);
		struct uroce_qp_init init = { .service = services[s], .send_cq = r.cq[1], .recv_cq = r.cq[1], .cap = { .max_recv_wr = 4 } };
		struct uroce_endpoint old, mine;
		assert_int_equal(uroce_qp_create(r.pd[1], &init, &far->qp), 0);
		assert_int_not_equal(uroce_qp_num(far->qp), qpn);
		assert_int_equal(uroce_qp_endpoint(r.near[0].qp, 0, &old), 0);
		assert_int_equal(uroce_qp_endpoint(far->qp, 0, &mine), 0);
		assert_int_equal(uroce_qp_connect(far->qp, &mine, &old, NULL, 0), 0);
		receive_one(far);
		memset(far->memory, 0x66, 8192);
		uint64_t before = core_drops(core)->count[DROP_QP_UNKNOWN];
		for (unsigned i = 0; i < k.n; i++)
			deliver(&r, 1, k.frame[i], k.len[i]);
		rig_run(&r, MS);
		assert_int_equal(core_drops(core)->count[DROP_QP_UNKNOWN], before + k.n);
		for (unsigned i = 0; i < 8192; i++)
			assert_int_equal(far->memory[i], 0x66);
		assert_int_equal(rig_wait(&r, 1, &wc, 1, MS), 0);
		rig_close(&r);
	}
}

/* ---- the rest of a network's traffic ---- */

/* Each changes a good RoCE frame from host 0 to host 1 whose UDP payload has 64 bytes; returns its length. */
static uint32_t make_fragment(uint8_t *f, uint32_t len)
{
	put_be16(f + L3 + 6, 0x2000);
	frame_mend(f + L3);
	return len;
}

static uint32_t make_last_fragment(uint8_t *f, uint32_t len)
{
	put_be16(f + L3 + 6, 0x0010);
	frame_mend(f + L3);
	return len;
}

static uint32_t make_options(uint8_t *f, uint32_t len)
{
	f[L3] = 0x46;
	return len;
}

static uint32_t make_foreign(uint8_t *f, uint32_t len)
{
	f[L3 + 19] = 77;
	frame_mend(f + L3);
	return len;
}

static uint32_t make_other_port(uint8_t *f, uint32_t len)
{
	put_be16(f + UDP_AT + 2, 4792);
	return len;
}

static uint32_t make_tcp(uint8_t *f, uint32_t len)
{
	f[L3 + 9] = 6;
	frame_mend(f + L3);
	return len;
}

static uint32_t make_dhcp(uint8_t *f, uint32_t len)
{
	memset(f, 0xff, 6);
	memset(f + L3 + 16, 0xff, 4);
	put_be16(f + UDP_AT + 2, 67);
	frame_mend(f + L3);
	return len;
}

static uint32_t make_arp(uint8_t *f, uint32_t len)
{
	static const uint8_t body[] = { 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 9, 10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 10, 0, 0, 99 };
	memset(f, 0xff, 6);
	put_be16(f + 12, 0x0806);
	memset(f + L3, 0, 46);
	memcpy(f + L3, body, sizeof(body));
	return 60;
}

static uint32_t make_router_advertisement(uint8_t *f, uint32_t len)
{
	static const uint8_t mac[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	memcpy(f, mac, 6);
	put_be16(f + 12, 0x86dd);
	memset(f + L3, 0, 56);
	f[L3] = 0x60;
	f[L3 + 5] = 16;
	f[L3 + 6] = 58;
	f[L3 + 7] = 255;
	put_be16(f + L3 + 8, 0xfe80);
	put_be16(f + L3 + 24, 0xff02);
	f[L3 + 39] = 1;
	f[L3 + 40] = 134;
	put_be16(f + L3 + 42, 0x7c30); /* its checksum */
	return L3 + 56;
}

static uint32_t make_vlan(uint8_t *f, uint32_t len)
{
	memmove(f + 16, f + 12, len - 12);
	put_be16(f + 12, 0x8100);
	put_be16(f + 14, 7);
	return len + 4;
}

static uint32_t make_nested_vlan(uint8_t *f, uint32_t len)
{
	return make_vlan(f, make_vlan(f, len));
}

static uint32_t make_other_mac(uint8_t *f, uint32_t len)
{
	f[5] = 0x99;
	return len;
}

static uint32_t make_short(uint8_t *f, uint32_t len)
{
	return len - 20;
}

static uint32_t make_spanning_tree(uint8_t *f, uint32_t len)
{
	static const uint8_t mac[6] = { 0x01, 0x80, 0xc2, 0, 0, 0 };
	memcpy(f, mac, 6);
	put_be16(f + 12, 39);
	return 60;
}

static const struct noise {
	const char *name;
	uint32_t (*make)(uint8_t *frame, uint32_t len);
	enum drop why;
} noises[] = {
	{ "fragment", make_fragment, DROP_IP_FRAGMENT },
	{ "last fragment", make_last_fragment, DROP_IP_FRAGMENT },
	{ "IP options", make_options, DROP_IP_OPTIONS },
	{ "RoCE for another host", make_foreign, DROP_IP_NOT_OURS },
	{ "another UDP port", make_other_port, DROP_UDP_PORT },
	{ "TCP", make_tcp, DROP_IP_PROTOCOL },
	{ "DHCP", make_dhcp, DROP_UDP_PORT },
	{ "ARP for another host", make_arp, DROP_ARP_NOT_OURS },
	{ "router advertisement", make_router_advertisement, DROP_ND_IGNORED },
	{ "another VLAN", make_vlan, DROP_IP_NOT_OURS },
	{ "VLAN in a VLAN", make_nested_vlan, DROP_VLAN_NESTED },
	{ "another MAC", make_other_mac, DROP_FRAME_NOT_OURS },
	{ "cut off", make_short, DROP_IP_LENGTH },
	{ "spanning tree", make_spanning_tree, DROP_ETHERTYPE },
};
#define NOISES (sizeof(noises) / sizeof(noises[0]))

/* Between the packets of a stream of WRITEs and READs comes twice as much that is not for us, of every kind. */
/* known-bugs: 29 */
static void test_traffic_beside_noise(void **state)
{
	struct rig r;
	struct uroce_wc wc;
	uint8_t good[256], frame[256];
	uint64_t times[NOISES] = { 0 }, n = 0;
	rig_open(&r, &(struct rig_config){ .memory = 1 << 16 });
	struct core *core = sim_host_core(r.host[1]);
	struct drop_counters before = *core_drops(core);
	uint32_t len = make_packet(good, 0x04, uroce_qp_num(r.far[0].qp), 0, 64);
	for (unsigned done = 0; done < 200; done++) {
		struct uroce_sge sge;
		struct uroce_send_wr wr = rig_wr(&r.near[0], &r.far[0], &sge, done % 2 ? UROCE_OP_READ : UROCE_OP_WRITE, 1 << 16);
		assert_int_equal(uroce_post_send(r.near[0].qp, &wr, 1), 1);
		while (!uroce_cq_poll(r.cq[0], &wc, 1)) {
			assert_true(sim_world_step(r.world, sim_world_now(r.world) + SECOND));
			memcpy(frame, good, len);
			deliver(&r, 1, frame, noises[n % NOISES].make(frame, len));
			times[n++ % NOISES]++;
		}
		assert_int_equal(wc.status, UROCE_WC_SUCCESS);
	}
	assert_true(n > 10000);
	for (unsigned i = 0; i < NOISES; i++) {
		uint64_t must = 0;
		for (unsigned k = 0; k < NOISES; k++)
			must += noises[k].why == noises[i].why ? times[k] : 0;
		uint64_t is = core_drops(core)->count[noises[i].why] - before.count[noises[i].why];
		if (is != must)
			fail_msg("%s: %llu dropped as %s instead of %llu", noises[i].name, (unsigned long long)is, drop_name(noises[i].why), (unsigned long long)must);
	}
	assert_int_equal(all_drops(core), n);
	assert_int_equal(rig_counter(r.near[0].qp, QP_RETRANSMITTED_PACKETS), 0);
	assert_int_equal(rig_counter(r.far[0].qp, QP_OUT_OF_SEQUENCE), 0);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_opcode_to_whatever_qp),
		cmocka_unit_test(test_packets_of_a_qp_that_is_gone),
		cmocka_unit_test(test_traffic_beside_noise),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
