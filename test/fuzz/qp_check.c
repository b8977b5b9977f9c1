/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariants that the files of lib/qp and lib/core state in their first comments, looked at from outside. Changes nothing. */
#include "qp_check.h"

#include <stdio.h>
#include <stdlib.h>

#include "recv.h"
#include "ud_ah.h"

void check_true(bool is_true, const char *what)
{
	if (is_true)
		return;
	fprintf(stderr, "not so: %s\n", what);
	abort();
}

static uint32_t distance(struct psn from, struct psn to)
{
	return (to.v - from.v) & PSN_MASK;
}

static bool is_local(const struct wr *w)
{
	return w->opcode == ABI_OP_BIND_MW || w->opcode == ABI_OP_LOCAL_INV || w->opcode == ABI_OP_REG_MR;
}

/* inflight.h: una <= next <= frontier <= end; the cursor holds next; WRs follow each other without a gap. */
static void check_flight(const struct qp *q)
{
	const struct inflight *f = &q->flight;
	uint32_t all = distance(f->una, f->end), n = 0;
	check_true(all < PSN_HALF, "less than half the PSNs are alive");
	check_true(distance(f->una, f->next) <= distance(f->una, f->frontier), "next is not beyond the frontier");
	check_true(distance(f->una, f->frontier) <= all, "the frontier is not beyond the last WR");
	check_true(!f->oldest == !f->newest, "a first WR and a last one");
	bool has_cursor = !f->cursor;
	struct psn at = f->oldest ? f->oldest->first : f->end;
	for (const struct wr *w = f->oldest; w; w = w->next, n++) {
		check_true(psn_is_equal(w->first, at), "WRs follow each other");
		check_true(w->psns >= 1 || is_local(w), "each that is sent takes a PSN");
		at = wr_end(w);
		has_cursor |= w == f->cursor;
		check_true(w->next || w == f->newest, "the last one is the newest");
	}
	check_true(has_cursor, "the cursor is one of them");
	check_true(psn_is_equal(at, f->end), "the last one ends at the end");
	check_true(n == q->req.taken - q->req.retired, "what was taken and not retired is in the record");
	if (f->oldest)
		check_true(psn_is_within(f->una, f->oldest->first, f->oldest->psns) || (is_local(f->oldest) && psn_is_equal(f->una, f->oldest->first)), "una is in the oldest");
	if (f->cursor)
		check_true(psn_is_equal(psn_add(f->cursor->first, f->cursor_psn), f->next) && (f->cursor_psn < f->cursor->psns || is_local(f->cursor)), "the cursor holds next");
	else
		check_true(psn_is_equal(f->next, f->end), "without a cursor everything was sent");
}

static void check_requester(const struct qp *q)
{
	uint32_t in_flight = inflight_psns(&q->flight), window = q->env->window_packets;
	check_true(in_flight <= window, "no more than a window in flight");
	check_true(q->req.rd_atomic <= q->attr.max_rd_atomic || q->state == ABI_QP_ERR, "no more READs outstanding than allowed");
	check_true(q->retry.timeouts <= q->retry.max_timeouts, "no more retries than allowed");
	check_true(!q->retry.rnr_until || !q->retry.rto_at, "the RNR wait and the transport timeout do not run together");
	if (qp_can_send(q) && q->retry.rto_ns && in_flight && !q->retry.rnr_until)
		check_true(q->retry.rto_at != 0, "what is in flight has a timer");
	if (q->retry.rto_at || q->retry.rnr_until)
		check_true(timer_is_armed(&q->retry.timer), "which is armed");
}

static void check_responder(const struct qp *q)
{
	const struct replay *r = &q->out.replay;
	uint32_t pending = 0;
	for (uint32_t i = 0; i < r->room && r->record; i++) {
		const struct replay_record *rec = &r->record[i];
		pending += rec->is_pending;
		if (rec->is_pending && !replay_is_atomic(rec))
			check_true(rec->next < rec->psns && rec->from <= rec->next, "an answer that is due has something left");
	}
	check_true(pending == r->pending && !r->due == !pending && (!r->due || r->due->is_pending), "answers that are due are counted");
	check_true(r->count <= r->room, "no more records than room");
	uint32_t returned = 0;
	for (const struct recv_wr *w = q->source->returned; w; w = w->next)
		returned++;
	check_true(returned == q->source->returned_n, "what came back to a receive source is counted");
	check_true(!q->source->srq || q->source->retired == q->source->taken, "an SRQ's slot is free when it was taken");
	check_true(!q->resp.recv || q->resp.in_message || q->resp.is_rnr, "a receive WQE is held by a message");
}

void check_qp(const struct qp *q)
{
	check_responder(q);
	if (q->service != SERVICE_RC)
		check_true(!inflight_psns(&q->flight) && !q->retry.rto_at && !q->out.replay.pending && !q->out.is_ack_due && !q->out.is_nak_due, "nothing of an unreliable QP waits for an answer, or is one");
	if (q->ud.waits_for) {
		bool is_there = false;
		for (const struct qp *o = q->ud.waits_for->waiting; o; o = o->ud.next)
			is_there |= o == q;
		check_true(is_there && q->service == SERVICE_UD && qp_can_send(q), "who waits for an AH is in its list");
	}
	if (q->state == ABI_QP_SQE)
		check_true(q->service != SERVICE_RC && !q->flight.oldest, "in SQE nothing is under way");
	if (q->state != ABI_QP_ERR) {
		check_flight(q);
		if (qp_can_send(q))
			check_requester(q);
		return;
	}
	check_true(!q->flight.oldest && !q->resp.recv, "nothing is under way in ERR");
	check_true(!timer_is_armed(&q->retry.timer), "no timer runs in ERR");
}

static void check_group(const struct core *c, const struct qp_group *g)
{
	unsigned n = 0;
	check_true(!circle_is_empty(&g->ready), "a group in the line has a QP that is ready");
	for (const struct circle *r = g->ready.next; r != &g->ready; r = r->next) {
		check_true(r->next->before == r && qp_of_ready(r)->group == g, "what is in a line of ready QPs knows it");
		check_true(++n <= c->config.max_qp, "the line of ready QPs ends");
	}
	check_true(g->credit > -(int32_t)CORE_FRAME_MAX && g->credit <= GROUP_QUANTUM, "its credit is that of one turn");
}

void check_core(const struct core *c)
{
	for (const struct circle *g = c->env.groups.next; g != &c->env.groups; g = g->next) {
		check_true(g->next->before == g, "a group in the line knows it");
		check_group(c, group_of_turn(g));
	}
	for (uint32_t i = 0; i < c->lingering; i++)
		check_true(c->linger[i]->is_lingering, "what lingers knows it");
}
