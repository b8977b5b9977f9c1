/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program does with its turns. Owns the pace; what is posted is the plan's, what must come of it check.c's. */
#include "actor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "counters.h"
#include "pool.h"

#define PAUSE_MAX_NS 200000u
#define POLL_MAX 16u
#define BATCH_MAX 32u

void verdict_fail(struct verdict *v, const char *format, ...)
{
	va_list args;
	if (verdict_is_bad(v))
		return;
	va_start(args, format);
	vsnprintf(v->text, sizeof(v->text), format, args);
	va_end(args);
}

/* ---- posting ---- */

/* Room for a batch of WRs, their SGEs, and the bytes of inline ones. */
struct batch {
	struct uroce_send_wr send[BATCH_MAX];
	struct uroce_recv_wr recv[BATCH_MAX];
	struct uroce_sge sge[BATCH_MAX][PIECES_MAX];
	uint8_t inline_bytes[BATCH_MAX][512];
};

static uint32_t lkey_of(const struct end *e, const struct piece *p, bool is_wrong)
{
	return uroce_mr_lkey(p->offset < e->plan->source_bytes ? e->source : e->landing) ^ (is_wrong ? 0x10 : 0);
}

static void put_sges(const struct end *e, const struct piece *piece, unsigned n, bool is_wrong, struct uroce_sge *to)
{
	for (unsigned i = 0; i < n; i++)
		to[i] = (struct uroce_sge){ e->local_iova + piece[i].offset, piece[i].len, lkey_of(e, &piece[i], is_wrong) };
}

/* Inline bytes come from memory that is another's right after the post, and that no MR covers. */
static void put_inline(const struct end *e, const struct step *s, uint8_t *bytes, struct uroce_sge *to)
{
	for (unsigned i = 0; i < s->pieces; i++) {
		memcpy(bytes, e->local + s->piece[i].offset, s->piece[i].len);
		to[i] = (struct uroce_sge){ (uint64_t)(uintptr_t)bytes, s->piece[i].len, 0xdead };
		bytes += s->piece[i].len;
	}
}

/* A range that the peer does not grant: by its key, or by where it is. */
static void spoil(struct uroce_send_wr *wr, const struct end *e, uint32_t kind)
{
	if (kind % 3 == 0)
		wr->rkey ^= 1;
	else if (kind % 3 == 1)
		wr->rkey ^= 0x5a00;
	else
		wr->remote_addr = e->peer->target_iova + e->peer->plan->target_bytes;
}

static void put_send(const struct end *e, uint32_t index, struct batch *b, uint32_t i)
{
	const struct step *s = &e->plan->step[index];
	bool is_local = s->is_mistaken && e->plan->mistake == MISTAKE_LOCAL_KEY;
	b->send[i] = (struct uroce_send_wr){
		.wr_id = end_wr_id(false, index), .sg_list = b->sge[i], .num_sge = s->pieces, .opcode = s->opcode, .flags = s->flags, .imm = s->imm, .remote_addr = e->peer->target_iova + s->remote_offset,
		.rkey = e->peer->target_rkey, .compare_add = s->compare_add, .swap = s->swap, .flush = s->flush,
	};
	b->send[i].ah = e->ah;
	b->send[i].remote_qpn = e->peer_qpn;
	b->send[i].remote_qkey = s->imm & 1 ? 0x80000000 | s->imm : e->plan->attr.qkey; /* the QP's own is the same */
	if (s->flags & UROCE_SEND_INLINE)
		put_inline(e, s, b->inline_bytes[i], b->sge[i]);
	else
		put_sges(e, s->piece, s->pieces, is_local, b->sge[i]);
	if (s->garbage) {
		b->send[i].rkey ^= s->garbage;
		b->send[i].remote_addr = ~(uint64_t)s->garbage;
	}
	if (s->is_mistaken && !is_local)
		spoil(&b->send[i], e, s->imm);
}

static bool post_sends(struct end *e, uint32_t n)
{
	struct batch b;
	if (n > e->plan->steps - e->steps_posted)
		n = e->plan->steps - e->steps_posted;
	if (!n || !e->qp)
		return false;
	for (uint32_t i = 0; i < n; i++)
		put_send(e, e->steps_posted + i, &b, i);
	int posted = uroce_post_send(e->qp, b.send, n);
	memset(&b, 0xa5, sizeof(b));
	if (posted < 0 && posted != -ENOMEM)
		verdict_fail(e->actor->verdict, "%s: posting send %u: %s", e->name, e->steps_posted, strerror(-posted));
	if (posted > 0)
		e->steps_posted += (uint32_t)posted;
	e->post_again += posted < (int)n;
	return posted > 0;
}

