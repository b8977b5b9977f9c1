/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester: takes WQEs out of the SQ, checks them, gives them PSNs and cuts them into packets. Owns q->flight's sending side and q->req. Does not own what comes back (comp.c) or when
 * something is sent again (retry.c). IBA vol. 1, 9.7.2 (PSNs), 9.7.3 (requests), 9.7.7.2 (credits, fence), 9.8.2 (UC: what has been sent is done), 10.8.3.3 (ordering); annex A19
 * (FLUSH, ATOMIC WRITE).
 *
 * Invariant: a packet is built from the private wr alone, so a retransmission carries what the first transmission did unless the program changed its own buffer.
 * A READ is requested in segments of at most half the window, each a READ request of its own on the wire: responses in flight are then bounded like everything else. */
#include "req.h"

#include "comp.h"
#include "hostile.h"
#include "local.h"
#include "retry.h"
#include "ud.h"

#define LOST_PAUSE_NS 100000u

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

/* ---- taking WQEs ---- */

static struct failure check_flush(const struct qp *q, const struct abi_send_wqe *w)
{
	if (w->num_sge || w->flush.len > q->req.max_bytes)
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

/* Takes the next WQE into the record. false: none there, or no memory (then again later). */
static bool take_wqe(struct qp *q)
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

void req_free_slots(struct qp *q)
{
	/* release: the slots have been read before they are given back */
	atomic_store_explicit(&q->req.sq->engine_index, q->req.retired, memory_order_release);
}

uint32_t req_flush(struct qp *q, uint32_t most)
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
	req_free_slots(q);
	return n;
}

void req_leave_send_error(struct qp *q)
{
	uint32_t posted = ring_posted(q->req.sq, q->req.taken);
	q->req.flush_end = q->req.taken + posted;
	q->is_flushing = posted != 0;
}

/* ---- building packets ---- */

static void fill_bth(const struct qp *q, struct bth *b, const struct opcode *op, struct psn psn)
{
	b->op = op;
	b->dqpn = q->dest_qpn;
	b->psn = psn;
	b->pkey = q->pkey;
	b->solicited = false;
	b->ack_request = false;
}

static __attribute__((cold)) void set_local_error(struct wr *w, enum mem_verdict v)
{
	w->error_status = ABI_WC_LOC_PROT_ERR;
	w->error_cause = v == MEM_BAD_RANGE ? CAUSE_LOCAL_RANGE : v == MEM_BAD_RIGHTS ? CAUSE_LOCAL_RIGHTS : CAUSE_LOCAL_KEY;
}

bool req_copy_payload(struct qp *q, struct wr *w, uint32_t at, uint8_t *to, uint32_t n)
{
	if (w->flags & ABI_SEND_INLINE) {
		memcpy(to, w->inline_data + at, n);
		return true;
	}
	struct sg s;
	sg_init(&s, w->sge, w->num_sge);
	if (at)
		sg_seek(&s, at);
	enum mem_verdict v = n ? sg_gather(&s, q->env->mrs, q->pd, to, n) : MEM_OK;
	if (v != MEM_OK)
		set_local_error(w, v);
	return v == MEM_OK;
}

/* SEND, WRITE or ATOMIC WRITE, the packet at `offset` PSNs of w. 0: a key was refused, w has its error. */
static uint32_t build_data(struct qp *q, struct wr *w, uint32_t offset, bool ask, uint8_t *frame)
{
	const struct wr_kind *k = wr_kind_of(w);
	uint32_t at_byte = offset << q->mtu_log2;
	uint32_t n = w->length - at_byte;
	uint32_t mtu = 1u << q->mtu_log2;
	bool is_first = offset == 0, is_last = offset + 1 == w->psns;
	if (n > mtu)
		n = mtu;
	unsigned flags = (is_first ? OPCODE_FIRST : 0) | (is_last ? OPCODE_LAST : 0) | (is_last && k->has_imm ? OPCODE_IMMEDIATE : 0) | (is_last && k->has_invalidate ? OPCODE_INVALIDATE : 0);
	struct bth b;
	fill_bth(q, &b, opcode_find(q->service, k->message, flags), psn_add(w->first, offset));
	b.ack_request = ask;
	b.solicited = is_last && (w->flags & ABI_SEND_SOLICITED) && k->takes_receive;
	unsigned pad = -n & 3;
	uint8_t *to = bth_write(template_lay(frame, &q->ah.template), &b, pad);
	if (b.op->flags & OPCODE_RETH)
		to = reth_write(to, w->remote_addr, w->rkey, w->length);
	if (is_last && k->has_imm)
		to = immediate_write(to, w->imm);
	if (is_last && k->has_invalidate)
		to = ieth_write(to, w->imm);
	if (n && !req_copy_payload(q, w, at_byte, to, n))
		return 0;
	memset(to + n, 0, pad);
	q->counter[QP_TX_BYTES] += n;
	return packet_finish(frame, &q->ah.template, to + n + pad);
}

