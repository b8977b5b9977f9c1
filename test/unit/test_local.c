/* SPDX-License-Identifier: BSD-3-Clause */
/* WRs that send nothing (bind, invalidate, register), SENDs that invalidate, and the requests around them, between QPs of one core: when they are carried out, how they complete, what they cost others, what a client's end leaves. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "machine.h"
#include "raw_client.h"

#define BYTES 65536u
#define REMOTE ((uint32_t)MEM_REMOTE_WRITE | MEM_REMOTE_READ | MEM_REMOTE_ATOMIC)

struct fixture {
	uint64_t now;
	struct core *core;
	struct raw_client c;
	struct raw_memory m;
	uint32_t mr, key;      /* of all of it, iova 0, all rights and MW_BIND */
	struct raw_cq send_cq, recv_cq;
	struct raw_qp qp[2];   /* connected to each other */
	uint32_t mw, mw_key;   /* of type 2, as it began */
	uint32_t fast, fast_key;
};

static int ask_mr(struct fixture *x, uint32_t type, uint32_t access)
{
	return raw_ask(&x->c, &(struct abi_req){ .type = type, .reg_mr = { .pd = x->c.pd, .access = access, .len = x->m.bytes, .memory = x->m.handle, .mr = x->mr, .mask = ABI_REREG_ACCESS } });
}

static uint32_t create_mw(struct fixture *x, enum abi_mw_type type, uint32_t *key)
{
	assert_int_equal(raw_ask(&x->c, &(struct abi_req){ .type = ABI_CREATE_MW, .create_mw = { x->c.pd, type } }), 0);
	*key = x->c.rep.mr.rkey;
	return x->c.rep.handle;
}

static void connect_pair(struct fixture *x)
{
	raw_connect(&x->c, &x->qp[0], "10.0.0.1", x->qp[1].qpn);
	raw_connect(&x->c, &x->qp[1], "10.0.0.1", x->qp[0].qpn);
}

static void open_fixture(struct fixture *x, enum abi_service service)
{
	static const struct abi_qp_cap cap = { 256, 16, 1, 1, 64 };
	*x = (struct fixture){ .now = 1000 };
	x->core = raw_core_new(0, 1, x->now);
	raw_open(&x->c, x->core, &x->now);
	raw_memory_new(&x->c, BYTES, &x->m);
	assert_int_equal(ask_mr(x, ABI_REG_MR, MEM_ACCESS_ALL | MEM_MW_BIND), 0);
	x->mr = x->c.rep.handle;
	x->key = x->c.rep.mr.lkey;
	raw_cq_new(&x->c, 1024, 0, &x->send_cq);
	raw_cq_new(&x->c, 128, 0, &x->recv_cq);
	x->c.service = service;
	for (unsigned i = 0; i < 2; i++)
		raw_qp_new(&x->c, &x->send_cq, &x->recv_cq, &cap, &x->qp[i]);
	connect_pair(x);
	x->mw = create_mw(x, ABI_MW_TYPE_2, &x->mw_key);
	assert_int_equal(raw_ask_handle(&x->c, ABI_ALLOC_MR, x->c.pd), 0);
	x->fast = x->c.rep.handle;
	x->fast_key = x->c.rep.mr.rkey;
}

static void run(struct fixture *x, unsigned rounds)
{
	struct core_frame none;
	for (unsigned i = 0; i < rounds; i++, x->now += 10000) {
		core_run(x->core, x->now);
		core_scan(x->core);
		core_tx(x->core, x->now, &none, 0);
	}
}

static void post(struct fixture *x, unsigned i, const struct abi_send_wqe *w)
{
	raw_post(&x->qp[i].sq, w, sizeof(*w));
	raw_ring_doorbell(&x->c, &x->qp[i], &x->qp[i].sq);
}

/* 4096 bytes at 8192 of the memory. */
static struct abi_send_wqe bind_of(struct fixture *x, uint64_t wr_id, uint32_t key)
{
	bool is_fast = key >> 8 == x->fast_key >> 8;
	return (struct abi_send_wqe){ .wr_id = wr_id, .opcode = is_fast ? ABI_OP_REG_MR : ABI_OP_BIND_MW, .flags = ABI_SEND_SIGNALED, .rkey = key,
		.bind = { .addr = 8192, .len = 4096, .lkey = x->key, .access = REMOTE | (is_fast ? MEM_LOCAL_WRITE : 0), .iova = 0x70000 } };
}

static struct abi_send_wqe invalidation_of(uint64_t wr_id, uint32_t key)
{
	return (struct abi_send_wqe){ .wr_id = wr_id, .opcode = ABI_OP_LOCAL_INV, .flags = ABI_SEND_SIGNALED, .imm = key };
}

