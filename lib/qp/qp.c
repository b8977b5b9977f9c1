/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair as a whole: its life, its completions, and the way into ERR. Owns what belongs to no part of it alone. Does not own the protocol (req.c, comp.c, resp.c, reply.c, retry.c) nor which state
 * changes a program may ask for (modify.c). IBA vol. 1, 10.3.1 (states), 10.8.3, 10.8.6 (completion, flush).
 *
 * Invariant: completions of a queue appear in post order; in ERR every WQE that is or will be in a ring completes flushed. */
#include "qp.h"

#include <errno.h>
#include <stdlib.h>

#include "comp.h"
#include "local.h"
#include "recv.h"
#include "reply.h"
#include "req.h"
#include "resp.h"
#include "retry.h"
#include "sq.h"
#include "ud_ah.h"

#define IN_A_ROW 8u

_Static_assert(SERVICE_RC == (int)ABI_SERVICE_RC && SERVICE_UC == (int)ABI_SERVICE_UC && SERVICE_UD == (int)ABI_SERVICE_UD, "a QP's service is the service of its packets");

static const struct failure flushed = { ABI_WC_WR_FLUSH_ERR, CAUSE_FLUSHED };

struct wr *wr_alloc(struct qp_env *env, uint32_t body_bytes)
{
	bool is_large = body_bytes > WR_SMALL_BODY;
	struct wr *w = slab_get(is_large ? &env->wr_large : &env->wr_small);
	if (w)
		w->is_large = is_large;
	return w;
}

void wr_free(struct qp_env *env, void *w, bool is_large)
{
	slab_put(is_large ? &env->wr_large : &env->wr_small, w);
}

int qp_new(struct qp **out, const struct qp_init *init)
{
	struct qp *q = aligned_alloc(ABI_CACHE_LINE, (sizeof(*q) + ABI_CACHE_LINE - 1) & ~(size_t)(ABI_CACHE_LINE - 1));
	if (!q)
		return -ENOMEM;
	*q = (struct qp){
		.env = init->env, .group = init->group, .pd = init->pd, .send_cq = init->send_cq, .recv_cq = init->recv_cq, .service = (uint8_t)init->service, .qpn = init->qpn, .cap = init->cap, .cookie = init->cookie,
		.pkey = 0xffff, .mtu_log2 = 8,
		.req = { .sq = init->sq, .slots = init->sq_slots, .mask = init->sq_n - 1, .slot_bytes = init->sq_slot_bytes, .is_signal_all = init->signal_all,
			.max_sge = (uint8_t)init->cap.max_send_sge, .max_inline = (uint16_t)init->cap.max_inline, .segment_psns = init->env->window_packets / 2 },
		.rq = { .ring = init->rq, .slots = init->rq_slots, .mask = init->rq_n - 1, .slot_bytes = init->rq_slot_bytes,
			.max_sge = (uint8_t)init->cap.max_recv_sge, .pd = init->pd },
	};
	q->req.max_bytes = MESSAGE_MAX_BYTES;
	q->ud.ahs = init->ahs;
	q->blocks_own_multicast = init->blocks_own_multicast;
	q->source = init->srq ? &init->srq->rq : &q->rq;
	q->pd->refs++;
	q->send_cq->refs++;
	q->recv_cq->refs++;
	if (init->srq)
		init->srq->refs++;
	else
		atomic_store_explicit(&q->rq.ring->looking, 1, memory_order_release); /* receives need no doorbell but in ERR */
	retry_init(q);
	qp_count_bytes(q);
	*out = q;
	return 0;
}

/* Frees the private copies of WQEs without completing them. */
static void forget_wrs(struct qp *q)
{
	while (q->flight.oldest) {
		struct wr *w = inflight_retire(&q->flight);
		wr_free(q->env, w, w->is_large);
	}
	ud_ah_forget(q);
	local_reset(q);
	resp_reset(q, psn_make(0));
	recv_forget(&q->rq, q->env);
	reply_reset(q);
}

static void leave_ready_list(struct qp *q)
{
	struct qp_group *g = q->group;
	if (!circle_is_in(&q->ready))
		return;
	circle_remove(&q->ready);
	if (circle_is_empty(&g->ready))
		circle_remove(&g->turn);
}

static void close_path(struct qp *q)
{
	if (q->has_ah)
		ah_close(&q->ah);
	q->has_ah = false;
}

