/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests that are not taken: by state, by what is wrong with them, by what is full or gone; and what is just inside
 * each limit. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "post_fixture.h"

static const struct uroce_sge sges[4] = {
	{ 0x1122334455667788, 0x100, 0xa1a2a3a4 },
	{ 0x2122334455667788, 0x200, 0xb1b2b3b4 },
	{ 0x3122334455667788, 0x300, 0xc1c2c3c4 },
	{ 0x4122334455667788, 0x400, 0xd1d2d3d4 },
};

/* known-bugs: 46 */
static void test_states(void **state)
{
	static const struct {
		enum uroce_qp_state state;
		bool send, recv;
	} rows[] = {
		{ UROCE_QP_RESET, false, false },
		{ UROCE_QP_INIT, false, true },
		{ UROCE_QP_RTR, false, true },
		{ UROCE_QP_RTS, true, true },
		{ UROCE_QP_SQD, true, true },
		{ UROCE_QP_SQE, true, true },
		{ UROCE_QP_ERR, true, true },
	};
	struct fixture x = open_qp(usual, false, 0, 0);
	struct uroce_send_wr send = { .opcode = UROCE_OP_SEND };
	struct uroce_recv_wr recv = { 0 };
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t tail = fake_tail(&x.f->qp[0].sq);
		set_state(x.qp, rows[i].state);
		x.f->lines = 0;
		assert_int_equal(uroce_post_send(x.qp, &send, 1), rows[i].send ? 1 : -EINVAL);
		assert_int_equal(uroce_post_recv(x.qp, &recv, 1), rows[i].recv ? 1 : -EINVAL);
		assert_int_equal(fake_tail(&x.f->qp[0].sq), tail + rows[i].send);
		assert_int_equal(x.f->lines, !rows[i].send + !rows[i].recv);
	}
	close_qp(&x);
}

/* The engine went to ERR by itself while this side still believes in INIT: once an event or a query told of it, sends are
 * taken, to be flushed. */
static void test_state_from_the_engine(void **state)
{
	struct fixture x = open_qp(usual, false, 0, 0);
	struct uroce_send_wr send = { .opcode = UROCE_OP_SEND };
	struct uroce_async_event event;
	struct uroce_qp_attr attr;
	set_state(x.qp, UROCE_QP_RTR);
	assert_int_equal(uroce_post_send(x.qp, &send, 1), -EINVAL);
	fake_async(x.f, x.f->qp[0].cookie, ABI_EVENT_QP_ACCESS_ERR);
	assert_int_equal(uroce_async_get_event(x.ctx, &event), 0);
	uroce_async_ack_event(&event);
	assert_int_equal(uroce_post_send(x.qp, &send, 1), 1);
	set_state(x.qp, UROCE_QP_RESET);
	fake_async(x.f, x.f->qp[0].cookie, ABI_EVENT_QP_FATAL); /* older than the reset */
	assert_int_equal(uroce_async_get_event(x.ctx, &event), 0);
	uroce_async_ack_event(&event);
	assert_int_equal(uroce_post_send(x.qp, &send, 1), -EINVAL);
	x.f->qp[0].attr.state = ABI_QP_ERR;
	assert_int_equal(uroce_qp_query(x.qp, &attr), 0);
	assert_int_equal(attr.state, UROCE_QP_ERR);
	assert_int_equal(uroce_post_send(x.qp, &send, 1), 1);
	close_qp(&x);
}

static const struct uroce_sge word8[2] = { { 0x1000, 8, 1 }, { 0x2000, 8, 1 } };
static const struct uroce_sge halves[2] = { { 0x1000, 4, 1 }, { 0x2000, 4, 1 } };
static const struct uroce_sge huge[4] = { { 0, 0x80000000, 1 }, { 0, 1, 1 }, { 0, 0x7fffffff, 1 }, { 0, 0xffffffff, 1 } };
static const struct uroce_sge wrapping[3] = { { 0x1000, 0xfffffff0, 1 }, { 0x1000, 0x11, 1 }, { 0x1000, 0x10, 1 } };

