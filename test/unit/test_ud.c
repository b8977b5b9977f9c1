/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams and address handles of a core: AHs that resolve, fail, go away and belong to others while WRs name them; VLANs; hostile WQEs; quotas; and that nothing is left. */
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

#define FRAMES 64u
#define SECOND UINT64_C(1000000000)

struct fixture {
	uint64_t now;
	struct core *core;
	struct raw_client c;
	struct raw_memory m;
	struct raw_cq send_cq, recv_cq;
	struct raw_qp qp, other;
	struct packet sent[FRAMES]; /* RoCE packets that left */
	uint8_t frame[FRAMES][CORE_FRAME_MAX];
	unsigned n;
};

static int set_up_ud(struct fixture *x, const struct raw_qp *q)
{
	struct abi_req r = { .type = ABI_MODIFY_QP, .modify_qp = { .qp = q->handle, .attr = { .port_num = 1, .qkey = 0x11 } } };
	for (uint32_t from = ABI_QP_RESET; from < ABI_QP_RTS; from++) {
		r.modify_qp.mask = ABI_QP_STATE | qp_transitions[ABI_SERVICE_UD][from][from + 1].required;
		r.modify_qp.attr.state = (uint8_t)(from + 1);
		int rc = raw_ask(&x->c, &r);
		if (rc)
			return rc;
	}
	return 0;
}

static struct fixture *open_fixture(void)
{
	static struct fixture fixture;
	static const struct abi_qp_cap cap = { 64, 64, 1, 1, 512 };
	struct fixture *x = &fixture;
	*x = (struct fixture){ .now = SECOND };
	x->core = raw_core_new(0, 1, x->now);
	raw_open(&x->c, x->core, &x->now);
	raw_memory_new(&x->c, 65536, &x->m);
	raw_cq_new(&x->c, 256, 0, &x->send_cq);
	raw_cq_new(&x->c, 256, 0, &x->recv_cq);
	x->c.service = ABI_SERVICE_UD;
	raw_qp_new(&x->c, &x->send_cq, &x->recv_cq, &cap, &x->qp);
	raw_qp_new(&x->c, &x->send_cq, &x->recv_cq, &cap, &x->other);
	assert_int_equal(set_up_ud(x, &x->qp), 0);
	assert_int_equal(set_up_ud(x, &x->other), 0);
	return x;
}

static int create_ah(struct fixture *x, const char *to, uint32_t *handle)
{
	struct abi_req r = { .type = ABI_CREATE_AH, .create_ah = { .pd = x->c.pd, .av = { .sl = 5 } } };
	struct gid gid;
	assert_int_equal(gid_parse(to, &gid), 0);
	memcpy(r.create_ah.av.dgid, gid.b, 16);
	int rc = raw_ask(&x->c, &r);
	*handle = x->c.rep.handle;
	return rc;
}

static uint32_t make_ah(struct fixture *x, const char *to)
{
	uint32_t handle;
	assert_int_equal(create_ah(x, to, &handle), 0);
	assert_int_not_equal(handle, 0);
	return handle;
}

/* Runs for so long, keeping what is sent. */
static void run(struct fixture *x, uint64_t ns)
{
	static uint8_t spare[CORE_FRAME_MAX];
	for (uint64_t until = x->now + ns; x->now < until; x->now += 20000) {
		struct core_frame f = { .data = x->n < FRAMES ? x->frame[x->n] : spare, .room = CORE_FRAME_MAX };
		core_run(x->core, x->now);
		core_scan(x->core);
		while (core_tx(x->core, x->now, &f, 1)) {
			struct packet p;
			assert_int_equal(packet_parse(&p, f.data, f.len, VLAN_NONE, NULL), DROP_NONE);
			if (p.kind != PACKET_ROCE)
				continue;
			assert_true(x->n < FRAMES);
			x->sent[x->n++] = p;
			f.data = x->n < FRAMES ? x->frame[x->n] : spare;
		}
	}
}

