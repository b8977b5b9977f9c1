/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues of a core: several QPs of two services on one, its limit, its two steps of a resize, what a hostile ring does to it, and that nothing of it is lost or left. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "machine.h"
#include "raw_client.h"

#define PAIRS 3u
#define MTU 4096u

struct fixture {
	uint64_t now;
	struct core *core;
	struct raw_client c;
	struct raw_memory m;
	struct raw_cq send_cq, recv_cq;
	struct raw_srq srq;
	struct raw_qp from[PAIRS], to[PAIRS]; /* the last pair is UC; `to` take from the SRQ */
};

static void open_fixture(struct fixture *x, uint32_t max_wr, uint32_t max_sge)
{
	static const struct abi_qp_cap cap = { 16, 16, 1, 1, 64 };
	*x = (struct fixture){ .now = 1000 };
	x->core = raw_core_new(0, 1, x->now);
	raw_open(&x->c, x->core, &x->now);
	raw_memory_new(&x->c, 65536, &x->m);
	raw_cq_new(&x->c, 128, 0, &x->send_cq);
	raw_cq_new(&x->c, 128, 0, &x->recv_cq);
	raw_srq_new(&x->c, max_wr, max_sge, &x->srq);
	for (unsigned i = 0; i < PAIRS; i++) {
		x->c.service = i + 1 < PAIRS ? ABI_SERVICE_RC : ABI_SERVICE_UC;
		x->c.srq = 0;
		raw_qp_new(&x->c, &x->send_cq, &x->recv_cq, &cap, &x->from[i]);
		x->c.srq = x->srq.handle;
		raw_qp_new(&x->c, &x->send_cq, &x->recv_cq, &cap, &x->to[i]);
		assert_int_equal(x->c.rep.qp.rq.slots, 0);
		assert_int_equal(x->c.rep.qp.cap.max_recv_wr, 0);
		raw_connect(&x->c, &x->from[i], "10.0.0.1", x->to[i].qpn);
		raw_connect(&x->c, &x->to[i], "10.0.0.1", x->from[i].qpn);
	}
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

static void post_receive(struct fixture *x, uint64_t wr_id, uint32_t len)
{
	struct abi_recv_wqe w = { .wr_id = wr_id, .num_sge = 1, .sge = { { 0, len, x->m.key } } };
	raw_post(&x->srq.rq, &w, 32);
}

static void post_send(struct fixture *x, unsigned pair, uint64_t wr_id, uint32_t len)
{
	struct abi_send_wqe w = { .wr_id = wr_id, .opcode = ABI_OP_SEND, .flags = ABI_SEND_SIGNALED, .num_sge = 1, .sge = { { 32768, len, x->m.key } } };
	raw_post(&x->from[pair].sq, &w, sizeof(w));
	raw_ring_doorbell(&x->c, &x->from[pair], &x->from[pair].sq);
}

static int modify(struct fixture *x, uint32_t mask, uint32_t value)
{
	return raw_ask(&x->c, &(struct abi_req){ .type = ABI_MODIFY_SRQ, .modify_srq = { .srq = x->srq.handle, .mask = mask, .max_wr = value, .limit = value } });
}

static const struct abi_rep *query(struct fixture *x)
{
	assert_int_equal(raw_ask_handle(&x->c, ABI_QUERY_SRQ, x->srq.handle), 0);
	return &x->c.rep;
}

/* The next asynchronous event; 0: none is there. */
static uint32_t next_event(struct fixture *x, uint64_t *cookie)
{
	struct abi_async_event e;
	if (read(core_client_async_fd(x->c.k), &e, sizeof(e)) != sizeof(e))
		return 0;
	*cookie = e.cookie;
	return e.type;
}

static void expect_receive(struct fixture *x, uint64_t wr_id, uint32_t qpn, uint8_t status)
{
	struct abi_cqe c;
	assert_true(raw_poll(&x->recv_cq, &c));
	assert_int_equal(c.wr_id, wr_id);
	assert_int_equal(c.qpn, qpn);
	assert_int_equal(c.status, status);
}

static void expect_no_receive(struct fixture *x)
{
	struct abi_cqe c;
	assert_false(raw_poll(&x->recv_cq, &c));
}

/* The order is that of the SRQ, whoever takes. */
static void test_qps_of_two_services_take_in_turn(void **state)
{
	struct fixture x;
	open_fixture(&x, 16, 1);
	for (uint64_t i = 0; i < 6; i++)
		post_receive(&x, i, 64);
	for (uint64_t i = 0; i < 6; i++) {
		unsigned pair = (unsigned)i * 2 % PAIRS;
		post_send(&x, pair, i, 8);
		run(&x, 10);
		expect_receive(&x, i, x.to[pair].qpn, ABI_WC_SUCCESS);
	}
	assert_int_equal(query(&x)->srq.posted, 0);
	core_free(x.core);
}

static struct qp *qp_of(struct fixture *x, const struct raw_qp *q)
{
	return ((struct queue_pair *)handles_get(&x->c.k->qps, q->handle))->qp;
}

/* One packet of a pair's sender, straight to its receiver. */
static void pass(struct fixture *x, unsigned pair)
{
	uint8_t frame[CORE_FRAME_MAX];
	struct packet p;
	core_run(x->core, x->now);
	uint32_t len = qp_tx(qp_of(x, &x->from[pair]), frame);
	assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, NULL), DROP_NONE);
	assert_int_equal(qp_rx(qp_of(x, &x->to[pair]), &p), DROP_NONE);
}

