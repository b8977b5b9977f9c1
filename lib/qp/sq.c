/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's end of an SQ: takes WQEs, checks them and gives them PSNs. Owns req.taken and what a WQE becomes as a private wr; does not own when one is taken or what is sent of it (req.c).
 * IBA vol. 1, table 38 (operations of a service), 9.7.2 (PSNs), 10.7.2.1 (what is wrong with a WR fails it in its turn); annex A19 (FLUSH, ATOMIC WRITE).
 *
 * Invariant: what the program can write is read once, into the wr. */
#include "sq.h"

#include "hostile.h"

/* Services that have an operation (IBA vol. 1, table 38). */
#define RELIABLE (1 << SERVICE_RC)
#define CONNECTED (RELIABLE | 1 << SERVICE_UC)
#define EVERY (CONNECTED | 1 << SERVICE_UD)

const struct wr_kind wr_kinds[ABI_OP_COUNT] = {
	[ABI_OP_SEND] = { "SEND", MESSAGE_SEND, ABI_WC_SEND, EVERY, .has_payload = true, .takes_receive = true },
	[ABI_OP_SEND_WITH_IMM] = { "SEND WITH IMMEDIATE", MESSAGE_SEND, ABI_WC_SEND, EVERY, .has_payload = true, .takes_receive = true, .has_imm = true },
	[ABI_OP_WRITE] = { "WRITE", MESSAGE_WRITE, ABI_WC_WRITE, CONNECTED, .has_payload = true },
	[ABI_OP_WRITE_WITH_IMM] = { "WRITE WITH IMMEDIATE", MESSAGE_WRITE, ABI_WC_WRITE, CONNECTED, .has_payload = true, .takes_receive = true, .has_imm = true },
	[ABI_OP_READ] = { "READ", MESSAGE_READ_REQUEST, ABI_WC_READ, RELIABLE, .has_response = true },
	[ABI_OP_COMPARE_SWAP] = { "COMPARE SWAP", MESSAGE_COMPARE_SWAP, ABI_WC_COMPARE_SWAP, RELIABLE, .has_response = true },
	[ABI_OP_FETCH_ADD] = { "FETCH ADD", MESSAGE_FETCH_ADD, ABI_WC_FETCH_ADD, RELIABLE, .has_response = true },
	[ABI_OP_ATOMIC_WRITE] = { "ATOMIC WRITE", MESSAGE_ATOMIC_WRITE, ABI_WC_ATOMIC_WRITE, RELIABLE, .has_payload = true, .has_response = true },
	[ABI_OP_FLUSH] = { "FLUSH", MESSAGE_FLUSH, ABI_WC_FLUSH, RELIABLE, .has_response = true },
	[ABI_OP_SEND_WITH_INV] = { "SEND WITH INVALIDATE", MESSAGE_SEND, ABI_WC_SEND, RELIABLE, .has_payload = true, .takes_receive = true, .has_invalidate = true },
	[ABI_OP_BIND_MW] = { "BIND MW", MESSAGE_COUNT, ABI_WC_BIND_MW, CONNECTED, .is_local = true },
	[ABI_OP_LOCAL_INV] = { "LOCAL INVALIDATE", MESSAGE_COUNT, ABI_WC_LOCAL_INV, CONNECTED, .is_local = true },
	[ABI_OP_REG_MR] = { "REGISTER MR", MESSAGE_COUNT, ABI_WC_REG_MR, CONNECTED, .is_local = true },
};

_Static_assert(ABI_FLUSH_PLACEMENTS == (int)FLUSH_PLACEMENTS && ABI_FLUSH_PERSISTENT == (int)FLUSH_PERSISTENT && ABI_FLUSH_MR == (int)FLUSH_WHOLE_MR, "they go on the wire as they are");

static const struct failure no_failure;

static struct failure check_flush(const struct qp *q, const struct abi_send_wqe *w)
{
	if (w->num_sge || (w->flush.selectivity == ABI_FLUSH_RANGE && w->flush.len > q->req.max_bytes))
		return (struct failure){ ABI_WC_LOC_LEN_ERR, CAUSE_WQE_LENGTH };
	if (!w->flush.placement || w->flush.placement & ~ABI_FLUSH_PLACEMENTS || w->flush.selectivity >= ABI_FLUSH_SELECTIVITIES)
		return (struct failure){ ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_FLUSH };
	return no_failure;
}