static void post_to(struct fixture *x, uint64_t wr_id, uint32_t ah, uint32_t qpn, uint32_t qkey)
{
	struct abi_send_wqe w = { .wr_id = wr_id, .opcode = ABI_OP_SEND, .flags = ABI_SEND_SIGNALED | ABI_SEND_INLINE, .ah = ah, .remote_qpn = qpn, .remote_qkey = qkey, .inline_len = 8 };
	raw_post(&x->qp.sq, &w, sizeof(w));
	raw_ring_doorbell(&x->c, &x->qp, &x->qp.sq);
}

static void post(struct fixture *x, uint64_t wr_id, uint32_t ah)
{
	post_to(x, wr_id, ah, 0x99, 0x11);
}

static void expect(struct fixture *x, uint64_t wr_id, uint8_t status)
{
	struct abi_cqe c;
	assert_true(raw_poll(&x->send_cq, &c));
	assert_int_equal(c.wr_id, wr_id);
	assert_int_equal(c.status, status);
}

static void expect_none(struct fixture *x)
{
	struct abi_cqe c;
	assert_false(raw_poll(&x->send_cq, &c));
}

static void learn(struct fixture *x, const char *who, uint8_t last)
{
	struct gid gid;
	gid_parse(who, &gid);
	assert_int_equal(addr_learn(core_addr(x->core), &gid, VLAN_NONE, (uint8_t[6]){ 2, 0, 0, 0, 0, last }, true, x->now), 0);
}

static uint64_t counter(struct fixture *x, enum qp_counter which)
{
	assert_int_equal(raw_ask_handle(&x->c, ABI_QUERY_COUNTERS, x->qp.handle), 0);
	return x->c.rep.counters.value[which];
}

/* Waited for, in post order, and sent as soon as the answer is there. */
static void test_an_ah_that_is_being_resolved(void **state)
{
	struct fixture *x = open_fixture();
	uint32_t to = make_ah(x, "10.0.0.2"), known;
	learn(x, "10.0.0.3", 3);
	known = make_ah(x, "10.0.0.3");
	post(x, 1, to);
	post(x, 2, known);
	run(x, SECOND / 100);
	expect_none(x);
	learn(x, "10.0.0.2", 2);
	run(x, SECOND / 1000);
	expect(x, 1, ABI_WC_SUCCESS);
	expect(x, 2, ABI_WC_SUCCESS);
	assert_int_equal(x->n, 2);
	assert_int_equal(x->sent[0].dmac[5], 2);
	assert_int_equal(x->sent[1].dmac[5], 3);
	core_free(x->core);
}

/* Nobody answers: lost, counted, and not for long in the way of others. */
static void test_an_ah_that_cannot_be_resolved(void **state)
{
	struct fixture *x = open_fixture();
	uint32_t lost = make_ah(x, "10.0.0.2"), known;
	learn(x, "10.0.0.3", 3);
	known = make_ah(x, "10.0.0.3");
	for (uint64_t i = 0; i < 40; i++)
		post(x, i, lost);
	post(x, 40, known);
	run(x, SECOND);
	for (uint64_t i = 0; i < 41; i++)
		expect(x, i, ABI_WC_SUCCESS);
	assert_int_equal(x->n, 1);
	assert_int_equal(counter(x, QP_TX_UNREACHABLE), 40);
	post(x, 41, lost);
	post(x, 42, known);
	run(x, SECOND / 1000); /* what is known to be gone costs nothing */
	expect(x, 41, ABI_WC_SUCCESS);
	expect(x, 42, ABI_WC_SUCCESS);
	core_free(x->core);
}

/* known-bugs: 47 */
static void test_an_ah_that_goes_while_it_is_waited_for(void **state)
{
	for (unsigned way = 0; way < 4; way++) {
		struct fixture *x = open_fixture();
		uint32_t ah = make_ah(x, "10.0.0.2");
		post(x, 1, ah);
		run(x, SECOND / 100);
		expect_none(x);
		if (way == 0) { /* the AH */
			assert_int_equal(raw_ask_handle(&x->c, ABI_DESTROY_AH, ah), 0);
			run(x, SECOND / 1000);
			expect(x, 1, ABI_WC_LOC_QP_OP_ERR);
		} else if (way == 1) { /* the QP */
			assert_int_equal(raw_ask_handle(&x->c, ABI_DESTROY_QP, x->qp.handle), 0);
		} else { /* or its state */
			assert_int_equal(raw_set_state(&x->c, &x->qp, way == 2 ? ABI_QP_RESET : ABI_QP_ERR), 0);
			run(x, SECOND / 1000);
			if (way == 3)
				expect(x, 1, ABI_WC_WR_FLUSH_ERR);
		}
		expect_none(x);
		learn(x, "10.0.0.2", 2);
		run(x, SECOND / 1000);
		assert_int_equal(x->n, 0);
		if (way)
			assert_int_equal(raw_ask_handle(&x->c, ABI_DESTROY_AH, ah), 0);
		assert_int_equal(raw_ask_handle(&x->c, ABI_DESTROY_AH, ah), -ENOENT);
		core_free(x->core);
	}
}

