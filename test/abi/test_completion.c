/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues, channels and events, against the rings. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cause.h"
#include "fake_engine.h"

struct fixture {
	struct fake_engine *f;
	struct uroce_context *ctx;
	struct uroce_channel *ch;
	struct uroce_cq *cq;
};

static struct fixture open_cq(uint32_t entries, uint32_t first_index)
{
	struct fixture x;
	x.f = fake_open(&x.ctx);
	x.f->first_index = first_index;
	assert_int_equal(uroce_channel_create(x.ctx, &x.ch), 0);
	assert_int_equal(uroce_cq_create(x.ctx, entries, x.ch, &x, &x.cq), 0);
	return x;
}

static void close_cq(struct fixture *x)
{
	assert_int_equal(uroce_cq_destroy(x->cq), 0);
	assert_int_equal(uroce_channel_destroy(x->ch), 0);
	uroce_close(x->ctx);
	fake_free(x->f);
}

static void set_nonblocking(const struct uroce_channel *ch)
{
	assert_int_equal(fcntl(uroce_channel_fd(ch), F_SETFL, O_NONBLOCK), 0);
}

/* ---- polling ---- */

static void test_fields(void **state)
{
	static const struct abi_cqe cqe = { .wr_id = 0x0102030405060708,
		.status = ABI_WC_REM_ACCESS_ERR,
		.opcode = ABI_WC_RECV_WRITE_WITH_IMM,
		.flags = ABI_WC_HAS_IMM | ABI_WC_HAS_INVALIDATE | 1 << 15, /* a flag that there is not */
		.byte_len = 5,
		.qpn = 0x77,
		.src_qpn = 0x88,
		.imm = 0xdeadbeef,
		.vendor_error = CAUSE_NAK_REMOTE_ACCESS };
	struct fixture x = open_cq(4, 0);
	struct uroce_wc wc = { 0 };
	fake_complete(x.f, &x.f->cq[0], &cqe, false);
	assert_int_equal(uroce_cq_poll(x.cq, &wc, 1), 1);
	assert_int_equal(wc.wr_id, 0x0102030405060708);
	assert_int_equal(wc.status, UROCE_WC_REM_ACCESS_ERR);
	assert_int_equal(wc.opcode, UROCE_WC_RECV_WRITE_WITH_IMM);
	assert_int_equal(wc.flags, UROCE_WC_HAS_IMM | UROCE_WC_HAS_INVALIDATED);
	assert_int_equal(wc.byte_len, 5);
	assert_int_equal(wc.qpn, 0x77);
	assert_int_equal(wc.src_qpn, 0x88);
	assert_int_equal(wc.imm, 0xdeadbeef);
	assert_int_equal(wc.vendor_error, CAUSE_NAK_REMOTE_ACCESS);
	close_cq(&x);
}

static void run_passes(uint32_t slots, uint32_t first_index)
{
	struct fixture x = open_cq(slots, first_index);
	struct fake_cq *cq = &x.f->cq[0];
	struct uroce_wc wc[64];
	uint64_t written = 0, read = 0;
	assert_int_equal(uroce_cq_poll(x.cq, wc, 64), 0);
	for (unsigned round = 0; round < 40; round++) {
		uint32_t n = 1 + (round * 7 + slots) % slots;
		for (uint32_t i = 0; i < n; i++)
			fake_complete_id(x.f, cq, 1, written++);
		/* in two calls, the first of which leaves some */
		for (unsigned call = 0; call < 2; call++) {
			int got = uroce_cq_poll(x.cq, wc, call ? 64 : n / 2);
			assert_int_equal(got, call ? n - n / 2 : n / 2);
			for (int i = 0; i < got; i++)
				assert_int_equal(wc[i].wr_id, read++);
			assert_int_equal(fake_tail(&cq->r), (uint32_t)(first_index + read));
		}
		assert_int_equal(uroce_cq_poll(x.cq, wc, 64), 0);
	}
	close_cq(&x);
}

static void test_phases(void **state)
{
	for (uint32_t slots = 1; slots <= 32; slots *= 2) {
		run_passes(slots, 0);
		run_passes(slots, 0xfffffff9);
		run_passes(slots, 3 * slots);
		run_passes(slots, 0x7fffffff);
	}
}

