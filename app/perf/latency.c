/* SPDX-License-Identifier: BSD-3-Clause */
/* Latency: one message at a time on one QP; one that gets lost is given up, and the next one sent. Three ways, chosen by the operation: a ping-pong of messages that use up receives, a ping-pong of WRITEs
 * whose last byte is looked at in memory (half a round trip each), and the time from post to completion, for what comes back to the requester or leaves no trace at the peer.
 * Invariant: messages are numbered from 1; the last byte of WRITE n is n, so that it differs from the one before, also if that got lost. */
#include <errno.h>
#include <stdatomic.h>

#include "measure.h"

#define WARM_MESSAGES 200u
#define RECVS 64u
#define LOST_IN_A_ROW 50u

struct latency {
	struct end *e;
	uint64_t number;
	uint32_t outstanding, came; /* sends without, and receives with a completion */
	bool is_server;
	struct uroce_send_wr wr[4]; /* one of each slot */
	struct uroce_sge sge[4], recv_sge;
	struct uroce_recv_wr recv;
};

static int take(struct latency *l, bool is_waiting)
{
	struct uroce_wc wc[16];
	int n = end_take(l->e, wc, 16, is_waiting);
	for (int i = 0; i < n; i++) {
		if (!(wc[i].wr_id & END_RECV)) {
			l->outstanding--;
			continue;
		}
		l->came++;
		int err = end_post_recv(l->e, 0, &l->recv, 1);
		if (err)
			return err;
	}
	return n;
}

static int post(struct latency *l)
{
	while (l->outstanding == l->e->trial.depth) {
		int n = take(l, true);
		if (n < 0)
			return n;
	}
	l->outstanding++;
	return end_post_send(l->e, 0, &l->wr[l->number % l->e->slots], 1);
}

static int ping_by_receive(struct latency *l)
{
	return post(l);
}

/* 1: message `number` has arrived; 0: not yet. */
static int has_come_by_receive(struct latency *l)
{
	if (!l->came)
		return 0;
	l->came--;
	return 1;
}

static int ping_by_memory(struct latency *l)
{
	uint32_t slot = (uint32_t)(l->number % l->e->slots);
	end_slot(l->e, 0, slot)[l->e->trial.size - 1] = (uint8_t)l->number;
	l->wr[slot].remote_addr = l->e->remote_addr; /* all to the same place */
	return post(l);
}

static int has_come_by_memory(struct latency *l)
{
	const _Atomic uint8_t *last = (const _Atomic uint8_t *)(l->e->memory + l->e->in_offset + l->e->trial.size - 1);
	uint8_t found = atomic_load_explicit(last, memory_order_acquire);
	if (l->is_server && found != (uint8_t)(l->number - 1)) /* not what came last: answered by the same */
		l->number += (uint8_t)(found - l->number);
	return found == (uint8_t)l->number;
}

static int has_come_by_completion(struct latency *l)
{
	return !l->outstanding;
}

static const struct way {
	const char *latency_of;
	int (*ping)(struct latency *l);
	int (*has_come)(struct latency *l);
	unsigned halves; /* one-way trips in what is measured; 0: it is not divided, and the server does nothing */
} by_receive = { "half round trip", ping_by_receive, has_come_by_receive, 2 },
  by_memory = { "half round trip", ping_by_memory, has_come_by_memory, 2 },
  by_completion = { "post to completion", post, has_come_by_completion, 0 };

static const struct way *choose(const struct trial *t)
{
	if (t->op->takes_recv)
		return &by_receive;
	return t->op->is_fetching || !t->size ? &by_completion : &by_memory;
}

static int start(struct latency *l, struct end *e)
{
	*l = (struct latency){ .e = e };
	for (uint32_t i = 0; i < e->slots; i++)
		l->wr[i] = end_send_wr(e, 0, i, &l->sge[i]);
	if (!e->trial.op->takes_recv)
		return 0;
	l->recv = end_recv_wr(e, 0, 0, &l->recv_sge);
	int err = 0;
	for (uint32_t i = 0; i < RECVS && i < e->recv_depth && !err; i++)
		err = end_post_recv(e, 0, &l->recv, 1);
	return err;
}

/* 1: it has come; 0: it is lost. */
static int wait_for(struct latency *l, const struct way *way, uint64_t since_ns)
{
	bool may_lose = end_may_lose(l->e);
	for (unsigned empty = 1;; empty++) {
		int n = take(l, true), came = n < 0 ? n : way->has_come(l);
		if (came)
			return came;
		if (may_lose && empty % 256 == 0 && end_now() - since_ns > end_patience_ns(l->e))
			return 0;
	}
}

static int run_phase(struct latency *l, const struct way *way, const struct trial *t, struct result *r)
{
	uint64_t start_ns = end_now(), before_ns = start_ns, done = 0;
	unsigned in_a_row = 0;
	histogram_clear(&r->latency);
	do {
		l->number++;
		l->came = 0; /* an answer that was late */
		int err = way->ping(l), came = err ? err : wait_for(l, way, before_ns);
		if (came < 0)
			return came;
		uint64_t now_ns = end_now(), took_ns = now_ns - before_ns;
		if (came)
			histogram_add(&r->latency, way->halves ? took_ns / way->halves : took_ns);
		before_ns = now_ns;
		l->e->empty = 0;
		done += (unsigned)came;
		r->sent++;
		r->lost += !came;
		in_a_row = came ? 0 : in_a_row + 1;
		if (in_a_row == LOST_IN_A_ROW)
			return end_fail(l->e, "nothing comes back: %u messages in a row are lost", in_a_row);
	} while (!trial_is_over(t, done, done * t->size, start_ns));
	r->messages = done;
	r->bytes = done * t->size;
	r->seconds = (double)(before_ns - start_ns) * 1e-9;
	return 0;
}

int latency_run(struct end *e, struct result *r)
{
	struct latency l;
	const struct way *way = choose(&e->trial);
	struct trial warm = e->trial;
	int err = start(&l, e);
	warm.iters = WARM_MESSAGES;
	warm.seconds /= 10;
	if (!err && !e->trial.iters)
		err = run_phase(&l, way, &warm, r);
	if (!err)
		err = run_phase(&l, way, &e->trial, r);
	r->latency_of = way->latency_of;
	while (!err && l.outstanding)
		err = take(&l, true) < 0 ? -EIO : 0;
	return err;
}

int latency_serve(struct end *e)
{
	struct latency l;
	const struct way *way = choose(&e->trial);
	int err = start(&l, e);
	if (!err)
		err = end_ready(e);
	if (err || !way->halves)
		return err;
	l.is_server = true;
	l.number = 1;
	for (unsigned empty = 0;;) {
		int n = take(&l, false), came = n < 0 ? n : way->has_come(&l);
		if (came < 0)
			return came;
		if (came) {
			err = way->ping(&l);
			if (err)
				return err;
			l.number++;
			empty = 0;
		} else if (++empty % 1024 == 0 && exchange_is_ready(e->exchange)) {
			return 0;
		}
	}
}