/* Eight inline bytes of this value to the peer's memory. */
static struct abi_send_wqe write_of(uint64_t wr_id, uint32_t rkey, uint64_t addr)
{
	struct abi_send_wqe w = { .wr_id = wr_id, .opcode = ABI_OP_WRITE, .flags = ABI_SEND_SIGNALED | ABI_SEND_INLINE, .inline_len = 8, .rkey = rkey, .remote_addr = addr };
	memcpy(w.inline_data, &wr_id, 8);
	return w;
}

static struct abi_send_wqe send_of(uint64_t wr_id, uint32_t key)
{
	return (struct abi_send_wqe){ .wr_id = wr_id, .opcode = key ? ABI_OP_SEND_WITH_INV : ABI_OP_SEND, .flags = ABI_SEND_SIGNALED | ABI_SEND_INLINE, .inline_len = 8, .imm = key };
}

static void post_receive(struct fixture *x, unsigned i, uint64_t wr_id)
{
	struct abi_recv_wqe w = { .wr_id = wr_id, .num_sge = 1, .sge = { { 0, 64, x->key } } };
	raw_post(&x->qp[i].rq, &w, sizeof(w));
}

static void expect(struct raw_cq *cq, uint64_t wr_id, uint8_t status, uint32_t cause)
{
	struct abi_cqe e;
	assert_true(raw_poll(cq, &e));
	assert_int_equal(e.wr_id, wr_id);
	assert_int_equal(e.status, status);
	assert_int_equal(e.vendor_error, cause);
}

static void expect_none(struct raw_cq *cq)
{
	struct abi_cqe e;
	assert_false(raw_poll(cq, &e));
}

static struct qp *qp_of(struct fixture *x, unsigned i)
{
	return ((struct queue_pair *)handles_get(&x->c.k->qps, x->qp[i].handle))->qp;
}

static uint64_t word_at(const struct fixture *x, uint32_t offset)
{
	uint64_t word;
	memcpy(&word, x->m.host + offset, 8);
	return word;
}

static void do_ok(struct fixture *x, unsigned i, struct abi_send_wqe w)
{
	post(x, i, &w);
	run(x, 10);
	expect(&x->send_cq, w.wr_id, ABI_WC_SUCCESS, 0);
}

/* ---- what they do ---- */

static void test_bind_use_invalidate(void **state)
{
	static const enum abi_service services[] = { ABI_SERVICE_RC, ABI_SERVICE_UC };
	for (unsigned s = 0; s < 2; s++)
		for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
			struct fixture x;
			open_fixture(&x, services[s]);
			uint32_t key = (is_fast ? x.fast_key : x.mw_key) ^ 3;
			uint64_t at = is_fast ? 0x70000 : 8192;
			do_ok(&x, 1, bind_of(&x, 1, key));
			do_ok(&x, 0, write_of(2, key, at + 8));
			assert_int_equal(word_at(&x, 8200), 2);
			do_ok(&x, 1, invalidation_of(3, key));
			struct abi_send_wqe late = write_of(4, key, at);
			post(&x, 0, &late);
			run(&x, 10);
			expect(&x.send_cq, 4, s ? ABI_WC_SUCCESS : ABI_WC_REM_ACCESS_ERR, s ? 0 : CAUSE_NAK_REMOTE_ACCESS);
			assert_int_equal(word_at(&x, 8192), 0);
			core_free(x.core);
		}
}

/* A registered key is an MR to its own side as well: what it brings is what the part holds. */
static void test_a_registration_is_an_lkey(void **state)
{
	struct fixture x;
	open_fixture(&x, ABI_SERVICE_RC);
	uint32_t key = x.fast_key ^ 9;
	memset(x.m.host + 8192, 0x5a, 64);
	struct abi_send_wqe chain[3] = { bind_of(&x, 1, key),
		{ .wr_id = 2, .opcode = ABI_OP_WRITE, .flags = ABI_SEND_SIGNALED, .num_sge = 1, .remote_addr = 0, .rkey = x.key, .sge = { { 0x70000, 64, key } } }, invalidation_of(3, key) };
	for (unsigned i = 0; i < 3; i++)
		post(&x, 0, &chain[i]); /* the second uses what the first makes and the third ends */
	run(&x, 20);
	for (unsigned i = 1; i <= 3; i++)
		expect(&x.send_cq, i, ABI_WC_SUCCESS, 0);
	assert_int_equal(x.m.host[0], 0x5a);
	assert_int_equal(x.m.host[63], 0x5a);
	chain[1].wr_id = 4;
	post(&x, 0, &chain[1]);
	run(&x, 20);
	expect(&x.send_cq, 4, ABI_WC_LOC_PROT_ERR, CAUSE_LOCAL_KEY);
	core_free(x.core);
}