/* The head goes out once per call, and not at all when nothing was taken. */
static void test_head_is_published_in_batches(void **state)
{
	struct fixture x = open_cq(8, 0);
	struct uroce_wc wc[8];
	for (unsigned i = 0; i < 8; i++)
		fake_complete_id(x.f, &x.f->cq[0], 1, i);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 0), 0);
	assert_int_equal(fake_tail(&x.f->cq[0].r), 0);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 3), 3);
	assert_int_equal(fake_tail(&x.f->cq[0].r), 3);
	atomic_store(&x.f->cq[0].r.ring->client_index, 77);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 5), 5);
	assert_int_equal(fake_tail(&x.f->cq[0].r), 8);
	atomic_store(&x.f->cq[0].r.ring->client_index, 77);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 8), 0);
	assert_int_equal(fake_tail(&x.f->cq[0].r), 77);
	close_cq(&x);
}

static void test_dead_engine(void **state)
{
	struct fixture x = open_cq(4, 0);
	struct uroce_wc wc[4];
	fake_complete_id(x.f, &x.f->cq[0], 1, 5);
	fake_complete_id(x.f, &x.f->cq[0], 1, 6);
	atomic_store(&x.f->page->dead, 1);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 1), 1);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 4), 1);
	assert_int_equal(wc[0].wr_id, 6);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 4), -ENODEV);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 0), 0);
	close_cq(&x);
}

/* ---- purging ---- */

static struct uroce_qp *new_qp(struct uroce_pd *pd, struct uroce_cq *send_cq, struct uroce_cq *recv_cq)
{
	struct uroce_qp_init init = { .send_cq = send_cq, .recv_cq = recv_cq };
	struct uroce_qp *qp;
	assert_int_equal(uroce_qp_create(pd, &init, &qp), 0);
	return qp;
}

static void test_destroy_purges(void **state)
{
	struct fixture x = open_cq(8, 5);
	struct uroce_cq *other;
	struct uroce_pd *pd;
	struct uroce_qp *a, *b;
	struct uroce_wc wc[8];
	assert_int_equal(uroce_pd_create(x.ctx, &pd), 0);
	assert_int_equal(uroce_cq_create(x.ctx, 8, NULL, NULL, &other), 0);
	a = new_qp(pd, x.cq, other);
	b = new_qp(pd, other, x.cq);
	assert_int_equal(uroce_qp_num(a), FAKE_QPN);
	/* one that was polled before, then a mixture across the end of the ring; a full ring in `other` */
	fake_complete_id(x.f, &x.f->cq[0], FAKE_QPN, 99);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 1), 1);
	for (unsigned i = 0; i < 6; i++)
		fake_complete_id(x.f, &x.f->cq[0], FAKE_QPN + i % 2, i);
	for (unsigned i = 0; i < 8; i++)
		fake_complete_id(x.f, &x.f->cq[1], FAKE_QPN + (i < 7), i);
	assert_int_equal(uroce_qp_destroy(a), 0);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 2), 2);
	assert_int_equal(wc[0].wr_id, 1);
	assert_int_equal(wc[1].wr_id, 3);
	fake_complete_id(x.f, &x.f->cq[0], FAKE_QPN + 1, 7);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 8), 2);
	assert_int_equal(wc[0].wr_id, 5);
	assert_int_equal(wc[1].wr_id, 7);
	/* those of a QP that is gone take no room, unpolled as the others are */
	assert_int_equal(fake_tail(&x.f->cq[1].r), x.f->cq[1].tail - 7);
	fake_complete_id(x.f, &x.f->cq[1], FAKE_QPN + 1, 8);
	assert_int_equal(uroce_cq_poll(other, wc, 8), 8);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(wc[i].wr_id, i + (i == 7));
	/* what only purged ones are left of is empty */
	fake_complete_id(x.f, &x.f->cq[0], FAKE_QPN + 1, 8);
	assert_int_equal(uroce_qp_destroy(b), 0);
	assert_int_equal(fake_tail(&x.f->cq[0].r), x.f->cq[0].tail);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 8), 0);
	assert_int_equal(uroce_pd_destroy(pd), 0);
	assert_int_equal(uroce_cq_destroy(other), 0);
	close_cq(&x);
}

