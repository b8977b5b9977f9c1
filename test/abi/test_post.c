/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting, against the rings: what is in a slot byte by byte, when the ring is full, and when a doorbell rings.
 * What is refused: test_post_refusals.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "post_fixture.h"

/* The slot is filled with a pattern first, so that what the client does not write shows. */
static const uint8_t *post_one(struct fixture *x, const struct uroce_send_wr *wr)
{
	struct fake_ring *sq = &x->f->qp[0].sq;
	uint32_t tail = fake_tail(sq);
	memset(fake_slot(sq, tail), 0xee, sq->slot_bytes);
	assert_int_equal(uroce_post_send(x->qp, wr, 1), 1);
	assert_int_equal(fake_tail(sq), tail + 1);
	return fake_slot(sq, tail);
}

static void assert_bytes(const uint8_t *slot, const uint8_t *want, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (slot[i] != want[i])
			fail_msg("byte %zu of the slot is 0x%02x, 0x%02x is right", i, slot[i], want[i]);
}

/* ---- layouts ---- */

static const struct uroce_sge sges[4] = {
	{ 0x1122334455667788, 0x100, 0xa1a2a3a4 },
	{ 0x2122334455667788, 0x200, 0xb1b2b3b4 },
	{ 0x3122334455667788, 0x300, 0xc1c2c3c4 },
	{ 0x4122334455667788, 0x400, 0xd1d2d3d4 },
};

static void test_send_layout(void **state)
{
	static const uint8_t want[] = {
		0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* wr_id */
		ABI_OP_SEND_WITH_IMM, ABI_SEND_SIGNALED | ABI_SEND_SOLICITED | ABI_SEND_FENCE, 4, 0,
		0xde, 0xad, 0xbe, 0xef, /* imm: as the program has it in memory */
		0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, /* remote_addr */
		0x24, 0x23, 0x22, 0x21, /* rkey */
		0, 0, 0, 0, /* inline_len */
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00, 0x01, 0, 0, 0xa4, 0xa3, 0xa2, 0xa1,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x21, 0x00, 0x02, 0, 0, 0xb4, 0xb3, 0xb2, 0xb1,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x31, 0x00, 0x03, 0, 0, 0xc4, 0xc3, 0xc2, 0xc1,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x41, 0x00, 0x04, 0, 0, 0xd4, 0xd3, 0xd2, 0xd1,
	};
	struct fixture x = open_qp(usual, false, 0, 0);
	struct uroce_send_wr wr = { .wr_id = 0x0102030405060708,
		.sg_list = sges,
		.num_sge = 4,
		.opcode = UROCE_OP_SEND_WITH_IMM,
		.flags = UROCE_SEND_SIGNALED | UROCE_SEND_SOLICITED | UROCE_SEND_FENCE,
		.remote_addr = 0x1112131415161718,
		.rkey = 0x21222324 };
	memcpy(&wr.imm, "\xde\xad\xbe\xef", 4);
	assert_int_equal(x.f->qp[0].sq.slot_bytes, 128);
	assert_bytes(post_one(&x, &wr), want, sizeof(want));
	close_qp(&x);
}

static void test_opcodes_and_flags(void **state)
{
	static const enum abi_opcode opcodes[] = { ABI_OP_SEND, ABI_OP_SEND_WITH_IMM, ABI_OP_WRITE, ABI_OP_WRITE_WITH_IMM,
		ABI_OP_READ };
	struct fixture x = open_qp(usual, false, 0, 0);
	for (unsigned i = 0; i < 5; i++) {
		struct uroce_send_wr wr = { .wr_id = i, .sg_list = sges, .num_sge = 1, .opcode = (enum uroce_opcode)opcodes[i] };
		const struct abi_send_wqe *wqe = (const struct abi_send_wqe *)post_one(&x, &wr);
		assert_int_equal(wqe->opcode, opcodes[i]);
		assert_int_equal(wqe->flags, 0);
		assert_int_equal(wqe->num_sge, 1);
		assert_int_equal(wqe->inline_len, 0);
		fake_release(&x.f->qp[0].sq, 1);
	}
	close_qp(&x);
}

