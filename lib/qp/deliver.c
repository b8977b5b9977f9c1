/* SPDX-License-Identifier: BSD-3-Clause */
/* SEND and WRITE packets into memory and receives, for every connected service. Owns the message in progress in q->resp, not its sequence. IBA vol. 1, 9.7.4.1.4 to .6 (rights, lengths), 9.4.1, 9.4.3.
 *
 * Invariant: nothing in memory changes before every check of the packet has passed. */
#include "deliver.h"

#include "recv.h"

/* Which remote operations the QP takes, by enum message. */
static const uint8_t needed_access[MESSAGE_COUNT] = {
	[MESSAGE_WRITE] = MEM_REMOTE_WRITE,
	[MESSAGE_READ_REQUEST] = MEM_REMOTE_READ,
	[MESSAGE_COMPARE_SWAP] = MEM_REMOTE_ATOMIC,
	[MESSAGE_FETCH_ADD] = MEM_REMOTE_ATOMIC,
	[MESSAGE_ATOMIC_WRITE] = MEM_REMOTE_WRITE,
};

bool deliver_is_enabled(const struct qp *q, const struct packet *p)
{
	uint32_t need = needed_access[p->op->message];
	if (p->op->flags & OPCODE_FETH)
		need = deliver_flush_rights(p);
	return (q->attr.access & need) == need;
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

enum verdict deliver_take_receive(struct qp *q)
{
	if (q->resp.recv)
		return EXECUTE;
	switch (recv_take(q->source, q->env, &q->resp.recv)) {
	case RECV_OK:
		return EXECUTE;
	case RECV_NONE:
		return RECEIVER_NOT_READY;
	case RECV_BROKEN:
		break;
	}
	return RECEIVE_BROKEN;
}

void deliver_end_message(struct qp *q, const struct packet *p)
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

void deliver_abandon(struct qp *q)
{
	struct resp *r = &q->resp;
	r->in_message = false;
	if (!r->recv)
		return;
	recv_return(q->source, r->recv);
	r->recv = NULL;
}

/* What a peer may invalidate is what it may have been given: an MR without remote rights has no R_Key. */
static struct mr *find_ending(const struct qp *q, uint32_t rkey)
{
	const uint32_t remote = MEM_REMOTE_READ | MEM_REMOTE_WRITE | MEM_REMOTE_ATOMIC | MEM_FLUSH_GLOBAL;
	struct mr *m = mw_find_invalidable(q->env->mrs, q->pd, &q->windows, rkey);
	return m && (m->access & MEM_LKEY) && !(m->access & remote) ? NULL : m;
}

static enum verdict deliver_send(struct qp *q, const struct packet *p)
{
	struct resp *r = &q->resp;
	enum verdict v = deliver_take_receive(q);
	if (v != EXECUTE)
		return v;
	if (p->op->flags & OPCODE_FIRST) {
		r->received = 0;
		sg_init(&r->sg, r->recv->sge, r->recv->num_sge);
	}
	if ((uint64_t)r->received + p->payload_len > r->recv->room)
		return RECEIVE_TOO_SHORT;
	struct mr *ending = NULL;
	if ((p->op->flags & OPCODE_INVALIDATE) && !(ending = find_ending(q, p->invalidate_rkey)))
		return INVALIDATE_REFUSED;
	if (p->payload_len && sg_scatter(&r->sg, q->env->mrs, q->source->pd, p->payload, p->payload_len) != MEM_OK)
		return RECEIVE_BAD_KEY;
	if (ending) /* before the completion says so (IBA vol. 1, 9.4.1.1) */
		mw_unbind(q->env->mrs, ending);
	r->received += p->payload_len;
	return EXECUTE;
}

static enum verdict deliver_write(struct qp *q, const struct packet *p)
{
	struct resp *r = &q->resp;
	bool is_first = p->op->flags & OPCODE_FIRST;
	uint64_t va = is_first ? p->reth.va : r->va;
	uint32_t rkey = is_first ? p->reth.rkey : r->rkey, left = is_first ? p->reth.len : r->left;
	uint8_t *host = NULL;
	if (!deliver_is_granted(q, rkey, va, left, MEM_REMOTE_WRITE, &host)) /* all that is still to come, so a bad range is refused before its first byte */
		return REMOTE_ACCESS;
	if (p->op->flags & OPCODE_IMMEDIATE) {
		enum verdict v = deliver_take_receive(q);
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

enum verdict deliver(struct qp *q, const struct packet *p)
{
	struct resp *r = &q->resp;
	enum verdict v = check_length(q, p);
	if (v == EXECUTE)
		v = p->op->message == MESSAGE_SEND ? deliver_send(q, p) : deliver_write(q, p);
	if (v != EXECUTE)
		return v;
	q->counter[QP_RX_BYTES] += p->payload_len;
	r->in_message = true;
	r->message = p->op->message;
	if (p->op->flags & OPCODE_LAST)
		deliver_end_message(q, p);
	return EXECUTE;
}