static void test_reset_purges(void **state)
{
	struct fixture x = open_cq(8, 0);
	struct uroce_qp_attr attr = { .state = UROCE_QP_RESET };
	struct uroce_pd *pd;
	struct uroce_qp *qp;
	struct uroce_wc wc[8];
	assert_int_equal(uroce_pd_create(x.ctx, &pd), 0);
	qp = new_qp(pd, x.cq, x.cq);
	fake_complete_id(x.f, &x.f->cq[0], FAKE_QPN, 1);
	fake_complete_id(x.f, &x.f->cq[0], FAKE_QPN + 1, 2);
	assert_int_equal(uroce_qp_modify(qp, &attr, UROCE_QP_STATE), 0);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 8), 1);
	assert_int_equal(wc[0].wr_id, 2);
	assert_int_equal(uroce_cq_destroy(x.cq), -EBUSY);
	assert_int_equal(uroce_qp_destroy(qp), 0);
	assert_int_equal(uroce_pd_destroy(pd), 0);
	close_cq(&x);
}

/* ---- arming ---- */

static void test_arm_precedence(void **state)
{
	static const struct {
		uint32_t before;
		bool solicited_only;
		uint32_t after;
	} rows[] = {
		{ ABI_ARM_NONE, false, ABI_ARM_ANY },
		{ ABI_ARM_NONE, true, ABI_ARM_SOLICITED },
		{ ABI_ARM_SOLICITED, false, ABI_ARM_ANY },
		{ ABI_ARM_SOLICITED, true, ABI_ARM_SOLICITED },
		{ ABI_ARM_ANY, false, ABI_ARM_ANY },
		{ ABI_ARM_ANY, true, ABI_ARM_ANY },
	};
	struct fixture x = open_cq(4, 0);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		atomic_store(&x.f->cq[0].r.ring->arm, rows[i].before);
		assert_int_equal(uroce_cq_arm(x.cq, rows[i].solicited_only), 0);
		assert_int_equal(atomic_load(&x.f->cq[0].r.ring->arm), rows[i].after);
	}
	close_cq(&x);
}

static void test_arm_without_channel(void **state)
{
	struct fixture x = open_cq(4, 0);
	struct uroce_cq *cq;
	assert_int_equal(uroce_cq_create(x.ctx, 4, NULL, NULL, &cq), 0);
	assert_int_equal(uroce_cq_arm(cq, false), -EINVAL);
	assert_int_equal(uroce_cq_destroy(cq), 0);
	close_cq(&x);
}

/* known-bugs: 44 */
static void test_solicited_only(void **state)
{
	static const struct abi_cqe good = { .qpn = 1 }, bad = { .qpn = 1, .status = ABI_WC_WR_FLUSH_ERR };
	struct fixture x = open_cq(8, 0);
	struct uroce_cq *cq;
	set_nonblocking(x.ch);
	assert_int_equal(uroce_cq_arm(x.cq, true), 0);
	fake_complete(x.f, &x.f->cq[0], &good, false);
	assert_int_equal(uroce_channel_get_event(x.ch, &cq), -EAGAIN);
	fake_complete(x.f, &x.f->cq[0], &good, true);
	fake_complete(x.f, &x.f->cq[0], &good, true);
	assert_int_equal(uroce_channel_get_event(x.ch, &cq), 0);
	assert_int_equal(uroce_channel_get_event(x.ch, &cq), -EAGAIN);
	assert_int_equal(uroce_cq_arm(x.cq, true), 0);
	fake_complete(x.f, &x.f->cq[0], &bad, false);
	assert_int_equal(uroce_channel_get_event(x.ch, &cq), 0);
	uroce_cq_ack_events(x.cq, 2);
	close_cq(&x);
}

/* ---- events ---- */

static void test_events_nonblocking(void **state)
{
	struct fixture x = open_cq(4, 0);
	struct uroce_cq *cq, *second;
	assert_int_equal(uroce_cq_create(x.ctx, 4, x.ch, &second, &second), 0);
	assert_ptr_equal(uroce_cq_user(second), &second);
	assert_int_equal(fake_last(x.f, ABI_CREATE_CQ)->create_cq.channel, 1);
	set_nonblocking(x.ch);
	assert_int_equal(uroce_channel_get_event(x.ch, &cq), -EAGAIN);
	fake_fire(x.f, &x.f->cq[1]);
	fake_fire(x.f, &x.f->cq[0]);
	assert_int_equal(uroce_channel_get_event(x.ch, &cq), 0);
	assert_ptr_equal(cq, second);
	assert_int_equal(uroce_channel_get_event(x.ch, &cq), 0);
	assert_ptr_equal(cq, x.cq);
	assert_int_equal(uroce_channel_get_event(x.ch, &cq), -EAGAIN);
	uroce_cq_ack_events(x.cq, 1);
	uroce_cq_ack_events(second, 1);
	assert_int_equal(uroce_channel_destroy(x.ch), -EBUSY);
	assert_int_equal(uroce_cq_destroy(second), 0);
	close_cq(&x);
}

