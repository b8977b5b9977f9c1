/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose turn it is to send: clients first, their QPs second; what has no buffer or much to flush stands in nobody's way. The shares themselves are a matter of the simulator (test_fairness). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "machine.h"
#include "raw_client.h"

#define FRAMES 32u

static const struct abi_qp_cap cap = { 64, 64, 1, 1, 32 };

struct fixture {
	uint64_t now;
	struct core *core;
	uint8_t data[FRAMES][CORE_FRAME_MAX];
	struct core_frame frames[FRAMES];
};

/* A client with QPs to a peer, or to themselves. */
struct party {
	struct raw_client c;
	struct raw_memory m;
	struct raw_cq cq;
	struct raw_qp qp[4];
};

static void open_fixture(struct fixture *x)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 2 };
	struct gid peer;
	x->now = 1000;
	x->core = raw_core_new(0, 1, x->now);
	gid_parse("10.0.0.2", &peer);
	addr_learn(core_addr(x->core), &peer, VLAN_NONE, mac, true, x->now);
	for (unsigned i = 0; i < FRAMES; i++)
		x->frames[i] = (struct core_frame){ .data = x->data[i], .room = CORE_FRAME_MAX };
}

static void join(struct fixture *x, struct party *p, unsigned qps, bool is_local)
{
	raw_open(&p->c, x->core, &x->now);
	raw_memory_new(&p->c, 1 << 20, &p->m);
	raw_cq_new(&p->c, 256, 0, &p->cq);
	for (unsigned i = 0; i < qps; i++) {
		raw_qp_new(&p->c, &p->cq, &p->cq, &cap, &p->qp[i]);
		raw_connect(&p->c, &p->qp[i], is_local ? "10.0.0.1" : "10.0.0.2", is_local ? p->qp[i].qpn : 0x777 + i);
	}
}

/* A WRITE of so many bytes. */
static void write_bytes(struct party *p, unsigned qp, uint32_t len)
{
	struct abi_send_wqe w = { .opcode = ABI_OP_WRITE, .flags = ABI_SEND_SIGNALED, .rkey = p->m.key, .num_sge = 1, .sge = { { 0, len, p->m.key } } };
	raw_post(&p->qp[qp].sq, &w, sizeof(w));
	raw_ring_doorbell(&p->c, &p->qp[qp], &p->qp[qp].sq);
}

/* One round; how many frames came. */
static unsigned turn(struct fixture *x, unsigned room)
{
	core_run(x->core, x->now);
	core_scan(x->core);
	unsigned n = core_tx(x->core, x->now, x->frames, room);
	x->now += 1000;
	return n;
}

static uint32_t dqpn_of(const struct core_frame *f)
{
	struct packet p;
	assert_int_equal(packet_parse(&p, f->data, f->len, VLAN_NONE, NULL), DROP_NONE);
	return p.dqpn - 0x777;
}

/* Four frames of 4 KiB are a quantum: a, b, a, b ...; within a, its QPs in turns of 16. */
static void test_clients_first_then_qps(void **state)
{
	struct fixture x;
	struct party a, b;
	open_fixture(&x);
	join(&x, &a, 3, false);
	join(&x, &b, 4, false);
	for (unsigned i = 0; i < 3; i++)
		write_bytes(&a, i, 32 * 4096);
	write_bytes(&b, 3, 32 * 4096);
	unsigned of_a[3] = { 0 }, of_b = 0, run_of_b = 0, longest_of_b = 0, run_of_qp = 0, last = 9;
	for (unsigned round = 0; round < 3; round++) { /* before b runs out of work */
		assert_int_equal(turn(&x, 20), 20);
		for (unsigned i = 0; i < 20; i++) {
			uint32_t qp = dqpn_of(&x.frames[i]);
			bool is_b = qp == 3;
			of_b += is_b;
			run_of_b = is_b ? run_of_b + 1 : 0;
			longest_of_b = run_of_b > longest_of_b ? run_of_b : longest_of_b;
			if (is_b)
				continue;
			of_a[qp]++;
			if (qp != last && last != 9)
				assert_int_equal(run_of_qp, 16);
			run_of_qp = qp == last ? run_of_qp + 1 : 1;
			last = qp;
		}
	}
	assert_in_range(of_b, 28, 32);
	assert_in_range(longest_of_b, 3, 4);
	assert_int_equal(of_a[0], 16); /* 28 to 32 of a: a whole turn of the first, then the second */
	assert_in_range(of_a[1], 12, 16);
	assert_int_equal(of_a[2], 0);
	core_free(x.core);
}

/* Who sent little for a long time has saved nothing. */
static void test_unused_credit_is_lost(void **state)
{
	struct fixture x;
	struct party a, b;
	open_fixture(&x);
	join(&x, &a, 4, false);
	join(&x, &b, 4, false);
	for (unsigned i = 0; i < 50; i++) {
		write_bytes(&a, i % 3, 8);
		assert_int_equal(turn(&x, FRAMES), 1);
	}
	write_bytes(&a, 0, 32 * 4096);
	write_bytes(&b, 3, 32 * 4096);
	assert_int_equal(turn(&x, FRAMES), FRAMES);
	unsigned of_b = 0;
	for (unsigned i = 0; i < FRAMES; i++)
		of_b += dqpn_of(&x.frames[i]) == 3;
	assert_in_range(of_b, FRAMES / 2 - 2, FRAMES / 2 + 2);
	core_free(x.core);
}

