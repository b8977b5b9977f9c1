/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder: a request packet passes a list of checks in the order of the specification, each of which answers a verdict; the table `verdicts` says what a verdict means for the peer and for us, by service.
 * Owns q->resp and the way of an RC packet through it. The rules of the unreliable services are in uc.c and ud.c, what SEND and WRITE do in deliver.c, what is sent in reply.c, whose receive WQEs they are in recv.c. IBA vol. 1, 9.7.4
 * (validation), 9.7.5 (acknowledging), 9.9.3 (errors), 9.4.5 (atomics); annex A19
 * (FLUSH, ATOMIC WRITE).
 *
 * Invariant: epsn and msn move only when a request was executed. */
#include "resp.h"

#include <stdatomic.h>

#include "deliver.h"
#include "recv.h"
#include "reply.h"
#include "uc.h"
#include "ud.h"

/* A gap wider than any window: not a lost packet but a guess at the PSN. */
#define GAP_MAX (1u << 20)

#define INVALID_REQUEST { DROP_INVALID_REQUEST, AETH_NAK_INVALID_REQUEST, true, ABI_EVENT_QP_REQ_ERR, { ABI_WC_REM_INV_REQ_ERR, CAUSE_PEER_REQUEST } }
/* The program's own mistake ends a QP of any service (IBA vol. 1, 10.3.1.7); only RC tells the peer. */
#define OWN_MISTAKE(nak, status, cause) { DROP_REMOTE_OPERATION, nak, true, ABI_EVENT_QP_FATAL, { status, cause } }

/* UC and UD drop the message and say nothing (IBA vol. 1, 9.8.2, 9.8.3). */
const struct verdict_row verdicts[VERDICT_COUNT][ABI_SERVICES] = {
	/* RC, UC, UD */
	[EXECUTE] = { { DROP_NONE }, { DROP_NONE }, { DROP_NONE } },
	[WRONG_QKEY] = { { 0 }, { 0 }, { DROP_QKEY } },
	[DUPLICATE_REQUEST] = { { DROP_DUPLICATE } },
	[PSN_GAP] = { { DROP_PSN_AHEAD, AETH_NAK_SEQUENCE } },
	[PSN_GAP_KNOWN] = { { DROP_PSN_AHEAD } },
	[PSN_IMPLAUSIBLE] = { { DROP_PSN_FAR } },
	[PSN_OLD] = { { 0 }, { DROP_MESSAGE_OLD } },
	[MESSAGE_INCOMPLETE] = { { 0 }, { DROP_MESSAGE_INCOMPLETE } },
	[RECEIVER_NOT_READY] = { { DROP_RNR, AETH_RNR }, { DROP_RNR }, { DROP_RNR } },
	[RECEIVER_WAITING] = { { DROP_RNR } },
	[OPCODE_SEQUENCE] = { INVALID_REQUEST },
	[OPCODE_DISABLED] = { INVALID_REQUEST, { DROP_INVALID_REQUEST } },
	[WRONG_LENGTH] = { INVALID_REQUEST, { DROP_INVALID_REQUEST }, { DROP_INVALID_REQUEST } },
	[TOO_MANY_REQUESTS] = { INVALID_REQUEST },
	[MISALIGNED] = { INVALID_REQUEST },
	[FLUSH_UNKNOWN] = { INVALID_REQUEST },
	[REMOTE_ACCESS] = { { DROP_REMOTE_ACCESS, AETH_NAK_REMOTE_ACCESS, true, ABI_EVENT_QP_ACCESS_ERR, { 0, 0 } }, { DROP_REMOTE_ACCESS } },
	[RECEIVE_TOO_SHORT] = { { DROP_LOCAL_LENGTH, AETH_NAK_INVALID_REQUEST, true, ABI_EVENT_QP_FATAL, { ABI_WC_LOC_LEN_ERR, CAUSE_RECEIVE_TOO_SHORT } }, { DROP_LOCAL_LENGTH }, { DROP_LOCAL_LENGTH } },
	[RECEIVE_BAD_KEY] = { OWN_MISTAKE(AETH_NAK_REMOTE_OPERATION, ABI_WC_LOC_PROT_ERR, CAUSE_LOCAL_KEY), OWN_MISTAKE(0, ABI_WC_LOC_PROT_ERR, CAUSE_LOCAL_KEY),
		OWN_MISTAKE(0, ABI_WC_LOC_PROT_ERR, CAUSE_LOCAL_KEY) },
	/* IBA vol. 1, 9.9.3: told to the peer like any other key that it may not use, and the receive says what came */
	[INVALIDATE_REFUSED] = { { DROP_REMOTE_ACCESS, AETH_NAK_REMOTE_ACCESS, true, ABI_EVENT_QP_ACCESS_ERR, { ABI_WC_REM_ACCESS_ERR, CAUSE_INVALIDATE_KEY } } },
	[RECEIVE_BROKEN] = { OWN_MISTAKE(AETH_NAK_REMOTE_OPERATION, ABI_WC_LOC_QP_OP_ERR, CAUSE_RING_INDEX), OWN_MISTAKE(0, ABI_WC_LOC_QP_OP_ERR, CAUSE_RING_INDEX),
		OWN_MISTAKE(0, ABI_WC_LOC_QP_OP_ERR, CAUSE_RING_INDEX) },
};

