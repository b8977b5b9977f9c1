/* SPDX-License-Identifier: BSD-3-Clause */
/* The two places where a thread sleeps and another has to wake it: doorbells and CQ events. A lost wake-up hangs this test,
 * which is then stopped from outside; nothing in here waits for time. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_engine.h"

#define MESSAGES 30000u

struct rig {
	struct fake_engine *f;
	struct uroce_context *ctx;
	struct uroce_channel *ch;
	struct uroce_cq *cq;
	struct uroce_pd *pd;
	struct uroce_qp *qp;
	sem_t wake;
	unsigned naps;
};

static void on_woken(struct fake_engine *f)
{
	sem_post(&((struct rig *)f->on_woken_arg)->wake);
}

static struct rig *open_rig(void)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct uroce_qp_init init = { .cap = { .max_send_wr = 8 } };
	struct uroce_qp_attr attr = { .state = UROCE_QP_RTS };
	assert_non_null(r);
	sem_init(&r->wake, 0, 0);
	r->f = fake_open(&r->ctx);
	r->f->on_woken = on_woken;
	r->f->on_woken_arg = r;
	assert_int_equal(uroce_channel_create(r->ctx, &r->ch), 0);
	assert_int_equal(uroce_cq_create(r->ctx, 16, r->ch, NULL, &r->cq), 0);
	assert_int_equal(uroce_pd_create(r->ctx, &r->pd), 0);
	init.send_cq = init.recv_cq = r->cq;
	assert_int_equal(uroce_qp_create(r->pd, &init, &r->qp), 0);
	assert_int_equal(uroce_qp_modify(r->qp, &attr, UROCE_QP_STATE), 0);
	return r;
}

static void close_rig(struct rig *r)
{
	assert_int_equal(uroce_qp_destroy(r->qp), 0);
	assert_int_equal(uroce_pd_destroy(r->pd), 0);
	assert_int_equal(uroce_cq_destroy(r->cq), 0);
	assert_int_equal(uroce_channel_destroy(r->ch), 0);
	uroce_close(r->ctx);
	fake_free(r->f);
	sem_destroy(&r->wake);
	free(r);
}

static uint32_t serve(struct rig *r, uint32_t done)
{
	struct fake_ring *sq = &r->f->qp[0].sq;
	while (done != fake_tail(sq)) {
		const struct abi_send_wqe *wqe = fake_slot(sq, done++);
		struct abi_cqe cqe = { .wr_id = wqe->wr_id, .qpn = FAKE_QPN };
		fake_release(sq, 1);
		fake_complete(r->f, &r->f->cq[0], &cqe, wqe->flags & ABI_SEND_SOLICITED);
	}
	return done;
}

/* Looks by itself for a while, then waits for doorbells, then sleeps: each step as ring.h asks. */
static void *run_engine(void *arg)
{
	struct rig *r = arg;
	struct fake_ring *sq = &r->f->qp[0].sq;
	uint32_t done = 0, last;
	while (done < MESSAGES) {
		atomic_store(&sq->ring->looking, 1);
		for (uint32_t spins = done % 7; spins > 0; spins--)
			done = serve(r, done);
		atomic_store(&sq->ring->looking, 0);
		atomic_thread_fence(memory_order_seq_cst);
		done = serve(r, done);
		if (done >= MESSAGES || fake_take_doorbells(r->f, &last))
			continue;
		atomic_store(&r->f->page->sleeping, 1);
		atomic_thread_fence(memory_order_seq_cst);
		if (!fake_take_doorbells(r->f, &last)) {
			while (sem_wait(&r->wake))
				;
			r->naps++;
		}
		atomic_store(&r->f->page->sleeping, 0);
		done = serve(r, done);
	}
	return NULL;
}

static void post(struct rig *r, uint64_t wr_id, bool is_solicited)
{
	struct uroce_send_wr wr = { .wr_id = wr_id, .opcode = UROCE_OP_SEND, .flags = is_solicited ? UROCE_SEND_SOLICITED : 0 };
	assert_int_equal(uroce_post_send(r->qp, &wr, 1), 1);
}

static void test_no_lost_doorbell(void **state)
{
	struct rig *r = open_rig();
	struct uroce_wc wc;
	pthread_t engine;
	assert_int_equal(pthread_create(&engine, NULL, run_engine, r), 0);
	for (unsigned i = 0; i < MESSAGES; i++) {
		int got;
		post(r, i, false);
		while (!(got = uroce_cq_poll(r->cq, &wc, 1)))
			sched_yield();
		assert_int_equal(got, 1);
		assert_int_equal(wc.wr_id, i);
	}
	assert_int_equal(pthread_join(engine, NULL), 0);
	assert_int_equal(fake_tail(&r->f->qp[0].sq), MESSAGES);
	close_rig(r);
}

/* known-bugs: 44 */
static void test_arm_poll_arm(void **state)
{
	struct rig *r = open_rig();
	struct uroce_cq *cq;
	struct uroce_wc wc[4];
	pthread_t engine;
	unsigned events = 0;
	uint64_t next = 0, sent = 0;
	assert_int_equal(uroce_cq_arm(r->cq, false), 0);
	assert_int_equal(pthread_create(&engine, NULL, run_engine, r), 0);
	while (next < MESSAGES) {
		int got;
		for (unsigned n = 1 + next % 3; n > 0 && sent < MESSAGES && sent - next < 4; n--)
			post(r, sent++, true);
		assert_int_equal(uroce_channel_get_event(r->ch, &cq), 0);
		assert_ptr_equal(cq, r->cq);
		events++;
		assert_int_equal(uroce_cq_arm(r->cq, next & 1), 0);
		while ((got = uroce_cq_poll(r->cq, wc, 4)) > 0)
			for (int i = 0; i < got; i++)
				assert_int_equal(wc[i].wr_id, next++);
		assert_int_equal(got, 0);
		/* all that was sent has come, perhaps before the arm: then the next event needs the next message */
	}
	uroce_cq_ack_events(r->cq, events);
	assert_int_equal(pthread_join(engine, NULL), 0);
	close_rig(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_lost_doorbell),
		cmocka_unit_test(test_arm_poll_arm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