/* Each message has the WQE that its first packet took; they complete as they end. */
static void test_completions_out_of_order(void **state)
{
	struct fixture x;
	open_fixture(&x, 2, 1);
	post_receive(&x, 0, 16384);
	post_receive(&x, 1, 16384);
	post_send(&x, 0, 0, 2 * MTU);
	pass(&x, 0);
	post_send(&x, 1, 1, 8);
	pass(&x, 1);
	expect_receive(&x, 1, x.to[1].qpn, ABI_WC_SUCCESS);
	assert_int_equal(atomic_load(&x.srq.rq.ring->engine_index), 2); /* both slots are free again */
	pass(&x, 0);
	expect_receive(&x, 0, x.to[0].qpn, ABI_WC_SUCCESS);
	core_free(x.core);
}

/* A message of two packets whose first one has come. */
static void begin_message(struct fixture *x, unsigned pair)
{
	post_send(x, pair, 99, 2 * MTU);
	pass(x, pair);
	assert_int_equal(raw_set_state(&x->c, &x->from[pair], ABI_QP_RESET), 0);
}

/* known-bugs: 47 */
static void test_a_receive_held_by_a_qp_that_ends(void **state)
{
	for (unsigned way = 0; way < 3; way++) {
		struct fixture x;
		open_fixture(&x, 4, 1);
		post_receive(&x, 7, 16384);
		begin_message(&x, 0);
		assert_int_equal(query(&x)->srq.posted, 0);
		if (way == 0)
			assert_int_equal(raw_ask_handle(&x.c, ABI_DESTROY_QP, x.to[0].handle), 0);
		else
			assert_int_equal(raw_set_state(&x.c, &x.to[0], way == 1 ? ABI_QP_RESET : ABI_QP_ERR), 0);
		uint64_t cookie;
		assert_int_equal(next_event(&x, &cookie), way == 2 ? ABI_EVENT_QP_LAST_WQE_REACHED : 0);
		if (way == 2) { /* flushed, and gone from the SRQ */
			expect_receive(&x, 7, x.to[0].qpn, ABI_WC_WR_FLUSH_ERR);
			post_receive(&x, 7, 16384);
		}
		expect_no_receive(&x);
		assert_int_equal(query(&x)->srq.posted, 1);
		post_send(&x, 1, 1, 8);
		run(&x, 10);
		expect_receive(&x, 7, x.to[1].qpn, ABI_WC_SUCCESS);
		core_free(x.core);
	}
}

/* known-bugs: 49 */
static void test_the_limit_fires_once(void **state)
{
	struct fixture x;
	uint64_t cookie = 0;
	open_fixture(&x, 8, 1);
	for (uint64_t i = 0; i < 4; i++)
		post_receive(&x, i, 64);
	assert_int_equal(modify(&x, ABI_SRQ_LIMIT, 4), 0);
	assert_int_equal(next_event(&x, &cookie), 0);
	for (uint64_t i = 0; i < 3; i++)
		post_send(&x, (unsigned)i, i, 8);
	run(&x, 10);
	assert_int_equal(next_event(&x, &cookie), ABI_EVENT_SRQ_LIMIT_REACHED);
	assert_int_equal(cookie, 0x5005);
	assert_int_equal(next_event(&x, &cookie), 0);
	assert_int_equal(query(&x)->srq.limit, 0);
	assert_int_equal(query(&x)->srq.posted, 1);
	assert_int_equal(modify(&x, ABI_SRQ_LIMIT, 2), 0); /* below it already */
	assert_int_equal(next_event(&x, &cookie), ABI_EVENT_SRQ_LIMIT_REACHED);
	assert_int_equal(modify(&x, ABI_SRQ_LIMIT, 1), 0);
	assert_int_equal(query(&x)->srq.limit, 1);
	core_free(x.core);
}