/* Two QPs wait for one AH, and one of them goes. */
static void test_several_wait_for_one(void **state)
{
	struct fixture *x = open_fixture();
	uint32_t ah = make_ah(x, "10.0.0.2");
	struct abi_send_wqe w = { .wr_id = 5, .opcode = ABI_OP_SEND, .flags = ABI_SEND_SIGNALED | ABI_SEND_INLINE, .ah = ah, .remote_qpn = 7, .inline_len = 8 };
	post(x, 1, ah);
	raw_post(&x->other.sq, &w, sizeof(w));
	raw_ring_doorbell(&x->c, &x->other, &x->other.sq);
	run(x, SECOND / 100);
	assert_int_equal(raw_ask_handle(&x->c, ABI_DESTROY_QP, x->other.handle), 0);
	learn(x, "10.0.0.2", 2);
	run(x, SECOND / 1000);
	expect(x, 1, ABI_WC_SUCCESS);
	expect_none(x);
	core_free(x->core);
}

/* known-bugs: 35 50 */
static void test_handles_that_name_nothing(void **state)
{
	struct fixture *x = open_fixture();
	struct fixture other = { .now = x->now };
	raw_open(&other.c, x->core, &x->now);
	learn(x, "10.0.0.2", 2);
	uint32_t foreign = 0, stale = make_ah(x, "10.0.0.2"), good;
	for (unsigned i = 0; i < 3; i++)
		foreign = make_ah(&other, "10.0.0.2");
	assert_int_equal(raw_ask_handle(&x->c, ABI_DESTROY_AH, stale), 0);
	good = make_ah(x, "10.0.0.2");
	assert_int_not_equal(good, stale);
	const struct {
		uint32_t ah, qpn;
	} rows[] = { { 0, 5 }, { 0xffffffff, 5 }, { stale, 5 }, { foreign, 5 }, { good, 0 }, { good, QPN_MULTICAST }, { good, 0x1000000 }, { good, 0xffffffff } };
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		post_to(x, i, rows[i].ah, rows[i].qpn, 0);
		run(x, SECOND / 1000);
		expect(x, i, ABI_WC_LOC_QP_OP_ERR);
		assert_int_equal(raw_set_state(&x->c, &x->qp, ABI_QP_RTS), 0);
	}
	assert_int_equal(x->n, 0);
	post_to(x, 9, good, 0xfffffe, 0);
	run(x, SECOND / 1000);
	expect(x, 9, ABI_WC_SUCCESS);
	assert_int_equal(x->n, 1);
	core_free(x->core);
}

