/* SPDX-License-Identifier: BSD-3-Clause */
/* Bandwidth and message rate: as many messages outstanding as the depth allows. Owns the WRs, which are made once: a post is the address of a batch of them. Only the last of a batch is signaled.
 * Invariant: outstanding[q] is what QP q was given and did not complete, a multiple of the batch. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

#define LOOK_EVERY 64u
#define WARM_SECONDS 0.02

struct stream {
	struct uroce_send_wr *wr; /* [qps][depth] */
	struct uroce_sge *sge;
	uint32_t *outstanding, *next;
	uint64_t *posted;
	uint64_t in_flight; /* of all QPs */
};

static void free_stream(struct stream *s)
{
	free(s->wr);
	free(s->sge);
	free(s->outstanding);
	free(s->next);
	free(s->posted);
}

static int make_stream(struct end *e, struct stream *s)
{
	const struct trial *t = &e->trial;
	size_t all = (size_t)t->qps * t->depth;
	*s = (struct stream){ calloc(all, sizeof(*s->wr)), calloc(all, sizeof(*s->sge)), calloc(t->qps, sizeof(*s->outstanding)), calloc(t->qps, sizeof(*s->next)),
		calloc(t->qps, sizeof(*s->posted)), 0 };
	if (!s->wr || !s->sge || !s->outstanding || !s->next || !s->posted)
		return end_fail(e, "no memory");
	for (uint32_t q = 0; q < t->qps; q++)
		for (uint32_t i = 0; i < t->depth; i++) {
			size_t at = (size_t)q * t->depth + i;
			s->wr[at] = end_send_wr(e, q, i, &s->sge[at]);
			if ((i + 1) % t->batch)
				s->wr[at].flags &= ~(uint32_t)UROCE_SEND_SIGNALED;
		}
	return 0;
}

static int fill(struct end *e, struct stream *s)
{
	const struct trial *t = &e->trial;
	for (uint32_t q = 0; q < t->qps; q++) {
		while (s->outstanding[q] + t->batch <= t->depth && (!t->iters || s->posted[q] < t->iters)) {
			int err = end_post_send(e, q, &s->wr[(size_t)q * t->depth + s->next[q]], t->batch);
			if (err)
				return err;
			s->next[q] = s->next[q] + t->batch == t->depth ? 0 : s->next[q] + t->batch;
			s->outstanding[q] += t->batch;
			s->posted[q] += t->batch;
			s->in_flight += t->batch;
		}
	}
	return 0;
}

static int take(struct end *e, struct stream *s, uint64_t *done)
{
	struct uroce_wc wc[64];
	int n = end_take(e, wc, 64, true);
	for (int i = 0; i < n; i++) {
		s->outstanding[(uint32_t)wc[i].wr_id] -= e->trial.batch;
		s->in_flight -= e->trial.batch;
		*done += e->trial.batch;
	}
	return n;
}

/* Sends until the trial is over, and then until all has completed. */
static int run_phase(struct end *e, struct stream *s, const struct trial *t, struct result *r)
{
	uint64_t start_ns = end_now(), done = 0;
	unsigned rounds = 0;
	bool is_over = false;
	memset(s->posted, 0, t->qps * sizeof(*s->posted));
	while (!is_over || s->in_flight) {
		int err = is_over ? 0 : fill(e, s);
		if (!err)
			err = take(e, s, &done);
		if (err < 0)
			return err;
		if (!is_over && (t->iters || err > 0 || ++rounds % LOOK_EVERY == 0))
			is_over = trial_is_over(t, s->posted[t->qps - 1], (done + s->in_flight) * t->size, start_ns);
	}
	r->messages = done;
	r->sent += done;
	r->bytes = done * t->size;
	r->seconds = (double)(end_now() - start_ns) * 1e-9;
	return 0;
}

int stream_run(struct end *e, struct result *r)
{
	struct stream s;
	struct trial warm = e->trial;
	int err = make_stream(e, &s);
	warm.seconds = WARM_SECONDS;
	if (!err && !warm.iters)
		err = run_phase(e, &s, &warm, r);
	if (!err)
		err = run_phase(e, &s, &e->trial, r);
	free_stream(&s);
	return err;
}

/* Queues of receives: each QP's own, or one. */
struct receiver {
	uint32_t queues, depth;
	struct uroce_recv_wr *wr; /* [queues][depth]; wr_id's low half is the queue */
	struct uroce_sge *sge;
	uint32_t *used, *next; /* receives to be posted again, and where */
};

static int post_receives(struct end *e, struct receiver *v, uint32_t q)
{
	uint32_t room = v->depth - v->next[q], n = v->used[q] < room ? v->used[q] : room;
	int err = end_post_recv(e, q, &v->wr[(size_t)q * v->depth + v->next[q]], n);
	v->next[q] = n == room ? 0 : v->next[q] + n;
	v->used[q] -= n;
	return err;
}

static int make_receiver(struct end *e, struct receiver *v)
{
	size_t all = (size_t)e->trial.qps * e->recv_depth;
	uint32_t queues = e->srq ? 1 : e->trial.qps, depth = (uint32_t)(all / queues);
	*v = (struct receiver){ queues, depth, calloc(all, sizeof(*v->wr)), calloc(all, sizeof(*v->sge)), calloc(queues, sizeof(*v->used)),
		calloc(queues, sizeof(*v->next)) };
	if (!v->wr || !v->sge || !v->used || !v->next)
		return end_fail(e, "no memory");
	for (uint32_t q = 0; q < queues; q++) {
		for (uint32_t i = 0; i < depth; i++) {
			size_t at = (size_t)q * depth + i;
			v->wr[at] = end_recv_wr(e, (uint32_t)(at / e->recv_depth), (uint32_t)(at % e->recv_depth), &v->sge[at]);
			v->wr[at].wr_id = END_RECV | q;
		}
		v->used[q] = depth;
		if (post_receives(e, v, q))
			return -EIO;
	}
	return 0;
}

static int receive(struct end *e, struct receiver *v)
{
	struct uroce_wc wc[64];
	uint32_t again = v->depth / 8 ? v->depth / 8 : 1;
	uint64_t last_ns = 0; /* when the client had said that it is through, and something came still */
	for (unsigned empty = 0;;) {
		int n = end_take(e, wc, 64, false);
		if (n < 0)
			return n;
		for (int i = 0; i < n; i++) {
			uint32_t q = (uint32_t)wc[i].wr_id;
			if (++v->used[q] >= again && post_receives(e, v, q))
				return -EIO;
		}
		e->received += (unsigned)n;
		if (n && last_ns)
			last_ns = end_now();
		if (n || ++empty % 1024 || !exchange_is_ready(e->exchange))
			continue;
		if (!end_may_lose(e) || (last_ns && end_now() - last_ns > end_patience_ns(e)))
			return 0;
		if (!last_ns)
			last_ns = end_now();
	}
}

int stream_serve(struct end *e)
{
	struct receiver v = { 0 };
	int err = 0;
	if (!e->trial.op->takes_recv)
		return end_ready(e); /* the exchange drives the engine while it waits */
	err = make_receiver(e, &v);
	if (!err)
		err = end_ready(e);
	if (!err)
		err = receive(e, &v);
	free(v.wr);
	free(v.sge);
	free(v.used);
	free(v.next);
	return err;
}