/* The checks of one WQE, in the order of the copy's fields. */
static struct failure check_wqe(const struct qp *q, const struct abi_send_wqe *w, uint64_t bytes)
{
	const struct wr_kind *k = &wr_kinds[w->opcode];
	if (!(k->services >> q->service & 1))
		return (struct failure){ ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_SERVICE };
	if ((w->flags & ABI_SEND_INLINE) && !k->has_payload)
		return (struct failure){ ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_INLINE };
	if (k->is_local && w->num_sge)
		return (struct failure){ ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_SGE_COUNT };
	if (bytes > q->req.max_bytes)
		return (struct failure){ ABI_WC_LOC_LEN_ERR, CAUSE_WQE_LENGTH };
	if (!k->has_response)
		return no_failure;
	if (!q->attr.max_rd_atomic)
		return (struct failure){ ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_RD_ATOMIC };
	if (k->message == MESSAGE_READ_REQUEST)
		return no_failure;
	if (k->message == MESSAGE_FLUSH)
		return check_flush(q, w);
	if (bytes != sizeof(uint64_t) || (w->num_sge != 1 && !(w->flags & ABI_SEND_INLINE)))
		return (struct failure){ ABI_WC_LOC_LEN_ERR, CAUSE_WQE_LENGTH };
	if (w->remote_addr % sizeof(uint64_t))
		return (struct failure){ ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_ALIGNMENT };
	return no_failure;
}

/* How many bytes of SGEs, inline data or a bind follow, or a failure when they cannot be there. */
static struct failure measure_body(const struct qp *q, const struct abi_send_wqe *w, uint32_t *body)
{
	*body = 0;
	if (w->opcode >= ABI_OP_COUNT)
		return (struct failure){ ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_OPCODE };
	if (wr_kinds[w->opcode].is_local) {
		*body = sizeof(struct abi_bind);
		return no_failure;
	}
	if (w->flags & ABI_SEND_INLINE) {
		if (w->inline_len > q->req.max_inline)
			return (struct failure){ ABI_WC_LOC_LEN_ERR, CAUSE_WQE_INLINE };
		*body = w->inline_len;
		return no_failure;
	}
	if (w->num_sge > q->req.max_sge)
		return (struct failure){ ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_SGE_COUNT };
	*body = w->num_sge * (uint32_t)sizeof(struct abi_sge);
	return no_failure;
}

/* Copies the body behind the first line; the first line itself comes from the copy that was checked. */
static void copy_body(struct wr *w, const struct abi_send_wqe *copy, const uint8_t *slot, uint32_t body)
{
	bool is_atomic = wr_is_atomic(w);
	uint32_t at = is_atomic ? ABI_WQE_ATOMIC_BODY : ABI_WQE_BODY;
	uint32_t in_first = sizeof(*copy) - at;
	if (is_atomic) {
		w->compare = copy->atomic.compare;
		w->swap_or_add = copy->atomic.swap_or_add;
	} else if (w->opcode == ABI_OP_FLUSH) {
		w->flush = copy->flush;
	}
	if (body <= in_first) {
		memcpy(w->inline_data, (const uint8_t *)copy + at, in_first);
		return;
	}
	memcpy(w->inline_data, (const uint8_t *)copy + at, in_first);
	snapshot(w->inline_data + in_first, slot + sizeof(*copy), body - in_first);
}

static uint32_t count_psns(const struct qp *q, uint32_t length)
{
	uint32_t mtu = 1u << q->mtu_log2;
	return length ? (uint32_t)(((uint64_t)length + mtu - 1) >> q->mtu_log2) : 1; /* a message without data takes one PSN (known-bugs 18) */
}

/* What the copied body says of the message: its SGEs and its length. */
static struct failure take_body(const struct qp *q, struct wr *w, const struct abi_send_wqe *copy, uint32_t body)
{
	bool is_local = wr_kind_of(w)->is_local;
	uint64_t bytes = is_local ? 0 : body;
	if (!is_local && !(copy->flags & ABI_SEND_INLINE)) {
		w->num_sge = (uint8_t)copy->num_sge;
		bytes = sg_total(w->sge, w->num_sge);
	}
	struct failure f = check_wqe(q, copy, bytes);
	if (f.status)
		return f;
	w->length = (uint32_t)bytes;
	w->psns = is_local ? 0 : wr_is_atomic(w) ? 1 : count_psns(q, w->length);
	return f;
}