/* A window's key is no lkey: nothing of it is sent, or received into. */
static void test_a_window_is_no_lkey(void **state)
{
	for (unsigned type = ABI_MW_TYPE_1; type <= ABI_MW_TYPE_2; type++) {
		struct fixture x;
		uint32_t key;
		open_fixture(&x, ABI_SERVICE_RC);
		create_mw(&x, (enum abi_mw_type)type, &key);
		do_ok(&x, 0, bind_of(&x, 1, key));
		struct abi_send_wqe w = { .wr_id = 2, .opcode = ABI_OP_WRITE, .num_sge = 1, .rkey = x.key, .sge = { { 8192, 64, key } } };
		post(&x, 0, &w);
		run(&x, 10);
		struct abi_cqe e;
		assert_true(raw_poll(&x.send_cq, &e));
		assert_int_equal(e.status, ABI_WC_LOC_PROT_ERR);
		core_free(x.core);
	}
}

/* Refused: every WR before it completes, it says why, the rest is flushed; the window is as it was. */
static void test_refused_binds(void **state)
{
	static const uint32_t causes[] = { CAUSE_BIND_TARGET, CAUSE_BIND_MR, CAUSE_BIND_RANGE, CAUSE_BIND_RANGE, CAUSE_BIND_RIGHTS, CAUSE_BIND_NOT_FREE, CAUSE_INVALIDATE_KEY, CAUSE_INVALIDATE_KEY };
	for (unsigned way = 0; way < sizeof(causes) / sizeof(causes[0]); way++) {
		struct fixture x;
		open_fixture(&x, ABI_SERVICE_RC);
		struct abi_send_wqe before = write_of(1, x.key, 0), w = bind_of(&x, 2, x.mw_key), after = write_of(3, x.key, 8);
		w.flags = 0; /* errors complete all the same */
		if (way == 0)
			w.rkey = x.key;
		if (way == 1)
			w.bind.lkey ^= 1;
		if (way == 2)
			w.bind.addr = BYTES - 4095;
		if (way == 3)
			w.bind.len = 0; /* IBA vol. 1, o10-37.2.40 */
		if (way == 4)
			w.bind.access = MEM_LOCAL_WRITE;
		if (way == 5)
			do_ok(&x, 1, bind_of(&x, 0, x.mw_key ^ 1));
		if (way == 6)
			w = invalidation_of(2, x.key);
		if (way == 7)
			w = invalidation_of(2, x.mw_key); /* it is not bound */
		post(&x, 0, &before);
		post(&x, 0, &w);
		post(&x, 0, &after);
		run(&x, 10);
		expect(&x.send_cq, 1, ABI_WC_SUCCESS, 0);
		expect(&x.send_cq, 2, ABI_WC_MW_BIND_ERR, causes[way]);
		expect(&x.send_cq, 3, ABI_WC_WR_FLUSH_ERR, CAUSE_FLUSHED);
		assert_int_equal(raw_ask_handle(&x.c, ABI_QUERY_QP, x.qp[0].handle), 0);
		assert_int_equal(x.c.rep.query_qp.attr.state, ABI_QP_ERR);
		assert_int_equal(word_at(&x, 8), 0);
		do_ok(&x, 1, way == 5 ? invalidation_of(9, x.mw_key ^ 1) : bind_of(&x, 9, x.mw_key));
		core_free(x.core);
	}
}

/* ---- when ---- */

/* One packet of qp[0], handed to qp[1] or lost. 0: there is none. */
static uint32_t pass(struct fixture *x, bool is_lost)
{
	uint8_t frame[CORE_FRAME_MAX];
	struct packet p;
	core_run(x->core, x->now);
	uint32_t len = qp_tx(qp_of(x, 0), frame);
	if (!len || is_lost)
		return len;
	assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, NULL), DROP_NONE);
	assert_int_equal(qp_rx(qp_of(x, 1), &p), DROP_NONE);
	return len;
}

/* What qp[1] answers, to qp[0]. */
static void answer(struct fixture *x)
{
	uint8_t frame[CORE_FRAME_MAX];
	struct packet p;
	for (unsigned i = 0; i < 4; i++) {
		x->core->env.round++; /* an ACK waits a round */
		uint32_t len = qp_tx(qp_of(x, 1), frame);
		if (!len)
			continue;
		assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, NULL), DROP_NONE);
		assert_int_equal(qp_rx(qp_of(x, 0), &p), DROP_NONE);
	}
}

