/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program polls after the death of its engine: everything that was completed, then every WR that was not, once and in
 * post order, whatever state the rings were left in. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cause.h"
#include "ctl.h"
#include "fake_engine.h"

#define QPS 24u
#define CQS 4u

struct rig {
	struct fake_engine *f;
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_cq *cq[CQS];
	struct uroce_qp *qp[QPS];
	unsigned qps;
};

static const _Atomic uint32_t *get_life(void *session)
{
	return &((struct fake_engine *)session)->life;
}

static struct rig open_rig(uint32_t first_index)
{
	struct session_ops ops = fake_session_ops;
	struct rig r = { .f = fake_new() };
	struct uroce_open_attr attr = fake_open_attr(r.f);
	static struct session_ops with_life;
	ops.life = get_life;
	with_life = ops;
	r.f->first_index = first_index;
	assert_int_equal(context_open(&with_life, r.f, &attr, &r.ctx), 0);
	assert_int_equal(uroce_pd_create(r.ctx, &r.pd), 0);
	return r;
}

static void add_cq(struct rig *r, unsigned i, uint32_t entries)
{
	assert_int_equal(uroce_cq_create(r->ctx, entries, NULL, NULL, &r->cq[i]), 0);
}

static struct uroce_qp *add_qp(struct rig *r, unsigned send_cq, unsigned recv_cq, uint32_t depth)
{
	struct uroce_qp_init init = { .send_cq = r->cq[send_cq], .recv_cq = r->cq[recv_cq], .cap = { depth, depth, 1, 1, 0 } };
	struct uroce_qp_attr attr = { .state = UROCE_QP_RTS };
	struct uroce_qp *qp;
	assert_int_equal(uroce_qp_create(r->pd, &init, &qp), 0);
	assert_int_equal(uroce_qp_modify(qp, &attr, UROCE_QP_STATE), 0);
	return r->qp[r->qps++] = qp;
}

static void close_rig(struct rig *r)
{
	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(uroce_qp_destroy(r->qp[i]), 0);
	for (unsigned i = 0; i < CQS; i++)
		assert_int_equal(uroce_cq_destroy(r->cq[i]), 0);
	assert_int_equal(uroce_pd_destroy(r->pd), 0);
	uroce_close(r->ctx);
	fake_free(r->f);
}

static uint64_t make_id(unsigned qp, bool is_rq, uint32_t n)
{
	return (uint64_t)qp << 40 | (uint64_t)is_rq << 32 | n;
}

static void post_send(struct rig *r, unsigned qp, uint32_t n, enum uroce_opcode opcode)
{
	struct uroce_sge sge = { .len = 8 };
	struct uroce_send_wr wr = { .wr_id = make_id(qp, false, n), .opcode = opcode, .sg_list = &sge, .num_sge = 1, .flags = UROCE_SEND_SIGNALED };
	assert_int_equal(uroce_post_send(r->qp[qp], &wr, 1), 1);
}

static void post_recv(struct rig *r, unsigned qp, uint32_t n)
{
	struct uroce_recv_wr wr = { .wr_id = make_id(qp, true, n) };
	assert_int_equal(uroce_post_recv(r->qp[qp], &wr, 1), 1);
}

static void die(struct rig *r)
{
	atomic_store(&r->f->life, CTL_LIFE_DEAD);
}

static void expect_flushed(const struct uroce_wc *wc, unsigned qp, bool is_rq, uint32_t n)
{
	assert_int_equal(wc->status, UROCE_WC_WR_FLUSH_ERR);
	assert_int_equal(wc->vendor_error, CAUSE_ENGINE_GONE);
	assert_int_equal(wc->qpn, FAKE_QPN + qp);
	assert_true(wc->wr_id == make_id(qp, is_rq, n));
	assert_int_equal(wc->opcode == UROCE_WC_RECV, is_rq);
}

/* Takes one at a time. */
static void expect_next(struct rig *r, unsigned cq, unsigned qp, bool is_rq, uint32_t n)
{
	struct uroce_wc wc;
	assert_int_equal(uroce_cq_poll(r->cq[cq], &wc, 1), 1);
	expect_flushed(&wc, qp, is_rq, n);
}