/* A queue in ERR would give them back at once. */
static bool wants_buffers(const struct end *e)
{
	return e->qp && pool_has_free(&e->pool) && !e->has_failed_receive && !e->is_stopped && (e->failed_step == NO_INDEX || e->service != UROCE_RC);
}

static bool post_buffers(struct end *e, uint32_t n)
{
	struct uroce_recv_wr wr[BATCH_MAX];
	struct uroce_sge sge[BATCH_MAX];
	if (!wants_buffers(e))
		return false;
	n = pool_offer(&e->pool, n < BATCH_MAX ? n : BATCH_MAX, wr, sge);
	int posted = uroce_post_recv(e->qp, wr, n);
	if (posted < 0)
		verdict_fail(e->actor->verdict, "%s: posting a buffer: %s", e->name, strerror(-posted));
	else
		pool_posted(&e->pool, wr, (uint32_t)posted);
	return posted > 0;
}

/* The SRQ of a context. */
static bool post_shared(struct actor *a, uint32_t n)
{
	struct uroce_recv_wr wr[BATCH_MAX];
	struct uroce_sge sge[BATCH_MAX];
	if (!a->srq || !pool_has_free(&a->srq_pool))
		return false;
	n = pool_offer(&a->srq_pool, n < BATCH_MAX ? n : BATCH_MAX, wr, sge);
	int posted = uroce_post_srq_recv(a->srq, wr, n);
	if (posted != (int)n)
		verdict_fail(a->verdict, "posting %u buffers to an SRQ that has room for them: %d", n, posted);
	else
		pool_posted(&a->srq_pool, wr, n);
	return true;
}

/* Now and then another size and a new limit. */
static void change_srq(struct actor *a)
{
	struct uroce_srq_attr attr = { .max_wr = a->srq_pool.buffers << rng_below(&a->rng, 3), .limit = 1 + (uint32_t)rng_below(&a->rng, a->srq_pool.buffers) }, now;
	uint32_t mask = (rng_below(&a->rng, 2) ? UROCE_SRQ_MAX_WR : 0) | (!a->limit && a->srq_pool.posted >= attr.limit ? UROCE_SRQ_LIMIT : 0);
	if (!mask)
		return;
	if (uroce_srq_modify(a->srq, &attr, mask) || uroce_srq_query(a->srq, &now))
		verdict_fail(a->verdict, "an SRQ of %u buffers cannot be changed", a->srq_pool.buffers);
	if (mask & UROCE_SRQ_MAX_WR && now.max_wr < attr.max_wr)
		verdict_fail(a->verdict, "an SRQ has room for %u WRs after it was made to hold %u", now.max_wr, attr.max_wr);
	if (mask & UROCE_SRQ_LIMIT)
		a->limit = attr.limit;
}

static bool post_receives(struct end *e, uint32_t n)
{
	struct batch b;
	if (e->plan->uses_srq)
		return false; /* its context posts */
	if (plan_is_pooled(e->plan))
		return post_buffers(e, n);
	uint32_t offered = check_receives_offered(e);
	if (n > offered - e->receives_posted)
		n = offered - e->receives_posted;
	if (!n || !e->qp)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct receive *v = &e->plan->receive[e->receives_posted + i];
		b.recv[i] = (struct uroce_recv_wr){ .wr_id = end_wr_id(true, e->receives_posted + i), .sg_list = b.sge[i], .num_sge = v->pieces };
		put_sges(e, v->piece, v->pieces, v->is_mistaken, b.sge[i]);
	}
	int posted = uroce_post_recv(e->qp, b.recv, n);
	memset(&b, 0xa5, sizeof(b));
	if (posted < 0 && posted != -ENOMEM)
		verdict_fail(e->actor->verdict, "%s: posting receive %u: %s", e->name, e->receives_posted, strerror(-posted));
	if (posted > 0)
		e->receives_posted += (uint32_t)posted;
	e->post_again += posted < (int)n;
	return posted > 0;
}