void resp_reset(struct qp *q, struct psn epsn)
{
	if (q->resp.recv)
		recv_drop(q->source, q->env, q->resp.recv);
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

/* IBA vol. 1, 9.7.4.1.2 to .4: opcode sequence, then whether the operation is enabled. */
static enum verdict check_opcode(const struct qp *q, const struct packet *p)
{
	const struct resp *r = &q->resp;
	bool begins = p->op->flags & OPCODE_FIRST;
	if (begins == r->in_message || (r->in_message && r->message != p->op->message))
		return OPCODE_SEQUENCE;
	return deliver_is_enabled(q, p) ? EXECUTE : OPCODE_DISABLED;
}

/* ---- execution ---- */

static enum verdict execute_data(struct qp *q, const struct packet *p)
{
	struct resp *r = &q->resp;
	enum verdict v = deliver(q, p);
	if (v != EXECUTE)
		return v;
	r->ack_psn = r->epsn;
	r->epsn = psn_add(r->epsn, 1);
	if (p->ack_request)
		reply_ack(q);
	return EXECUTE;
}

/* A request that is answered by packets of its own has a record. NULL: the peer has more outstanding than it may. */
static struct replay_record *begin_record(struct qp *q, const struct packet *p)
{
	struct replay_record *rec = replay_push(&q->out.replay);
	if (!rec)
		return NULL;
	rec->message = p->op->message;
	rec->first = p->psn;
	rec->psns = 1;
	return rec;
}

static enum verdict end_record(struct qp *q, const struct packet *p, struct replay_record *rec)
{
	q->resp.epsn = psn_add(q->resp.epsn, rec->psns);
	deliver_end_message(q, p);
	rec->msn = q->resp.msn;
	reply_request_answer(q, rec);
	return EXECUTE;
}

static enum verdict execute_read(struct qp *q, const struct packet *p)
{
	uint8_t *host;
	if (p->reth.len > MESSAGE_MAX_BYTES)
		return WRONG_LENGTH;
	if (!deliver_is_granted(q, p->reth.rkey, p->reth.va, p->reth.len, MEM_REMOTE_READ, &host))
		return REMOTE_ACCESS;
	struct replay_record *rec = begin_record(q, p);
	if (!rec)
		return TOO_MANY_REQUESTS;
	rec->psns = p->reth.len ? (uint32_t)(((uint64_t)p->reth.len + (1u << q->mtu_log2) - 1) >> q->mtu_log2) : 1;
	rec->rkey = p->reth.rkey;
	rec->va = p->reth.va;
	rec->len = p->reth.len;
	return end_record(q, p, rec);
}

/* The 8 bytes that an atomic or an ATOMIC WRITE names. */
static enum verdict find_word(const struct qp *q, uint64_t va, uint32_t rkey, uint32_t access, _Atomic uint64_t **word)
{
	uint8_t *host;
	if (va % sizeof(uint64_t))
		return MISALIGNED;
	if (!deliver_is_granted(q, rkey, va, sizeof(uint64_t), access, &host))
		return REMOTE_ACCESS;
	*word = (_Atomic uint64_t *)(void *)host;
	return (uintptr_t)host % sizeof(uint64_t) ? MISALIGNED : EXECUTE; /* an iova may be aligned where the memory is not */
}

static uint64_t apply_atomic(_Atomic uint64_t *word, const struct packet *p)
{
	/* the processor's own atomics, so that it is atomic among cores and with the application too (DESIGN section 6) */
	if (p->op->message == MESSAGE_FETCH_ADD)
		return atomic_fetch_add(word, p->atomic.swap_or_add);
	uint64_t found = p->atomic.compare;
	atomic_compare_exchange_strong(word, &found, p->atomic.swap_or_add);
	return found;
}

static enum verdict execute_atomic(struct qp *q, const struct packet *p)
{
	_Atomic uint64_t *word;
	enum verdict v = find_word(q, p->atomic.va, p->atomic.rkey, MEM_REMOTE_ATOMIC, &word);
	if (v != EXECUTE)
		return v;
	struct replay_record *rec = begin_record(q, p);
	if (!rec)
		return TOO_MANY_REQUESTS;
	rec->original = apply_atomic(word, p);
	return end_record(q, p, rec);
}

static enum verdict execute_atomic_write(struct qp *q, const struct packet *p)
{
	_Atomic uint64_t *word;
	uint64_t value;
	if (p->payload_len != sizeof(value) || p->reth.len != sizeof(value))
		return WRONG_LENGTH;
	enum verdict v = find_word(q, p->reth.va, p->reth.rkey, MEM_REMOTE_WRITE, &word);
	if (v != EXECUTE)
		return v;
	struct replay_record *rec = begin_record(q, p);
	if (!rec)
		return TOO_MANY_REQUESTS;
	memcpy(&value, p->payload, sizeof(value));
	/* release: whoever sees it sees all that was placed before it */
	atomic_store_explicit(word, value, memory_order_release);
	q->counter[QP_RX_BYTES] += sizeof(value);
	return end_record(q, p, rec);
}

static bool is_flush_granted(const struct qp *q, const struct packet *p)
{
	uint64_t va = p->reth.va;
	uint32_t len = p->reth.len;
	uint8_t *host;
	if (p->feth.selectivity == FLUSH_WHOLE_MR) { /* address and length mean nothing */
		const struct mr *mr = mr_find(q->env->mrs, p->reth.rkey);
		if (!mr)
			return false;
		va = mr->iova;
		len = 0;
	}
	return mr_check_remote(q->env->mrs, q->pd, &q->windows, p->reth.rkey, va, len, deliver_flush_rights(p), &host) == MEM_OK;
}

/* A packet is placed before the next one is looked at, so all that came before it is in memory already, and a fence makes everybody see it. Range and region are only checked: nothing here is placed less than whole. */
static enum verdict execute_flush(struct qp *q, const struct packet *p)
{
	if (!p->feth.placement || p->feth.placement & ~FLUSH_PLACEMENTS || p->feth.selectivity >= FLUSH_SELECTIVITIES)
		return FLUSH_UNKNOWN;
	if (p->feth.selectivity == FLUSH_RANGE && p->reth.len > MESSAGE_MAX_BYTES)
		return WRONG_LENGTH;
	if (!is_flush_granted(q, p))
		return REMOTE_ACCESS;
	struct replay_record *rec = begin_record(q, p);
	if (!rec)
		return TOO_MANY_REQUESTS;
	atomic_thread_fence(memory_order_seq_cst); /* what was placed becomes visible before the answer leaves */
	return end_record(q, p, rec);
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
	case MESSAGE_ATOMIC_WRITE:
		return execute_atomic_write(q, p);
	case MESSAGE_FLUSH:
		return execute_flush(q, p);
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
	if (rec->message != MESSAGE_READ_REQUEST || p->reth.rkey != rec->rkey || p->reth.va != rec->va + at || p->reth.len != rec->len - at)
		return DROP_DUPLICATE_UNKNOWN;
	rec->from = rec->next = offset;
	reply_answer(q, rec);
	return DROP_DUPLICATE;
}

static __attribute__((cold)) enum drop repeat(struct qp *q, const struct packet *p)
{
	struct replay_record *rec;
	qp_count(q, QP_DUPLICATE_REQUEST);
	switch ((enum message)p->op->message) {
	case MESSAGE_READ_REQUEST:
		rec = replay_find(&q->out.replay, p->psn);
		return rec ? repeat_read(q, p, rec) : DROP_DUPLICATE_UNKNOWN;
	case MESSAGE_COMPARE_SWAP:
	case MESSAGE_FETCH_ADD:
	case MESSAGE_ATOMIC_WRITE:
	case MESSAGE_FLUSH:
		rec = replay_find(&q->out.replay, p->psn);
		if (!rec || rec->message != p->op->message)
			return DROP_DUPLICATE_UNKNOWN;
		rec->next = 0;
		reply_answer(q, rec); /* with its first result; it is not executed again (known-bugs 4) */
		return DROP_DUPLICATE;
	default:
		reply_ack(q); /* even without AckReq: the first ACK may be what was lost (known-bugs 9) */
		return DROP_DUPLICATE;
	}
}

/* ---- what a verdict means ---- */

static __attribute__((cold)) enum drop carry_out(struct qp *q, enum verdict v)
{
	const struct verdict_row *row = &verdicts[v][q->service];
	struct resp *r = &q->resp;
	if (v == RECEIVER_NOT_READY && row->nak) {
		r->is_rnr = true;
		reply_nak(q, row->nak | q->attr.min_rnr_timer, r->epsn, false);
	} else if (row->nak) {
		reply_nak(q, row->nak, r->epsn, row->is_fatal);
	}
	if (row->is_fatal)
		qp_fail_receive(q, row->failure, row->event);
	return row->drop;
}

static enum drop take_reliable(struct qp *q, const struct packet *p)
{
	struct resp *r = &q->resp;
	enum verdict v = check_psn(q, p);
	if (v == DUPLICATE_REQUEST)
		return repeat(q, p);
	if (v == EXECUTE) {
		if (r->is_gap_known || r->is_rnr)
			reply_on_gap_closed(q);
		r->is_gap_known = r->is_rnr = false;
		v = execute(q, p);
	}
	if (v == EXECUTE)
		return DROP_NONE;
	r->is_gap_known |= v == PSN_GAP;
	if (v == PSN_GAP || v == PSN_GAP_KNOWN)
		qp_count(q, QP_OUT_OF_SEQUENCE);
	return carry_out(q, v);
}

static enum drop take_unreliable(struct qp *q, const struct packet *p)
{
	enum verdict v = q->service == SERVICE_UC ? uc_rx(q, p) : ud_rx(q, p);
	if (v == EXECUTE)
		return DROP_NONE;
	enum drop d = carry_out(q, v);
	if (v != PSN_OLD) /* what is old says nothing of the message in progress */
		deliver_abandon(q);
	return d;
}

enum drop resp_rx(struct qp *q, const struct packet *p)
{
	struct resp *r = &q->resp;
	if (q->state != ABI_QP_RTR && !qp_can_send(q) && q->state != ABI_QP_SQE)
		return DROP_QP_STATE;
	if (q->state == ABI_QP_RTR && !r->is_established && q->service != SERVICE_UD) { /* the peer is there (IBA vol. 1, 11.6.3.2) */
		r->is_established = true;
		q->env->on_event(q->env, q, ABI_EVENT_COMM_EST);
	}
	return q->service == SERVICE_RC ? take_reliable(q, p) : take_unreliable(q, p);
}