static void expect_end(struct rig *r, unsigned cq)
{
	struct uroce_wc wc[2];
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(uroce_cq_poll(r->cq[cq], wc, 2), -ENODEV);
	assert_int_equal(uroce_cq_poll(r->cq[cq], wc, 0), 0);
}

/* ---- one QP ---- */

static void test_order_and_content(void **state)
{
	static const enum uroce_wc_opcode opcodes[] = { UROCE_WC_SEND, UROCE_WC_SEND, UROCE_WC_WRITE, UROCE_WC_WRITE, UROCE_WC_READ,
		UROCE_WC_COMPARE_SWAP, UROCE_WC_FETCH_ADD };
	struct rig r = open_rig(0);
	struct uroce_wc wc[16];
	add_cq(&r, 0, 16);
	add_qp(&r, 0, 0, 8);
	for (uint32_t i = 0; i < 7; i++)
		post_send(&r, 0, i, (enum uroce_opcode)i);
	post_recv(&r, 0, 0);
	fake_finish(r.f, &r.f->cq[0], 0, false);
	fake_finish(r.f, &r.f->cq[0], 0, false);
	die(&r);
	assert_int_equal(uroce_cq_poll(r.cq[0], wc, 16), 2);
	assert_int_equal(wc[1].status, UROCE_WC_SUCCESS);
	assert_true(wc[1].wr_id == make_id(0, false, 1));
	assert_int_equal(uroce_cq_poll(r.cq[0], wc, 16), 6);
	for (uint32_t i = 0; i < 5; i++) {
		expect_flushed(&wc[i], 0, false, 2 + i);
		assert_int_equal(wc[i].opcode, opcodes[2 + i]);
	}
	expect_flushed(&wc[5], 0, true, 0);
	expect_end(&r, 0);
	close_rig(&r);
}

/* The page says it too, for an engine that ends in order; posts then are refused in every state. */
static void test_orderly_end(void **state)
{
	struct rig r = open_rig(0);
	struct uroce_qp_attr attr = { .state = UROCE_QP_RESET };
	struct uroce_send_wr send = { 0 };
	struct uroce_recv_wr recv = { 0 };
	add_cq(&r, 0, 16);
	add_qp(&r, 0, 0, 8);
	add_qp(&r, 0, 0, 8);
	post_send(&r, 0, 0, UROCE_OP_SEND);
	post_send(&r, 1, 0, UROCE_OP_SEND);
	assert_int_equal(uroce_qp_modify(r.qp[1], &attr, UROCE_QP_STATE), 0);
	atomic_store(&r.f->page->dead, 1);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(uroce_post_send(r.qp[i], &send, 1), -ENODEV);
		assert_int_equal(uroce_post_recv(r.qp[i], &recv, 1), -ENODEV);
	}
	assert_int_equal(uroce_qp_modify(r.qp[0], &attr, UROCE_QP_STATE), -ENODEV);
	expect_next(&r, 0, 0, false, 0); /* that of the QP in RESET was dropped */
	expect_end(&r, 0);
	close_rig(&r);
}

/* Slots given back for unsignaled WRs have no CQE, and CQEs that are newer than the head have a slot that was not given back. */
static void test_heads_and_cqes(void **state)
{
	for (uint32_t head = 0; head <= 6; head++) {
		for (uint32_t cqe = 0; cqe <= 6; cqe++) { /* one more than the newest CQE's index; 0: none */
			struct rig r = open_rig(0xfffffffd);
			struct uroce_wc wc;
			add_cq(&r, 0, 4);
			add_qp(&r, 0, 0, 8);
			for (uint32_t i = 0; i < 6; i++)
				post_send(&r, 0, i, UROCE_OP_SEND);
			fake_release(&r.f->qp[0].sq, head);
			if (cqe) {
				struct abi_cqe e = fake_cqe_of(r.f, 0, false, 0xfffffffd + cqe - 1);
				fake_complete(r.f, &r.f->cq[0], &e, false);
			}
			die(&r);
			if (cqe) {
				assert_int_equal(uroce_cq_poll(r.cq[0], &wc, 1), 1);
				assert_int_equal(wc.status, UROCE_WC_SUCCESS);
			}
			for (uint32_t i = head > cqe ? head : cqe; i < 6; i++)
				expect_next(&r, 0, 0, false, i);
			expect_end(&r, 0);
			close_rig(&r);
		}
	}
}

