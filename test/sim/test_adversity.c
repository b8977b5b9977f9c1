/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that lie in their rings, packets at the worst moment, more queues than turns: the core survives and is fair to the others. Each of these went wrong once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client.h"
#include "counters.h"
#include "machine.h"
#include "rig.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

static void ring(struct uroce_qp *qp)
{
	atomic_fetch_or(&qp->doorbells->word[qp->doorbell / 64], 1ull << (qp->doorbell % 64));
	atomic_fetch_or(&qp->doorbells->top[qp->doorbell / 4096], 1ull << (qp->doorbell / 64 % 64));
}

static void assert_still_serving(struct rig *r, unsigned pair)
{
	struct uroce_sge sge;
	struct uroce_send_wr wr = rig_wr(&r->near[pair], &r->far[pair], &sge, UROCE_OP_WRITE, 5000);
	struct uroce_wc wc;
	wr.wr_id = 4711;
	assert_int_equal(uroce_post_send(r->near[pair].qp, &wr, 1), 1);
	do
		assert_int_equal(rig_wait(r, 0, &wc, 1, SECOND), 1);
	while (wc.wr_id != 4711); /* completions of the liar's come into the same CQ */
	assert_int_equal(wc.status, UROCE_WC_SUCCESS);
}

/* known-bugs: 50 */
static void test_impossible_tail(void **state)
{
	static const uint32_t tails[] = { 0x10000, 0x80000000u, 0xffffffffu, 257 };
	for (unsigned i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct rig r;
		rig_open(&r, &(struct rig_config){ .qps = 2 });
		atomic_store(&r.near[0].qp->sq.ring->client_index, tails[i]);
		ring(r.near[0].qp);
		rig_run(&r, 10 * MS);
		struct uroce_qp_attr attr;
		assert_int_equal(uroce_qp_query(r.near[0].qp, &attr), 0);
		assert_int_equal(attr.state, UROCE_QP_ERR);
		assert_still_serving(&r, 1);
		rig_close(&r);
	}
}

/* known-bugs: 50 */
static void test_random_wqes_and_indices(void **state)
{
	struct rng rng;
	rng_seed(&rng, 50);
	for (unsigned round = 0; round < 300; round++) {
		struct rig r;
		rig_open(&r, &(struct rig_config){ .qps = 2, .memory = 65536 });
		struct post_queue *queues[] = { &r.near[0].qp->sq, &r.near[0].qp->rq, &r.far[0].qp->rq };
		for (unsigned i = 0; i < 3; i++) {
			struct post_queue *q = queues[i];
			for (uint32_t b = 0; b < q->count * q->slot_bytes; b++)
				if (rng_below(&rng, 4) == 0)
					q->slots[b] = (uint8_t)rng_next(&rng);
			for (uint32_t s = 0; s < q->count && i == 0; s++) /* most of them with an opcode that there is, so that they get far */
				q->slots[s * q->slot_bytes + offsetof(struct abi_send_wqe, opcode)] = (uint8_t)rng_below(&rng, ABI_OP_COUNT + 1);
			atomic_store(&q->ring->client_index, (uint32_t)rng_below(&rng, rng_below(&rng, 4) ? q->count + 1 : UINT32_MAX));
			atomic_store(&q->ring->looking, (uint32_t)rng_next(&rng));
		}
		atomic_store(&r.cq[0]->ring->arm, (uint32_t)rng_next(&rng));
		ring(r.near[0].qp);
		rig_run(&r, 5 * MS);
		assert_still_serving(&r, 1);
		rig_close(&r);
	}
}