/* known-bugs: 45 */
static void test_refused_sends(void **state)
{
	static const struct {
		struct uroce_send_wr wr;
		const char *says;
	} rows[] = {
		{ { .opcode = (enum uroce_opcode)ABI_OP_COUNT }, "opcode 13" },
		{ { .opcode = (enum uroce_opcode) - 1 }, "opcode" },
		{ { .opcode = UROCE_OP_SEND, .flags = 1 << 4 }, "flags 0x10" },
		{ { .opcode = UROCE_OP_SEND, .flags = 0x80000001 }, "flags" },
		{ { .opcode = UROCE_OP_SEND, .sg_list = sges, .num_sge = 5 }, "created for 4" },
		{ { .opcode = UROCE_OP_SEND, .sg_list = sges, .num_sge = UINT32_MAX }, "created for 4" },
		{ { .opcode = UROCE_OP_SEND, .sg_list = sges, .num_sge = 5, .flags = UROCE_SEND_INLINE }, "created for 4" },
		{ { .opcode = UROCE_OP_READ, .sg_list = word8, .num_sge = 1, .flags = UROCE_SEND_INLINE }, "cannot be inline" },
		{ { .opcode = UROCE_OP_FETCH_ADD, .sg_list = word8, .num_sge = 1, .flags = UROCE_SEND_INLINE },
			"cannot be inline" },
		{ { .opcode = UROCE_OP_COMPARE_SWAP, .sg_list = word8, .num_sge = 0 }, "one of 8" },
		{ { .opcode = UROCE_OP_COMPARE_SWAP, .sg_list = word8, .num_sge = 2 }, "one of 8" },
		{ { .opcode = UROCE_OP_FETCH_ADD, .sg_list = halves, .num_sge = 2 }, "one of 8" },
		{ { .opcode = UROCE_OP_FETCH_ADD, .sg_list = halves, .num_sge = 1 }, "one of 8" },
		{ { .opcode = UROCE_OP_FETCH_ADD, .sg_list = word8, .num_sge = 1, .remote_addr = 0x1004 }, "multiple of 8" },
		{ { .opcode = UROCE_OP_ATOMIC_WRITE, .sg_list = word8, .num_sge = 0 }, "one of 8" },
		{ { .opcode = UROCE_OP_ATOMIC_WRITE, .sg_list = halves, .num_sge = 2, .flags = UROCE_SEND_INLINE }, "one of 8" },
		{ { .opcode = UROCE_OP_ATOMIC_WRITE, .sg_list = word8, .num_sge = 1, .remote_addr = 0x1004 }, "multiple of 8" },
		{ { .opcode = UROCE_OP_FLUSH, .flags = UROCE_SEND_INLINE, .flush = { 8, 1, UROCE_FLUSH_RANGE } }, "cannot be inline" },
		{ { .opcode = UROCE_OP_FLUSH, .sg_list = word8, .num_sge = 1, .flush = { 8, 1, UROCE_FLUSH_RANGE } }, "takes none" },
		{ { .opcode = UROCE_OP_FLUSH, .flush = { 0x80000001, 1, UROCE_FLUSH_RANGE } }, "the most is 2147483648" },
		{ { .opcode = UROCE_OP_FLUSH, .flush = { 8, 0, UROCE_FLUSH_RANGE } }, "placement 0x0" },
		{ { .opcode = UROCE_OP_FLUSH, .flush = { 8, 0x101, UROCE_FLUSH_RANGE } }, "placement 0x101" },
		{ { .opcode = UROCE_OP_FLUSH, .flush = { 8, 1, (enum uroce_flush_level)2 } }, "level 2" },
		{ { .opcode = UROCE_OP_FLUSH, .flush = { 8, 1, (enum uroce_flush_level) - 1 } }, "level 4294967295" },
		{ { .opcode = UROCE_OP_WRITE, .sg_list = sges, .num_sge = 1, .flags = UROCE_SEND_INLINE }, "created for 64" },
		{ { .opcode = UROCE_OP_WRITE, .sg_list = wrapping, .num_sge = 3, .flags = UROCE_SEND_INLINE }, "created for 64" },
		{ { .opcode = UROCE_OP_BIND_MW }, "bind" },
		{ { .opcode = UROCE_OP_REG_MR }, "bind" },
		{ { .opcode = UROCE_OP_LOCAL_INV, .sg_list = word8, .num_sge = 1 }, "no SGEs" },
		{ { .opcode = UROCE_OP_LOCAL_INV, .flags = UROCE_SEND_INLINE }, "cannot be inline" },
		{ { .opcode = UROCE_OP_SEND_WITH_INV, .sg_list = sges, .num_sge = 1, .flags = UROCE_SEND_INLINE }, "created for 64" },
		{ { .opcode = UROCE_OP_WRITE, .sg_list = huge, .num_sge = 2 }, "2147483649 bytes, the most is 2147483648" },
		{ { .opcode = UROCE_OP_READ, .sg_list = huge, .num_sge = 4 }, "the most is 2147483648" },
		{ { .opcode = UROCE_OP_SEND, .sg_list = wrapping, .num_sge = 2 }, "the most is 2147483648" },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture x = open_qp(usual, false, 0, 0);
		struct uroce_send_wr wr = rows[i].wr;
		uint32_t last;
		wr.wr_id = 0xabc;
		x.f->lines = 0;
		assert_int_equal(uroce_post_send(x.qp, &wr, 1), -EINVAL);
		assert_int_equal(fake_tail(&x.f->qp[0].sq), 0);
		assert_int_equal(fake_take_doorbells(x.f, &last), 0);
		assert_int_equal(x.f->lines, 1);
		if (!strstr(x.f->line, rows[i].says) || !strstr(x.f->line, "0xabc") || !strstr(x.f->line, "QP 0x1234"))
			fail_msg("row %u: the line is \"%s\", and should say \"%s\"", i, x.f->line, rows[i].says);
		close_qp(&x);
	}
}