void actor_post_early(struct actor *a, struct end *e)
{
	if (e->plan->posts_late)
		return;
	while (post_receives(e, BATCH_MAX))
		;
}

/* ---- a turn ---- */

static bool poll_cqs(struct actor *a)
{
	struct uroce_wc wc[POLL_MAX];
	bool has_any = false;
	for (unsigned c = 0; c < a->cqs; c++) {
		int n = uroce_cq_poll(a->cq[c], wc, 1 + (unsigned)rng_below(&a->rng, POLL_MAX));
		if (n < 0)
			verdict_fail(a->verdict, "polling a CQ: %s", strerror(-n));
		for (int i = 0; i < n; i++)
			check_completion(a, &wc[i]);
		has_any |= n > 0;
	}
	return has_any;
}

static uint64_t count_completed(const struct end *e)
{
	uint64_t counter[QP_COUNTER_COUNT] = { 0 };
	uroce_qp_counters(e->qp, counter, QP_COUNTER_COUNT);
	return counter[QP_COMPLETED_REQUESTS];
}

/* Drained: for a while nothing completes, then on with it. */
static void on_drained(struct actor *a, const struct uroce_qp *qp, uint64_t now_ns)
{
	for (unsigned i = 0; i < a->ends; i++) {
		struct end *e = a->end[i];
		if (!e->qp || e->qp != qp)
			continue;
		if (!e->is_draining || e->resume_ns)
			verdict_fail(a->verdict, "%s: drained, but was not asked to", e->name);
		e->completed_when_drained = count_completed(e);
		e->resume_ns = now_ns + 1 + rng_below(&a->rng, 100000);
	}
}

static void resume(struct end *e)
{
	struct uroce_qp_attr to_rts = { .state = UROCE_QP_RTS }, now;
	e->is_draining = false;
	if (count_completed(e) != e->completed_when_drained && e->failed_step == NO_INDEX && !e->has_failed_receive && !e->is_stopped)
		verdict_fail(e->actor->verdict, "%s: sends completed after the SQ was drained", e->name);
	/* one that has meanwhile gone to ERR stays there */
	if (uroce_qp_query(e->qp, &now) || (now.state == UROCE_QP_SQD && uroce_qp_modify(e->qp, &to_rts, UROCE_QP_STATE)))
		verdict_fail(e->actor->verdict, "%s: cannot go back to RTS", e->name);
}

static void on_last_wqe(struct actor *a, const struct uroce_qp *qp)
{
	for (unsigned i = 0; i < a->ends; i++)
		if (a->end[i]->qp && a->end[i]->qp == qp)
			a->end[i]->last_wqe_events++;
}

static void on_limit(struct actor *a, const struct uroce_srq *srq)
{
	if (srq != a->srq || !a->limit)
		verdict_fail(a->verdict, "an SRQ's limit was reached that is not armed");
	a->limit = 0;
}

static void take_events(struct actor *a, uint64_t now_ns)
{
	struct uroce_async_event e;
	struct uroce_cq *cq;
	a->seen_events = sim_host_events(a->host);
	while (a->channel && !uroce_channel_get_event(a->channel, &cq))
		uroce_cq_ack_events(cq, 1);
	while (!uroce_async_get_event(a->ctx, &e)) {
		if (e.type == UROCE_EVENT_CQ_ERR || e.type == UROCE_EVENT_SRQ_ERR || (!e.qp && !e.srq))
			verdict_fail(a->verdict, "event %d of the device", e.type);
		if (e.type == UROCE_EVENT_QP_LAST_WQE_REACHED)
			on_last_wqe(a, e.qp);
		if (e.type == UROCE_EVENT_SRQ_LIMIT_REACHED)
			on_limit(a, e.srq);
		if (e.type == UROCE_EVENT_SQ_DRAINED)
			on_drained(a, e.qp, now_ns);
		uroce_async_ack_event(&e);
	}
}

static void drain(struct end *e, uint64_t now_ns)
{
	struct uroce_qp_attr to_sqd = { .state = UROCE_QP_SQD, .sqd_async_notify = true }, now;
	if (e->qp && e->is_draining && e->resume_ns && now_ns >= e->resume_ns)
		resume(e);
	if (!e->qp || e->is_drained || now_ns < e->plan->drain_ns)
		return;
	e->is_drained = true;
	if (uroce_qp_query(e->qp, &now) || now.state != UROCE_QP_RTS)
		return;
	e->is_draining = true;
	if (uroce_qp_modify(e->qp, &to_sqd, UROCE_QP_STATE | UROCE_QP_EN_SQD_ASYNC_NOTIFY))
		verdict_fail(e->actor->verdict, "%s: cannot be drained", e->name);
}

