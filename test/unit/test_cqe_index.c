/* SPDX-License-Identifier: BSD-3-Clause */
/* A CQE says which WQE of its queue it is for: success, error and flush, on both queues, without a gap, around 2^32 and across RESET. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "machine.h"
#include "raw_client.h"

#define WRS 24u

/* Two QPs of one core that talk to each other. */
struct fixture {
	uint64_t now;
	struct core *core;
	struct raw_client c;
	struct raw_memory m;
	struct raw_cq send_cq, recv_cq;
	struct raw_qp a, b; /* a sends */
};

static void open_fixture(struct fixture *x)
{
	static const struct abi_qp_cap cap = { 64, 64, 1, 8, 32 };
	x->now = 1000;
	x->core = raw_core_new(0, 1, x->now);
	raw_open(&x->c, x->core, &x->now);
	raw_memory_new(&x->c, 4096, &x->m);
	raw_cq_new(&x->c, 128, 0, &x->send_cq);
	raw_cq_new(&x->c, 128, 0, &x->recv_cq);
	raw_qp_new(&x->c, &x->send_cq, &x->recv_cq, &cap, &x->a);
	raw_qp_new(&x->c, &x->send_cq, &x->recv_cq, &cap, &x->b);
	raw_connect(&x->c, &x->a, "10.0.0.1", x->b.qpn);
	raw_connect(&x->c, &x->b, "10.0.0.1", x->a.qpn);
}

static void run(struct fixture *x)
{
	struct core_frame none;
	for (unsigned i = 0; i < 200; i++, x->now += 1000) {
		core_run(x->core, x->now);
		core_scan(x->core);
		core_tx(x->core, x->now, &none, 0);
	}
}

static void post_send(struct fixture *x, uint64_t wr_id, uint32_t flags)
{
	struct abi_send_wqe w = { .wr_id = wr_id, .opcode = ABI_OP_SEND, .flags = (uint8_t)flags, .num_sge = 1, .sge = { { 0, 8, x->m.key } } };
	raw_post(&x->a.sq, &w, sizeof(w));
	raw_ring_doorbell(&x->c, &x->a, &x->a.sq);
}

/* Some of many SGEs, which do not fit into the small copy. */
static void post_receive(struct fixture *x, uint64_t wr_id)
{
	uint8_t slot[192] = { 0 };
	struct abi_recv_wqe w = { .wr_id = wr_id, .num_sge = wr_id % 3 ? 1 : 8 };
	struct abi_sge sge = { 64, 64, x->m.key };
	memcpy(slot, &w, 16);
	for (unsigned i = 0; i < 8; i++)
		memcpy(slot + 16 + i * sizeof(sge), &sge, sizeof(sge));
	raw_post(&x->b.rq, slot, 16 + w.num_sge * (uint32_t)sizeof(sge));
	raw_ring_doorbell(&x->c, &x->b, &x->b.rq);
}

/* The next n completions: one for every step-th WR from `wr_id`, with the index of its WQE. */
static void expect(struct raw_cq *cq, uint64_t wr_id, uint32_t index, unsigned n, unsigned step, uint8_t status)
{
	struct abi_cqe c;
	for (unsigned i = 0; i < n; i++, wr_id += step, index += step) {
		assert_true(raw_poll(cq, &c));
		assert_int_equal(c.wr_id, wr_id);
		assert_int_equal(c.index, index);
		assert_int_equal(c.status, status);
	}
}

static void test_both_queues_count_from_zero(void **state)
{
	struct fixture x;
	struct abi_cqe c;
	open_fixture(&x);
	for (unsigned round = 0; round < 5; round++) { /* more than the rings have slots */
		for (unsigned i = 0; i < WRS; i++) {
			post_receive(&x, round * WRS + i);
			post_send(&x, round * WRS + i, ABI_SEND_SIGNALED);
		}
		run(&x);
		expect(&x.send_cq, round * WRS, round * WRS, WRS, 1, ABI_WC_SUCCESS);
		expect(&x.recv_cq, round * WRS, round * WRS, WRS, 1, ABI_WC_SUCCESS);
		const struct abi_ring *const rings[] = { x.a.sq.ring, x.b.rq.ring, x.send_cq.ring, x.recv_cq.ring };
		for (unsigned i = 0; i < 4; i++) /* what a client goes by when the engine is gone */
			assert_int_equal(atomic_load(&rings[i]->engine_index), (round + 1) * WRS);
	}
	assert_false(raw_poll(&x.send_cq, &c));
	core_free(x.core);
}