/* A CQE whose phase was not turned any more counts; the one that lay in its slot a pass before does not. */
static void test_half_written_cqe(void **state)
{
	for (unsigned step = 0; step < 4; step++) { /* the order of ring.h, cut after so many steps */
		struct rig r = open_rig(6);
		struct abi_cqe e;
		struct uroce_wc wc[4];
		add_cq(&r, 0, 2);
		add_qp(&r, 0, 0, 4);
		for (uint32_t i = 0; i < 2; i++) {
			post_send(&r, 0, i, UROCE_OP_SEND);
			fake_finish(r.f, &r.f->cq[0], 0, false);
		}
		assert_int_equal(uroce_cq_poll(r.cq[0], wc, 4), 2);
		for (uint32_t i = 2; i < 5; i++)
			post_send(&r, 0, i, UROCE_OP_SEND);
		e = fake_cqe_of(r.f, 0, false, 8);
		if (step == 1) /* the body */
			memcpy(fake_slot(&r.f->cq[0].r, r.f->cq[0].tail), &e, offsetof(struct abi_cqe, phase));
		if (step >= 2) /* the tail too */
			fake_write_cqe(&r.f->cq[0], &e);
		if (step >= 3) { /* the head too; then its slot is used again */
			fake_release(&r.f->qp[0].sq, 1);
			post_send(&r, 0, 5, UROCE_OP_SEND);
			post_send(&r, 0, 6, UROCE_OP_SEND);
		}
		die(&r);
		if (step >= 2) {
			assert_int_equal(uroce_cq_poll(r.cq[0], wc, 4), 1);
			assert_int_equal(wc[0].status, UROCE_WC_SUCCESS);
			assert_true(wc[0].wr_id == make_id(0, false, 2));
		}
		for (uint32_t i = step < 2 ? 2 : 3; i < (step < 3 ? 5 : 7); i++)
			expect_next(&r, 0, 0, false, i);
		expect_end(&r, 0);
		close_rig(&r);
	}
}

/* Whose QP goes after the death. */
static void test_half_written_cqe_of_a_qp_that_goes(void **state)
{
	for (uint32_t whole = 0; whole < 2; whole++) {
		struct rig r = open_rig(0);
		struct uroce_wc wc;
		struct abi_cqe e;
		add_cq(&r, 0, 4);
		add_qp(&r, 0, 0, 4);
		add_qp(&r, 0, 0, 4);
		for (uint32_t i = 0; i <= whole; i++)
			post_send(&r, 0, i, UROCE_OP_SEND);
		post_send(&r, 1, 0, UROCE_OP_SEND);
		if (whole)
			fake_finish(r.f, &r.f->cq[0], 0, false);
		e = fake_cqe_of(r.f, 0, false, 8);
		fake_write_cqe(&r.f->cq[0], &e);
		die(&r);
		assert_int_equal(uroce_qp_destroy(r.qp[0]), 0);
		r.qp[0] = NULL;
		assert_int_equal(uroce_cq_poll(r.cq[0], &wc, 1), 1);
		expect_flushed(&wc, 1, false, 0);
		expect_end(&r, 0);
		close_rig(&r);
	}
}

/* ---- many ---- */

struct model {
	uint32_t posted, done, released; /* of one queue */
};

/* Completes a WR; the slots of some are given back later than their CQE is written. */
static void finish(struct rig *r, struct fake_cq *cq, unsigned qp, bool is_rq, struct model *q, bool is_lazy)
{
	struct fake_ring *ring = is_rq ? &r->f->qp[qp].rq : &r->f->qp[qp].sq;
	struct abi_cqe e = fake_cqe_of(r->f, qp, is_rq, r->f->first_index + q->done);
	q->done++;
	if (!is_lazy) {
		fake_release(ring, q->done - q->released);
		q->released = q->done;
	}
	fake_complete(r->f, cq, &e, false);
}