/* With no room on the wire, packets to ourselves still pass, and what waits for the wire keeps its place. */
static void test_no_room_on_the_wire_stops_no_loopback(void **state)
{
	struct fixture x;
	struct party wire, local;
	struct abi_cqe cqe;
	open_fixture(&x);
	join(&x, &wire, 4, false);
	join(&x, &local, 1, true);
	for (unsigned i = 0; i < 4; i++)
		write_bytes(&wire, i, 8);
	write_bytes(&local, 0, 8);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(turn(&x, 0), 0);
	assert_true(raw_poll(&local.cq, &cqe));
	assert_int_equal(cqe.status, ABI_WC_SUCCESS);
	assert_int_equal(turn(&x, 3), 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(dqpn_of(&x.frames[i]), i);
	assert_int_equal(turn(&x, 3), 1);
	assert_int_equal(dqpn_of(&x.frames[0]), 3);
	core_free(x.core);
}

/* A client that posts to QPs in ERR as fast as it can: what it gets flushed in a round is bounded, and another one's WRITEs take no longer. */
static void test_flushing_keeps_nobody_waiting(void **state)
{
	static const struct abi_qp_cap large = { 32768, 32768, 1, 1, 0 };
	enum { GREEDY = 12 };
	struct fixture x;
	struct party a;
	struct raw_client c;
	struct raw_cq cq;
	struct raw_qp bad[GREEDY];
	struct abi_cqe cqe;
	open_fixture(&x);
	raw_open(&c, x.core, &x.now);
	raw_cq_new(&c, 16, 0, &cq);
	for (unsigned i = 0; i < GREEDY; i++) {
		raw_qp_new(&c, &cq, &cq, &large, &bad[i]);
		assert_int_equal(raw_set_state(&c, &bad[i], ABI_QP_ERR), 0);
	}
	join(&x, &a, 1, true);
	uint32_t before = 0;
	for (unsigned round = 0; round < 200; round++) {
		for (unsigned i = 0; i < GREEDY; i++) { /* always full */
			struct raw_ring *const rings[] = { &bad[i].sq, &bad[i].rq };
			for (unsigned k = 0; k < 2; k++) {
				rings[k]->tail = atomic_load(&rings[k]->ring->engine_index) + rings[k]->n;
				atomic_store(&rings[k]->ring->client_index, rings[k]->tail);
				raw_ring_doorbell(&c, &bad[i], rings[k]);
			}
		}
		if (round % 10 == 0)
			write_bytes(&a, 0, 8);
		turn(&x, FRAMES);
		uint32_t all = 0;
		for (unsigned i = 0; i < GREEDY; i++)
			all += atomic_load(&bad[i].sq.ring->engine_index) + atomic_load(&bad[i].rq.ring->engine_index);
		assert_in_range(all - before, round > 1 ? 1 : 0, 8 * QP_FLUSH_PIECE);
		before = all;
		if (round % 10 == 4)
			assert_true(raw_poll(&a.cq, &cqe));
	}
	core_free(x.core);
}

/* A queue longer than a piece is flushed whole, sends before receives, in order. */
static void test_a_long_queue_is_flushed_whole(void **state)
{
	static const struct abi_qp_cap large = { 512, 512, 1, 1, 0 };
	struct fixture x;
	struct raw_client c;
	struct raw_cq cq;
	struct raw_qp q;
	struct abi_cqe cqe;
	open_fixture(&x);
	raw_open(&c, x.core, &x.now);
	raw_cq_new(&c, 1024, 0, &cq);
	raw_qp_new(&c, &cq, &cq, &large, &q);
	for (uint64_t i = 0; i < 500; i++) {
		raw_post(&q.sq, &(struct abi_send_wqe){ .wr_id = i }, sizeof(struct abi_send_wqe));
		raw_post(&q.rq, &(struct abi_recv_wqe){ .wr_id = 500 + i }, sizeof(struct abi_recv_wqe));
	}
	assert_int_equal(raw_set_state(&c, &q, ABI_QP_ERR), 0);
	for (unsigned i = 0; i < 40; i++)
		turn(&x, FRAMES);
	for (uint64_t i = 0; i < 1000; i++) {
		assert_true(raw_poll(&cq, &cqe));
		assert_int_equal(cqe.status, ABI_WC_WR_FLUSH_ERR);
		assert_int_equal(cqe.wr_id, i);
	}
	assert_false(raw_poll(&cq, &cqe));
	core_free(x.core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clients_first_then_qps),
		cmocka_unit_test(test_unused_credit_is_lost),
		cmocka_unit_test(test_no_room_on_the_wire_stops_no_loopback),
		cmocka_unit_test(test_flushing_keeps_nobody_waiting),
		cmocka_unit_test(test_a_long_queue_is_flushed_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