/* An atomic's SGE begins further back than others': what does not fit its slot is refused, not read from the next. */
/* known-bugs: 50 */
static void test_inline_atomic_beyond_its_slot(void **state)
{
	struct rig r;
	struct uroce_wc wc;
	rig_open(&r, &(struct rig_config){ .qps = 2 });
	struct post_queue *q = &r.near[0].qp->sq;
	struct abi_send_wqe *w = (struct abi_send_wqe *)(void *)q->slots;
	*w = (struct abi_send_wqe){ .wr_id = 9, .opcode = ABI_OP_FETCH_ADD, .flags = ABI_SEND_INLINE, .inline_len = q->slot_bytes - ABI_WQE_BODY };
	atomic_store(&q->ring->client_index, 1);
	ring(r.near[0].qp);
	assert_int_equal(rig_wait(&r, 0, &wc, 1, SECOND), 1);
	assert_int_equal(wc.wr_id, 9);
	assert_true(wc.status == UROCE_WC_LOC_QP_OP_ERR || wc.status == UROCE_WC_LOC_LEN_ERR);
	assert_still_serving(&r, 1);
	rig_close(&r);
}

/* READ requests that went out, copied as they went. */
struct catcher {
	uint8_t frame[2][256];
	uint32_t len[2];
	unsigned n;
};

static void catch_reads(void *arg, const struct core_seen *seen)
{
	struct catcher *c = arg;
	struct packet p;
	if (!seen->is_tx || c->n == 2 || packet_parse(&p, seen->frame, seen->len, VLAN_NONE, NULL) != DROP_NONE || p.kind != PACKET_ROCE || p.op->message != MESSAGE_READ_REQUEST)
		return;
	memcpy(c->frame[c->n], seen->frame, seen->len);
	c->len[c->n++] = seen->len;
}

/* A late copy of an answered READ, and a new READ of a peer at its limit, in one burst: the copy gives way. */
/* known-bugs: 40 */
static void test_repeated_read_at_the_limit(void **state)
{
	struct rig r;
	struct catcher c = { .n = 0 };
	struct uroce_sge sge;
	struct uroce_wc wc;
	rig_open(&r, &(struct rig_config){ .attr = { .max_rd_atomic = 1, .max_dest_rd_atomic = 1 }, .attr_mask = UROCE_QP_MAX_RD_ATOMIC | UROCE_QP_MAX_DEST_RD_ATOMIC });
	struct uroce_send_wr wr = rig_wr(&r.near[0], &r.far[0], &sge, UROCE_OP_READ, 64);
	core_set_tap(sim_host_core(r.host[0]), catch_reads, &c);
	assert_int_equal(uroce_post_send(r.near[0].qp, &wr, 1), 1);
	assert_int_equal(rig_wait(&r, 0, &wc, 1, SECOND), 1);
	assert_int_equal(uroce_post_send(r.near[0].qp, &wr, 1), 1);
	while (c.n < 2)
		sim_world_step(r.world, sim_world_now(r.world) + MS);
	struct core_frame burst[2];
	for (unsigned i = 0; i < 2; i++)
		burst[i] = (struct core_frame){ .data = c.frame[i], .len = c.len[i], .vlan_tci = VLAN_NONE };
	core_rx(sim_host_core(r.host[1]), sim_world_now(r.world), burst, 2);
	assert_int_equal(rig_wait(&r, 0, &wc, 1, SECOND), 1);
	assert_int_equal(wc.status, UROCE_WC_SUCCESS);
	assert_int_equal(rig_counter(r.far[0].qp, QP_NAKS_SENT), 0);
	rig_close(&r);
}

