/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive source. Owns the engine's end of an RQ or SRQ; does not own what a receive WQE is used for. A WQE is taken only when a message needs it, so an idle queue costs nothing. The slot of an RQ is free
 * again when its WQE has completed; that of an SRQ when it was taken, since its QPs complete theirs in any order (ring.h). IBA vol. 1, 10.2.9 (SRQ), 10.2.9.3 (its limit). */
#include "recv.h"

#include <string.h>

#include "hostile.h"

/* The ring of an SRQ says what cannot be: nobody can tell what is posted there. Its QPs find out when they need a WQE. */
static enum recv_result refuse(struct recv_queue *rq)
{
	struct srq *s = rq->srq;
	if (s && !s->is_broken) {
		s->is_broken = true;
		s->env->on_srq_event(s->env, s, ABI_EVENT_SRQ_ERR);
	}
	return RECV_BROKEN;
}

static struct recv_wr *copy_wqe(const struct recv_queue *rq, struct qp_env *env, const uint8_t *slot, const struct abi_recv_wqe *copy)
{
	uint32_t bytes = copy->num_sge * (uint32_t)sizeof(struct abi_sge);
	bool is_large = bytes > sizeof(copy->sge);
	struct recv_wr *r = slab_get(is_large ? &env->wr_large : &env->wr_small);
	if (!r)
		return NULL;
	r->wr_id = copy->wr_id;
	r->index = rq->taken;
	r->num_sge = (uint8_t)copy->num_sge;
	r->is_large = is_large;
	memcpy(r->sge, copy->sge, sizeof(copy->sge));
	if (is_large)
		snapshot((uint8_t *)r->sge + sizeof(copy->sge), slot + sizeof(*copy), bytes - sizeof(copy->sge));
	r->room = sg_total(r->sge, r->num_sge);
	return r;
}

static void raise_limit(struct srq *s)
{
	s->limit = 0;
	s->env->on_srq_event(s->env, s, ABI_EVENT_SRQ_LIMIT_REACHED);
}

static enum recv_result take_posted(struct recv_queue *rq, struct qp_env *env, struct recv_wr **out)
{
	uint32_t posted = ring_posted(rq->ring, rq->taken);
	if (!posted)
		return RECV_NONE;
	if (!ring_is_possible(posted, rq->mask + 1, rq->taken - rq->retired)) {
		env->bad_indices++;
		return refuse(rq);
	}
	const uint8_t *slot = rq->slots + (size_t)(rq->taken & rq->mask) * rq->slot_bytes;
	struct abi_recv_wqe copy;
	snapshot(&copy, slot, sizeof(copy));
	if (copy.num_sge > rq->max_sge) {
		env->bad_wqes++;
		return refuse(rq);
	}
	struct recv_wr *r = copy_wqe(rq, env, slot, &copy);
	if (!r)
		return RECV_NONE;
	rq->taken++;
	*out = r;
	return RECV_OK;
}

static void take_returned(struct recv_queue *rq, struct recv_wr **out)
{
	*out = rq->returned;
	rq->returned = rq->returned->next;
	rq->returned_n--;
}

enum recv_result recv_take(struct recv_queue *rq, struct qp_env *env, struct recv_wr **out)
{
	struct srq *s = rq->srq;
	enum recv_result result = RECV_OK;
	if (s && s->is_broken)
		return RECV_BROKEN;
	if (rq->returned)
		take_returned(rq, out);
	else
		result = take_posted(rq, env, out);
	if (!s || result != RECV_OK)
		return result;
	rq->retired = rq->taken;
	recv_free_slots(rq);
	if (s->limit && srq_posted(s) < s->limit)
		raise_limit(s);
	return RECV_OK;
}

void recv_retire(struct recv_queue *rq)
{
	if (rq->srq)
		return;
	rq->retired++; /* completed in the order in which they were taken */
	recv_free_slots(rq);
}

void recv_free_slots(struct recv_queue *rq)
{
	/* release: the slots have been read before they are given back */
	atomic_store_explicit(&rq->ring->engine_index, rq->retired, memory_order_release);
}

void recv_return(struct recv_queue *rq, struct recv_wr *r)
{
	r->next = rq->returned;
	rq->returned = r;
	rq->returned_n++;
}

void recv_drop(struct recv_queue *rq, struct qp_env *env, struct recv_wr *r)
{
	if (rq->srq) /* it was lent to the QP, and is still the SRQ's */
		recv_return(rq, r);
	else
		recv_free(env, r);
}

void recv_forget(struct recv_queue *rq, struct qp_env *env)
{
	while (rq->returned) {
		struct recv_wr *r = rq->returned;
		rq->returned = r->next;
		recv_free(env, r);
	}
	rq->returned_n = 0;
}

void recv_free(struct qp_env *env, struct recv_wr *r)
{
	wr_free(env, r, r->is_large);
}

/* ---- shared ---- */

uint32_t srq_posted(const struct srq *s)
{
	const struct recv_queue *rq = &s->rq;
	uint32_t posted = ring_posted(rq->ring, rq->taken);
	return (ring_is_possible(posted, rq->mask + 1, 0) ? posted : 0) + rq->returned_n;
}

void srq_arm(struct srq *s, uint32_t limit)
{
	s->limit = limit;
	if (limit && srq_posted(s) < limit)
		raise_limit(s);
}

bool srq_switch(struct srq *s, struct abi_ring *ring, const uint8_t *slots, uint32_t n, uint32_t slot_bytes)
{
	struct recv_queue *rq = &s->rq;
	if (!ring_is_possible(ring_posted(ring, rq->taken), n, 0))
		return false;
	rq->ring = ring;
	rq->slots = slots;
	rq->mask = n - 1;
	rq->slot_bytes = slot_bytes;
	atomic_store_explicit(&ring->looking, 1, memory_order_relaxed);
	recv_free_slots(rq);
	return true;
}