/* PSNs that a request at `offset` of w takes: up to the end of its READ segment. */
static uint32_t count_segment(const struct qp *q, const struct wr *w, uint32_t offset)
{
	if (w->opcode != ABI_OP_READ)
		return 1;
	uint32_t end = (offset | (q->req.segment_psns - 1)) + 1;
	return (end < w->psns ? end : w->psns) - offset;
}

static uint32_t build_read(struct qp *q, struct wr *w, uint32_t offset, uint32_t psns, uint8_t *frame)
{
	uint64_t from = (uint64_t)offset << q->mtu_log2;
	uint64_t to = (uint64_t)(offset + psns) << q->mtu_log2;
	if (to > w->length)
		to = w->length;
	if (to > from) { /* so that a bad lkey is found before the peer does any work (known-bugs 38) */
		struct sg s;
		sg_init(&s, w->sge, w->num_sge);
		sg_seek(&s, from);
		enum mem_verdict v = sg_check(&s, q->env->mrs, q->pd, (uint32_t)(to - from), MEM_LOCAL_WRITE);
		if (v != MEM_OK) {
			set_local_error(w, v);
			return 0;
		}
	}
	struct bth b;
	fill_bth(q, &b, opcode_find(SERVICE_RC, MESSAGE_READ_REQUEST, 0), psn_add(w->first, offset));
	b.ack_request = true;
	uint8_t *end = bth_write(template_lay(frame, &q->ah.template), &b, 0);
	end = reth_write(end, w->remote_addr + from, w->rkey, (uint32_t)(to - from));
	return packet_finish(frame, &q->ah.template, end);
}

static uint32_t build_atomic(struct qp *q, struct wr *w, uint8_t *frame)
{
	struct sg s;
	sg_init(&s, w->sge, w->num_sge);
	enum mem_verdict v = sg_check(&s, q->env->mrs, q->pd, sizeof(uint64_t), MEM_LOCAL_WRITE);
	if (v != MEM_OK) {
		set_local_error(w, v);
		return 0;
	}
	/* FETCH ADD: the addend is in the swap field and the compare field is 0 */
	struct atomic_eth a = { .va = w->remote_addr, .rkey = w->rkey, .swap_or_add = w->swap_or_add };
	if (w->opcode == ABI_OP_COMPARE_SWAP)
		a.compare = w->compare;
	struct bth b;
	fill_bth(q, &b, opcode_find(SERVICE_RC, wr_kind_of(w)->message, 0), w->first);
	b.ack_request = true;
	uint8_t *end = bth_write(template_lay(frame, &q->ah.template), &b, 0);
	return packet_finish(frame, &q->ah.template, atomic_eth_write(end, &a));
}

static uint32_t build_flush(const struct qp *q, const struct wr *w, uint8_t *frame)
{
	struct feth f = { w->flush.placement, w->flush.selectivity };
	struct bth b;
	fill_bth(q, &b, opcode_find(SERVICE_RC, MESSAGE_FLUSH, 0), w->first);
	b.ack_request = true;
	uint8_t *end = feth_write(bth_write(template_lay(frame, &q->ah.template), &b, 0), &f);
	return packet_finish(frame, &q->ah.template, reth_write(end, w->remote_addr, w->rkey, w->flush.len));
}