/* Every number of QPs gets equal shares of a port that takes a few frames at a time. */
/* known-bugs: A5 */
static void test_turns_are_fair(void **state)
{
	for (unsigned n = 2; n <= 24; n++) {
		struct rig r;
		struct uroce_sge sge[RIG_QPS_MAX];
		unsigned done[RIG_QPS_MAX] = { 0 }, least = UINT32_MAX, most = 0;
		rig_open(&r, &(struct rig_config){ .qps = n, .tx_frames = 32, .memory = 16384, .mtu = 1024 });
		for (unsigned i = 0; i < n; i++) {
			struct uroce_send_wr wr = rig_wr(&r.near[i], &r.far[i], &sge[i], UROCE_OP_WRITE, 16384);
			wr.wr_id = i;
			for (unsigned k = 0; k < 64; k++)
				assert_int_equal(uroce_post_send(r.near[i].qp, &wr, 1), 1);
		}
		struct uroce_wc wc[16];
		uint64_t until = sim_world_now(r.world) + 5 * MS;
		while (sim_world_now(r.world) < until)
			for (unsigned k = rig_wait(&r, 0, wc, 1, MS); k--;)
				done[wc[k].wr_id]++;
		for (unsigned i = 0; i < n; i++) {
			least = done[i] < least ? done[i] : least;
			most = done[i] > most ? done[i] : most;
		}
		if (most > least + 8)
			print_message("%u QPs: between %u and %u messages\n", n, least, most);
		assert_true(n > 12 || most <= least + 8);
		assert_true(most <= least + 16);
		rig_close(&r);
	}
}

/* known-bugs: A5 */
static void test_a_reading_peer_does_not_stop_our_own_requests(void **state)
{
	struct rig r;
	struct uroce_sge sge[2];
	struct uroce_wc wc;
	rig_open(&r, &(struct rig_config){ .memory = 1 << 20 });
	struct uroce_send_wr read = rig_wr(&r.far[0], &r.near[0], &sge[0], UROCE_OP_READ, 1 << 20);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(uroce_post_send(r.far[0].qp, &read, 1), 1);
	rig_run(&r, MS);
	struct uroce_send_wr write = rig_wr(&r.near[0], &r.far[0], &sge[1], UROCE_OP_WRITE, 8);
	assert_int_equal(uroce_post_send(r.near[0].qp, &write, 1), 1);
	assert_int_equal(rig_wait(&r, 0, &wc, 1, 5 * MS), 1);
	assert_int_equal(wc.status, UROCE_WC_SUCCESS);
	rig_close(&r);
}

/* The last 31 packets of a message are lost: repaired long before the timeout of 67 ms. */
static void test_a_long_lost_tail(void **state)
{
	struct rig r;
	struct uroce_sge sge;
	struct uroce_wc wc;
	char rules[2048];
	unsigned at = 0;
	/* a first message of two packets for the RTT; of the second, of 256, the last 31 are lost, once */
	for (unsigned i = 0; i < 31; i++)
		at += (unsigned)snprintf(rules + at, sizeof(rules) - at, "%srule:drop@%u:RC_RDMA_WRITE*", at ? "/" : "", 2 + 226 + i);
	rig_open(&r, &(struct rig_config){ .fault = { NULL, rules } });
	struct uroce_send_wr wr = rig_wr(&r.near[0], &r.far[0], &sge, UROCE_OP_WRITE, 8192);
	assert_int_equal(uroce_post_send(r.near[0].qp, &wr, 1), 1);
	assert_int_equal(rig_wait(&r, 0, &wc, 1, SECOND), 1);
	wr.num_sge = 1;
	sge.len = 1 << 20;
	assert_int_equal(uroce_post_send(r.near[0].qp, &wr, 1), 1);
	uint64_t from = sim_world_now(r.world);
	assert_int_equal(rig_wait(&r, 0, &wc, 1, SECOND), 1);
	assert_int_equal(wc.status, UROCE_WC_SUCCESS);
	assert_true(sim_world_now(r.world) - from < 5 * MS);
	assert_int_equal(rig_counter(r.near[0].qp, QP_LOCAL_ACK_TIMEOUT_ERR), 0);
	assert_true(rig_counter(r.near[0].qp, QP_TAIL_PROBES) >= 1);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_impossible_tail),
		cmocka_unit_test(test_random_wqes_and_indices),
		cmocka_unit_test(test_inline_atomic_beyond_its_slot),
		cmocka_unit_test(test_repeated_read_at_the_limit),
		cmocka_unit_test(test_turns_are_fair),
		cmocka_unit_test(test_a_reading_peer_does_not_stop_our_own_requests),
		cmocka_unit_test(test_a_long_lost_tail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
