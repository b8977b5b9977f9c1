/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder: a request packet passes a list of checks in the order of the specification, each of which answers a verdict; the table `verdicts` says what a verdict means for the peer and for us.
 * Owns q->resp. Does not own what is sent (reply.c), nor whose receive WQEs it takes (recv.c). IBA vol. 1, 9.7.4 (validation), 9.7.5 (acknowledging), 9.9.3 (errors), 9.4.5 (atomics).
 *
 * Invariant: nothing in memory changes before every check of the packet has passed, and epsn and msn move only when it was executed. */
#include "resp.h"

#include <stdatomic.h>

#include "recv.h"
#include "reply.h"

/* A gap wider than any window: not a lost packet but a guess at the PSN. */
#define GAP_MAX (1u << 20)

enum verdict {
	EXECUTE,
	DUPLICATE_REQUEST,
	PSN_GAP,
	PSN_GAP_KNOWN,
	PSN_IMPLAUSIBLE,
	RECEIVER_NOT_READY,
	RECEIVER_WAITING,
	OPCODE_SEQUENCE,
	OPCODE_DISABLED,
	WRONG_LENGTH,
	TOO_MANY_REQUESTS,
	MISALIGNED,
	REMOTE_ACCESS,
	RECEIVE_TOO_SHORT,
	RECEIVE_BAD_KEY,
	RECEIVE_BROKEN,
	VERDICT_COUNT
};

/* What a verdict means for a reliable connected QP. */
struct verdict_row {
	uint8_t drop;          /* enum drop */
	uint8_t nak;           /* AETH syndrome, 0: none */
	bool is_fatal;         /* the QP goes to ERR */
	uint8_t event;         /* enum abi_event, when fatal */
	struct failure failure; /* of the receive in progress, when fatal */
};
static const struct verdict_row verdicts[VERDICT_COUNT] = {
	[EXECUTE] = { DROP_NONE },
	[DUPLICATE_REQUEST] = { DROP_DUPLICATE },
	[PSN_GAP] = { DROP_PSN_AHEAD, AETH_NAK_SEQUENCE },
	[PSN_GAP_KNOWN] = { DROP_PSN_AHEAD },
	[PSN_IMPLAUSIBLE] = { DROP_PSN_FAR },
	[RECEIVER_NOT_READY] = { DROP_RNR, AETH_RNR },
	[RECEIVER_WAITING] = { DROP_RNR },
	[OPCODE_SEQUENCE] = { DROP_INVALID_REQUEST, AETH_NAK_INVALID_REQUEST, true, ABI_EVENT_QP_REQ_ERR, { ABI_WC_REM_INV_REQ_ERR, CAUSE_PEER_REQUEST } },
	[OPCODE_DISABLED] = { DROP_INVALID_REQUEST, AETH_NAK_INVALID_REQUEST, true, ABI_EVENT_QP_REQ_ERR, { ABI_WC_REM_INV_REQ_ERR, CAUSE_PEER_REQUEST } },
	[WRONG_LENGTH] = { DROP_INVALID_REQUEST, AETH_NAK_INVALID_REQUEST, true, ABI_EVENT_QP_REQ_ERR, { ABI_WC_REM_INV_REQ_ERR, CAUSE_PEER_REQUEST } },
	[TOO_MANY_REQUESTS] = { DROP_INVALID_REQUEST, AETH_NAK_INVALID_REQUEST, true, ABI_EVENT_QP_REQ_ERR, { ABI_WC_REM_INV_REQ_ERR, CAUSE_PEER_REQUEST } },
	[MISALIGNED] = { DROP_INVALID_REQUEST, AETH_NAK_INVALID_REQUEST, true, ABI_EVENT_QP_REQ_ERR, { ABI_WC_REM_INV_REQ_ERR, CAUSE_PEER_REQUEST } },
	[REMOTE_ACCESS] = { DROP_REMOTE_ACCESS, AETH_NAK_REMOTE_ACCESS, true, ABI_EVENT_QP_ACCESS_ERR, { 0, 0 } },
	[RECEIVE_TOO_SHORT] = { DROP_LOCAL_LENGTH, AETH_NAK_INVALID_REQUEST, true, ABI_EVENT_QP_FATAL, { ABI_WC_LOC_LEN_ERR, CAUSE_RECEIVE_TOO_SHORT } },
	[RECEIVE_BAD_KEY] = { DROP_REMOTE_OPERATION, AETH_NAK_REMOTE_OPERATION, true, ABI_EVENT_QP_FATAL, { ABI_WC_LOC_PROT_ERR, CAUSE_LOCAL_KEY } },
	[RECEIVE_BROKEN] = { DROP_REMOTE_OPERATION, AETH_NAK_REMOTE_OPERATION, true, ABI_EVENT_QP_FATAL, { ABI_WC_LOC_QP_OP_ERR, CAUSE_RING_INDEX } },
};

