/* SPDX-License-Identifier: BSD-3-Clause */
/* The completer: what comes back for requests. Owns the acknowledged side of q->flight and q->comp. IBA vol. 1, 9.7.5.1.1 (implied acknowledgement), 9.7.5.2 (NAKs), 9.7.5.3 (READ responses),
 * 9.7.7.2.5 (credits), 9.9.2 (errors).
 *
 * Invariant: WRs complete in post order; a READ, atomic, ATOMIC WRITE or FLUSH completes only by its own responses, and what acknowledges a later PSN while they are missing is an implied NAK for them. */
#include "comp.h"

#include "local.h"
#include "reply.h"
#include "req.h"
#include "retry.h"
#include "sq.h"

/* AETH credit code to receive WQEs (IBA vol. 1, table 59); 31: not counted. */
static const uint16_t credits_of[31] = {
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

static const struct failure success;

void comp_reset(struct qp *q)
{
	q->comp = (struct comp){ 0 };
}

static void take_credits(struct qp *q, const struct aeth *a)
{
	uint8_t code = a->syndrome & 0x1f;
	if (a->syndrome >> 5)
		return;
	q->comp.has_credits = code != 31;
	if (code != 31)
		q->comp.lsn = (a->msn + credits_of[code]) & PSN_MASK;
}

/* Acknowledges everything before `end`, which is at most the frontier. false: it stopped at a READ or atomic that still waits for its responses. */
static bool acknowledge(struct qp *q, struct psn end)
{
	struct inflight *f = &q->flight;
	struct psn before = f->una;
	bool is_whole = true, has_retired = false;
	while (f->oldest && !psn_is_equal(f->una, end)) {
		struct wr *w = f->oldest;
		uint32_t left = (wr_end(w).v - f->una.v) & PSN_MASK, covered = (end.v - f->una.v) & PSN_MASK;
		if (wr_kind_of(w)->has_response) {
			is_whole = false;
			break;
		}
		if (covered < left) {
			inflight_acked(f, end);
			break;
		}
		qp_complete_send(q, inflight_retire(f), success);
		local_on_retired(q);
		has_retired = true;
	}
	if (!psn_is_equal(f->una, before)) {
		if (retry_on_progress(q))
			req_on_lost(q);
		qp_wake(q);
	}
	if (has_retired)
		sq_free_slots(q);
	return is_whole;
}

/* Something between una and what was seen is lost: send again from una. Once a gap: what still comes of the old flight, in rising PSNs or within a round trip, is no news (known-bugs 8). Each further time
 * without progress waits twice as long before it believes the same again, so that a link that reorders much does not use up retry_cnt within a few round trips. */
static enum drop on_loss(struct qp *q, enum wc_cause cause, struct psn seen, enum drop why)
{
	const struct retry *r = &q->retry;
	struct comp *c = &q->comp;
	struct psn una = q->flight.una;
	uint64_t round = (r->srtt_ns ? r->srtt_ns + 4ull * r->rttvar_ns : r->rto_ns) << r->timeouts; /* at most 7 */
	bool is_same = c->has_loss && psn_is_equal(c->lost_psn, una);
	bool is_old_flight = is_same && (psn_distance(seen, c->lost_seen) > 0 || q->env->now_ns - c->lost_at < round);
	c->lost_seen = seen;
	if (is_old_flight || psn_is_equal(q->flight.next, una))
		return why ? why : DROP_NAK_STALE;
	c->has_loss = true;
	c->lost_psn = una;
	c->lost_at = q->env->now_ns;
	qp_count(q, cause == CAUSE_SEQUENCE_NAKS ? QP_PACKET_SEQ_ERR : QP_IMPLIED_NAK_SEQ_ERR);
	if (retry_take(q, cause))
		req_on_lost(q);
	return why;
}

/* ---- ACK and NAK ---- */

struct nak_row {
	uint8_t status, cause;
};
/* NAK codes (IBA vol. 1, table 58) that end the QP. */
static const struct nak_row fatal_naks[32] = {
	[1] = { ABI_WC_REM_INV_REQ_ERR, CAUSE_NAK_INVALID_REQUEST },
	[2] = { ABI_WC_REM_ACCESS_ERR, CAUSE_NAK_REMOTE_ACCESS },
	[3] = { ABI_WC_REM_OP_ERR, CAUSE_NAK_REMOTE_OPERATION },
};

static enum drop on_nak(struct qp *q, const struct packet *p)
{
	uint8_t code = p->aeth.syndrome & 0x1f;
	if (code && !fatal_naks[code].status)
		return DROP_ACK_RESERVED;
	bool is_whole = acknowledge(q, p->psn);
	if (code) {
		/* what is refused is behind the oldest when that waits for an answer: it was executed, and the answer is lost for ever */
		bool is_oldest = is_whole || psn_is_within(p->psn, q->flight.oldest->first, q->flight.oldest->psns);
		qp_fail_send(q, (struct failure){ is_oldest ? fatal_naks[code].status : (uint8_t)ABI_WC_RETRY_EXC_ERR, fatal_naks[code].cause });
		return DROP_NONE;
	}
	if (retry_is_waiting(q)) /* rxe sends RNR NAK and then this for the same PSN: the wait stands */
		return DROP_NAK_STALE;
	return on_loss(q, is_whole ? CAUSE_SEQUENCE_NAKS : CAUSE_IMPLIED_NAKS, p->psn, DROP_NONE);
}

static enum drop on_rnr(struct qp *q, const struct packet *p)
{
	if (!acknowledge(q, p->psn))
		return on_loss(q, CAUSE_IMPLIED_NAKS, p->psn, DROP_NONE);
	if (retry_is_waiting(q) || psn_is_equal(q->flight.next, q->flight.una))
		return DROP_NAK_STALE;
	qp_count(q, QP_RNR_NAK_RETRY_ERR);
	if (retry_take_rnr(q, p->aeth.syndrome & 0x1f))
		req_on_lost(q);
	return DROP_NONE;
}

static enum drop on_ack(struct qp *q, const struct packet *p)
{
	q->counter[QP_ACKS_RECEIVED]++;
	if (!acknowledge(q, psn_add(p->psn, 1)))
		return on_loss(q, CAUSE_IMPLIED_NAKS, p->psn, DROP_NONE);
	return DROP_NONE;
}

static enum drop on_acknowledge(struct qp *q, const struct packet *p)
{
	if (!inflight_has(&q->flight, p->psn)) {
		if (psn_distance(p->psn, q->flight.una) >= 0)
			return DROP_ACK_GHOST;
		if (psn_is_equal(psn_add(p->psn, 1), q->flight.una) && !(p->aeth.syndrome >> 5)) {
			take_credits(q, &p->aeth); /* the latest word on credits, though nothing new is acknowledged */
			qp_wake(q);
		}
		return DROP_ACK_OLD;
	}
	switch (p->aeth.syndrome >> 5) { /* the AETH type, not an opcode */
	case 0:
		take_credits(q, &p->aeth);
		return on_ack(q, p);
	case 1:
		return on_rnr(q, p);
	case 3:
		return on_nak(q, p);
	}
	return DROP_ACK_RESERVED;
}

/* ---- responses ---- */

static enum drop fail_bad_response(struct qp *q)
{
	qp_fail_send(q, (struct failure){ ABI_WC_BAD_RESP_ERR, CAUSE_BAD_RESPONSE });
	return DROP_RESPONSE_BAD;
}

/* Puts bytes where the WR's SGEs say; false: the QP has failed. */
static bool place(struct qp *q, const struct wr *w, uint64_t at, const void *from, uint32_t n)
{
	struct sg s;
	if (!n)
		return true;
	sg_init(&s, w->sge, w->num_sge);
	if (at)
		sg_seek(&s, at);
	enum mem_verdict v = sg_scatter(&s, q->env->mrs, q->pd, from, n);
	if (v == MEM_OK)
		return true;
	qp_fail_send(q, (struct failure){ ABI_WC_LOC_PROT_ERR, v == MEM_BAD_RANGE ? CAUSE_LOCAL_RANGE : v == MEM_BAD_RIGHTS ? CAUSE_LOCAL_RIGHTS : CAUSE_LOCAL_KEY });
	return false;
}

/* The answer to the oldest WR has moved on by one PSN. */
static void advance(struct qp *q, struct wr *w, bool ends_request)
{
	if (ends_request)
		req_on_answered(q);
	struct psn next = psn_add(q->flight.una, 1);
	if (psn_is_equal(next, wr_end(w))) {
		qp_complete_send(q, inflight_retire(&q->flight), success);
		local_on_retired(q);
		sq_free_slots(q);
	} else {
		inflight_acked(&q->flight, next);
	}
	retry_on_progress(q);
	qp_wake(q);
}

static enum drop on_read_response(struct qp *q, struct wr *w, const struct packet *p)
{
	uint32_t offset = (p->psn.v - w->first.v) & PSN_MASK;
	uint64_t at = (uint64_t)offset << q->mtu_log2;
	uint64_t left = wr_response_bytes(w) - at;
	uint32_t expected = left > 1u << q->mtu_log2 ? 1u << q->mtu_log2 : (uint32_t)left;
	bool is_end = offset + 1 == w->psns || ((offset + 1) & (q->req.segment_psns - 1)) == 0;
	/* FIRST is not looked at: a peer may answer a repeated request with MIDDLE (rxe) or FIRST (others) */
	if (p->payload_len != expected || !!(p->op->flags & OPCODE_LAST) != is_end)
		return fail_bad_response(q);
	if (!place(q, w, at, p->payload, p->payload_len))
		return DROP_NONE;
	q->counter[QP_RX_BYTES] += p->payload_len;
	advance(q, w, is_end);
	return DROP_NONE;
}

static enum drop on_atomic_response(struct qp *q, struct wr *w, const struct packet *p)
{
	uint64_t original = p->atomic_original;
	if (place(q, w, 0, &original, sizeof(original)))
		advance(q, w, true);
	return DROP_NONE;
}

static enum drop on_response(struct qp *q, const struct packet *p)
{
	struct inflight *f = &q->flight;
	if (!inflight_has(f, p->psn))
		return DROP_RESPONSE_UNEXPECTED;
	struct wr *w = f->oldest;
	while (w && !wr_kind_of(w)->has_response)
		w = w->next;
	if (!w)
		return DROP_RESPONSE_UNEXPECTED;
	struct psn expected = w == f->oldest ? f->una : w->first;
	if (psn_distance(p->psn, expected) < 0)
		return DROP_RESPONSE_UNEXPECTED; /* a SEND or WRITE is not answered so */
	acknowledge(q, expected); /* a response acknowledges the requests before its own (IBA vol. 1, 9.7.5.1.1) */
	if (!psn_is_equal(p->psn, expected))
		return on_loss(q, CAUSE_IMPLIED_NAKS, p->psn, DROP_RESPONSE_AHEAD);
	if (wr_is_atomic(w) != (p->op->message == MESSAGE_ATOMIC_ACKNOWLEDGE))
		return fail_bad_response(q);
	if (p->op->flags & OPCODE_AETH)
		take_credits(q, &p->aeth);
	return wr_is_atomic(w) ? on_atomic_response(q, w, p) : on_read_response(q, w, p);
}

enum drop comp_rx(struct qp *q, const struct packet *p)
{
	if (!qp_can_send(q))
		return DROP_QP_STATE;
	return p->op->message == MESSAGE_ACKNOWLEDGE ? on_acknowledge(q, p) : on_response(q, p);
}