/* known-bugs: 49 */
static void test_resize_in_two_steps(void **state)
{
	struct fixture x;
	open_fixture(&x, 4, 3);
	for (uint64_t i = 0; i < 4; i++)
		post_receive(&x, i, 64);
	assert_int_equal(modify(&x, ABI_SRQ_SWITCH, 0), -EINVAL);
	assert_int_equal(modify(&x, ABI_SRQ_MAX_WR, 2), -EINVAL);
	assert_int_equal(modify(&x, ABI_SRQ_MAX_WR, 5), 0);
	struct raw_ring old = x.srq.rq, fresh = raw_ring_of(&x.c, &x.c.rep.srq.ring);
	assert_int_equal(fresh.n, 8);
	assert_int_equal(fresh.slot_bytes, old.slot_bytes);
	/* until the second step the old one is used; a step that was not finished is forgotten by the next */
	post_send(&x, 0, 0, 8);
	run(&x, 10);
	expect_receive(&x, 0, x.to[0].qpn, ABI_WC_SUCCESS);
	uint64_t before = x.c.k->usage.ring_bytes;
	assert_int_equal(modify(&x, ABI_SRQ_MAX_WR, 5), 0);
	assert_int_equal(x.c.k->usage.ring_bytes, before);
	fresh = raw_ring_of(&x.c, &x.c.rep.srq.ring);
	/* a tail that cannot be is refused */
	atomic_store(&fresh.ring->client_index, 100);
	assert_int_equal(modify(&x, ABI_SRQ_SWITCH, 0), -EINVAL);
	for (uint32_t i = 1; i < 4; i++)
		memcpy(fresh.slots + (i & (fresh.n - 1)) * fresh.slot_bytes, old.slots + (i & (old.n - 1)) * old.slot_bytes, old.slot_bytes);
	atomic_store(&fresh.ring->client_index, 4);
	assert_int_equal(modify(&x, ABI_SRQ_SWITCH, 0), 0);
	assert_int_equal(x.c.rep.srq.max_wr, 8);
	assert_int_equal(x.c.rep.srq.posted, 3);
	assert_int_equal(atomic_load(&fresh.ring->engine_index), 1);
	fresh.tail = 4;
	x.srq.rq = fresh;
	post_receive(&x, 4, 64);
	for (uint64_t i = 1; i < 5; i++) {
		post_send(&x, (unsigned)i % PAIRS, i, 8);
		run(&x, 10);
		expect_receive(&x, i, x.to[i % PAIRS].qpn, ABI_WC_SUCCESS);
	}
	core_free(x.core);
}

/* known-bugs: 50 */
static void test_a_ring_that_says_what_cannot_be(void **state)
{
	for (unsigned way = 0; way < 2; way++) {
		struct fixture x;
		uint64_t cookie = 0;
		open_fixture(&x, 4, 1);
		if (way == 0) {
			struct abi_recv_wqe w = { .num_sge = 2 };
			raw_post(&x.srq.rq, &w, 16);
		} else {
			atomic_store(&x.srq.rq.ring->client_index, 77);
		}
		post_send(&x, 0, 0, 8);
		post_send(&x, 1, 0, 8);
		run(&x, 10);
		assert_int_equal(next_event(&x, &cookie), ABI_EVENT_SRQ_ERR);
		assert_int_equal(cookie, 0x5005);
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(next_event(&x, &cookie), ABI_EVENT_QP_FATAL);
			assert_int_equal(next_event(&x, &cookie), ABI_EVENT_QP_LAST_WQE_REACHED);
			assert_int_equal(qp_of(&x, &x.to[i])->state, ABI_QP_ERR);
		}
		assert_int_equal(next_event(&x, &cookie), 0);
		core_free(x.core);
	}
}

