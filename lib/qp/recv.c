/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive source. Owns the engine's end of an RQ; does not own what a receive WQE is used for. A WQE is taken only when a message needs it, so an idle RQ costs nothing; its slot is free again when it has completed. */
#include "recv.h"

#include <string.h>

#include "hostile.h"

enum recv_result recv_take(struct recv_queue *rq, struct qp_env *env, struct recv_wr **out)
{
	if (rq->returned) {
		*out = rq->returned;
		rq->returned = rq->returned->next;
		return RECV_OK;
	}
	uint32_t posted = ring_posted(rq->ring, rq->taken);
	if (!posted)
		return RECV_NONE;
	if (!ring_is_possible(posted, rq->mask + 1, rq->taken - rq->retired)) {
		env->bad_indices++;
		return RECV_BROKEN;
	}
	const uint8_t *slot = rq->slots + (size_t)(rq->taken & rq->mask) * rq->slot_bytes;
	struct abi_recv_wqe copy;
	snapshot(&copy, slot, sizeof(copy));
	uint32_t bytes = copy.num_sge * (uint32_t)sizeof(struct abi_sge);
	if (copy.num_sge > rq->max_sge || bytes > rq->slot_bytes - 16) {
		env->bad_wqes++;
		return RECV_BROKEN;
	}
	bool is_large = bytes > sizeof(copy.sge);
	struct recv_wr *r = slab_get(is_large ? &env->wr_large : &env->wr_small);
	if (!r)
		return RECV_NONE;
	r->wr_id = copy.wr_id;
	r->num_sge = copy.num_sge;
	r->is_large = is_large;
	memcpy(r->sge, copy.sge, sizeof(copy.sge));
	if (is_large)
		snapshot((uint8_t *)r->sge + sizeof(copy.sge), slot + sizeof(copy), bytes - sizeof(copy.sge));
	r->room = sg_total(r->sge, r->num_sge);
	rq->taken++;
	*out = r;
	return RECV_OK;
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
}

void recv_forget(struct recv_queue *rq, struct qp_env *env)
{
	while (rq->returned) {
		struct recv_wr *r = rq->returned;
		rq->returned = r->next;
		recv_free(env, r);
	}
}

void recv_free(struct qp_env *env, struct recv_wr *r)
{
	wr_free(env, r, r->is_large);
}