/* Random work of many QPs over shared CQs, through many passes of all rings; then each WR must have come exactly once. */
static void run_random(unsigned seed, uint32_t first_index)
{
	struct rig r = open_rig(first_index);
	struct model m[QPS][2] = { 0 };
	uint32_t seen[QPS][2] = { 0 };
	struct uroce_wc wc[16];
	unsigned random = seed, ended = 0;
	r.f->qpn_twist = seed * 5;
	for (unsigned i = 0; i < CQS; i++)
		add_cq(&r, i, 512);
	for (unsigned i = 0; i < QPS; i++)
		add_qp(&r, i % CQS, i / CQS % CQS, 1u << i % 5);
	for (unsigned step = 0; step < 6000 + seed; step++) {
		unsigned qp = rand_r(&random) % QPS, is_rq = rand_r(&random) % 2;
		struct model *q = &m[qp][is_rq];
		struct fake_cq *cq = &r.f->cq[is_rq ? qp / CQS % CQS : qp % CQS];
		if (rand_r(&random) % 3) {
			if (q->posted - q->released == 1u << qp % 5)
				continue;
			if (is_rq)
				post_recv(&r, qp, q->posted++);
			else
				post_send(&r, qp, q->posted++, UROCE_OP_WRITE);
		} else if (q->posted != q->done && cq->tail - fake_tail(&cq->r) < 500) {
			finish(&r, cq, qp, is_rq, q, seed % 3 == 0 && rand_r(&random) % 2);
		}
		if (rand_r(&random) % 8 == 0) {
			int got = uroce_cq_poll(r.cq[rand_r(&random) % CQS], wc, 16);
			for (int i = 0; i < got; i++)
				assert_int_equal((uint32_t)wc[i].wr_id, seen[wc[i].wr_id >> 40][wc[i].wr_id >> 32 & 1]++);
		}
	}
	die(&r);
	for (unsigned polls = 0; ended < CQS; polls++) {
		int got = uroce_cq_poll(r.cq[ended], wc, 1 + polls % 16);
		ended += got == -ENODEV;
		for (int i = 0; i < got; i++) {
			unsigned qp = (unsigned)(wc[i].wr_id >> 40), is_rq = wc[i].wr_id >> 32 & 1;
			uint32_t n = seen[qp][is_rq]++;
			assert_int_equal((uint32_t)wc[i].wr_id, n);
			assert_int_equal(wc[i].status, n < m[qp][is_rq].done ? UROCE_WC_SUCCESS : UROCE_WC_WR_FLUSH_ERR);
			assert_int_equal(wc[i].qpn, r.f->qp[qp].qpn);
		}
	}
	for (unsigned i = 0; i < QPS * 2; i++)
		assert_int_equal(seen[i / 2][i % 2], m[i / 2][i % 2].posted);
	close_rig(&r);
}

static void test_many(void **state)
{
	for (unsigned seed = 0; seed < 20; seed++)
		run_random(seed, seed % 2 ? 0 : 0xffffffff - seed * 7);
}

/* ---- what else may happen ---- */

static void test_garbage(void **state)
{
	static const uint32_t garbage[] = { 3, 4, 5, 8, 12, 100, 0x80000000, 0xffffffff };
	for (unsigned i = 0; i < 8 * 8 * 8; i++) {
		struct rig r = open_rig(0);
		struct uroce_wc wc[4];
		unsigned flushed = 0;
		int got;
		add_cq(&r, 0, 4);
		add_qp(&r, 0, 0, 8);
		for (uint32_t n = 0; n < 3; n++)
			post_send(&r, 0, n, UROCE_OP_SEND);
		for (unsigned slot = 0; slot < 4; slot++) {
			struct abi_cqe *e = fake_slot(&r.f->cq[0].r, slot);
			e->qpn = FAKE_QPN;
			e->index = garbage[i / 64] + slot;
			e->opcode = (uint8_t)garbage[i % 8];
		}
		atomic_store(&r.f->cq[0].r.ring->engine_index, garbage[i % 8]);
		atomic_store(&r.f->qp[0].sq.ring->engine_index, garbage[i / 8 % 8]);
		atomic_store(&r.f->qp[0].sq.ring->client_index, garbage[i / 64]);
		memset(fake_slot(&r.f->qp[0].sq, 1), 0xff, 64);
		die(&r);
		while ((got = uroce_cq_poll(r.cq[0], wc, 2)) > 0)
			flushed += (unsigned)got;
		assert_int_equal(got, -ENODEV);
		assert_in_range(flushed, 0, 4); /* and one that seemed half written */
		close_rig(&r);
	}
}