/* Carried out in its turn, complete in post order, and only once, though all before and after it is sent again. */
static void test_carried_out_once(void **state)
{
	struct fixture x;
	open_fixture(&x, ABI_SERVICE_RC);
	struct abi_send_wqe chain[4] = { write_of(1, x.key, 0), bind_of(&x, 2, x.mw_key), bind_of(&x, 3, x.fast_key), write_of(4, x.key, 8) };
	for (unsigned i = 0; i < 4; i++)
		post(&x, 0, &chain[i]);
	assert_true(pass(&x, true));
	struct qp *q = qp_of(&x, 0);
	assert_int_equal(q->windows.n, 0);
	assert_true(pass(&x, true)); /* the second WRITE, and on the way there both binds */
	assert_int_equal(q->windows.n, 1);
	assert_non_null(mr_find(x.core->env.mrs, x.fast_key));
	assert_int_equal(pass(&x, false), 0);
	expect_none(&x.send_cq);
	x.now += 1000000000; /* the timeout */
	assert_true(pass(&x, false));
	assert_true(pass(&x, false));
	assert_int_equal(pass(&x, false), 0);
	expect_none(&x.send_cq);
	answer(&x);
	for (unsigned i = 1; i <= 4; i++)
		expect(&x.send_cq, i, ABI_WC_SUCCESS, 0);
	assert_int_equal(q->windows.n, 1);
	assert_int_equal(q->local.waiting, 0);
	assert_int_equal(word_at(&x, 8), 4);
	core_free(x.core);
}

/* The last ones of a record complete with what was before them, though nothing after them is ever acknowledged. */
static void test_complete_with_what_was_before(void **state)
{
	struct fixture x;
	open_fixture(&x, ABI_SERVICE_RC);
	struct abi_send_wqe w = write_of(1, x.key, 0), r = { .wr_id = 11, .opcode = ABI_OP_READ, .flags = ABI_SEND_SIGNALED, .num_sge = 1, .rkey = x.key, .sge = { { 64, 8, x.key } } };
	struct abi_send_wqe b = bind_of(&x, 2, x.mw_key), f = bind_of(&x, 12, x.fast_key);
	post(&x, 0, &w);
	post(&x, 0, &b);
	assert_true(pass(&x, false));
	assert_int_equal(pass(&x, false), 0);
	expect_none(&x.send_cq);
	answer(&x);
	expect(&x.send_cq, 1, ABI_WC_SUCCESS, 0);
	expect(&x.send_cq, 2, ABI_WC_SUCCESS, 0);
	post(&x, 0, &r);
	post(&x, 0, &f);
	assert_true(pass(&x, false));
	assert_int_equal(pass(&x, false), 0);
	answer(&x);
	expect(&x.send_cq, 11, ABI_WC_SUCCESS, 0);
	expect(&x.send_cq, 12, ABI_WC_SUCCESS, 0);
	assert_int_equal(atomic_load(&x.qp[0].sq.ring->engine_index), 4);
	core_free(x.core);
}

/* Fenced ones wait for READs and atomics, LOCAL_INV for everything (IBA vol. 1, 10.6.5.1, 10.8.3.3). */
/* known-bugs: 39 */
static void test_fences(void **state)
{
	static const struct {
		bool is_read, is_invalidation;
		uint8_t flags;
		bool waits;
	} rows[] = {
		{ true, false, 0, false }, { false, false, 0, false }, { true, false, ABI_SEND_FENCE, true }, { false, false, ABI_SEND_FENCE, false }, { true, true, 0, true }, { false, true, 0, true },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture x;
		open_fixture(&x, ABI_SERVICE_RC);
		if (rows[i].is_invalidation)
			do_ok(&x, 0, bind_of(&x, 0, x.mw_key));
		struct abi_send_wqe r = { .wr_id = 1, .opcode = ABI_OP_READ, .num_sge = 1, .flags = ABI_SEND_SIGNALED, .rkey = x.key, .sge = { { 64, 8, x.key } } };
		struct abi_send_wqe first = rows[i].is_read ? r : write_of(1, x.key, 0), w = rows[i].is_invalidation ? invalidation_of(2, x.mw_key) : bind_of(&x, 2, x.mw_key);
		w.flags |= rows[i].flags;
		bool was_bound = rows[i].is_invalidation;
		post(&x, 0, &first);
		post(&x, 0, &w);
		struct abi_send_wqe after = write_of(3, x.key, 16);
		post(&x, 0, &after);
		assert_true(pass(&x, false));
		assert_int_equal(pass(&x, false) != 0, !rows[i].waits); /* the last one stands behind it */
		assert_int_equal(mr_find(x.core->env.mrs, x.mw_key) != NULL, was_bound ? rows[i].waits : !rows[i].waits);
		answer(&x);
		run(&x, 10);
		for (unsigned n = 1; n <= 3; n++)
			expect(&x.send_cq, n, ABI_WC_SUCCESS, 0);
		assert_int_equal(mr_find(x.core->env.mrs, x.mw_key) != NULL, !was_bound);
		core_free(x.core);
	}
}