static void test_unsignaled_ones_are_counted(void **state)
{
	struct fixture x;
	open_fixture(&x);
	for (unsigned i = 0; i < WRS; i++) {
		post_receive(&x, i);
		post_send(&x, i, i % 3 == 2 ? ABI_SEND_SIGNALED : 0);
	}
	run(&x);
	expect(&x.send_cq, 2, 2, WRS / 3, 3, ABI_WC_SUCCESS);
	core_free(x.core);
}

/* The first fails, the others are flushed; what is posted afterwards is flushed too; then RESET, and the queues go on where they were. */
static void test_errors_flushes_and_reset(void **state)
{
	struct fixture x;
	struct abi_send_wqe bad = { .wr_id = 0, .opcode = ABI_OP_SEND, .num_sge = 1, .sge = { { 0, 8, 0xbad } } };
	open_fixture(&x);
	raw_post(&x.a.sq, &bad, sizeof(bad));
	for (unsigned i = 0; i < 10; i++) {
		post_receive(&x, i);
		if (i)
			post_send(&x, i, 0);
	}
	run(&x);
	expect(&x.send_cq, 0, 0, 1, 1, ABI_WC_LOC_PROT_ERR);
	expect(&x.send_cq, 1, 1, 9, 1, ABI_WC_WR_FLUSH_ERR);
	for (unsigned i = 10; i < 15; i++)
		post_send(&x, i, 0);
	assert_int_equal(raw_set_state(&x.c, &x.b, ABI_QP_ERR), 0);
	run(&x);
	expect(&x.send_cq, 10, 10, 5, 1, ABI_WC_WR_FLUSH_ERR);
	expect(&x.recv_cq, 0, 0, 10, 1, ABI_WC_WR_FLUSH_ERR);
	post_receive(&x, 10);
	run(&x);
	expect(&x.recv_cq, 10, 10, 1, 1, ABI_WC_WR_FLUSH_ERR);
	assert_int_equal(raw_set_state(&x.c, &x.a, ABI_QP_RESET), 0);
	assert_int_equal(raw_set_state(&x.c, &x.b, ABI_QP_RESET), 0);
	raw_connect(&x.c, &x.a, "10.0.0.1", x.b.qpn);
	raw_connect(&x.c, &x.b, "10.0.0.1", x.a.qpn);
	for (unsigned i = 0; i < 4; i++) {
		post_receive(&x, 11 + i);
		post_send(&x, 15 + i, ABI_SEND_SIGNALED);
	}
	run(&x);
	expect(&x.send_cq, 15, 15, 4, 1, ABI_WC_SUCCESS);
	expect(&x.recv_cq, 11, 11, 4, 1, ABI_WC_SUCCESS);
	core_free(x.core);
}

static void move_to(struct fixture *x, const struct raw_qp *q, struct raw_ring *r, uint32_t index)
{
	r->tail = index;
	atomic_store(&r->ring->client_index, index);
	assert_int_equal(raw_set_state(&x->c, q, ABI_QP_RESET), 0);
}

static void test_around_the_end_of_the_count(void **state)
{
	struct fixture x;
	open_fixture(&x);
	move_to(&x, &x.a, &x.a.sq, 0xfffffff8);
	move_to(&x, &x.b, &x.b.rq, 0xfffffffc);
	raw_connect(&x.c, &x.a, "10.0.0.1", x.b.qpn);
	raw_connect(&x.c, &x.b, "10.0.0.1", x.a.qpn);
	for (unsigned i = 0; i < WRS; i++) {
		post_receive(&x, i);
		post_send(&x, i, ABI_SEND_SIGNALED);
	}
	run(&x);
	expect(&x.send_cq, 0, 0xfffffff8, WRS, 1, ABI_WC_SUCCESS);
	expect(&x.recv_cq, 0, 0xfffffffc, WRS, 1, ABI_WC_SUCCESS);
	core_free(x.core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_queues_count_from_zero),
		cmocka_unit_test(test_unsignaled_ones_are_counted),
		cmocka_unit_test(test_errors_flushes_and_reset),
		cmocka_unit_test(test_around_the_end_of_the_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