void resp_reset(struct qp *q, struct psn epsn)
{
	if (q->resp.recv)
		recv_free(q->env, q->resp.recv);
	q->resp = (struct resp){ .epsn = epsn, .ack_psn = psn_sub(epsn, 1) };
}

/* ---- checks ---- */

/* IBA vol. 1, 9.7.4.1.1 and figure 96. */
static enum verdict check_psn(const struct qp *q, const struct packet *p)
{
	int32_t ahead = psn_distance(p->psn, q->resp.epsn);
	if (ahead == 0)
		return EXECUTE;
	if (ahead < 0)
		return DUPLICATE_REQUEST;
	if (q->resp.is_rnr)
		return RECEIVER_WAITING;
	if ((uint32_t)ahead > GAP_MAX)
		return PSN_IMPLAUSIBLE;
	return q->resp.is_gap_known ? PSN_GAP_KNOWN : PSN_GAP;
}

/* Which remote operations the QP takes, by enum message. */
static const uint8_t needed_access[MESSAGE_COUNT] = {
	[MESSAGE_WRITE] = MEM_REMOTE_WRITE,
	[MESSAGE_READ_REQUEST] = MEM_REMOTE_READ,
	[MESSAGE_COMPARE_SWAP] = MEM_REMOTE_ATOMIC,
	[MESSAGE_FETCH_ADD] = MEM_REMOTE_ATOMIC,
};

/* IBA vol. 1, 9.7.4.1.2 to .4: opcode sequence, then whether the operation is enabled. */
static enum verdict check_opcode(const struct qp *q, const struct packet *p)
{
	const struct resp *r = &q->resp;
	bool begins = p->op->flags & OPCODE_FIRST;
	if (begins == r->in_message || (r->in_message && r->message != p->op->message))
		return OPCODE_SEQUENCE;
	if (p->op->flags & OPCODE_INVALIDATE) /* no memory windows or fast registration here */
		return OPCODE_DISABLED;
	uint8_t need = needed_access[p->op->message];
	return (q->attr.access & need) == need ? EXECUTE : OPCODE_DISABLED;
}

/* IBA vol. 1, 9.7.4.1.5, .6: payload by the packet's place in the message, and by the RETH. */
static enum verdict check_length(const struct qp *q, const struct packet *p)
{
	uint32_t mtu = 1u << q->mtu_log2, n = p->payload_len;
	bool is_first = p->op->flags & OPCODE_FIRST, is_last = p->op->flags & OPCODE_LAST;
	if (is_last ? n > mtu : n != mtu)
		return WRONG_LENGTH;
	if (is_last && !is_first && n == 0)
		return WRONG_LENGTH;
	if (p->op->message == MESSAGE_SEND)
		return (uint64_t)q->resp.received * !is_first + n > MESSAGE_MAX_BYTES ? WRONG_LENGTH : EXECUTE;
	uint32_t left = is_first ? p->reth.len : q->resp.left;
	if (is_first && left > MESSAGE_MAX_BYTES)
		return WRONG_LENGTH;
	return (is_last ? n == left : n < left) ? EXECUTE : WRONG_LENGTH;
}

static bool is_granted(const struct qp *q, uint32_t rkey, uint64_t va, uint32_t len, uint32_t access, uint8_t **host)
{
	/* a zero-length access names no byte and its key is not looked at (IBA vol. 1, 9.7.4.1.4; known-bugs 33) */
	return len == 0 || mr_check(q->env->mrs, q->pd, rkey, va, len, access, host) == MEM_OK;
}

/* A receive WQE for this message, taken now unless there is one. */
static enum verdict take_receive(struct qp *q)
{
	if (q->resp.recv)
		return EXECUTE;
	switch (recv_take(&q->rq, q->env, &q->resp.recv)) {
	case RECV_OK:
		return EXECUTE;
	case RECV_NONE:
		return RECEIVER_NOT_READY;
	case RECV_BROKEN:
		break;
	}
	return RECEIVE_BROKEN;
}

/* ---- execution ---- */

static void end_message(struct qp *q, const struct packet *p)
{
	struct resp *r = &q->resp;
	r->in_message = false;
	r->msn = (r->msn + 1) & PSN_MASK;
	if (!r->recv)
		return;
	struct recv_wr *w = r->recv;
	r->recv = NULL;
	qp_complete_receive(q, w, (struct failure){ 0, 0 }, p, r->received);
}