static void test_requests_out_of_bounds(void **state)
{
	struct fixture x;
	open_fixture(&x, 4, 1);
	const struct {
		int error;
		struct abi_req req;
	} rows[] = {
		{ -ENOENT, { .type = ABI_CREATE_SRQ, .create_srq = { .pd = 99, .max_wr = 1 } } },
		{ -EINVAL, { .type = ABI_CREATE_SRQ, .create_srq = { .pd = x.c.pd, .max_wr = 0 } } },
		{ -EINVAL, { .type = ABI_CREATE_SRQ, .create_srq = { .pd = x.c.pd, .max_wr = 0xffffffff } } },
		{ -EINVAL, { .type = ABI_CREATE_SRQ, .create_srq = { .pd = x.c.pd, .max_wr = 1, .max_sge = 33 } } },
		{ -EINVAL, { .type = ABI_CREATE_SRQ, .create_srq = { .pd = x.c.pd, .max_wr = 4, .limit = 5 } } },
		{ -ENOENT, { .type = ABI_MODIFY_SRQ, .modify_srq = { .srq = 99, .mask = ABI_SRQ_LIMIT } } },
		{ -EINVAL, { .type = ABI_MODIFY_SRQ, .modify_srq = { .srq = x.srq.handle, .mask = 0 } } },
		{ -EINVAL, { .type = ABI_MODIFY_SRQ, .modify_srq = { .srq = x.srq.handle, .mask = ABI_SRQ_LIMIT | ABI_SRQ_SWITCH } } },
		{ -EINVAL, { .type = ABI_MODIFY_SRQ, .modify_srq = { .srq = x.srq.handle, .mask = 8 } } },
		{ -EINVAL, { .type = ABI_MODIFY_SRQ, .modify_srq = { .srq = x.srq.handle, .mask = ABI_SRQ_LIMIT, .limit = 5 } } },
		{ -EINVAL, { .type = ABI_MODIFY_SRQ, .modify_srq = { .srq = x.srq.handle, .mask = ABI_SRQ_MAX_WR, .max_wr = 1u << 31 } } },
		{ -ENOENT, { .type = ABI_QUERY_SRQ, .handle = 99 } },
		{ -EBUSY, { .type = ABI_DESTROY_SRQ, .handle = x.srq.handle } },
		{ -EBUSY, { .type = ABI_DESTROY_PD, .handle = x.c.pd } },
		{ -ENOENT, { .type = ABI_CREATE_QP, .create_qp = { .pd = x.c.pd, .send_cq = x.send_cq.handle, .recv_cq = x.recv_cq.handle, .srq = 99 } } },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int rc = raw_ask(&x.c, &rows[i].req);
		if (rc != rows[i].error)
			print_message("row %u\n", i);
		assert_int_equal(rc, rows[i].error);
		assert_true(strlen(x.c.rep.text) > 5);
	}
	core_free(x.core);
}

/* Rings, PD reference and records are given back; a dead client's too. */
static void test_nothing_is_left(void **state)
{
	struct fixture x;
	open_fixture(&x, 4, 1);
	post_receive(&x, 0, 16384);
	begin_message(&x, 0);
	assert_int_equal(modify(&x, ABI_SRQ_MAX_WR, 64), 0);
	for (unsigned i = 0; i < PAIRS; i++) {
		assert_int_equal(raw_ask_handle(&x.c, ABI_DESTROY_QP, x.from[i].handle), 0);
		assert_int_equal(raw_ask_handle(&x.c, ABI_DESTROY_QP, x.to[i].handle), 0);
	}
	assert_int_equal(x.core->env.wr_small.in_use, 1); /* what the QP held is the SRQ's again */
	assert_int_equal(raw_ask_handle(&x.c, ABI_DESTROY_SRQ, x.srq.handle), 0);
	assert_int_equal(x.core->env.wr_small.in_use, 0);
	struct core_usage u;
	core_client_usage(x.c.k, &u);
	assert_int_equal(u.srqs, 0);
	assert_int_equal(u.ring_bytes, client_ring_bytes(128, 64) * 2);
	core_free(x.core);
	open_fixture(&x, 4, 1);
	post_receive(&x, 0, 16384);
	begin_message(&x, 2);
	core_client_free(x.c.k);
	assert_int_equal(x.core->env.wr_small.in_use, 0);
	core_free(x.core);
}

static void test_quota(void **state)
{
	struct fixture x;
	struct core_usage most;
	open_fixture(&x, 4, 1);
	core_client_usage(x.c.k, &most);
	core_client_set_quota(x.c.k, &most);
	struct abi_req one = { .type = ABI_CREATE_SRQ, .create_srq = { .pd = x.c.pd, .max_wr = 1 } };
	assert_int_equal(raw_ask(&x.c, &one), -EDQUOT);
	assert_non_null(strstr(x.c.rep.text, "SRQs"));
	most.srqs++;
	core_client_set_quota(x.c.k, &most);
	assert_int_equal(raw_ask(&x.c, &one), -EDQUOT);
	assert_non_null(strstr(x.c.rep.text, "bytes of rings"));
	core_free(x.core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_qps_of_two_services_take_in_turn),
		cmocka_unit_test(test_completions_out_of_order),
		cmocka_unit_test(test_a_receive_held_by_a_qp_that_ends),
		cmocka_unit_test(test_the_limit_fires_once),
		cmocka_unit_test(test_resize_in_two_steps),
		cmocka_unit_test(test_a_ring_that_says_what_cannot_be),
		cmocka_unit_test(test_requests_out_of_bounds),
		cmocka_unit_test(test_nothing_is_left),
		cmocka_unit_test(test_quota),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