static void strike(struct end *e, uint64_t now_ns)
{
	const struct plan_end *p = e->plan;
	struct uroce_qp_attr to_error = { .state = UROCE_QP_ERR };
	if (!e->qp || now_ns < p->mistake_ns)
		return;
	if (p->mistake == MISTAKE_STOPPED && !e->is_stopped) {
		e->is_stopped = true;
		if (uroce_qp_modify(e->qp, &to_error, UROCE_QP_STATE))
			verdict_fail(e->actor->verdict, "%s: cannot be taken to ERR", e->name);
	}
	if (p->peer_mistake == MISTAKE_PEER_GONE || p->mistake == MISTAKE_DESTROYED) {
		uroce_qp_destroy(e->qp);
		e->qp = NULL;
		e->is_gone = true;
	}
	if (p->peer_mistake == MISTAKE_REVOKED && !e->is_revoked) {
		e->is_revoked = true;
		uroce_mr_deregister(e->target);
		e->target = NULL;
	}
}

static bool has_to_post(const struct end *e)
{
	if (e->plan->uses_srq)
		return e->qp && (e->steps_posted < e->plan->steps || pool_has_free(&e->actor->srq_pool));
	bool has_receives = plan_is_pooled(e->plan) ? wants_buffers(e) : e->receives_posted < check_receives_offered(e);
	return e->qp && (e->steps_posted < e->plan->steps || has_receives);
}

/* Something is to happen at its time. */
static bool has_to_act(const struct end *e)
{
	return e->plan->mistake_ns || (e->plan->drain_ns && !e->is_drained) || e->is_draining;
}

/* Armed, looked at once more, and nothing to post: until an event. */
static void wait_for_event(struct actor *a)
{
	if (!a->channel)
		return;
	for (unsigned i = 0; i < a->ends; i++)
		if (has_to_post(a->end[i]) || has_to_act(a->end[i]))
			return;
	for (unsigned c = 0; c < a->cqs; c++)
		uroce_cq_arm(a->cq[c], false);
	a->is_waiting = !poll_cqs(a);
}

void actor_act(void *actor, uint64_t now_ns)
{
	struct actor *a = actor;
	uint64_t gap_ns = PAUSE_MAX_NS;
	a->is_waiting = false;
	if (a->seen_events != sim_host_events(a->host))
		take_events(a, now_ns);
	bool is_busy = poll_cqs(a);
	is_busy |= post_shared(a, 1 + (uint32_t)rng_below(&a->rng, BATCH_MAX));
	if (a->srq && rng_below(&a->rng, 32) == 0)
		change_srq(a);
	for (unsigned i = 0; i < a->ends; i++) {
		struct end *e = a->end[i];
		if (e->plan->mistake_ns)
			strike(e, now_ns);
		if (e->plan->drain_ns)
			drain(e, now_ns);
		if (!e->plan->posts_late || rng_below(&a->rng, 4) == 0)
			is_busy |= post_receives(e, 1 + (uint32_t)rng_below(&a->rng, e->plan->batch));
		is_busy |= post_sends(e, 1 + (uint32_t)rng_below(&a->rng, e->plan->batch));
		gap_ns = e->plan->gap_ns < gap_ns ? e->plan->gap_ns : gap_ns;
	}
	if (!is_busy)
		wait_for_event(a);
	a->pause_ns = is_busy || !a->pause_ns ? gap_ns : a->pause_ns * 2 < PAUSE_MAX_NS ? a->pause_ns * 2 : PAUSE_MAX_NS;
	a->next_ns = now_ns + 1 + rng_below(&a->rng, 2 * a->pause_ns);
}

uint64_t actor_next(void *actor, uint64_t now_ns)
{
	const struct actor *a = actor;
	if (!a->is_waiting)
		return a->next_ns;
	return a->seen_events != sim_host_events(a->host) ? 0 : UINT64_MAX;
}

void actor_finish(struct actor *a, uint64_t now_ns)
{
	while (poll_cqs(a))
		;
	take_events(a, now_ns);
}
