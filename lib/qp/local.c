/* SPDX-License-Identifier: BSD-3-Clause */
/* WRs that send nothing. Owns q->local, when they are carried out and how they end; what a bind checks is mem/mw.c's. They take no PSN, are carried out once, when all before them have been sent (whatever is sent
 * again after a loss), and complete in post order with the others. A LOCAL_INV waits until all before it are complete (IBA vol. 1, 10.6.5.1, its strict order, which we always keep; known-bugs 39), the others
 * only, when fenced, for READs and atomics. What follows sees what they did (IBA vol. 1, table 77).
 *
 * Invariant: the oldest WR of the record is none that has been carried out: such a one is complete. */
#include "local.h"

#include "req.h"
#include "sq.h"

#define AT_ONCE 16u      /* carried out before others have their turn */
#define WAITING_MAX 128u /* carried out, and waiting for their completion */

static const struct failure success;

/* What a refused bind means (IBA vol. 1, 11.6.2: memory management operation error). */
static const uint8_t cause_of[BIND_VERDICT_COUNT] = {
	[BIND_NO_TARGET] = CAUSE_BIND_TARGET,
	[BIND_NOT_FREE] = CAUSE_BIND_NOT_FREE,
	[BIND_BAD_MR] = CAUSE_BIND_MR,
	[BIND_BAD_RIGHTS] = CAUSE_BIND_RIGHTS,
	[BIND_BAD_RANGE] = CAUSE_BIND_RANGE,
	[BIND_TOO_MANY] = CAUSE_BIND_TOO_MANY,
};

/* Each answers a cause, CAUSE_NONE when it is done. */
static uint8_t bind(struct qp *q, const struct wr *w)
{
	struct mw_bind b = {
		.pd = q->pd, .through = &q->windows, .key = w->rkey, .lkey = w->bind.lkey, .addr = w->bind.addr, .len = w->bind.len, .iova = w->bind.iova, .access = w->bind.access,
	};
	return cause_of[mw_bind(q->env->mrs, &b, w->opcode == ABI_OP_BIND_MW)];
}

static uint8_t invalidate(struct qp *q, const struct wr *w)
{
	struct mr *mr = mw_find_invalidable(q->env->mrs, q->pd, &q->windows, w->imm);
	if (!mr)
		return CAUSE_INVALIDATE_KEY;
	mw_unbind(q->env->mrs, mr);
	return CAUSE_NONE;
}

static uint8_t (*const carry_out[ABI_OP_COUNT])(struct qp *q, const struct wr *w) = {
	[ABI_OP_BIND_MW] = bind,
	[ABI_OP_REG_MR] = bind,
	[ABI_OP_LOCAL_INV] = invalidate,
};

static bool has_to_wait(const struct qp *q, const struct wr *w)
{
	if (q->flight.oldest == w)
		return false;
	if (w->opcode == ABI_OP_LOCAL_INV || q->local.waiting >= WAITING_MAX)
		return true;
	return (w->flags & ABI_SEND_FENCE) && q->req.rd_atomic;
}

void local_retire(struct qp *q)
{
	struct inflight *f = &q->flight;
	while (f->oldest && f->oldest->is_carried_out) {
		q->local.waiting--;
		qp_complete_send(q, inflight_retire(f), success);
	}
}

/* false: it cannot be, now or ever. */
static bool run_one(struct qp *q, struct wr *w)
{
	struct inflight *f = &q->flight;
	if (w->is_carried_out) { /* sending began again before it */
		inflight_sent(f, 0);
		return true;
	}
	if (!w->error_status) {
		if (has_to_wait(q, w))
			return false;
		w->error_cause = carry_out[w->opcode](q, w);
		w->error_status = w->error_cause ? ABI_WC_MW_BIND_ERR : 0;
		q->local.done++;
	}
	if (w->error_status) { /* as one that cannot be sent: when all before it are done */
		if (f->oldest == w)
			qp_fail_send(q, (struct failure){ w->error_status, w->error_cause });
		return false;
	}
	w->is_carried_out = true;
	q->local.waiting++;
	inflight_sent(f, 0);
	local_retire(q);
	sq_free_slots(q);
	return true;
}

bool local_run(struct qp *q)
{
	q->local.has_more = false;
	for (unsigned n = 0; n < AT_ONCE;) {
		n += !q->flight.cursor->is_carried_out; /* those, at most WAITING_MAX after a loss, are only stepped over */
		if (!run_one(q, q->flight.cursor) || !req_find_work(q))
			return false;
		if (!wr_kind_of(q->flight.cursor)->is_local)
			return true;
	}
	q->local.has_more = true;
	return false;
}

void local_reset(struct qp *q)
{
	q->local = (struct local){ 0 };
	mw_unbind_all(q->env->mrs, &q->windows);
}