static void test_atomic_layout(void **state)
{
	const struct uroce_sge sge = { 0x1122334455667788, 8, 0xa1a2a3a4 };
	struct fixture x = open_qp(usual, false, 0, 0);
	struct uroce_send_wr swap = { .wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = UROCE_OP_COMPARE_SWAP,
		.remote_addr = 0x1000,
		.rkey = 5,
		.compare_add = 0xc0c1,
		.swap = 0x50515 };
	struct uroce_send_wr add = { .wr_id = 2,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = UROCE_OP_FETCH_ADD,
		.remote_addr = 0x1008,
		.rkey = 6,
		.compare_add = 0xadd,
		.swap = 0xbad };
	const uint8_t *slot = post_one(&x, &swap);
	const struct abi_send_wqe *wqe = (const struct abi_send_wqe *)slot;
	uint64_t v;
	memcpy(&v, slot + 32, 8);
	assert_int_equal(v, 0xc0c1);
	memcpy(&v, slot + 40, 8);
	assert_int_equal(v, 0x50515);
	assert_memory_equal(slot + ABI_WQE_ATOMIC_BODY, &sge, 16);
	assert_int_equal(wqe->opcode, ABI_OP_COMPARE_SWAP);
	assert_int_equal(wqe->num_sge, 1);
	assert_int_equal(wqe->remote_addr, 0x1000);
	slot = post_one(&x, &add);
	memcpy(&v, slot + 40, 8);
	assert_int_equal(v, 0xadd);
	assert_memory_equal(slot + ABI_WQE_ATOMIC_BODY, &sge, 16);
	close_qp(&x);
}

static void test_atomic_write_and_flush_layout(void **state)
{
	uint64_t value = 0x0807060504030201, v;
	const struct uroce_sge sge = { (uintptr_t)&value, 8, 0xa1a2a3a4 };
	struct fixture x = open_qp(usual, false, 0, 0);
	struct uroce_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_ATOMIC_WRITE, .remote_addr = 0x1008, .rkey = 5 };
	const uint8_t *slot = post_one(&x, &wr);
	assert_int_equal(slot[8], ABI_OP_ATOMIC_WRITE);
	assert_int_equal(((const struct abi_send_wqe *)slot)->num_sge, 1);
	assert_memory_equal(slot + ABI_WQE_BODY, &sge, 16);
	wr.flags = UROCE_SEND_INLINE;
	slot = post_one(&x, &wr);
	assert_int_equal(((const struct abi_send_wqe *)slot)->inline_len, 8);
	memcpy(&v, slot + ABI_WQE_BODY, 8);
	assert_true(v == value);
	wr = (struct uroce_send_wr){ .opcode = UROCE_OP_FLUSH, .remote_addr = 0x1009, .rkey = 6, .flush = { 0x44332211, UROCE_FLUSH_GLOBAL | UROCE_FLUSH_PERSISTENT, UROCE_FLUSH_MR } };
	slot = post_one(&x, &wr);
	assert_int_equal(slot[8], ABI_OP_FLUSH);
	assert_int_equal(((const struct abi_send_wqe *)slot)->num_sge, 0);
	assert_int_equal(((const struct abi_send_wqe *)slot)->remote_addr, 0x1009);
	assert_memory_equal(slot + ABI_WQE_BODY, "\x11\x22\x33\x44\3\1\0\0", 8);
	close_qp(&x);
}

static void test_inline(void **state)
{
	uint8_t data[64], want[64];
	struct fixture x = open_qp(usual, false, 0, 0);
	struct uroce_sge list[4];
	struct uroce_send_wr wr = { .wr_id = 9, .sg_list = list, .opcode = UROCE_OP_WRITE, .flags = UROCE_SEND_INLINE };
	const uint8_t *slot;
	uint32_t len;
	for (unsigned i = 0; i < 64; i++)
		data[i] = (uint8_t)(i + 1);
	/* every length in one SGE, and in two, around the slot's first 64 bytes and up to the limit */
	for (uint32_t n = 0; n <= 64; n++) {
		for (uint32_t first = n; ; first /= 2) {
			list[0] = (struct uroce_sge){ (uintptr_t)data, first, 0xdead };
			list[1] = (struct uroce_sge){ (uintptr_t)(data + first), n - first, 0xdead };
			wr.num_sge = first == n ? 1 : 2;
			slot = post_one(&x, &wr);
			memcpy(&len, slot + 28, 4);
			assert_int_equal(len, n);
			assert_int_equal(((const struct abi_send_wqe *)slot)->num_sge, 0);
			assert_int_equal(((const struct abi_send_wqe *)slot)->flags, ABI_SEND_INLINE);
			memset(want, 0xee, sizeof(want));
			memcpy(want, data, n);
			assert_bytes(slot + ABI_WQE_BODY, want, 64);
			fake_release(&x.f->qp[0].sq, 1);
			if (!first)
				break;
		}
	}
	/* no SGE at all, and pieces out of order with an empty one that points nowhere */
	wr.num_sge = 0;
	slot = post_one(&x, &wr);
	memcpy(&len, slot + 28, 4);
	assert_int_equal(len, 0);
	list[0] = (struct uroce_sge){ (uintptr_t)(data + 10), 3, 0 };
	list[1] = (struct uroce_sge){ 0, 0, 0 };
	list[2] = (struct uroce_sge){ (uintptr_t)data, 2, 0 };
	wr.num_sge = 3;
	slot = post_one(&x, &wr);
	assert_memory_equal(slot + ABI_WQE_BODY, "\x0b\x0c\x0d\x01\x02", 5);
	close_qp(&x);
}