static enum verdict execute_send(struct qp *q, const struct packet *p)
{
	struct resp *r = &q->resp;
	enum verdict v = take_receive(q);
	if (v != EXECUTE)
		return v;
	if (p->op->flags & OPCODE_FIRST) {
		r->received = 0;
		sg_init(&r->sg, r->recv->sge, r->recv->num_sge);
	}
	if ((uint64_t)r->received + p->payload_len > r->recv->room)
		return RECEIVE_TOO_SHORT;
	if (p->payload_len && sg_scatter(&r->sg, q->env->mrs, q->rq.pd, p->payload, p->payload_len) != MEM_OK)
		return RECEIVE_BAD_KEY;
	r->received += p->payload_len;
	return EXECUTE;
}

static enum verdict execute_write(struct qp *q, const struct packet *p)
{
	struct resp *r = &q->resp;
	bool is_first = p->op->flags & OPCODE_FIRST;
	uint64_t va = is_first ? p->reth.va : r->va;
	uint32_t rkey = is_first ? p->reth.rkey : r->rkey, left = is_first ? p->reth.len : r->left;
	uint8_t *host = NULL;
	if (!is_granted(q, rkey, va, left, MEM_REMOTE_WRITE, &host)) /* all that is still to come, so a bad range is refused before its first byte */
		return REMOTE_ACCESS;
	if (p->op->flags & OPCODE_IMMEDIATE) {
		enum verdict v = take_receive(q);
		if (v != EXECUTE)
			return v;
	}
	if (p->payload_len)
		mem_place(host, p->payload, p->payload_len);
	r->received = (is_first ? 0 : r->received) + p->payload_len;
	r->rkey = rkey;
	r->va = va + p->payload_len;
	r->left = left - p->payload_len;
	return EXECUTE;
}

/* SEND and WRITE packets. */
static enum verdict execute_data(struct qp *q, const struct packet *p)
{
	struct resp *r = &q->resp;
	enum verdict v = check_length(q, p);
	if (v == EXECUTE)
		v = p->op->message == MESSAGE_SEND ? execute_send(q, p) : execute_write(q, p);
	if (v != EXECUTE)
		return v;
	q->counter[QP_RX_BYTES] += p->payload_len;
	r->in_message = true;
	r->message = p->op->message;
	r->ack_psn = r->epsn;
	r->epsn = psn_add(r->epsn, 1);
	if (p->op->flags & OPCODE_LAST)
		end_message(q, p);
	if (p->ack_request)
		reply_ack(q);
	return EXECUTE;
}

static enum verdict execute_read(struct qp *q, const struct packet *p)
{
	struct resp *r = &q->resp;
	uint8_t *host;
	if (p->reth.len > MESSAGE_MAX_BYTES)
		return WRONG_LENGTH;
	if (!is_granted(q, p->reth.rkey, p->reth.va, p->reth.len, MEM_REMOTE_READ, &host))
		return REMOTE_ACCESS;
	struct replay_record *rec = replay_push(&q->out.replay);
	if (!rec)
		return TOO_MANY_REQUESTS;
	rec->first = p->psn;
	rec->psns = p->reth.len ? (uint32_t)(((uint64_t)p->reth.len + (1u << q->mtu_log2) - 1) >> q->mtu_log2) : 1;
	rec->rkey = p->reth.rkey;
	rec->va = p->reth.va;
	rec->len = p->reth.len;
	r->epsn = psn_add(r->epsn, rec->psns);
	end_message(q, p);
	rec->msn = r->msn;
	reply_request_answer(q, rec);
	return EXECUTE;
}

static uint64_t apply_atomic(uint8_t *host, const struct packet *p)
{
	/* the processor's own atomics, so that it is atomic among cores and with the application too (DESIGN section 6) */
	_Atomic uint64_t *word = (_Atomic uint64_t *)(void *)host;
	if (p->op->message == MESSAGE_FETCH_ADD)
		return atomic_fetch_add(word, p->atomic.swap_or_add);
	uint64_t found = p->atomic.compare;
	atomic_compare_exchange_strong(word, &found, p->atomic.swap_or_add);
	return found;
}