static struct wr *copy_wqe(struct qp *q, const uint8_t *slot)
{
	struct abi_send_wqe copy;
	uint32_t body;
	snapshot(&copy, slot, sizeof(copy));
	struct failure f = measure_body(q, &copy, &body);
	uint32_t room = q->req.slot_bytes - (copy.opcode == ABI_OP_COMPARE_SWAP || copy.opcode == ABI_OP_FETCH_ADD ? ABI_WQE_ATOMIC_BODY : ABI_WQE_BODY);
	if (f.status == 0 && body > room)
		f = (struct failure){ ABI_WC_LOC_QP_OP_ERR, CAUSE_WQE_SGE_COUNT };
	if (f.status)
		body = 0;
	struct wr *w = wr_alloc(q->env, body);
	if (!w)
		return NULL;
	w->wr_id = copy.wr_id;
	w->remote_addr = copy.remote_addr;
	w->rkey = copy.rkey;
	w->imm = copy.imm;
	w->opcode = copy.opcode < ABI_OP_COUNT ? copy.opcode : ABI_OP_SEND;
	w->flags = copy.flags;
	if (q->req.is_signal_all)
		w->flags |= ABI_SEND_SIGNALED;
	w->num_sge = 0;
	w->length = 0;
	w->psns = 1;
	w->is_carried_out = false;
	if (!f.status) {
		copy_body(w, &copy, slot, body);
		f = take_body(q, w, &copy, body);
	}
	w->error_status = f.status;
	w->error_cause = f.cause;
	return w;
}

/* Nobody can say any more what was posted (IBA vol. 1, 11.6.3.2: local work queue catastrophic error). */
static __attribute__((cold)) void fail_index(struct qp *q)
{
	q->env->bad_indices++;
	q->error.cause = CAUSE_RING_INDEX;
	q->env->on_event(q->env, q, ABI_EVENT_QP_FATAL);
	qp_enter_error(q);
}

bool sq_take(struct qp *q)
{
	struct req *r = &q->req;
	uint32_t posted = ring_posted(r->sq, r->taken);
	if (!posted)
		return false;
	if (!ring_is_possible(posted, r->mask + 1, r->taken - r->retired)) {
		fail_index(q);
		return false;
	}
	const uint8_t *slot = r->slots + (size_t)(r->taken & r->mask) * r->slot_bytes;
	__builtin_prefetch(r->slots + (size_t)((r->taken + 1) & r->mask) * r->slot_bytes);
	struct wr *w = copy_wqe(q, slot);
	if (!w)
		return false;
	r->taken++;
	q->env->wqes++;
	q->env->bad_wqes += w->error_status != 0;
	uint32_t messages = w->psns != 0;
	if (w->opcode == ABI_OP_READ)
		messages = (w->psns + r->segment_psns - 1) / r->segment_psns;
	inflight_append(&q->flight, w, messages);
	return true;
}

void sq_free_slots(struct qp *q)
{
	/* release: the slots have been read before they are given back */
	atomic_store_explicit(&q->req.sq->engine_index, q->req.retired, memory_order_release);
}

uint32_t sq_flush(struct qp *q, uint32_t most)
{
	struct failure flushed = { ABI_WC_WR_FLUSH_ERR, CAUSE_FLUSHED };
	struct inflight *f = &q->flight;
	struct req *r = &q->req;
	uint32_t n = 0;
	while (f->oldest)
		qp_complete_send(q, inflight_retire(f), flushed);
	uint32_t posted = qp_can_send(q) ? r->flush_end - r->taken : ring_posted(r->sq, r->taken);
	if (!ring_is_possible(posted, r->mask + 1, 0)) { /* nothing of it can be told from what was never posted */
		q->env->bad_indices++;
		r->taken = r->retired = r->taken + posted;
		posted = 0;
	}
	for (; n < most && n < posted; n++) {
		struct wr *w = copy_wqe(q, r->slots + (size_t)(r->taken & r->mask) * r->slot_bytes);
		if (!w)
			break;
		r->taken++;
		qp_complete_send(q, w, flushed);
	}
	sq_free_slots(q);
	return n;
}

void sq_leave_send_error(struct qp *q)
{
	uint32_t posted = ring_posted(q->req.sq, q->req.taken);
	q->req.flush_end = q->req.taken + posted;
	q->is_flushing = posted != 0;
}