static void test_recv_layout(void **state)
{
	static const uint8_t want[] = {
		0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 3, 0, 0, 0, 0, 0, 0, 0,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00, 0x01, 0, 0, 0xa4, 0xa3, 0xa2, 0xa1,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x21, 0x00, 0x02, 0, 0, 0xb4, 0xb3, 0xb2, 0xb1,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x31, 0x00, 0x03, 0, 0, 0xc4, 0xc3, 0xc2, 0xc1,
	};
	struct fixture x = open_qp(usual, false, 0, 0);
	struct uroce_recv_wr wr[2] = { { 0x0102030405060708, sges, 3 }, { 7, NULL, 0 } };
	struct fake_ring *rq = &x.f->qp[0].rq;
	uint32_t last;
	assert_int_equal(rq->slot_bytes, 64);
	memset(rq->slots, 0xee, 128);
	assert_int_equal(uroce_post_recv(x.qp, wr, 2), 2);
	assert_bytes(rq->slots, want, sizeof(want));
	assert_int_equal(((const struct abi_recv_wqe *)fake_slot(rq, 1))->wr_id, 7);
	assert_int_equal(((const struct abi_recv_wqe *)fake_slot(rq, 1))->num_sge, 0);
	assert_int_equal(fake_tail(rq), 2);
	assert_int_equal(fake_take_doorbells(x.f, &last), 0);
	close_qp(&x);
}

static void test_signal_all(void **state)
{
	struct fixture x = open_qp(usual, true, 0, 0);
	struct uroce_send_wr wr = { .wr_id = 1, .opcode = UROCE_OP_SEND, .flags = UROCE_SEND_FENCE };
	assert_int_equal(((const struct abi_send_wqe *)post_one(&x, &wr))->flags, ABI_SEND_SIGNALED | ABI_SEND_FENCE);
	assert_int_equal(fake_last(x.f, ABI_CREATE_QP)->create_qp.signal_all, 1);
	close_qp(&x);
}

/* ---- the ring ---- */

static void post_and_check(struct fixture *x, unsigned n, int want, uint64_t *next_id)
{
	struct uroce_send_wr wr[32] = { 0 };
	struct fake_ring *sq = &x->f->qp[0].sq;
	uint32_t tail = fake_tail(sq);
	for (unsigned i = 0; i < n; i++)
		wr[i] = (struct uroce_send_wr){ .wr_id = *next_id + i, .opcode = UROCE_OP_SEND };
	assert_int_equal(uroce_post_send(x->qp, wr, n), want);
	for (int i = 0; i < want; i++)
		assert_int_equal(((struct abi_send_wqe *)fake_slot(sq, tail + (uint32_t)i))->wr_id, *next_id + (unsigned)i);
	*next_id += want > 0 ? (unsigned)want : 0;
	assert_int_equal(fake_tail(sq), tail + (uint32_t)(want > 0 ? want : 0));
}