void qp_destroy(struct qp *q)
{
	if (!q)
		return;
	leave_ready_list(q);
	wheel_cancel(q->env->wheel, &q->retry.timer);
	forget_wrs(q);
	close_path(q);
	replay_free(&q->out.replay);
	q->env->qp_bytes -= q->counted_bytes;
	q->pd->refs--;
	q->send_cq->refs--;
	q->recv_cq->refs--;
	if (q->source->srq)
		q->source->srq->refs--;
	free(q);
}

uint64_t qp_bytes(const struct qp *q)
{
	return sizeof(*q) + q->out.replay.room * sizeof(struct replay_record);
}

void qp_count_bytes(struct qp *q)
{
	uint32_t bytes = (uint32_t)qp_bytes(q);
	q->env->qp_bytes += bytes;
	q->env->qp_bytes -= q->counted_bytes;
	q->counted_bytes = bytes;
}

static void drop_receives(struct recv_queue *rq)
{
	rq->taken = rq->retired = atomic_load_explicit(&rq->ring->client_index, memory_order_acquire);
	recv_free_slots(rq);
	atomic_store_explicit(&rq->ring->looking, 1, memory_order_release);
}

void qp_reset(struct qp *q)
{
	forget_wrs(q);
	close_path(q);
	replay_free(&q->out.replay);
	qp_count_bytes(q);
	q->attr = (struct abi_qp_attr){ 0 };
	q->error = (struct abi_qp_error){ 0 };
	q->state = ABI_QP_RESET;
	q->is_draining = q->is_flushing = false;
	retry_reset(q);
	comp_reset(q);
	q->req.rd_atomic = 0;
	q->req.is_probe_due = false;
	q->dest_qpn = 0;
	q->peer_port = 0;
	/* what is posted is dropped without a completion (IBA vol. 1, 10.3.1.1) */
	q->req.taken = atomic_load_explicit(&q->req.sq->client_index, memory_order_acquire);
	q->req.retired = q->req.taken;
	sq_free_slots(q);
	if (q->rq.ring)
		drop_receives(&q->rq);
	inflight_init(&q->flight, psn_make(0));
}

/* ---- completions ---- */

/* index: of its WQE, in the SQ, RQ or SRQ. */
static struct abi_cqe *begin_cqe(struct qp *q, struct cq *cq, uint64_t wr_id, uint32_t index, struct failure f)
{
	struct abi_cqe *c = cq_reserve(cq);
	if (!c) {
		q->env->on_cq_overrun(q->env, cq);
		return NULL;
	}
	c->wr_id = wr_id;
	c->index = index;
	c->status = f.status;
	c->vendor_error = f.cause;
	c->qpn = q->qpn;
	c->src_qpn = q->dest_qpn;
	c->flags = 0;
	c->imm = 0;
	c->pkey_index = 0;
	c->vlan = VLAN_NONE;
	c->sl = 0;
	q->env->cqes++;
	return c;
}

static void end_cqe(struct qp *q, struct cq *cq, struct abi_cqe *c, bool is_solicited)
{
	cq->has_solicited |= is_solicited;
	cq_commit(cq, c);
	env_mark_dirty(q->env, cq);
}

void qp_complete_send(struct qp *q, struct wr *w, struct failure f)
{
	uint32_t index = q->req.retired++; /* they retire in post order */
	if (f.status || (w->flags & ABI_SEND_SIGNALED)) { /* errors complete even unsignaled WRs (IBA vol. 1, 10.8.6) */
		struct abi_cqe *c = begin_cqe(q, q->send_cq, w->wr_id, index, f);
		if (c) {
			c->opcode = wr_kind_of(w)->wc_opcode;
			c->byte_len = w->length;
			cq_count(q->send_cq);
		}
		sq_free_slots(q); /* before the phase: who has polled it may post one more */
		if (c)
			end_cqe(q, q->send_cq, c, f.status != 0);
	}
	q->counter[QP_COMPLETED_REQUESTS]++;
	wr_free(q->env, w, w->is_large);
}

/* What a receiver of datagrams has to know to answer. */
static void say_sender(struct abi_cqe *c, const struct packet *p)
{
	c->flags |= ABI_WC_HAS_GRH;
	c->src_qpn = p->deth.src_qpn;
	c->vlan = p->vlan;
	c->sl = p->priority;
}