/* IBA vol. 1, 9.8.3: what the client library would refuse. */
static void test_wqes_that_are_no_datagrams(void **state)
{
	struct fixture *x = open_fixture();
	learn(x, "10.0.0.2", 2);
	uint32_t ah = make_ah(x, "10.0.0.2");
	const struct {
		struct abi_send_wqe w;
		uint8_t status;
	} rows[] = {
		{ { .opcode = ABI_OP_SEND, .num_sge = 1, .sge = { { 0, 4097, x->m.key } } }, ABI_WC_LOC_LEN_ERR },
		{ { .opcode = ABI_OP_SEND, .num_sge = 1, .sge = { { 0, 0xffffffff, x->m.key } } }, ABI_WC_LOC_LEN_ERR },
		{ { .opcode = ABI_OP_WRITE, .num_sge = 1, .sge = { { 0, 8, x->m.key } } }, ABI_WC_LOC_QP_OP_ERR },
		{ { .opcode = ABI_OP_READ, .num_sge = 1, .sge = { { 0, 8, x->m.key } } }, ABI_WC_LOC_QP_OP_ERR },
		{ { .opcode = ABI_OP_FETCH_ADD, .num_sge = 1, .sge = { { 0, 8, x->m.key } } }, ABI_WC_LOC_QP_OP_ERR },
		{ { .opcode = ABI_OP_COUNT }, ABI_WC_LOC_QP_OP_ERR },
		{ { .opcode = ABI_OP_SEND, .num_sge = 1, .sge = { { 0, 8, 0xbad } } }, ABI_WC_LOC_PROT_ERR },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct abi_send_wqe w = rows[i].w;
		w.wr_id = i;
		w.ah = ah;
		w.remote_qpn = 5;
		raw_post(&x->qp.sq, &w, sizeof(w));
		raw_ring_doorbell(&x->c, &x->qp, &x->qp.sq);
		run(x, SECOND / 1000);
		expect(x, i, rows[i].status);
		assert_int_equal(raw_set_state(&x->c, &x->qp, ABI_QP_RTS), 0);
	}
	assert_int_equal(x->n, 0);
	core_free(x->core);
}

/* IBA vol. 1, 11.4.2.1: who sent it, on which VLAN, and with which priority, whether the port has stripped the tag or not. */
static void test_vlan_and_priority(void **state)
{
	for (unsigned is_stripped = 0; is_stripped < 2; is_stripped++) {
		struct fixture *x = open_fixture();
		struct template_fields f = { .dmac = { 2, 0, 0, 0, 0, 1 }, .smac = { 2, 0, 0, 0, 0, 9 }, .vlan = is_stripped ? VLAN_NONE : 7, .priority = 5, .ttl = 9, .udp_src_port = 0xc000 };
		struct abi_recv_wqe r = { .wr_id = 3, .num_sge = 1, .sge = { { 0, 100, x->m.key } } };
		struct bth b = { .op = opcode_find(SERVICE_UD, MESSAGE_SEND, OPCODE_FIRST | OPCODE_LAST), .dqpn = x->qp.qpn, .pkey = 0xffff };
		struct core_frame frame = { .data = x->frame[0], .vlan_tci = is_stripped ? 5u << 13 | 7 : VLAN_NONE };
		struct template t;
		struct abi_cqe c;
		uint32_t index;
		gid_parse("10.7.0.1", &f.dst);
		gid_parse("10.7.0.9", &f.src);
		assert_int_equal(addr_gid_add(core_addr(x->core), &f.dst, 7, 24, &index), 0);
		template_build(&t, &f);
		memcpy(frame.data, t.b, t.len);
		frame.len = packet_finish(frame.data, &t, deth_write(bth_write(template_lay(frame.data, &t), &b, 0), 0x11, 0x4242));
		raw_post(&x->qp.rq, &r, 32);
		core_rx(x->core, x->now, &frame, 1);
		assert_true(raw_poll(&x->recv_cq, &c));
		assert_int_equal(c.byte_len, GRH_BYTES);
		assert_int_equal(c.src_qpn, 0x4242);
		assert_int_equal(c.flags, ABI_WC_HAS_GRH);
		assert_int_equal(c.vlan, 7);
		assert_int_equal(c.sl, 5);
		assert_memory_equal(x->m.host + 20, frame.data + t.l3_offset, 20);
		/* what comes without the tag is not for this address */
		frame.vlan_tci = VLAN_NONE;
		if (is_stripped)
			core_rx(x->core, x->now, &frame, 1);
		assert_int_equal(core_drops(x->core)->count[DROP_IP_NOT_OURS], is_stripped);
		core_free(x->core);
	}
}