/* A sum of 32-bit lengths that comes out small again, with its first part copied already. */
/* known-bugs: 45 */
static void test_inline_sum_wraps(void **state)
{
	static uint8_t data[64];
	const struct uroce_sge list[2] = { { (uintptr_t)data, 16, 0 }, { (uintptr_t)data, 0xfffffff8, 0 } };
	struct uroce_send_wr wr = { .sg_list = list, .num_sge = 2, .opcode = UROCE_OP_SEND, .flags = UROCE_SEND_INLINE };
	struct fixture x = open_qp(usual, false, 0, 0);
	assert_int_equal(uroce_post_send(x.qp, &wr, 1), -EINVAL);
	assert_non_null(strstr(x.f->line, "4294967304 bytes inline"));
	close_qp(&x);
}

/* Just inside each limit. */
static void test_accepted_limits(void **state)
{
	static uint8_t data[64];
	static const struct uroce_sge pieces[4] = { { .len = 0x20000000 }, { .len = 0x20000000 }, { .len = 0x20000000 },
		{ .len = 0x20000000 } };
	struct uroce_sge inline_sge = { (uintptr_t)data, 64, 0 };
	struct uroce_send_wr rows[] = {
		{ .opcode = UROCE_OP_WRITE, .sg_list = huge, .num_sge = 1 },
		{ .opcode = UROCE_OP_READ, .sg_list = &huge[1], .num_sge = 2 },
		{ .opcode = UROCE_OP_SEND, .sg_list = pieces, .num_sge = 4 },
		{ .opcode = UROCE_OP_READ },
		{ .opcode = UROCE_OP_SEND, .flags = 15, .sg_list = &inline_sge, .num_sge = 1 },
		{ .opcode = UROCE_OP_FETCH_ADD, .sg_list = word8, .num_sge = 1, .remote_addr = UINT64_MAX - 7 },
		{ .opcode = UROCE_OP_ATOMIC_WRITE, .sg_list = word8, .num_sge = 1, .remote_addr = UINT64_MAX - 7 },
		{ .opcode = UROCE_OP_FLUSH, .flush = { 0x80000000, 3, UROCE_FLUSH_MR } },
	};
	struct fixture x = open_qp(usual, false, 0, 0);
	assert_int_equal(uroce_post_send(x.qp, rows, 8), 8);
	close_qp(&x);
}