/* An event of a CQ that is gone is skipped, though a new CQ may be at its address; it does not have to be acknowledged either. */
static void test_undelivered_events_are_purged(void **state)
{
	struct fixture x = open_cq(4, 0);
	struct uroce_cq *cq = NULL, *second;
	set_nonblocking(x.ch);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(uroce_cq_create(x.ctx, 4, x.ch, NULL, &second), 0);
		fake_fire(x.f, &x.f->cq[i + 1]);
		assert_int_equal(uroce_cq_destroy(second), 0);
	}
	assert_int_equal(uroce_cq_create(x.ctx, 4, x.ch, NULL, &second), 0);
	fake_fire(x.f, &x.f->cq[0]);
	assert_int_equal(uroce_channel_get_event(x.ch, &cq), 0);
	assert_ptr_equal(cq, x.cq);
	assert_int_equal(uroce_channel_get_event(x.ch, &cq), -EAGAIN);
	uroce_cq_ack_events(x.cq, 1);
	assert_int_equal(uroce_cq_destroy(second), 0);
	close_cq(&x);
}

/* A cookie that never was any CQ's, or is a QP's, does no harm. */
static void test_foreign_cookies(void **state)
{
	struct fixture x = open_cq(4, 0);
	uint64_t cookies[] = { 0, UINT64_MAX, 0xdeadbeef, (uintptr_t)x.cq };
	struct uroce_async_event event;
	struct uroce_cq *cq;
	set_nonblocking(x.ch);
	assert_int_equal(fcntl(uroce_async_fd(x.ctx), F_SETFL, O_NONBLOCK), 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(write(x.f->channel[0][1], &cookies[i], 8), 8);
		fake_async(x.f, cookies[i], ABI_EVENT_CQ_ERR);
		fake_async(x.f, cookies[i], ABI_EVENT_QP_FATAL);
	}
	fake_async(x.f, x.f->cq[0].cookie, ABI_EVENT_QP_FATAL); /* the cookie of a CQ in an event of a QP */
	fake_async(x.f, x.f->cq[0].cookie, 12345);
	assert_int_equal(uroce_channel_get_event(x.ch, &cq), -EAGAIN);
	assert_int_equal(uroce_async_get_event(x.ctx, &event), -EAGAIN);
	close_cq(&x);
}

static void test_broken_channels(void **state)
{
	struct fixture x = open_cq(4, 0);
	struct uroce_async_event event;
	struct uroce_cq *cq;
	assert_int_equal(write(x.f->channel[0][1], "abc", 3), 3);
	assert_int_equal(uroce_channel_get_event(x.ch, &cq), -EIO);
	close(x.f->channel[0][1]);
	x.f->channel[0][1] = -1;
	assert_int_equal(uroce_channel_get_event(x.ch, &cq), -ENODEV);
	close(x.f->async[1]);
	x.f->async[1] = -1;
	assert_int_equal(uroce_async_get_event(x.ctx, &event), 0); /* once */
	assert_int_equal(event.type, UROCE_EVENT_DEVICE_FATAL);
	assert_true(!event.qp && !event.cq && !event.srq);
	uroce_async_ack_event(&event);
	assert_int_equal(uroce_async_get_event(x.ctx, &event), -ENODEV);
	close_cq(&x);
}

static void on_signal(int number)
{
}

static void *wait_for_event(void *arg)
{
	struct uroce_cq *cq;
	return (void *)(intptr_t)uroce_channel_get_event(arg, &cq);
}