/* A QP that goes after the death takes its WRs with it; the others are flushed once, wherever the flushing was. */
static void test_destruction_while_flushing(void **state)
{
	for (unsigned victim = 0; victim < 3; victim++) {
		for (unsigned taken = 0; taken <= 6; taken++) {
			struct rig r = open_rig(0);
			unsigned next[3] = { 0 };
			struct uroce_wc wc;
			add_cq(&r, 0, 4);
			for (unsigned i = 0; i < 3; i++)
				add_qp(&r, 0, 0, 4);
			for (unsigned i = 0; i < 6; i++)
				post_recv(&r, i / 2, i % 2);
			die(&r);
			for (unsigned i = 0; i < taken; i++) {
				expect_next(&r, 0, i / 2, true, i % 2);
				next[i / 2]++;
			}
			assert_int_equal(uroce_qp_destroy(r.qp[victim]), 0);
			r.qp[victim] = NULL;
			next[victim] = 2;
			for (unsigned i = 0; i < 3; i++)
				while (next[i] < 2)
					expect_next(&r, 0, i, true, next[i]++);
			assert_int_equal(uroce_cq_poll(r.cq[0], &wc, 1), -ENODEV);
			close_rig(&r);
		}
	}
}

/* CQEs of a QP that is gone say nothing about a new one of the same number. */
static void test_number_used_again(void **state)
{
	struct rig r = open_rig(0);
	struct uroce_wc wc;
	add_cq(&r, 0, 16);
	add_qp(&r, 0, 0, 8);
	for (uint32_t i = 0; i < 6; i++) {
		post_send(&r, 0, i, UROCE_OP_SEND);
		fake_finish(r.f, &r.f->cq[0], 0, false);
		if (i < 4)
			assert_int_equal(uroce_cq_poll(r.cq[0], &wc, 1), 1);
	}
	assert_int_equal(uroce_qp_destroy(r.qp[0]), 0);
	r.f->qps = r.qps = 0;
	add_qp(&r, 0, 0, 8);
	for (uint32_t i = 0; i < 8; i++)
		post_send(&r, 0, i, UROCE_OP_SEND);
	die(&r);
	for (uint32_t i = 0; i < 8; i++)
		expect_next(&r, 0, 0, false, i);
	expect_end(&r, 0);
	close_rig(&r);
}

/* Posting by one thread while the engine dies and another polls: each WR that was taken comes. */
static void *post_until_dead(void *arg)
{
	struct rig *r = arg;
	struct uroce_send_wr wr = { .opcode = UROCE_OP_SEND };
	intptr_t posted = 0;
	for (;;) {
		int got = uroce_post_send(r->qp[0], &wr, 1);
		if (got == -ENODEV)
			return (void *)posted;
		posted += got == 1;
		wr.wr_id = (uint64_t)posted;
	}
}

static void test_death_while_posting(void **state)
{
	for (unsigned round = 0; round < 200; round++) {
		struct rig r = open_rig(0);
		struct uroce_wc wc;
		pthread_t thread;
		uint64_t seen = 0;
		void *posted;
		add_cq(&r, 0, 4);
		add_qp(&r, 0, 0, 1024);
		assert_int_equal(pthread_create(&thread, NULL, post_until_dead, &r), 0);
		while (fake_tail(&r.f->qp[0].sq) < round)
			;
		die(&r);
		while (uroce_cq_poll(r.cq[0], &wc, 1) == 1)
			assert_int_equal(wc.wr_id, seen++);
		assert_int_equal(pthread_join(thread, &posted), 0);
		while (uroce_cq_poll(r.cq[0], &wc, 1) == 1)
			assert_int_equal(wc.wr_id, seen++);
		assert_int_equal(seen, (intptr_t)posted);
		close_rig(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_content),
		cmocka_unit_test(test_orderly_end),
		cmocka_unit_test(test_heads_and_cqes),
		cmocka_unit_test(test_half_written_cqe),
		cmocka_unit_test(test_half_written_cqe_of_a_qp_that_goes),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_destruction_while_flushing),
		cmocka_unit_test(test_number_used_again),
		cmocka_unit_test(test_death_while_posting),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
