/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs do beside posting and polling: they take events, drain queues, make their vague mistakes when it is time, recover from them, and make, change and destroy objects that are in use or beside those that
 * are. Owns when; the plan says what. */
#include "actor.h"

#include <stdlib.h>
#include <string.h>

#include "counters.h"

static uint64_t count_completed(const struct end *e)
{
	uint64_t counter[QP_COUNTER_COUNT] = { 0 };
	uroce_qp_counters(e->qp, counter, QP_COUNTER_COUNT);
	return counter[QP_COMPLETED_REQUESTS];
}

/* Drained: for a while nothing completes, then on with it. */
static void on_drained(struct end *e)
{
	if (!e->is_draining || e->resume_ns)
		verdict_fail(e->actor->verdict, "%s: drained, but was not asked to", e->name);
	e->completed_when_drained = count_completed(e);
	e->resume_ns = e->actor->now_ns + 1 + rng_below(&e->actor->rng, 100000);
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

static struct end *end_of(struct actor *a, const struct uroce_qp *qp)
{
	for (unsigned i = 0; i < a->ends; i++)
		if (a->end[i]->qp && a->end[i]->qp == qp)
			return a->end[i];
	return NULL;
}

/* Of a QP; the others are counted and looked at in the end. */
static void on_qp_event(struct actor *a, const struct uroce_async_event *event)
{
	struct end *e = end_of(a, event->qp);
	if (!e)
		verdict_fail(a->verdict, "event %d of a QP that is gone", event->type);
	else if (event->type == UROCE_EVENT_SQ_DRAINED)
		on_drained(e);
	else if (event->type == UROCE_EVENT_QP_LAST_WQE_REACHED)
		e->last_wqe_events++;
	else if (event->type == UROCE_EVENT_COMM_EST)
		verdict_fail(a->verdict, "%s: communication established, but it was in RTS before anything came", e->name);
	else
		e->error_events++;
}

static void on_limit(struct actor *a, const struct uroce_srq *srq)
{
	if (srq != a->srq || !a->limit)
		verdict_fail(a->verdict, "an SRQ's limit was reached that is not armed");
	a->limit = 0;
	a->is_limit_due = false;
}

void upkeep_take_events(struct actor *a)
{
	struct uroce_async_event e;
	struct uroce_cq *cq;
	a->seen_events = sim_host_events(a->host);
	while (a->channel && !uroce_channel_get_event(a->channel, &cq))
		uroce_cq_ack_events(cq, 1);
	while (!uroce_async_get_event(a->ctx, &e)) {
		if (e.type == UROCE_EVENT_CQ_ERR || e.type == UROCE_EVENT_SRQ_ERR || (!e.qp && !e.srq))
			verdict_fail(a->verdict, "event %d of the device", e.type);
		if (e.type == UROCE_EVENT_SRQ_LIMIT_REACHED)
			on_limit(a, e.srq);
		if (e.qp)
			on_qp_event(a, &e);
		uroce_async_ack_event(&e);
	}
}

static void drain(struct end *e)
{
	struct uroce_qp_attr to_sqd = { .state = UROCE_QP_SQD, .sqd_async_notify = true }, now;
	if (e->qp && e->is_draining && e->resume_ns && e->actor->now_ns >= e->resume_ns)
		resume(e);
	if (!e->qp || e->is_drained || e->actor->now_ns < e->plan->drain_ns)
		return;
	e->is_drained = true;
	if (uroce_qp_query(e->qp, &now) || now.state != UROCE_QP_RTS)
		return;
	e->is_draining = true;
	if (uroce_qp_modify(e->qp, &to_sqd, UROCE_QP_STATE | UROCE_QP_EN_SQD_ASYNC_NOTIFY))
		verdict_fail(e->actor->verdict, "%s: cannot be drained", e->name);
}

/* ---- mistakes at their time ---- */

static void stop(struct end *e)
{
	struct uroce_qp_attr to_error = { .state = UROCE_QP_ERR };
	e->is_stopped = true;
	if (uroce_qp_modify(e->qp, &to_error, UROCE_QP_STATE))
		verdict_fail(e->actor->verdict, "%s: cannot be taken to ERR", e->name);
}

static void revoke(struct end *e, struct uroce_mr **mr)
{
	e->is_revoked = true;
	if (uroce_mr_deregister(*mr))
		verdict_fail(e->actor->verdict, "%s: an MR cannot be deregistered", e->name);
	*mr = NULL;
}

static void destroy_ah(struct end *e, uint32_t to)
{
	if (uroce_ah_destroy(e->ah[to]))
		verdict_fail(e->actor->verdict, "%s: an AH cannot be destroyed", e->name);
	e->ah[to] = NULL;
}

static void strike(struct end *e)
{
	const struct plan_end *p = e->plan;
	if (!e->qp || e->actor->now_ns < p->mistake_ns)
		return;
	if (p->mistake == MISTAKE_STOPPED && !e->is_stopped)
		stop(e);
	if (p->peer_mistake == MISTAKE_PEER_GONE || p->mistake == MISTAKE_DESTROYED) {
		uroce_qp_destroy(e->qp);
		e->qp = NULL;
		e->is_gone = true;
	}
	if (p->peer_mistake == MISTAKE_REVOKED && !e->is_revoked)
		revoke(e, &e->target);
	if (p->mistake == MISTAKE_OWN_REVOKED && !e->is_revoked)
		revoke(e, &e->source);
	if (p->mistake == MISTAKE_AH_GONE && !e->is_ah_gone) {
		e->is_ah_gone = true;
		destroy_ah(e, e->number ^ 1);
	}
}

/* From SQE to RTS, when everything that was flushed has come back. */
static void recover(struct end *e)
{
	struct uroce_qp_attr to_rts = { .state = UROCE_QP_RTS };
	if (!e->qp || e->steps_done != e->steps_posted)
		return;
	e->failed_step = NO_INDEX;
	actor_note(e->actor, "%s goes back to RTS", e->name);
	if (uroce_qp_modify(e->qp, &to_rts, UROCE_QP_STATE))
		verdict_fail(e->actor->verdict, "%s: cannot go from SQE to RTS", e->name);
}

/* An AH that nothing outstanding names. */
static void drop_ah(struct end *e)
{
	uint32_t to = (uint32_t)rng_below(&e->actor->rng, 2 * e->actor->plan->pairs + PLAN_GROUPS);
	to = to < PLAN_GROUPS ? PLAN_ENDS_MAX + to : to - PLAN_GROUPS;
	if (e->ah[to] && e->ah_until[to] <= e->steps_done && rng_below(&e->actor->rng, 4) == 0)
		destroy_ah(e, to);
}

void upkeep_end(struct end *e)
{
	if (e->plan->mistake_ns)
		strike(e);
	if (e->plan->drain_ns)
		drain(e);
	if (end_waits_to_recover(e))
		recover(e);
	if (e->service == UROCE_UD)
		drop_ah(e);
}

bool upkeep_is_due(const struct end *e)
{
	return e->plan->mistake_ns || (e->plan->drain_ns && !e->is_drained) || e->is_draining;
}

/* ---- of the context ---- */

/* Another size, with whatever is in it; and its events sooner or later. */
static void change_cq(struct actor *a, struct uroce_cq *cq)
{
	uint32_t entries = a->cq_needs << rng_below(&a->rng, 3);
	if (uroce_cq_resize(cq, entries) || uroce_cq_entries(cq) < entries)
		verdict_fail(a->verdict, "a CQ cannot be made one of %u entries", entries);
	if (a->channel && uroce_cq_moderate(cq, (uint32_t)rng_below(&a->rng, 9), 1 + (uint32_t)rng_below(&a->rng, 300)))
		verdict_fail(a->verdict, "the events of a CQ cannot be moderated");
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

/* An MR over memory that others use as well: its keys are its own. */
static void register_passing(struct actor *a)
{
	const struct end *e = a->end[rng_below(&a->rng, a->ends)];
	int err = a->passing ? uroce_mr_deregister(a->passing) : 0;
	a->passing = NULL;
	if (!err && rng_below(&a->rng, 2))
		err = uroce_mr_register(a->pd, e->local, e->plan->local_bytes, UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE, &a->passing);
	if (err)
		verdict_fail(a->verdict, "an MR that comes and goes: %s", strerror(-err));
}

/* Other rights and the same keys, under traffic that does not need them. */
static void change_source(struct actor *a)
{
	struct end *e = a->end[rng_below(&a->rng, a->ends)];
	struct uroce_mr_attr to = { .access = (uint32_t)rng_below(&a->rng, 2) * UROCE_ACCESS_LOCAL_WRITE };
	if (!e->source)
		return;
	if (uroce_mr_reregister(e->source, &to, UROCE_MR_ACCESS) || uroce_mr_lkey(e->source) != e->source_lkey)
		verdict_fail(a->verdict, "%s: the rights of an MR cannot be changed", e->name);
}

void upkeep_actor(struct actor *a)
{
	if (a->srq && rng_below(&a->rng, 32) == 0)
		change_srq(a);
	if (rng_below(&a->rng, 32) == 0)
		change_cq(a, a->cq[rng_below(&a->rng, a->cqs)]);
	if (a->ends && rng_below(&a->rng, 32) == 0)
		register_passing(a);
	if (a->ends && rng_below(&a->rng, 32) == 0)
		change_source(a);
}

void upkeep_finish(struct actor *a)
{
	struct uroce_srq_attr now;
	upkeep_take_events(a);
	if (a->is_limit_due)
		verdict_fail(a->verdict, "an SRQ's limit of %u was reached, and nothing said so", a->limit);
	if (a->srq && !uroce_srq_query(a->srq, &now) && now.limit != a->limit)
		verdict_fail(a->verdict, "an SRQ says its limit is %u; the one that is armed is %u", now.limit, a->limit);
	if (a->passing && uroce_mr_deregister(a->passing))
		verdict_fail(a->verdict, "an MR that comes and goes does not go");
}