/* A signal ends the wait for an event, unless its handler says that it does not. */
static void test_signals(void **state)
{
	for (unsigned is_restarted = 0; is_restarted < 2; is_restarted++) {
		struct fixture x = open_cq(4, 0);
		struct sigaction action = { .sa_handler = on_signal, .sa_flags = is_restarted ? SA_RESTART : 0 };
		pthread_t thread;
		void *result;
		assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
		assert_int_equal(pthread_create(&thread, NULL, wait_for_event, x.ch), 0);
		usleep(50000);
		assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
		usleep(50000);
		if (is_restarted)
			fake_fire(x.f, &x.f->cq[0]);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_int_equal((intptr_t)result, is_restarted ? 0 : -EINTR);
		if (is_restarted)
			uroce_cq_ack_events(x.cq, 1);
		close_cq(&x);
	}
}

/* ---- acknowledgement ---- */

struct waiter {
	struct uroce_cq *cq;
	struct uroce_qp *qp;
	atomic_int step;
};

static void *destroy(void *arg)
{
	struct waiter *w = arg;
	atomic_store(&w->step, 1);
	assert_int_equal(w->qp ? uroce_qp_destroy(w->qp) : uroce_cq_destroy(w->cq), 0);
	atomic_store(&w->step, 2);
	return NULL;
}

/* The thread can only be at the wait or before it, never beyond. */
static pthread_t start_to_destroy(struct waiter *w)
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, destroy, w), 0);
	while (!atomic_load(&w->step))
		sched_yield();
	return thread;
}

static void test_destroy_waits_for_acks(void **state)
{
	struct fixture x = open_cq(4, 0);
	struct waiter w = { .cq = x.cq };
	struct uroce_async_event event;
	struct uroce_cq *cq;
	pthread_t thread;
	for (unsigned i = 0; i < 3; i++) {
		fake_fire(x.f, &x.f->cq[0]);
		assert_int_equal(uroce_channel_get_event(x.ch, &cq), 0);
	}
	fake_fire(x.f, &x.f->cq[0]); /* never delivered: nobody waits for it */
	fake_async(x.f, x.f->cq[0].cookie, ABI_EVENT_CQ_ERR);
	fake_async(x.f, x.f->cq[0].cookie, ABI_EVENT_CQ_ERR); /* nor for this one */
	assert_int_equal(uroce_async_get_event(x.ctx, &event), 0);
	uroce_cq_ack_events(cq, 1);
	thread = start_to_destroy(&w);
	usleep(5000);
	uroce_cq_ack_events(cq, 2);
	usleep(5000);
	assert_int_equal(atomic_load(&w.step), 1);
	uroce_async_ack_event(&event);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(atomic_load(&w.step), 2);
	assert_int_equal(uroce_channel_destroy(x.ch), 0);
	uroce_close(x.ctx);
	fake_free(x.f);
}

static void test_qp_destroy_waits_for_acks(void **state)
{
	struct fixture x = open_cq(4, 0);
	struct uroce_async_event event[2];
	struct waiter w = { 0 };
	struct uroce_pd *pd;
	pthread_t thread;
	assert_int_equal(uroce_pd_create(x.ctx, &pd), 0);
	w.qp = new_qp(pd, x.cq, x.cq);
	for (unsigned i = 0; i < 3; i++)
		fake_async(x.f, x.f->qp[0].cookie, ABI_EVENT_COMM_EST);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(uroce_async_get_event(x.ctx, &event[i]), 0);
	thread = start_to_destroy(&w);
	uroce_async_ack_event(&event[0]);
	usleep(5000);
	assert_int_equal(atomic_load(&w.step), 1);
	uroce_async_ack_event(&event[1]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	fake_async(x.f, 0, ABI_EVENT_PORT_ERR);
	assert_int_equal(uroce_async_get_event(x.ctx, &event[0]), 0); /* the third was passed over */
	assert_int_equal(event[0].type, UROCE_EVENT_PORT_ERR);
	uroce_async_ack_event(&event[0]);
	assert_int_equal(uroce_pd_destroy(pd), 0);
	close_cq(&x);
}

/* An fd is readable as long as events remain, one read takes one. */
static void test_readable_while_events_remain(void **state)
{
	struct fixture x = open_cq(4, 0);
	struct pollfd fds[2] = { { uroce_channel_fd(x.ch), POLLIN, 0 }, { uroce_async_fd(x.ctx), POLLIN, 0 } };
	struct uroce_async_event event;
	struct uroce_cq *cq;
	assert_int_equal(poll(fds, 2, 0), 0);
	for (unsigned i = 0; i < 5; i++) {
		fake_fire(x.f, &x.f->cq[0]);
		fake_async(x.f, x.f->cq[0].cookie, ABI_EVENT_CQ_ERR);
	}
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(poll(fds, 2, 0), 2);
		assert_int_equal(uroce_channel_get_event(x.ch, &cq), 0);
		assert_int_equal(uroce_async_get_event(x.ctx, &event), 0);
		uroce_async_ack_event(&event);
	}
	assert_int_equal(poll(fds, 2, 0), 0);
	uroce_cq_ack_events(x.cq, 5);
	close_cq(&x);
}