/* So many may be carried out and wait; then the next waits itself. */
static void test_most_that_wait(void **state)
{
	struct fixture x;
	uint32_t key;
	open_fixture(&x, ABI_SERVICE_RC);
	create_mw(&x, ABI_MW_TYPE_1, &key);
	struct abi_send_wqe w = write_of(0, x.key, 0);
	post(&x, 0, &w);
	for (uint64_t i = 1; i <= 200; i++) {
		struct abi_send_wqe b = bind_of(&x, i, key ^ (i & 1));
		post(&x, 0, &b);
	}
	assert_true(pass(&x, false));
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(pass(&x, false), 0);
	assert_int_equal(qp_of(&x, 0)->local.waiting, 128);
	answer(&x);
	run(&x, 100);
	for (uint64_t i = 0; i <= 200; i++)
		expect(&x.send_cq, i, ABI_WC_SUCCESS, 0);
	core_free(x.core);
}

/* In one call of core_tx a piece is carried out, however many there are; somebody else's packets leave in it. */
static void test_a_long_queue_keeps_nobody_waiting(void **state)
{
	struct fixture x;
	static const struct abi_qp_cap cap = { 4096, 1, 1, 1, 64 };
	struct raw_client other;
	struct raw_memory m;
	struct raw_cq cq, mine;
	struct raw_qp qp, long_qp;
	uint32_t key;
	open_fixture(&x, ABI_SERVICE_RC);
	raw_open(&other, x.core, &x.now);
	raw_memory_new(&other, 4096, &m);
	raw_cq_new(&other, 16, 0, &cq);
	raw_qp_new(&other, &cq, &cq, &cap, &qp);
	raw_connect(&other, &qp, "10.0.0.1", qp.qpn);
	raw_cq_new(&x.c, 8192, 0, &mine);
	raw_qp_new(&x.c, &mine, &mine, &cap, &long_qp);
	raw_connect(&x.c, &long_qp, "10.0.0.1", x.qp[0].qpn);
	create_mw(&x, ABI_MW_TYPE_1, &key);
	for (uint64_t i = 0; i < 4096; i++) {
		struct abi_send_wqe b = bind_of(&x, i, key ^ (i & 0xff));
		raw_post(&long_qp.sq, &b, sizeof(b));
	}
	raw_ring_doorbell(&x.c, &long_qp, &long_qp.sq);
	raw_write(&other, &qp, 77, &m);
	uint64_t before = x.core->env.cqes;
	run(&x, 1);
	assert_in_range(x.core->env.cqes - before, 16, 200);
	run(&x, 3);
	expect(&cq, 77, ABI_WC_SUCCESS, 0);
	assert_in_range(x.core->env.cqes - before, 16, 800);
	run(&x, 1000);
	for (uint64_t i = 0; i < 4096; i++)
		expect(&mine, i, ABI_WC_SUCCESS, 0);
	core_free(x.core);
}

static void test_datagrams_have_none_of_it(void **state)
{
	static const uint8_t ops[] = { ABI_OP_BIND_MW, ABI_OP_LOCAL_INV, ABI_OP_REG_MR, ABI_OP_SEND_WITH_INV };
	for (unsigned i = 0; i < 4; i++)
		for (unsigned service = ABI_SERVICE_UC; service <= ABI_SERVICE_UD; service++) {
			struct fixture x;
			if (service == ABI_SERVICE_UC && ops[i] != ABI_OP_SEND_WITH_INV)
				continue;
			open_fixture(&x, (enum abi_service)service);
			struct abi_send_wqe w = { .wr_id = 5, .opcode = ops[i] };
			post(&x, 0, &w);
			run(&x, 5);
			expect(&x.send_cq, 5, ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_SERVICE);
			core_free(x.core);
		}
}

/* ---- SEND with invalidate ---- */