static uint32_t build_request(struct qp *q, struct wr *w, uint32_t offset, uint32_t psns, bool ask, uint8_t *frame)
{
	const struct wr_kind *k = wr_kind_of(w);
	if (k->has_payload)
		return build_data(q, w, offset, ask, frame);
	if (k->message == MESSAGE_READ_REQUEST)
		return build_read(q, w, offset, psns, frame);
	return k->message == MESSAGE_FLUSH ? build_flush(q, w, frame) : build_atomic(q, w, frame);
}

/* ---- when ---- */

/* Out of end-to-end credits, one packet may still probe for more, alone in flight (IBA vol. 1, 9.7.7.2.5). */
static bool is_out_of_credit(const struct qp *q, const struct wr *w)
{
	if (!q->comp.has_credits || !wr_kind_of(w)->takes_receive)
		return false;
	return psn_distance(psn_make(w->ssn), psn_make(q->comp.lsn)) > 0;
}

static bool is_blocked(const struct qp *q, const struct wr *w, uint32_t psns)
{
	uint32_t in_flight = inflight_psns(&q->flight);
	if (in_flight && in_flight + psns > q->env->window_packets)
		return true;
	if (q->flight.cursor_psn == 0 && (w->flags & ABI_SEND_FENCE) && q->req.rd_atomic)
		return true;
	if (wr_kind_of(w)->has_response && q->req.rd_atomic >= q->attr.max_rd_atomic)
		return true;
	return in_flight && is_out_of_credit(q, w);
}

bool req_is_drained(const struct qp *q)
{
	const struct inflight *f = &q->flight;
	return psn_is_equal(f->una, f->frontier) && inflight_is_at_boundary(f);
}

/* SQD: whatever was begun is finished, then the program is told (IBA vol. 1, 10.3.1.5). A WR that was taken and waits, for a fence or a window, was not begun. */
static void check_drained(struct qp *q)
{
	if (!q->is_draining || !req_is_drained(q))
		return;
	q->is_draining = false;
	if (q->attr.sqd_async_notify)
		q->env->on_event(q->env, q, ABI_EVENT_SQ_DRAINED);
}

/* Inline, since what sends a packet and finds no other calls it twice. */
static inline __attribute__((always_inline)) bool find_work(struct qp *q)
{
	if (__builtin_expect(q->state == ABI_QP_SQD, 0) && inflight_is_at_boundary(&q->flight)) {
		check_drained(q);
		return false;
	}
	if (q->flight.cursor)
		return true;
	if (q->is_flushing) /* what was posted in SQE is not sent */
		return false;
	if (take_wqe(q))
		return true;
	if (q->state == ABI_QP_RTS)
		q->env->on_sq_idle(q->env, q);
	return false;
}

/* An unreliable packet is done with when it is sent: its WR completes with its last one. */
static void settle_sent(struct qp *q)
{
	struct inflight *f = &q->flight;
	if (!psn_is_equal(f->next, wr_end(f->oldest))) {
		inflight_acked(f, f->next);
		return;
	}
	qp_complete_send(q, inflight_retire(f), no_failure);
	req_free_slots(q);
}

bool req_find_work(struct qp *q)
{
	return find_work(q);
}

struct wr *req_next(struct qp *q)
{
	return qp_can_send(q) && !retry_is_waiting(q) && find_work(q) ? q->flight.cursor : NULL;
}

void req_lose(struct qp *q)
{
	struct inflight *f = &q->flight;
	inflight_sent(f, f->cursor->psns - f->cursor_psn);
	qp_count(q, QP_TX_UNREACHABLE);
	settle_sent(q);
}

void req_pause(struct qp *q)
{
	retry_pause(q, LOST_PAUSE_NS);
}

void req_sent_datagram(struct qp *q)
{
	inflight_sent(&q->flight, 1);
	q->counter[QP_TX_PACKETS]++;
	settle_sent(q);
}

/* Nobody answers for the next hop: an unreliable message is lost there as it would be further on, and that is no error of this QP's. */
static __attribute__((cold)) void lose_unreachable(struct qp *q)
{
	struct inflight *f = &q->flight;
	for (unsigned n = 0; n < LOST_AT_ONCE && req_next(q) && (f->cursor->psns || local_run(q)); n++) {
		if (f->cursor->error_status) {
			qp_fail_send(q, (struct failure){ f->cursor->error_status, f->cursor->error_cause });
			return;
		}
		req_lose(q);
	}
	req_pause(q);
}