void qp_complete_receive(struct qp *q, struct recv_wr *r, struct failure f, const struct packet *last, uint32_t byte_len)
{
	struct abi_cqe *c = begin_cqe(q, q->recv_cq, r->wr_id, r->index, f);
	if (c) {
		c->opcode = last && last->op->message == MESSAGE_WRITE ? ABI_WC_RECV_WRITE_WITH_IMM : ABI_WC_RECV;
		c->byte_len = byte_len;
		if (last && (last->op->flags & OPCODE_IMMEDIATE)) {
			c->flags = ABI_WC_HAS_IMM;
			c->imm = last->immediate;
		}
		if (last && (last->op->flags & OPCODE_INVALIDATE)) {
			c->flags = ABI_WC_HAS_INVALIDATE;
			c->imm = last->invalidate_rkey;
		}
		if (last && (last->op->flags & OPCODE_DETH))
			say_sender(c, last);
		cq_count(q->recv_cq);
	}
	recv_retire(q->source);
	if (c)
		end_cqe(q, q->recv_cq, c, f.status || (last && last->solicited));
	q->counter[QP_COMPLETED_RECEIVES]++;
	recv_free(q->env, r);
}

/* ---- ERR ---- */

/* What is in an SRQ is not this QP's. */
static uint32_t flush_receives(struct qp *q, uint32_t most)
{
	struct recv_wr *r;
	uint32_t n = 0;
	for (; q->rq.ring && n < most && recv_take(&q->rq, q->env, &r) == RECV_OK; n++)
		qp_complete_receive(q, r, flushed, NULL, 0);
	return n;
}

/* ERR: everything posted, now and later, completes flushed: sends, then receives. SQE: sends. Later: those that were posted in SQE. */
uint32_t qp_flush(struct qp *q)
{
	uint32_t n = sq_flush(q, QP_FLUSH_PIECE);
	if (q->state == ABI_QP_ERR)
		n += flush_receives(q, QP_FLUSH_PIECE - n);
	if (n == QP_FLUSH_PIECE)
		return n;
	q->is_flushing = false;
	if (!qp_can_send(q))
		q->env->on_sq_idle(q->env, q);
	return n;
}

/* In pieces, each in a turn of the QP's. */
static void start_flushing(struct qp *q)
{
	q->is_flushing = true;
	qp_wake(q);
}