/* known-bugs: 37 */
static void test_send_with_invalidate(void **state)
{
	for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
		struct fixture x;
		struct abi_cqe e;
		open_fixture(&x, ABI_SERVICE_RC);
		uint32_t key = is_fast ? x.fast_key : x.mw_key;
		uint64_t at = is_fast ? 0x70000 : 8192;
		do_ok(&x, 1, bind_of(&x, 1, key));
		struct abi_send_wqe s = send_of(2, key), w = write_of(3, key, at), ok = write_of(4, key, at);
		post(&x, 0, &s);
		run(&x, 2); /* no receive yet: RNR, and the key lives on */
		assert_non_null(mr_find(x.core->env.mrs, key));
		post_receive(&x, 1, 50);
		run(&x, 200);
		expect(&x.send_cq, 2, ABI_WC_SUCCESS, 0);
		assert_true(raw_poll(&x.recv_cq, &e));
		assert_int_equal(e.wr_id, 50);
		assert_int_equal(e.flags, ABI_WC_HAS_INVALIDATE);
		assert_int_equal(e.imm, key);
		assert_int_equal(e.byte_len, 8);
		assert_null(mr_find(x.core->env.mrs, key));
		do_ok(&x, 1, bind_of(&x, 5, key)); /* the same key once more */
		do_ok(&x, 0, ok);
		post_receive(&x, 1, 51);
		s.wr_id = 6;
		post(&x, 0, &s);
		post(&x, 0, &w); /* behind the invalidation on the wire */
		run(&x, 20);
		expect(&x.send_cq, 6, ABI_WC_SUCCESS, 0);
		expect(&x.send_cq, 3, ABI_WC_REM_ACCESS_ERR, CAUSE_NAK_REMOTE_ACCESS);
		assert_int_equal(word_at(&x, 8192), 4);
		core_free(x.core);
	}
}

/* What may not be invalidated stays as it is, and the peer is told. */
/* known-bugs: 37 */
static void test_send_with_invalidate_of_another_key(void **state)
{
	for (unsigned way = 0; way < 6; way++) {
		struct fixture x;
		uint32_t type_1, mine;
		open_fixture(&x, ABI_SERVICE_RC);
		create_mw(&x, ABI_MW_TYPE_1, &type_1);
		create_mw(&x, ABI_MW_TYPE_2, &mine);
		do_ok(&x, 1, bind_of(&x, 1, type_1));
		do_ok(&x, 1, bind_of(&x, 1, x.mw_key));
		do_ok(&x, 0, bind_of(&x, 1, mine)); /* on the sender's own QP */
		const uint32_t keys[] = { x.key, type_1, x.mw_key ^ 1, x.fast_key, mine, 0x12345678 };
		post_receive(&x, 1, 50);
		struct abi_send_wqe s = send_of(2, keys[way]);
		memset(x.m.host, 0xee, 8);
		post(&x, 0, &s);
		run(&x, 10);
		expect(&x.send_cq, 2, ABI_WC_REM_ACCESS_ERR, CAUSE_NAK_REMOTE_ACCESS);
		expect(&x.recv_cq, 50, ABI_WC_REM_ACCESS_ERR, CAUSE_INVALIDATE_KEY);
		assert_int_equal(x.m.host[0], 0xee); /* nothing was placed */
		assert_non_null(mr_find(x.core->env.mrs, x.key));
		assert_non_null(mr_find(x.core->env.mrs, type_1));
		assert_non_null(mr_find(x.core->env.mrs, x.mw_key));
		assert_non_null(mr_find(x.core->env.mrs, mine));
		core_free(x.core);
	}
}

/* ---- requests, and what ends a window ---- */

static void test_a_qp_takes_its_windows_along(void **state)
{
	for (unsigned way = 0; way < 3; way++) {
		struct fixture x;
		uint32_t type_1;
		open_fixture(&x, ABI_SERVICE_RC);
		create_mw(&x, ABI_MW_TYPE_1, &type_1);
		do_ok(&x, 1, bind_of(&x, 1, x.mw_key));
		do_ok(&x, 1, bind_of(&x, 2, type_1));
		if (way == 0)
			assert_int_equal(raw_ask_handle(&x.c, ABI_DESTROY_QP, x.qp[1].handle), 0);
		else
			assert_int_equal(raw_set_state(&x.c, &x.qp[1], way == 1 ? ABI_QP_RESET : ABI_QP_ERR), 0);
		/* in ERR nobody can use it, nor is it free */
		assert_int_equal(mr_find(x.core->env.mrs, x.mw_key) != NULL, way == 2);
		assert_non_null(mr_find(x.core->env.mrs, type_1));
		assert_int_equal(raw_ask_handle(&x.c, ABI_DESTROY_MW, x.mw), 0);
		assert_null(mr_find(x.core->env.mrs, x.mw_key));
		core_free(x.core);
	}
}

