/* SPDX-License-Identifier: BSD-3-Clause */
/* The judge: compares what completes with what the plan has next. Invariant of a queue of a QP, and all there is to it: completions come in post order, successes first; then, if
 * anything fails, the culprit with its status, and every WR behind it flushed (IBA vol. 1, 10.8.6, 11.6.2). */
#include "actor.h"

#include <stdio.h>
#include <stdlib.h>

#include "pool.h"
#include "slot.h"

#define FAIL(e, ...) verdict_fail((e)->actor->verdict, __VA_ARGS__)

static const enum uroce_wc_opcode wc_opcodes[] = {
	[UROCE_OP_SEND] = UROCE_WC_SEND, [UROCE_OP_SEND_WITH_IMM] = UROCE_WC_SEND, [UROCE_OP_WRITE] = UROCE_WC_WRITE, [UROCE_OP_WRITE_WITH_IMM] = UROCE_WC_WRITE, [UROCE_OP_READ] = UROCE_WC_READ,
	[UROCE_OP_COMPARE_SWAP] = UROCE_WC_COMPARE_SWAP, [UROCE_OP_FETCH_ADD] = UROCE_WC_FETCH_ADD,
	[UROCE_OP_ATOMIC_WRITE] = UROCE_WC_ATOMIC_WRITE, [UROCE_OP_FLUSH] = UROCE_WC_FLUSH,
	[UROCE_OP_SEND_WITH_INV] = UROCE_WC_SEND, [UROCE_OP_BIND_MW] = UROCE_WC_BIND_MW, [UROCE_OP_LOCAL_INV] = UROCE_WC_LOCAL_INV, [UROCE_OP_REG_MR] = UROCE_WC_REG_MR,
};

static bool is_signaled(const struct end *e, uint32_t step)
{
	return e->plan->signal_all || (e->plan->step[step].flags & UROCE_SEND_SIGNALED);
}

uint32_t check_receives_offered(const struct end *e)
{
	const struct plan_end *peer = e->peer->plan;
	if (peer->mistake == MISTAKE_RNR)
		for (uint32_t i = 0; i < peer->steps; i++)
			if (i == peer->mistake_step)
				return peer->step[i].receive;
	return e->plan->receives;
}

/* ---- memory ---- */

/* Only the first `len` bytes of the pieces, together. */
static void compare_pieces(const struct end *e, const char *what, uint32_t index, const struct piece *piece, unsigned n, uint32_t len)
{
	uint32_t at = 0;
	for (unsigned i = 0; i < n && len; i++) {
		uint32_t part = piece[i].len < len ? piece[i].len : len;
		const uint8_t *is = e->local + piece[i].offset, *must = e->plan->image_local + piece[i].offset;
		for (uint32_t b = 0; b < part; b++)
			if (is[b] != must[b]) {
				FAIL(e, "%s: %s %u completed, but byte %u of its memory is 0x%02x instead of 0x%02x", e->name, what, index, at + b, is[b], must[b]);
				return;
			}
		at += part;
		len -= part;
	}
}

static void compare_target(const struct end *e, uint32_t step)
{
	const struct step *s = &e->plan->step[step];
	const struct end *p = e->peer;
	if (s->is_last_word && memcmp(p->target_memory + s->remote_offset, p->plan->image_target + s->remote_offset, s->len))
		FAIL(e, "%s: WRITE %u completed, but its %u bytes are not in the peer's memory", e->name, step, s->len);
}

/* ---- sends ---- */

static void check_success(struct end *e, uint32_t index, const struct uroce_wc *wc)
{
	const struct step *s = &e->plan->step[index];
	if (e->failed_step != NO_INDEX)
		FAIL(e, "%s: send %u succeeded after send %u had failed", e->name, index, e->failed_step);
	if (!is_signaled(e, index))
		FAIL(e, "%s: send %u completed, but is not signaled", e->name, index);
	if (e->plan->recovers ? index == e->plan->mistake_step : index >= e->plan->mistake_step)
		FAIL(e, "%s: send %u succeeded, but send %u cannot have (%s)", e->name, index, e->plan->mistake_step, mistake_rows[e->plan->mistake].name);
	if (wc->opcode != wc_opcodes[s->opcode] || wc->qpn != uroce_qp_num(e->qp))
		FAIL(e, "%s: send %u completed with opcode %d and QP 0x%x", e->name, index, wc->opcode, wc->qpn);
	if (step_brings_bytes(s) && wc->byte_len != s->len)
		FAIL(e, "%s: send %u completed with byte_len %u, must be %u", e->name, index, wc->byte_len, s->len);
	for (uint32_t i = e->steps_done; i <= index && i < e->plan->mistake_step; i++) { /* those that it speaks for, too */
		if (step_brings_bytes(&e->plan->step[i]))
			compare_pieces(e, "READ or atomic", i, e->plan->step[i].piece, e->plan->step[i].pieces, e->plan->step[i].len);
		else if (!e->peer->is_gone && e->service == UROCE_RC)
			compare_target(e, i);
	}
}