static void fill_and_drain(uint32_t first_index)
{
	struct fixture x = open_qp(usual, false, first_index, 0);
	struct fake_ring *sq = &x.f->qp[0].sq;
	uint64_t id = 100;
	assert_int_equal(fake_tail(sq), first_index);
	post_and_check(&x, 0, 0, &id);
	post_and_check(&x, 5, 5, &id);
	post_and_check(&x, 5, 3, &id); /* a short count: no room for the rest */
	post_and_check(&x, 1, -ENOMEM, &id);
	fake_release(sq, 1);
	post_and_check(&x, 2, 1, &id);
	post_and_check(&x, 1, -ENOMEM, &id);
	fake_release(sq, 8);
	for (unsigned i = 0; i < 100; i++) {
		post_and_check(&x, 1 + i % 8, 1 + (int)(i % 8), &id);
		fake_release(sq, 1 + i % 8);
	}
	post_and_check(&x, 32, 8, &id);
	post_and_check(&x, 32, -ENOMEM, &id);
	close_qp(&x);
}

static void test_full_ring(void **state)
{
	fill_and_drain(0);
}

static void test_index_wrap(void **state)
{
	fill_and_drain(0xfffffffe);
	fill_and_drain(0xfffffff0);
	fill_and_drain(0x7ffffffd);
}

static void test_recv_ring_full_and_wrap(void **state)
{
	struct fixture x = open_qp(usual, false, 0xfffffffb, 0);
	struct fake_ring *rq = &x.f->qp[0].rq;
	struct uroce_recv_wr wr[9] = { 0 };
	for (unsigned i = 0; i < 9; i++)
		wr[i].wr_id = i;
	assert_int_equal(uroce_post_recv(x.qp, wr, 0), 0);
	assert_int_equal(uroce_post_recv(x.qp, wr, 9), 8);
	assert_int_equal(uroce_post_recv(x.qp, wr, 1), -ENOMEM);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(((struct abi_recv_wqe *)fake_slot(rq, 0xfffffffb + i))->wr_id, i);
	assert_int_equal(fake_tail(rq), 3);
	fake_release(rq, 2);
	assert_int_equal(uroce_post_recv(x.qp, wr, 9), 2);
	close_qp(&x);
}

/* The other side's index is bounded: one that cannot be means "full", never a slot in use. */
static void test_impossible_head(void **state)
{
	struct fixture x = open_qp(usual, false, 0, 0);
	struct fake_ring *sq = &x.f->qp[0].sq;
	uint64_t id = 0;
	post_and_check(&x, 8, 8, &id);
	atomic_store(&sq->ring->engine_index, 9); /* beyond the tail */
	post_and_check(&x, 1, -ENOMEM, &id);
	atomic_store(&sq->ring->engine_index, 0xffffffff); /* before the start */
	post_and_check(&x, 1, -ENOMEM, &id);
	atomic_store(&sq->ring->engine_index, 3);
	post_and_check(&x, 8, 3, &id);
	close_qp(&x);
}

static void test_reset_empties_queues(void **state)
{
	struct fixture x = open_qp(usual, false, 0xfffffffc, 0);
	struct uroce_recv_wr recv[8] = { 0 };
	uint64_t id = 0;
	post_and_check(&x, 8, 8, &id);
	assert_int_equal(uroce_post_recv(x.qp, recv, 8), 8);
	set_state(x.qp, UROCE_QP_RESET);
	set_state(x.qp, UROCE_QP_RTS);
	post_and_check(&x, 9, 8, &id);
	assert_int_equal(uroce_post_recv(x.qp, recv, 8), 8);
	close_qp(&x);
}

/* ---- doorbells ---- */