/* IBA vol. 1, 10.6.7.2.6 */
/* known-bugs: 37 */
static void test_an_mr_with_windows_stays(void **state)
{
	struct fixture x;
	open_fixture(&x, ABI_SERVICE_RC);
	for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
		uint32_t key = is_fast ? x.fast_key : x.mw_key;
		do_ok(&x, 1, bind_of(&x, 1, key));
		assert_int_equal(raw_ask_handle(&x.c, ABI_DEREG_MR, x.mr), -EBUSY);
		assert_non_null(strstr(x.c.rep.text, "bound"));
		assert_int_equal(ask_mr(&x, ABI_REREG_MR, 0), -EBUSY);
		do_ok(&x, 0, write_of(2, key, is_fast ? 0x70000 : 8192));
		do_ok(&x, 1, invalidation_of(3, key));
	}
	assert_int_equal(ask_mr(&x, ABI_REREG_MR, 0), 0);
	assert_int_equal(raw_ask_handle(&x.c, ABI_DEREG_MR, x.mr), 0);
	core_free(x.core);
}

static void test_requests_out_of_bounds(void **state)
{
	struct fixture x;
	open_fixture(&x, ABI_SERVICE_RC);
	struct abi_req all = { .type = ABI_REREG_MR, .reg_mr = { .pd = x.c.pd, .access = 1, .len = BYTES, .memory = x.m.handle, .mr = x.mr, .mask = 7 } };
	struct abi_req wrong[] = { all, all, all, all, all, all, all, all, all, all, all };
	wrong[0].reg_mr.mr = 99;
	wrong[1].reg_mr.mask = 0;
	wrong[2].reg_mr.mask = 8;
	wrong[3].reg_mr.pd = 99;
	wrong[4].reg_mr.memory = 99;
	wrong[5].reg_mr.len++;
	wrong[6].reg_mr.access = MEM_REMOTE_WRITE;
	wrong[7].reg_mr.access = MEM_ZERO_BASED;
	wrong[8].reg_mr.iova = UINT64_MAX;
	wrong[9].reg_mr.mr = x.fast;
	wrong[10].reg_mr.access = MEM_LKEY;
	static const int errors[] = { -ENOENT, -EINVAL, -EINVAL, -ENOENT, -ENOENT, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL };
	for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		assert_int_equal(raw_ask(&x.c, &wrong[i]), errors[i]);
		assert_true(strlen(x.c.rep.text) > 5);
		assert_non_null(mr_find(x.core->env.mrs, x.key));
	}
	assert_int_equal(raw_ask(&x.c, &(struct abi_req){ .type = ABI_CREATE_MW, .create_mw = { 99, ABI_MW_TYPE_1 } }), -ENOENT);
	assert_int_equal(raw_ask(&x.c, &(struct abi_req){ .type = ABI_CREATE_MW, .create_mw = { x.c.pd, 0 } }), -EINVAL);
	assert_int_equal(raw_ask(&x.c, &(struct abi_req){ .type = ABI_CREATE_MW, .create_mw = { x.c.pd, 3 } }), -EINVAL);
	assert_int_equal(raw_ask_handle(&x.c, ABI_ALLOC_MR, 99), -ENOENT);
	assert_int_equal(raw_ask_handle(&x.c, ABI_DESTROY_MW, 99), -ENOENT);
	assert_int_equal(raw_ask_handle(&x.c, ABI_DESTROY_PD, x.c.pd), -EBUSY);
	assert_int_equal(raw_ask(&x.c, &all), 0);
	assert_int_not_equal(x.c.rep.mr.lkey, x.key);
	core_free(x.core);
}

/* Memory moves with the region, and is counted anew: bytes, PDs, the block that it lies in. */
static void test_reregistration_counts(void **state)
{
	struct fixture x;
	struct raw_memory other;
	struct core_usage u, most;
	open_fixture(&x, ABI_SERVICE_RC);
	raw_memory_new(&x.c, 8192, &other);
	assert_int_equal(raw_ask_handle(&x.c, ABI_DEREG_MR, other.mr), 0);
	core_client_usage(x.c.k, &u);
	uint64_t bytes = u.registered_bytes;
	assert_int_equal(raw_ask(&x.c, &(struct abi_req){ .type = ABI_CREATE_PD }), 0);
	uint32_t pd = x.c.rep.handle;
	assert_int_equal(raw_ask(&x.c, &(struct abi_req){ .type = ABI_REREG_MR, .reg_mr = { .pd = pd, .len = 4096, .addr = 4096, .memory = other.handle, .mr = x.mr, .mask = ABI_REREG_MEMORY | ABI_REREG_PD } }), 0);
	core_client_usage(x.c.k, &u);
	assert_int_equal(u.registered_bytes, bytes - BYTES + 4096);
	assert_int_equal(raw_ask_handle(&x.c, ABI_FREE_MEMORY, other.handle), -EBUSY);
	assert_int_equal(raw_ask_handle(&x.c, ABI_DESTROY_PD, pd), -EBUSY);
	most = u;
	core_client_set_quota(x.c.k, &most);
	struct abi_req back = { .type = ABI_REREG_MR, .reg_mr = { .pd = x.c.pd, .len = BYTES, .memory = x.m.handle, .mr = x.mr, .mask = ABI_REREG_MEMORY | ABI_REREG_PD } };
	assert_int_equal(raw_ask(&x.c, &back), -EDQUOT);
	assert_non_null(strstr(x.c.rep.text, "registered bytes"));
	most.registered_bytes += BYTES - 4096;
	core_client_set_quota(x.c.k, &most);
	assert_int_equal(raw_ask(&x.c, &back), 0);
	assert_int_equal(raw_ask_handle(&x.c, ABI_FREE_MEMORY, other.handle), 0);
	assert_int_equal(raw_ask_handle(&x.c, ABI_DESTROY_PD, pd), 0);
	core_client_usage(x.c.k, &u);
	assert_int_equal(u.registered_bytes, bytes);
	core_free(x.core);
}