static bool is_path_ready(struct qp *q)
{
	if (q->ah.state == AH_READY)
		return true;
	if (q->ah.state == AH_RESOLVING)
		return false;
	if (q->service == SERVICE_RC)
		qp_fail_send(q, (struct failure){ ABI_WC_RETRY_EXC_ERR, q->ah.state == AH_NO_ROUTE ? CAUSE_NO_ROUTE : CAUSE_NEIGHBOUR });
	else
		lose_unreachable(q);
	return false;
}

static __attribute__((cold)) uint32_t send_probe(struct qp *q, uint8_t *frame)
{
	struct wr *w = q->flight.oldest;
	q->req.is_probe_due = false;
	if (!w || wr_kind_of(w)->has_response || w->error_status || psn_is_equal(q->flight.next, q->flight.una))
		return 0;
	uint32_t len = build_data(q, w, (q->flight.una.v - w->first.v) & PSN_MASK, true, frame);
	if (len) {
		retry_on_probe_sent(q);
		qp_count(q, QP_TAIL_PROBES);
		qp_count(q, QP_RETRANSMITTED_PACKETS);
		q->counter[QP_TX_PACKETS]++;
	}
	return len;
}

uint32_t req_tx(struct qp *q, uint8_t *frame)
{
	struct inflight *f = &q->flight;
	if (!qp_can_send(q) || retry_is_waiting(q))
		return 0;
	if (q->req.is_probe_due) {
		uint32_t len = send_probe(q, frame);
		if (len)
			return len;
	}
	if (q->service == SERVICE_UD)
		return ud_tx(q, frame);
	if (!find_work(q) || (__builtin_expect(!f->cursor->psns, 0) && !local_run(q)) || !is_path_ready(q))
		return 0;
	struct wr *w = f->cursor;
	uint32_t psns = count_segment(q, w, f->cursor_psn), len = 0;
	/* an answer at least four times a window, so that the window moves; UC has none (known-bugs 31) */
	bool is_reliable = q->service == SERVICE_RC;
	bool asks = is_reliable && (f->cursor_psn + psns == w->psns || ((f->cursor_psn + 1) & (q->env->window_packets / 4 - 1)) == 0 || is_out_of_credit(q, w));
	if (!w->error_status) {
		if (is_blocked(q, w, psns))
			return 0;
		len = build_request(q, w, f->cursor_psn, psns, asks, frame);
	}
	if (!len) { /* a WR that cannot be sent fails when all before it are done (IBA vol. 1, 10.7.2.1) */
		if (f->oldest == w)
			qp_fail_send(q, (struct failure){ w->error_status, w->error_cause });
		return 0;
	}
	bool is_again = psn_is_before(f->next, f->frontier);
	struct psn psn = f->next;
	if (wr_kind_of(w)->has_response)
		q->req.rd_atomic++;
	inflight_sent(f, psns);
	q->counter[QP_TX_PACKETS]++;
	if (!is_reliable) {
		settle_sent(q);
		return len;
	}
	if (__builtin_expect(is_again, 0))
		qp_count(q, QP_RETRANSMITTED_PACKETS);
	retry_on_sent(q, psn, asks, is_again);
	return len;
}

void req_on_lost(struct qp *q)
{
	inflight_rewind(&q->flight);
	q->req.rd_atomic = 0;
	q->req.is_probe_due = false;
	qp_wake(q);
}

void req_on_answered(struct qp *q)
{
	/* an answer to a request from before a rewind finds it forgotten */
	if (q->req.rd_atomic)
		q->req.rd_atomic--;
}

void req_on_rd_atomic_changed(struct qp *q)
{
	struct wr *w = q->flight.cursor;
	if (!w || !wr_kind_of(w)->has_response || q->attr.max_rd_atomic || w->error_status)
		return;
	w->error_status = ABI_WC_LOC_QP_OP_ERR;
	w->error_cause = CAUSE_WQE_RD_ATOMIC;
}

void req_on_probe(struct qp *q)
{
	q->req.is_probe_due = true;
	qp_wake(q);
}