static void test_async_events(void **state)
{
	static const struct {
		uint32_t type;
		bool is_cq, is_qp;
	} rows[] = {
		{ ABI_EVENT_CQ_ERR, true, false },
		{ ABI_EVENT_QP_FATAL, false, true },
		{ ABI_EVENT_QP_REQ_ERR, false, true },
		{ ABI_EVENT_QP_ACCESS_ERR, false, true },
		{ ABI_EVENT_COMM_EST, false, true },
		{ ABI_EVENT_SQ_DRAINED, false, true },
		{ ABI_EVENT_DEVICE_FATAL, false, false },
		{ ABI_EVENT_PORT_ACTIVE, false, false },
		{ ABI_EVENT_PORT_ERR, false, false },
		{ ABI_EVENT_GID_CHANGE, false, false },
	};
	struct fixture x = open_cq(4, 0);
	struct uroce_async_event event;
	struct uroce_pd *pd;
	struct uroce_qp *qp;
	assert_int_equal(uroce_pd_create(x.ctx, &pd), 0);
	qp = new_qp(pd, x.cq, x.cq);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_async(x.f, rows[i].is_cq ? x.f->cq[0].cookie : rows[i].is_qp ? x.f->qp[0].cookie : 0, rows[i].type);
		assert_int_equal(uroce_async_get_event(x.ctx, &event), 0);
		assert_int_equal(event.type, rows[i].type);
		assert_ptr_equal(event.cq, rows[i].is_cq ? x.cq : NULL);
		assert_ptr_equal(event.qp, rows[i].is_qp ? qp : NULL);
		uroce_async_ack_event(&event);
	}
	assert_int_equal(uroce_qp_destroy(qp), 0);
	fake_async(x.f, x.f->qp[0].cookie, ABI_EVENT_QP_FATAL);
	fake_async(x.f, x.f->cq[0].cookie, ABI_EVENT_CQ_ERR);
	assert_int_equal(uroce_async_get_event(x.ctx, &event), 0);
	assert_ptr_equal(event.cq, x.cq);
	uroce_async_ack_event(&event);
	assert_int_equal(uroce_pd_destroy(pd), 0);
	close_cq(&x);
}

static void test_refused_creations(void **state)
{
	struct fixture x = open_cq(4, 0), y = open_cq(4, 0);
	struct uroce_cq *cq;
	assert_int_equal(uroce_cq_create(x.ctx, 0, NULL, NULL, &cq), -EINVAL);
	assert_int_equal(uroce_cq_create(x.ctx, 4, y.ch, NULL, &cq), -EINVAL);
	assert_int_equal(fake_count(x.f, ABI_CREATE_CQ), 1);
	close_cq(&x);
	close_cq(&y);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_head_is_published_in_batches),
		cmocka_unit_test(test_dead_engine),
		cmocka_unit_test(test_destroy_purges),
		cmocka_unit_test(test_reset_purges),
		cmocka_unit_test(test_arm_precedence),
		cmocka_unit_test(test_arm_without_channel),
		cmocka_unit_test(test_solicited_only),
		cmocka_unit_test(test_events_nonblocking),
		cmocka_unit_test(test_undelivered_events_are_purged),
		cmocka_unit_test(test_foreign_cookies),
		cmocka_unit_test(test_broken_channels),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_destroy_waits_for_acks),
		cmocka_unit_test(test_qp_destroy_waits_for_acks),
		cmocka_unit_test(test_readable_while_events_remain),
		cmocka_unit_test(test_async_events),
		cmocka_unit_test(test_refused_creations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