static void test_quota(void **state)
{
	struct fixture x;
	struct core_usage most;
	open_fixture(&x, ABI_SERVICE_RC);
	core_client_usage(x.c.k, &most);
	assert_int_equal(most.mws, 1);
	assert_int_equal(most.mrs, 3);
	core_client_set_quota(x.c.k, &most);
	assert_int_equal(raw_ask(&x.c, &(struct abi_req){ .type = ABI_CREATE_MW, .create_mw = { x.c.pd, ABI_MW_TYPE_1 } }), -EDQUOT);
	assert_non_null(strstr(x.c.rep.text, "MWs"));
	assert_int_equal(raw_ask_handle(&x.c, ABI_ALLOC_MR, x.c.pd), -EDQUOT);
	assert_non_null(strstr(x.c.rep.text, "MRs"));
	assert_int_equal(raw_ask_handle(&x.c, ABI_DESTROY_MW, x.mw), 0);
	assert_int_equal(raw_ask_handle(&x.c, ABI_DEREG_MR, x.fast), 0);
	create_mw(&x, ABI_MW_TYPE_1, &x.mw_key);
	assert_int_equal(raw_ask_handle(&x.c, ABI_ALLOC_MR, x.c.pd), 0);
	core_free(x.core);
}

/* A client that dies with everything bound, in pieces or at once: nothing of it is left, and nothing of another's is touched. */
static void test_death_with_everything_bound(void **state)
{
	for (unsigned budget = 1; budget < 8; budget++) {
		struct fixture x;
		struct core_stats s;
		struct raw_client other;
		uint32_t key;
		open_fixture(&x, ABI_SERVICE_RC);
		raw_open(&other, x.core, &x.now);
		core_stats(x.core, &s);
		struct abi_send_wqe window = bind_of(&x, 3, 0);
		do_ok(&x, 0, bind_of(&x, 1, x.fast_key));
		do_ok(&x, 0, bind_of(&x, 2, x.mw_key));
		create_mw(&x, ABI_MW_TYPE_1, &key);
		window.rkey = key;
		do_ok(&x, 1, window);
		/* one on the other */
		assert_int_equal(raw_ask_handle(&x.c, ABI_ALLOC_MR, x.c.pd), 0);
		struct abi_send_wqe f = bind_of(&x, 4, x.c.rep.mr.rkey);
		f.opcode = ABI_OP_REG_MR;
		f.bind.lkey = x.fast_key;
		f.bind.addr = 0x70000;
		f.bind.len = 64;
		f.bind.access = MEM_LOCAL_WRITE;
		do_ok(&x, 0, f);
		while (!core_client_detach(x.c.k, budget))
			run(&x, 1);
		core_client_free(x.c.k);
		core_stats(x.core, &s);
		assert_int_equal(s.mrs, 0);
		assert_int_equal(s.mws, 0);
		assert_int_equal(s.qps, 0);
		core_free(x.core);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bind_use_invalidate),
		cmocka_unit_test(test_a_registration_is_an_lkey),
		cmocka_unit_test(test_a_window_is_no_lkey),
		cmocka_unit_test(test_refused_binds),
		cmocka_unit_test(test_carried_out_once),
		cmocka_unit_test(test_complete_with_what_was_before),
		cmocka_unit_test(test_fences),
		cmocka_unit_test(test_most_that_wait),
		cmocka_unit_test(test_a_long_queue_keeps_nobody_waiting),
		cmocka_unit_test(test_datagrams_have_none_of_it),
		cmocka_unit_test(test_send_with_invalidate),
		cmocka_unit_test(test_send_with_invalidate_of_another_key),
		cmocka_unit_test(test_a_qp_takes_its_windows_along),
		cmocka_unit_test(test_an_mr_with_windows_stays),
		cmocka_unit_test(test_requests_out_of_bounds),
		cmocka_unit_test(test_reregistration_counts),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_death_with_everything_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
