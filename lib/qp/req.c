/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester: cuts WRs into packets. Owns q->flight's sending side and q->req. Does not own the taking of WQEs (sq.c), what comes back (comp.c) or when something is sent again (retry.c).
 * IBA vol. 1, 9.7.3 (requests), 9.7.7.2 (credits, fence), 9.8.2 (UC: what has been sent is done), 10.8.3.3 (ordering); annex A19 (FLUSH, ATOMIC WRITE).
 *
 * Invariant: a packet is built from the private wr alone, so a retransmission carries what the first transmission did unless the program changed its own buffer.
 * A READ is requested in segments of at most half the window, each a READ request of its own on the wire: responses in flight are then bounded like everything else. */
#include "req.h"

#include "comp.h"
#include "local.h"
#include "retry.h"
#include "sq.h"

#define NEIGHBOUR_PAUSE_NS 1000000000u /* at most: then it is asked again */
#define LOST_PAUSE_NS 100000u

static const struct failure no_failure;

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
	if (sq_take(q))
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
	sq_free_slots(q);
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

/* Nobody answers for the next hop. That is a loss like any other: it takes a retry each timeout, and a QP without a timeout does not give up. */
static __attribute__((cold)) void wait_for_neighbour(struct qp *q)
{
	uint64_t rto_ns = q->retry.rto_ns;
	if (!rto_ns || retry_take(q, CAUSE_NEIGHBOUR))
		retry_pause(q, rto_ns && rto_ns < NEIGHBOUR_PAUSE_NS ? rto_ns : NEIGHBOUR_PAUSE_NS);
}

static bool is_path_ready(struct qp *q)
{
	if (q->ah.state == AH_READY)
		return true;
	if (q->ah.state == AH_RESOLVING)
		return false;
	if (q->service != SERVICE_RC) {
		ah_ask_again(&q->ah, q->env->now_ns);
		lose_unreachable(q);
	} else if (q->ah.state == AH_NO_ROUTE) {
		qp_fail_send(q, (struct failure){ ABI_WC_RETRY_EXC_ERR, CAUSE_NO_ROUTE });
	} else if (!ah_resolve_again(&q->ah, q->env->now_ns)) {
		wait_for_neighbour(q);
	}
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