/* Whether the plan allows the first failure of the queue to be this one. */
static bool is_foreseen(const struct end *e, uint32_t index, enum uroce_wc_status status)
{
	const struct mistake_row *row = &mistake_rows[e->plan->mistake];
	if (e->plan->mistake == MISTAKE_NONE)
		return false;
	if (row->is_vague)
		return status == row->send || (row->is_fatal_to_peer && status == UROCE_WC_RETRY_EXC_ERR);
	if (e->plan->is_exact || !row->is_fatal_to_peer)
		return index == e->plan->mistake_step && status == row->send;
	/* the NAK may be lost, and the peer is in ERR and says no more; or responses before it are, and nobody repeats them */
	return index <= e->plan->mistake_step && (status == row->send || status == UROCE_WC_RETRY_EXC_ERR);
}

static void check_failure(struct end *e, uint32_t index, const struct uroce_wc *wc)
{
	e->is_lost[index] = true;
	if (e->failed_step != NO_INDEX) {
		if (index != e->steps_done || wc->status != UROCE_WC_WR_FLUSH_ERR)
			FAIL(e, "%s: send %u completed with \"%s\" (%s) after send %u had failed; send %u must be flushed", e->name, index, uroce_wc_status_str(wc->status), uroce_wc_cause_str(wc->vendor_error), e->failed_step,
				e->steps_done);
		return;
	}
	e->failed_step = index;
	e->failures++;
	if (e->failures > 1 || !is_foreseen(e, index, wc->status))
		FAIL(e, "%s: send %u completed with \"%s\" (%s); planned: %s at send %d", e->name, index, uroce_wc_status_str(wc->status), uroce_wc_cause_str(wc->vendor_error), mistake_rows[e->plan->mistake].name,
			(int)e->plan->mistake_step);
}

static void check_send(struct end *e, uint32_t index, const struct uroce_wc *wc)
{
	uint32_t expected = e->steps_done;
	if (index < e->steps_done || index >= e->steps_posted) {
		FAIL(e, "%s: send %u completed, but the next one is %u and %u are posted", e->name, index, e->steps_done, e->steps_posted);
		return;
	}
	for (; expected < index; expected++)
		if (is_signaled(e, expected) || e->failed_step != NO_INDEX)
			FAIL(e, "%s: send %u completed, but not send %u before it", e->name, index, expected);
	if (wc->status == UROCE_WC_SUCCESS)
		check_success(e, index, wc);
	else
		check_failure(e, index, wc);
	e->steps_done = index + 1;
}

/* ---- receives ---- */

static void check_received(struct end *e, uint32_t index, const struct uroce_wc *wc)
{
	const struct receive *v = &e->plan->receive[index];
	const struct end *p = e->peer;
	if (e->has_failed_receive)
		FAIL(e, "%s: receive %u succeeded after one had failed", e->name, index);
	e->receives_good++;
	if (v->step == NO_INDEX || v->step >= p->plan->mistake_step || v->step >= p->steps_posted) {
		FAIL(e, "%s: receive %u completed, but nothing was to come to it", e->name, index);
		return;
	}
	const struct step *s = &p->plan->step[v->step];
	bool has_imm = s->opcode == UROCE_OP_SEND_WITH_IMM || s->opcode == UROCE_OP_WRITE_WITH_IMM, is_write = s->opcode == UROCE_OP_WRITE_WITH_IMM;
	if (wc->opcode != (is_write ? UROCE_WC_RECV_WRITE_WITH_IMM : UROCE_WC_RECV) || wc->qpn != uroce_qp_num(e->qp) || wc->byte_len != s->len)
		FAIL(e, "%s: receive %u completed with opcode %d, QP 0x%x and byte_len %u, must be %u", e->name, index, wc->opcode, wc->qpn, wc->byte_len, s->len);
	if (!!(wc->flags & UROCE_WC_HAS_IMM) != has_imm || (has_imm && wc->imm != s->imm))
		FAIL(e, "%s: receive %u completed with flags 0x%x and immediate 0x%x, must be 0x%x", e->name, index, wc->flags, wc->imm, has_imm ? s->imm : 0);
	if (!slot_is_invalidated(e, s, wc))
		FAIL(e, "%s: receive %u says flags 0x%x and key 0x%x for send %u of the peer", e->name, index, wc->flags, wc->invalidated_rkey, v->step);
	if (is_write)
		compare_target(p, v->step);
	else
		compare_pieces(e, "receive", index, v->piece, v->pieces, s->len);
}