/* Between two QPs of this core, and as long as the port carries. */
static void test_loopback(void **state)
{
	struct fixture *x = open_fixture();
	uint32_t ah = make_ah(x, "10.0.0.1");
	struct abi_recv_wqe r = { .wr_id = 3, .num_sge = 1, .sge = { { 0, 5000, x->m.key } } };
	struct abi_send_wqe w = { .wr_id = 4, .opcode = ABI_OP_SEND_WITH_IMM, .imm = 0xabcd, .flags = ABI_SEND_SIGNALED, .num_sge = 1, .ah = ah, .remote_qpn = x->other.qpn, .remote_qkey = QKEY_CONTROLLED,
		.sge = { { 8192, 4096, x->m.key } } };
	struct abi_cqe c;
	memset(x->m.host + 8192, 0x5a, 4096);
	raw_post(&x->other.rq, &r, 32);
	raw_post(&x->qp.sq, &w, sizeof(w));
	raw_ring_doorbell(&x->c, &x->qp, &x->qp.sq);
	run(x, SECOND / 1000);
	expect(x, 4, ABI_WC_SUCCESS);
	assert_int_equal(x->n, 0);
	assert_true(raw_poll(&x->recv_cq, &c));
	assert_int_equal(c.wr_id, 3);
	assert_int_equal(c.src_qpn, x->qp.qpn);
	assert_int_equal(c.byte_len, GRH_BYTES + 4096);
	assert_int_equal(c.imm, 0xabcd);
	assert_int_equal(x->m.host[40], 0x5a);
	assert_int_equal(x->m.host[40 + 4095], 0x5a);
	core_free(x->core);
}

static void test_requests(void **state)
{
	struct fixture *x = open_fixture();
	uint32_t handle;
	assert_int_equal(create_ah(x, "255.255.255.255", &handle), -EINVAL);
	assert_int_equal(create_ah(x, "fd00::1", &handle), -EINVAL);
	assert_int_equal(create_ah(x, "192.168.1.1", &handle), -ENETUNREACH);
	assert_true(strlen(x->c.rep.text) > 20);
	struct abi_req r = { .type = ABI_CREATE_AH, .create_ah = { .pd = 99 } };
	assert_int_equal(raw_ask(&x->c, &r), -ENOENT);
	r.create_ah.pd = x->c.pd;
	r.create_ah.av.sgid_index = 5;
	assert_int_equal(raw_ask(&x->c, &r), -EINVAL);
	/* its PD stays as long as it does */
	struct core_usage u;
	handle = make_ah(x, "10.0.0.2");
	core_client_usage(x->c.k, &u);
	assert_int_equal(u.ahs, 1);
	core_client_set_quota(x->c.k, &u);
	uint32_t more;
	assert_int_equal(create_ah(x, "10.0.0.3", &more), -EDQUOT);
	assert_non_null(strstr(x->c.rep.text, "AHs"));
	assert_int_equal(raw_ask_handle(&x->c, ABI_DESTROY_QP, x->qp.handle), 0);
	assert_int_equal(raw_ask_handle(&x->c, ABI_DESTROY_QP, x->other.handle), 0);
	assert_int_equal(raw_ask_handle(&x->c, ABI_DEREG_MR, x->m.mr), 0);
	assert_int_equal(raw_ask_handle(&x->c, ABI_DESTROY_PD, x->c.pd), -EBUSY);
	assert_int_equal(raw_ask_handle(&x->c, ABI_DESTROY_AH, handle), 0);
	assert_int_equal(raw_ask_handle(&x->c, ABI_DESTROY_PD, x->c.pd), 0);
	core_free(x->core);
}

/* A client that dies while its QPs wait for AHs. */
static void test_death_of_the_client(void **state)
{
	struct fixture *x = open_fixture();
	struct addr_stats s;
	post(x, 1, make_ah(x, "10.0.0.2"));
	make_ah(x, "10.0.0.1");
	run(x, SECOND / 100);
	core_client_free(x->c.k);
	addr_stats(core_addr(x->core), &s);
	assert_int_equal(s.pending, 0);
	assert_int_equal(x->core->env.wr_small.in_use, 0);
	core_run(x->core, x->now + SECOND);
	core_free(x->core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_ah_that_is_being_resolved),
		cmocka_unit_test(test_an_ah_that_cannot_be_resolved),
		cmocka_unit_test(test_an_ah_that_goes_while_it_is_waited_for),
		cmocka_unit_test(test_several_wait_for_one),
		cmocka_unit_test(test_handles_that_name_nothing),
		cmocka_unit_test(test_wqes_that_are_no_datagrams),
		cmocka_unit_test(test_vlan_and_priority),
		cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_death_of_the_client),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