static void test_refused_receives(void **state)
{
	struct fixture x = open_qp(usual, false, 0, 0);
	struct uroce_recv_wr wr[3] = { { 1, sges, 3 }, { 2, sges, 4 }, { 3, sges, 1 } };
	x.f->lines = 0;
	assert_int_equal(uroce_post_recv(x.qp, wr, 3), 1);
	assert_int_equal(x.f->lines, 1);
	assert_non_null(strstr(x.f->line, "created for 3"));
	assert_int_equal(uroce_post_recv(x.qp, wr + 1, 2), -EINVAL);
	assert_int_equal(uroce_post_recv(x.qp, wr + 2, 1), 1);
	assert_int_equal(fake_tail(&x.f->qp[0].rq), 2);
	close_qp(&x);
}

/* known-bugs: 41 */
static void test_batch_with_a_bad_one(void **state)
{
	struct fixture x = open_qp(usual, false, 0, 0);
	struct fake_ring *sq = &x.f->qp[0].sq;
	struct uroce_send_wr wr[7];
	uint32_t last;
	for (unsigned i = 0; i < 7; i++)
		wr[i] = (struct uroce_send_wr){ .wr_id = i, .opcode = UROCE_OP_SEND };
	wr[4].num_sge = 99;
	assert_int_equal(uroce_post_send(x.qp, wr, 7), 4);
	assert_int_equal(fake_tail(sq), 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(((struct abi_send_wqe *)fake_slot(sq, i))->wr_id, i);
	assert_int_equal(fake_take_doorbells(x.f, &last), 1);
	assert_int_equal(uroce_post_send(x.qp, wr + 4, 3), -EINVAL);
	assert_int_equal(uroce_post_send(x.qp, wr + 5, 2), 2);
	assert_int_equal(((struct abi_send_wqe *)fake_slot(sq, 4))->wr_id, 5);
	/* full before the bad one is reached: the bad one is not looked at */
	wr[2].num_sge = 99;
	x.f->lines = 0;
	assert_int_equal(uroce_post_send(x.qp, wr, 7), 2);
	assert_int_equal(x.f->lines, 0);
	assert_int_equal(uroce_post_send(x.qp, wr + 2, 5), -ENOMEM);
	close_qp(&x);
}

/* A program in a loop does not drown its log. */
static void test_refusals_are_limited(void **state)
{
	struct fixture x = open_qp(usual, false, 0, 0);
	struct uroce_send_wr wr = { .opcode = (enum uroce_opcode)50 };
	x.f->lines = 0;
	for (unsigned i = 0; i < 10000; i++)
		assert_int_equal(uroce_post_send(x.qp, &wr, 1), -EINVAL);
	assert_in_range(x.f->lines, 1, 1000);
	close_qp(&x);
}

static void test_dead_engine(void **state)
{
	struct fixture x = open_qp(usual, false, 0, 0);
	struct uroce_send_wr send = { .opcode = UROCE_OP_SEND };
	struct uroce_recv_wr recv = { 0 };
	struct uroce_qp *other;
	struct uroce_qp_init init = { .send_cq = x.cq, .recv_cq = x.cq };
	atomic_store(&x.f->page->dead, 1);
	assert_int_equal(uroce_post_send(x.qp, &send, 1), -ENODEV);
	assert_int_equal(uroce_post_recv(x.qp, &recv, 1), -ENODEV);
	assert_int_equal(fake_tail(&x.f->qp[0].sq), 0);
	assert_int_equal(uroce_qp_create(x.pd, &init, &other), -ENODEV);
	/* what it held is gone with it: destroying goes through */
	close_qp(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_state_from_the_engine),
		cmocka_unit_test(test_refused_sends),
		cmocka_unit_test(test_inline_sum_wraps),
		cmocka_unit_test(test_accepted_limits),
		cmocka_unit_test(test_refused_receives),
		cmocka_unit_test(test_batch_with_a_bad_one),
		cmocka_unit_test(test_refusals_are_limited),
		cmocka_unit_test(test_dead_engine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