/* Its own failures flush an end's receives; the peer's fail the one that is in use. */
static void check_receive_failure(struct end *e, uint32_t index, const struct uroce_wc *wc)
{
	const struct plan_end *peer = e->peer->plan;
	const struct mistake_row *row = &mistake_rows[peer->mistake];
	const struct receive *v = &e->plan->receive[index];
	bool is_first = !e->has_failed_receive, is_victim = v->is_partial && peer->mistake != MISTAKE_NONE;
	enum uroce_wc_status must = is_victim && is_first ? row->receive : UROCE_WC_WR_FLUSH_ERR;
	e->has_failed_receive = true;
	if (e->plan->mistake == MISTAKE_NONE && !row->is_fatal_to_peer)
		FAIL(e, "%s: receive %u completed with \"%s\" (%s), but nothing was to fail", e->name, index, uroce_wc_status_str(wc->status), uroce_wc_cause_str(wc->vendor_error));
	if (v->step < peer->mistake_step && !row->is_vague)
		FAIL(e, "%s: receive %u completed with \"%s\", but send %u of the peer was to come to it", e->name, index, uroce_wc_status_str(wc->status), v->step);
	if (wc->status != must)
		FAIL(e, "%s: receive %u completed with \"%s\" (%s), must be \"%s\"", e->name, index, uroce_wc_status_str(wc->status), uroce_wc_cause_str(wc->vendor_error), uroce_wc_status_str(must));
}

static void check_receive(struct end *e, uint32_t index, const struct uroce_wc *wc)
{
	if (index != e->receives_done || index >= e->receives_posted) {
		FAIL(e, "%s: receive %u completed, but the next one is %u and %u are posted", e->name, index, e->receives_done, e->receives_posted);
		return;
	}
	if (wc->status == UROCE_WC_SUCCESS)
		check_received(e, index, wc);
	else
		check_receive_failure(e, index, wc);
	e->receives_done++;
}

void check_completion(struct actor *a, const struct uroce_wc *wc)
{
	for (unsigned i = 0; i < a->ends; i++) {
		struct end *e = a->end[i];
		if (!e->qp || uroce_qp_num(e->qp) != wc->qpn)
			continue;
		actor_note(a, "%s sees %s %u complete: %s, %u bytes", e->name, wc->wr_id >> 33 ? "buffer" : wc->wr_id >> 32 ? "receive" : "send", (uint32_t)wc->wr_id, uroce_wc_status_str(wc->status), wc->byte_len);
		if (wc->wr_id >> 33)
			pool_complete(e->plan->uses_srq ? &a->srq_pool : &e->pool, e, wc);
		else if (wc->wr_id >> 32)
			check_receive(e, (uint32_t)wc->wr_id, wc);
		else
			check_send(e, (uint32_t)wc->wr_id, wc);
		return;
	}
	verdict_fail(a->verdict, "a completion names QP 0x%x, which is nobody's", wc->qpn);
}

/* ---- whether it is over ---- */

/* Receives that must complete, at least. */
static uint32_t count_due_receives(const struct end *e)
{
	const struct plan_end *peer = e->peer->plan;
	const struct mistake_row *row = &mistake_rows[peer->mistake];
	uint32_t n = 0;
	if (e->failed_step != NO_INDEX || e->has_failed_receive || (row->is_fatal_to_peer && !row->is_vague) || e->is_stopped)
		return check_receives_offered(e);
	if (row->is_vague)
		return 0;
	while (n < e->plan->receives && e->plan->receive[n].step < peer->mistake_step)
		n++;
	return n;
}

/* Whether a pooled end has got what must come. */
static bool has_its_messages(const struct end *e)
{
	const struct mistake_row *row = &mistake_rows[e->peer->plan->mistake];
	if (e->is_stopped || e->has_failed_receive)
		return !e->pool.posted; /* all flushed; what is in an SRQ is not */
	if (e->service != UROCE_RC && !e->plan->is_exact)
		return true;
	return row->is_vague || e->receives_good >= pool_count_due(e);
}

bool check_is_done(const struct end *e)
{
	/* then nobody says that it is drained */
	bool is_failed = e->failed_step != NO_INDEX || e->has_failed_receive || e->is_stopped || (e->service == UROCE_RC && mistake_rows[e->peer->plan->mistake].is_fatal_to_peer);
	if (e->is_gone)
		return true;
	if ((e->is_draining && !is_failed) || e->steps_done != e->plan->steps)
		return false;
	return plan_is_pooled(e->plan) ? has_its_messages(e) : e->receives_done >= count_due_receives(e);
}
