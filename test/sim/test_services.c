/* SPDX-License-Identifier: BSD-3-Clause */
/* Situations of the unreliable services, played by whole cores in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "counters.h"
#include "rig.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

static void fill(uint8_t *p, uint64_t n, uint8_t salt)
{
	for (uint64_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 7 + (i >> 8) + salt);
}

static void post_receive(struct rig_end *e, uint32_t len)
{
	struct uroce_sge into = { (uintptr_t)e->memory, len, uroce_mr_lkey(e->mr) };
	struct uroce_recv_wr recv = { .wr_id = 5, .sg_list = &into, .num_sge = 1 };
	assert_int_equal(uroce_post_recv(e->qp, &recv, 1), 1);
}

static void transfer(struct rig *r, enum uroce_opcode opcode, uint32_t len, uint8_t salt)
{
	struct rig_end *a = &r->near[0], *b = &r->far[0];
	struct uroce_sge sge;
	struct uroce_send_wr wr = rig_wr(a, b, &sge, opcode, len);
	struct uroce_wc wc;
	fill(a->memory, len, salt);
	memset(b->memory, 0xa5, len + 64);
	if (opcode != UROCE_OP_WRITE)
		post_receive(b, len);
	assert_int_equal(uroce_post_send(a->qp, &wr, 1), 1);
	assert_int_equal(rig_wait(r, 0, &wc, 1, SECOND), 1);
	assert_int_equal(wc.status, UROCE_WC_SUCCESS);
	if (opcode == UROCE_OP_WRITE) {
		rig_run(r, 10 * MS);
	} else {
		assert_int_equal(rig_wait(r, 1, &wc, 1, SECOND), 1);
		assert_int_equal(wc.status, UROCE_WC_SUCCESS);
		assert_int_equal(wc.byte_len, len);
		assert_int_equal(wc.flags & UROCE_WC_HAS_IMM, opcode == UROCE_OP_SEND ? 0 : UROCE_WC_HAS_IMM);
	}
	assert_memory_equal(a->memory, b->memory, len);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(b->memory[len + i], 0xa5);
}

/* known-bugs: 17 18 51 */
static void test_uc_sizes_around_the_mtu(void **state)
{
	static const enum uroce_opcode ops[] = { UROCE_OP_SEND, UROCE_OP_SEND_WITH_IMM, UROCE_OP_WRITE, UROCE_OP_WRITE_WITH_IMM };
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
		const uint32_t sizes[] = { 0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 8192, 8193, 1 << 19 };
		struct rig r;
		rig_open(&r, &(struct rig_config){ .service = UROCE_UC, .mtu = mtu, .first_psn = 0xfffff0 });
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (unsigned k = 0; k < sizeof(ops) / sizeof(ops[0]); k++)
				transfer(&r, ops[k], sizes[i], (uint8_t)(i * 4 + k));
		assert_int_equal(rig_counter(r.near[0].qp, QP_ACKS_RECEIVED), 0);
		assert_int_equal(rig_counter(r.far[0].qp, QP_OUT_OF_SEQUENCE), 0);
		rig_close(&r);
	}
}

/* Sends that nobody is there for are done all the same: unreliable means that. Others go on at their own pace. */
static void test_uc_peer_without_an_address(void **state)
{
	struct rig r;
	struct uroce_sge sge;
	struct uroce_wc wc[64];
	rig_open(&r, &(struct rig_config){ .service = UROCE_UC, .hosts = 3, .first_psn = 100 });
	struct uroce_send_wr wr = rig_wr(&r.near[1], &r.far[1], &sge, UROCE_OP_SEND, 5000), to_other = rig_wr(&r.near[0], &r.far[0], &sge, UROCE_OP_SEND, 8);
	sim_world_cut(r.world, 2);
	/* until its neighbour entry has gone, packets are lost on the wire; then they are lost here */
	for (unsigned s = 0; s < 80 && !rig_counter(r.near[1].qp, QP_TX_UNREACHABLE); s++) {
		assert_int_equal(uroce_post_send(r.near[1].qp, &wr, 1), 1);
		assert_int_equal(rig_wait(&r, 0, wc, 1, 2 * SECOND), 1);
		assert_int_equal(wc[0].status, UROCE_WC_SUCCESS);
		rig_run(&r, SECOND);
	}
	uint64_t sent = rig_counter(r.near[1].qp, QP_TX_PACKETS), lost = rig_counter(r.near[1].qp, QP_TX_UNREACHABLE);
	assert_int_not_equal(lost, 0);
	post_receive(&r.far[0], 64);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(uroce_post_send(r.near[1].qp, &wr, 1), 1);
	assert_int_equal(uroce_post_send(r.near[0].qp, &to_other, 1), 1);
	assert_int_equal(rig_wait(&r, 0, wc, 41, SECOND), 41);
	for (unsigned i = 0; i < 41; i++)
		assert_int_equal(wc[i].status, UROCE_WC_SUCCESS);
	assert_int_equal(rig_wait(&r, 1, wc, 1, SECOND), 1);
	assert_int_equal(rig_counter(r.near[1].qp, QP_TX_PACKETS), sent);
	assert_int_equal(rig_counter(r.near[1].qp, QP_TX_UNREACHABLE), lost + 40);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uc_sizes_around_the_mtu),
		cmocka_unit_test(test_uc_peer_without_an_address),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