static void test_doorbell_rules(void **state)
{
	static const uint32_t numbers[] = { 0, 1, 63, 64, 4095, 4096, ABI_DOORBELLS - 1 };
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct fixture x = open_qp(usual, false, 0, numbers[i]);
		struct uroce_send_wr wr[2] = { { .opcode = UROCE_OP_SEND }, { .opcode = UROCE_OP_SEND } };
		struct fake_ring *sq = &x.f->qp[0].sq;
		uint32_t last = 0, n = numbers[i];
		assert_int_equal(uroce_post_send(x.qp, wr, 0), 0);
		assert_int_equal(fake_take_doorbells(x.f, &last), 0);
		assert_int_equal(uroce_post_send(x.qp, wr, 2), 2);
		assert_true(atomic_load(&x.f->doorbells->word[n / 64]) == UINT64_C(1) << n % 64);
		assert_true(atomic_load(&x.f->doorbells->top[n / 4096]) == UINT64_C(1) << n / 64 % 64);
		assert_int_equal(fake_take_doorbells(x.f, &last), 1);
		assert_int_equal(last, n);
		/* while the engine looks by itself nothing rings */
		atomic_store(&sq->ring->looking, 1);
		atomic_store(&x.f->page->sleeping, 1);
		assert_int_equal(uroce_post_send(x.qp, wr, 1), 1);
		assert_int_equal(fake_take_doorbells(x.f, &last), 0);
		assert_int_equal(x.f->wakes, 0);
		/* and a sleeping engine is woken by the ring, not by the post */
		atomic_store(&sq->ring->looking, 0);
		assert_int_equal(uroce_post_send(x.qp, wr, 2), 2);
		assert_int_equal(fake_take_doorbells(x.f, &last), 1);
		assert_int_equal(x.f->wakes, 1);
		/* the engine has taken the upper bit and not yet the lower one: the upper one has to come again */
		atomic_store(&x.f->page->sleeping, 0);
		atomic_store(&x.f->doorbells->word[n / 64], UINT64_C(1) << n % 64);
		assert_int_equal(uroce_post_send(x.qp, wr, 1), 1);
		assert_true(atomic_load(&x.f->doorbells->top[n / 4096]) == UINT64_C(1) << n / 64 % 64);
		assert_int_equal(x.f->wakes, 1);
		/* a refused post rings nothing */
		fake_take_doorbells(x.f, &last);
		wr[0].opcode = (enum uroce_opcode)99;
		assert_int_equal(uroce_post_send(x.qp, wr, 1), -EINVAL);
		assert_int_equal(fake_take_doorbells(x.f, &last), 0);
		close_qp(&x);
	}
}

/* known-bugs: 46 */
static void test_receive_in_err_rings(void **state)
{
	struct fixture x = open_qp(usual, false, 0, 9);
	struct uroce_recv_wr wr = { 0 };
	uint32_t last = 0;
	assert_int_equal(uroce_post_recv(x.qp, &wr, 1), 1);
	assert_int_equal(fake_take_doorbells(x.f, &last), 0);
	/* the engine went to ERR and flushed; it will not look again by itself, and this side need not know */
	atomic_store(&x.f->qp[0].rq.ring->looking, 0);
	atomic_store(&x.f->page->sleeping, 1);
	assert_int_equal(uroce_post_recv(x.qp, &wr, 1), 1);
	assert_int_equal(fake_take_doorbells(x.f, &last), 1);
	assert_int_equal(last, 9);
	assert_int_equal(x.f->wakes, 1);
	close_qp(&x);
}

/* Neighbours in one word ring beside each other. */
static void test_doorbells_share_words(void **state)
{
	struct fixture x = open_qp(usual, false, 0, 62);
	struct uroce_qp_init init = { .send_cq = x.cq, .recv_cq = x.cq, .cap = usual };
	struct uroce_send_wr wr = { .opcode = UROCE_OP_SEND };
	struct uroce_qp *other[2];
	uint32_t last;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(uroce_qp_create(x.pd, &init, &other[i]), 0);
		set_state(other[i], UROCE_QP_RTS);
		assert_int_equal(uroce_post_send(other[i], &wr, 1), 1);
	}
	assert_int_equal(uroce_post_send(x.qp, &wr, 1), 1);
	assert_true(atomic_load(&x.f->doorbells->word[0]) == UINT64_C(3) << 62);
	assert_true(atomic_load(&x.f->doorbells->word[1]) == 1);
	assert_true(atomic_load(&x.f->doorbells->top[0]) == 3);
	assert_int_equal(fake_take_doorbells(x.f, &last), 3);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(uroce_qp_destroy(other[i]), 0);
	close_qp(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_send_layout),
		cmocka_unit_test(test_opcodes_and_flags),
		cmocka_unit_test(test_atomic_layout),
		cmocka_unit_test(test_atomic_write_and_flush_layout),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_recv_layout),
		cmocka_unit_test(test_signal_all),
		cmocka_unit_test(test_full_ring),
		cmocka_unit_test(test_index_wrap),
		cmocka_unit_test(test_recv_ring_full_and_wrap),
		cmocka_unit_test(test_impossible_head),
		cmocka_unit_test(test_reset_empties_queues),
		cmocka_unit_test(test_doorbell_rules),
		cmocka_unit_test(test_receive_in_err_rings),
		cmocka_unit_test(test_doorbells_share_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