static enum verdict execute_atomic(struct qp *q, const struct packet *p)
{
	struct resp *r = &q->resp;
	uint8_t *host;
	if (p->atomic.va % sizeof(uint64_t))
		return MISALIGNED;
	if (!is_granted(q, p->atomic.rkey, p->atomic.va, sizeof(uint64_t), MEM_REMOTE_ATOMIC, &host))
		return REMOTE_ACCESS;
	if ((uintptr_t)host % sizeof(uint64_t)) /* an iova may be aligned where the memory is not */
		return MISALIGNED;
	struct replay_record *rec = replay_push(&q->out.replay);
	if (!rec)
		return TOO_MANY_REQUESTS;
	rec->first = p->psn;
	rec->psns = 1;
	rec->is_atomic = true;
	rec->original = apply_atomic(host, p);
	r->epsn = psn_add(r->epsn, 1);
	end_message(q, p);
	rec->msn = r->msn;
	reply_request_answer(q, rec);
	return EXECUTE;
}

static enum verdict execute(struct qp *q, const struct packet *p)
{
	enum verdict v = check_opcode(q, p);
	if (v != EXECUTE)
		return v;
	switch ((enum message)p->op->message) {
	case MESSAGE_SEND:
	case MESSAGE_WRITE:
		return execute_data(q, p);
	case MESSAGE_READ_REQUEST:
		return execute_read(q, p);
	case MESSAGE_COMPARE_SWAP:
	case MESSAGE_FETCH_ADD:
		return execute_atomic(q, p);
	default:
		return OPCODE_SEQUENCE;
	}
}

/* ---- duplicates (IBA vol. 1, 9.7.5.1.2 to .5) ---- */

static enum drop repeat_read(struct qp *q, const struct packet *p, struct replay_record *rec)
{
	uint32_t offset = (p->psn.v - rec->first.v) & PSN_MASK;
	uint64_t at = (uint64_t)offset << q->mtu_log2;
	/* a repeated READ runs to the end of the original */
	if (rec->is_atomic || p->reth.rkey != rec->rkey || p->reth.va != rec->va + at || p->reth.len != rec->len - at)
		return DROP_DUPLICATE_UNKNOWN;
	rec->from = rec->next = offset;
	reply_answer(q, rec);
	return DROP_DUPLICATE;
}

static enum drop repeat(struct qp *q, const struct packet *p)
{
	struct replay_record *rec;
	q->counter[QP_DUPLICATE_REQUEST]++;
	switch ((enum message)p->op->message) {
	case MESSAGE_READ_REQUEST:
		rec = replay_find(&q->out.replay, p->psn);
		return rec ? repeat_read(q, p, rec) : DROP_DUPLICATE_UNKNOWN;
	case MESSAGE_COMPARE_SWAP:
	case MESSAGE_FETCH_ADD:
		rec = replay_find(&q->out.replay, p->psn);
		if (!rec || !rec->is_atomic)
			return DROP_DUPLICATE_UNKNOWN;
		reply_answer(q, rec); /* with its first result; it is not executed again (known-bugs 4) */
		return DROP_DUPLICATE;
	default:
		reply_ack(q); /* even without AckReq: the first ACK may be what was lost (known-bugs 9) */
		return DROP_DUPLICATE;
	}
}

/* ---- what a verdict means ---- */

static enum drop carry_out(struct qp *q, enum verdict v)
{
	const struct verdict_row *row = &verdicts[v];
	struct resp *r = &q->resp;
	r->is_gap_known |= v == PSN_GAP;
	q->counter[QP_OUT_OF_SEQUENCE] += row->drop == DROP_PSN_AHEAD;
	if (v == RECEIVER_NOT_READY) {
		r->is_rnr = true;
		reply_nak(q, AETH_RNR | q->attr.min_rnr_timer, r->epsn, false);
	} else if (row->nak) {
		reply_nak(q, row->nak, r->epsn, row->is_fatal);
	}
	if (row->is_fatal)
		qp_fail_receive(q, row->failure, row->event);
	return row->drop;
}

enum drop resp_rx(struct qp *q, const struct packet *p)
{
	struct resp *r = &q->resp;
	if (q->state != ABI_QP_RTR && !qp_can_send(q) && q->state != ABI_QP_SQE)
		return DROP_QP_STATE;
	if (q->state == ABI_QP_RTR && !r->is_established) { /* the peer is there (IBA vol. 1, 11.6.3.2) */
		r->is_established = true;
		q->env->on_event(q->env, q, ABI_EVENT_COMM_EST);
	}
	enum verdict v = check_psn(q, p);
	if (v == DUPLICATE_REQUEST)
		return repeat(q, p);
	if (v == EXECUTE) {
		if (r->is_gap_known || r->is_rnr)
			reply_on_gap_closed(q);
		r->is_gap_known = r->is_rnr = false;
		v = execute(q, p);
	}
	return v == EXECUTE ? DROP_NONE : carry_out(q, v);
}