void qp_enter_error(struct qp *q)
{
	if (q->state == ABI_QP_ERR)
		return;
	ud_ah_forget(q);
	q->state = ABI_QP_ERR;
	q->is_draining = false;
	q->req.rd_atomic = 0;
	q->req.is_probe_due = false;
	retry_reset(q);
	if (q->resp.recv) {
		struct recv_wr *r = q->resp.recv;
		q->resp.recv = NULL;
		qp_complete_receive(q, r, flushed, NULL, 0);
	}
	if (q->rq.ring) { /* from now on a posted receive needs a doorbell: clear the flag, full fence, look once more */
		atomic_store_explicit(&q->rq.ring->looking, 0, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
	} else { /* it takes no more from the SRQ (IBA vol. 1, 11.6.3.3) */
		q->env->on_event(q->env, q, ABI_EVENT_QP_LAST_WQE_REACHED);
	}
	start_flushing(q);
	qp_flush(q);
}

static void record_error(struct qp *q, struct failure f, uint64_t wr_id)
{
	struct abi_qp_error *e = &q->error;
	*e = (struct abi_qp_error){
		.cause = f.cause, .status = f.status, .wr_id = wr_id, .peer_qpn = q->dest_qpn,
		.last_psn_sent = psn_sub(q->flight.frontier, 1).v, .last_psn_acked = psn_sub(q->flight.una, 1).v,
		.retries = q->retry.timeouts, .rnr_retries = q->retry.rnrs,
	};
	memcpy(e->peer, q->attr.av.dgid, sizeof(e->peer));
}

/* What a send error of UC and UD leads to (IBA vol. 1, 10.3.1.6): everything in the SQ is flushed, now and until the program goes back to RTS; the responder does not notice. */
static void enter_send_error(struct qp *q)
{
	struct psn next = q->flight.frontier;
	ud_ah_forget(q);
	q->state = ABI_QP_SQE;
	q->is_draining = false;
	start_flushing(q);
	qp_flush(q);
	inflight_init(&q->flight, next);
}

void qp_fail_send(struct qp *q, struct failure f)
{
	struct wr *w = q->flight.oldest;
	if (q->state == ABI_QP_ERR)
		return;
	record_error(q, f, w ? w->wr_id : 0);
	if (w) {
		qp_complete_send(q, inflight_retire(&q->flight), f);
		sq_free_slots(q);
	}
	if (q->service == SERVICE_RC)
		qp_enter_error(q);
	else
		enter_send_error(q);
}

void qp_fail_receive(struct qp *q, struct failure f, enum abi_event event)
{
	if (q->state == ABI_QP_ERR)
		return;
	struct recv_wr *r = q->resp.recv;
	record_error(q, f.status ? f : (struct failure){ ABI_WC_WR_FLUSH_ERR, CAUSE_PEER_REQUEST }, r ? r->wr_id : 0);
	if (r && f.status) {
		q->resp.recv = NULL;
		qp_complete_receive(q, r, f, NULL, 0);
	}
	q->env->on_event(q->env, q, event);
	qp_enter_error(q);
}

void qp_on_cq_overrun(struct qp *q)
{
	if (q->state == ABI_QP_ERR || q->state == ABI_QP_RESET)
		return;
	record_error(q, (struct failure){ ABI_WC_FATAL_ERR, CAUSE_CQ_OVERRUN }, 0);
	q->env->on_event(q->env, q, ABI_EVENT_QP_FATAL);
	qp_enter_error(q);
}

/* ---- from the core ---- */

void qp_on_doorbell(struct qp *q)
{
	if (q->state == ABI_QP_ERR || q->state == ABI_QP_SQE) {
		start_flushing(q);
	} else if (q->state != ABI_QP_RESET) {
		qp_wake(q);
	}
}

static bool is_same_partition(const struct qp *q, const struct packet *p)
{
	return !((p->pkey ^ q->pkey) & 0x7fff) && ((p->pkey | q->pkey) & 0x8000);
}

/* Whoever sends it, if it is for us. */
static enum drop check_datagram(const struct qp *q, const struct packet *p)
{
	if (!is_same_partition(q, p))
		return DROP_PKEY;
	if (p->dqpn == QPN_MULTICAST) /* whether it is in the group is the core's business */
		return DROP_NONE;
	return addr_is_ours(q->env->addr, &p->dst, p->vlan) ? DROP_NONE : DROP_DESTINATION;
}

/* Peer, partition and service: what makes a packet one of this connection's (IBA vol. 1, 9.6.1; annex A17.5). */
static enum drop check_connection(const struct qp *q, const struct packet *p)
{
	if (p->op->service != q->service)
		return p->op->service == SERVICE_CNP ? DROP_CNP : DROP_QP_SERVICE;
	if (!q->has_ah)
		return q->service == SERVICE_UD ? check_datagram(q, p) : DROP_QP_STATE;
	if (!is_same_partition(q, p))
		return DROP_PKEY;
	if (!gid_is_equal(&p->src, &q->ah.dgid))
		return DROP_SOURCE;
	if (!gid_is_equal(&p->dst, &q->ah.sgid) || p->vlan != q->ah.vlan)
		return DROP_DESTINATION;
	return DROP_NONE;
}

/* It may change, with the path for instance (annex A17: it is there for the network to spread flows), so nothing is dropped for it; but whoever forges packets does not know it. */
static __attribute__((cold)) void note_source_port(struct qp *q, const struct packet *p, enum drop d)
{
	if (q->peer_port)
		qp_count(q, QP_SOURCE_PORT_CHANGES);
	if (d == DROP_NONE)
		q->peer_port = p->udp_src_port;
}

enum drop qp_rx(struct qp *q, const struct packet *p)
{
	enum drop d = check_connection(q, p);
	q->counter[QP_RX_PACKETS]++;
	if (d == DROP_NONE) {
		if (__builtin_expect(packet_is_ce(p), 0))
			qp_count(q, QP_NP_ECN_MARKED_ROCE_PACKETS);
		d = p->op->flags & OPCODE_REQUEST ? resp_rx(q, p) : comp_rx(q, p);
		if (__builtin_expect(p->udp_src_port != q->peer_port && q->has_ah, 0)) /* UD: no one peer */
			note_source_port(q, p, d);
	}
	q->counter[QP_DROPPED_PACKETS] += d != DROP_NONE;
	return d;
}

uint32_t qp_tx(struct qp *q, uint8_t *frame)
{
	struct out *o = &q->out;
	uint32_t len = 0;
	if (!reply_is_due(q))
		return req_tx(q, frame);
	/* requests before an ACK, answers before requests; but neither keeps the other waiting for long */
	bool is_ack_alone = !o->replay.pending && !o->is_nak_due;
	bool is_request_first = is_ack_alone ? ++o->in_a_row < IN_A_ROW : ++o->in_a_row >= IN_A_ROW;
	if (o->in_a_row >= IN_A_ROW)
		o->in_a_row = 0;
	if (is_request_first)
		len = req_tx(q, frame);
	if (!len)
		len = reply_tx(q, frame);
	return len || is_request_first ? len : req_tx(q, frame);
}
