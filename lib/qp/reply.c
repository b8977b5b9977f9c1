/* SPDX-License-Identifier: BSD-3-Clause */
/* What a responder sends, as one queue in PSN order: first the answers to READs and atomics, oldest first; when none is left, the NAK or the ACK. Owns q->out. Data of a READ is read when its response is
 * built, through the access check, so a region that went away in between ends in a NAK and not in rubbish (known-bugs 11). IBA vol. 1, 9.7.5.1.1, 9.7.5.1.7, 9.7.5.2.
 *
 * Invariant: an ACK or NAK leaves only when no answer is pending, so its PSN never covers one. */
#include "reply.h"

void reply_reset(struct qp *q)
{
	replay_clear(&q->out.replay);
	q->out.is_ack_due = q->out.is_nak_due = q->out.is_last = false;
}

void reply_ack(struct qp *q)
{
	if (!q->out.is_ack_due)
		q->out.ack_round = q->env->round;
	q->out.is_ack_due = true;
	qp_wake(q);
}

void reply_nak(struct qp *q, uint8_t syndrome, struct psn psn, bool is_last)
{
	struct out *o = &q->out;
	if (o->is_last && !psn_is_before(psn, o->nak_psn))
		return;
	o->is_nak_due = true;
	o->is_ack_due = false; /* a NAK acknowledges what is before it */
	o->is_last = is_last;
	o->nak_syndrome = syndrome;
	o->nak_psn = psn;
	qp_wake(q);
}

void reply_on_gap_closed(struct qp *q)
{
	struct out *o = &q->out;
	if (!o->is_nak_due || o->is_last)
		return;
	o->is_nak_due = false;
	reply_ack(q);
}

void reply_request_answer(struct qp *q, struct replay_record *rec)
{
	q->out.is_ack_due = false;
	reply_answer(q, rec);
}

void reply_answer(struct qp *q, struct replay_record *rec)
{
	replay_mark(&q->out.replay, rec);
	qp_wake(q);
}

static uint8_t *begin(struct qp *q, uint8_t *frame, enum message message, unsigned flags, struct psn psn, unsigned pad)
{
	struct bth b = { .op = opcode_find(SERVICE_RC, message, flags), .dqpn = q->dest_qpn, .psn = psn, .pkey = q->pkey };
	q->counter[QP_TX_PACKETS]++;
	return bth_write(template_lay(frame, &q->ah.template), &b, pad);
}

static uint32_t build_acknowledge(struct qp *q, uint8_t *frame, uint8_t syndrome, struct psn psn)
{
	uint8_t *end = begin(q, frame, MESSAGE_ACKNOWLEDGE, 0, psn, 0);
	return packet_finish(frame, &q->ah.template, aeth_write(end, syndrome, q->resp.msn));
}

static uint32_t build_atomic_answer(struct qp *q, struct replay_record *rec, uint8_t *frame)
{
	uint8_t *end = begin(q, frame, MESSAGE_ATOMIC_ACKNOWLEDGE, 0, rec->first, 0);
	end = atomic_ack_write(aeth_write(end, AETH_ACK, rec->msn), rec->original);
	replay_done(&q->out.replay, rec);
	return packet_finish(frame, &q->ah.template, end);
}

/* The region of a READ went away. What was answered in full before may well have arrived, and the peer, knowing that, have taken the key away itself, while a copy of its request was still on the way: only if it has not
 * arrived does the NAK mean anything to it, and it ends nothing here. */
static uint32_t refuse_read(struct qp *q, struct replay_record *rec, struct psn psn, uint8_t *frame)
{
	if (rec->was_answered) {
		uint8_t *end = begin(q, frame, MESSAGE_ACKNOWLEDGE, 0, psn, 0);
		replay_done(&q->out.replay, rec);
		qp_count(q, QP_NAKS_SENT);
		return packet_finish(frame, &q->ah.template, aeth_write(end, AETH_NAK_REMOTE_ACCESS, rec->msn));
	}
	/* what is behind it is not answered any more */
	replay_clear(&q->out.replay);
	reply_nak(q, AETH_NAK_REMOTE_ACCESS, psn, true);
	qp_fail_receive(q, (struct failure){ 0, 0 }, ABI_EVENT_QP_ACCESS_ERR);
	return 0;
}

static uint32_t build_read_answer(struct qp *q, struct replay_record *rec, uint8_t *frame)
{
	uint64_t at = (uint64_t)rec->next << q->mtu_log2;
	uint64_t left = rec->len - at;
	uint32_t n = left > 1u << q->mtu_log2 ? 1u << q->mtu_log2 : (uint32_t)left;
	bool is_first = rec->next == rec->from, is_last = rec->next + 1 == rec->psns;
	uint8_t *host = NULL;
	struct psn psn = psn_add(rec->first, rec->next);
	if (n && mr_check_remote(q->env->mrs, q->pd, &q->windows, rec->rkey, rec->va + at, n, MEM_REMOTE_READ, &host) != MEM_OK)
		return refuse_read(q, rec, psn, frame);
	unsigned pad = -n & 3;
	uint8_t *to = begin(q, frame, MESSAGE_READ_RESPONSE, (is_first ? OPCODE_FIRST : 0) | (is_last ? OPCODE_LAST : 0), psn, pad);
	if (is_first || is_last)
		to = aeth_write(to, AETH_ACK, rec->msn);
	if (n)
		memcpy(to, host, n);
	memset(to + n, 0, pad);
	q->counter[QP_TX_BYTES] += n;
	rec->next++;
	if (is_last)
		replay_done(&q->out.replay, rec);
	return packet_finish(frame, &q->ah.template, to + n + pad);
}

static uint32_t build_nak(struct qp *q, uint8_t *frame)
{
	struct out *o = &q->out;
	o->is_nak_due = false;
	qp_count(q, o->nak_syndrome >> 5 == 1 ? QP_RNR_NAK_SENT : QP_NAKS_SENT);
	return build_acknowledge(q, frame, o->nak_syndrome, o->nak_psn);
}

uint32_t reply_tx(struct qp *q, uint8_t *frame)
{
	struct out *o = &q->out;
	if (!q->has_ah)
		return 0;
	if (q->ah.state != AH_READY) {
		ah_resolve_again(&q->ah, q->env->now_ns); /* the peer is there: it has just sent something */
		return 0;
	}
	if (o->replay.due) {
		struct replay_record *rec = o->replay.due;
		uint32_t len = replay_is_atomic(rec) ? build_atomic_answer(q, rec, frame) : build_read_answer(q, rec, frame);
		if (len)
			return len;
	}
	if (o->is_nak_due)
		return build_nak(q, frame);
	if (!o->is_ack_due || qp_has_late_ack(q))
		return 0;
	o->is_ack_due = false;
	q->counter[QP_ACKS_SENT]++;
	return build_acknowledge(q, frame, AETH_ACK, q->resp.ack_psn);
}
