/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's handle of a shared receive queue (IBA vol. 1, 10.2.9, 11.2.8). Posting is post.c's; what its QPs take is the
 * engine's business.
 * Invariant: the client's queue is the ring that the engine takes from, or, within one resize, about to be. */
#include <errno.h>
#include <string.h>

#include "client.h"

static int create_locked(struct uroce_srq *srq, const struct uroce_srq_init *init)
{
	struct uroce_context *ctx = srq->o.ctx;
	struct abi_req req = { .type = ABI_CREATE_SRQ };
	struct abi_rep rep;
	uint32_t max_wr = init->attr.max_wr ? init->attr.max_wr : 1, max_sge = init->attr.max_sge ? init->attr.max_sge : 1;
	int err;
	req.create_srq.pd = srq->pd->o.handle;
	req.create_srq.max_wr = max_wr;
	req.create_srq.max_sge = max_sge;
	req.create_srq.limit = init->attr.limit;
	req.create_srq.cookie = srq->o.cookie;
	err = context_call(ctx, &req, &rep);
	if (err)
		return err;
	srq->o.handle = rep.handle;
	if (rep.srq.max_sge < max_sge || rep.srq.max_sge > ABI_MAX_SGE) {
		log_write(context_log(ctx), LOG_ERROR, "the engine granted an SRQ of %u SGEs for %u", rep.srq.max_sge, max_sge);
		err = -EPROTO;
	}
	if (!err)
		err = post_queue_init(ctx, &srq->rq, &rep.srq.ring, abi_recv_slot_bytes(rep.srq.max_sge), max_wr, rep.srq.max_sge,
			0);
	if (err) {
		context_call_handle(ctx, ABI_DESTROY_SRQ, rep.handle);
		return err;
	}
	srq->pd->refs++;
	return 0;
}

int uroce_srq_create(struct uroce_pd *pd, const struct uroce_srq_init *init, struct uroce_srq **out)
{
	struct uroce_context *ctx = pd->o.ctx;
	struct uroce_srq *srq = object_new(ctx, OBJECT_SRQ, sizeof(*srq));
	int err;
	if (!srq)
		return -ENOMEM;
	srq->pd = pd;
	srq->user = init->user;
	srq->page = ctx->page;
	srq->life = ctx->life;
	context_lock(ctx);
	err = create_locked(srq, init);
	context_unlock(ctx);
	if (err) {
		object_free(&srq->o);
		return err;
	}
	*out = srq;
	return 0;
}

int uroce_srq_destroy(struct uroce_srq *srq)
{
	struct uroce_context *ctx;
	int err;
	if (!srq)
		return 0;
	ctx = srq->o.ctx;
	context_lock(ctx);
	if (srq->refs) {
		log_write(context_log(ctx), LOG_WARN, "SRQ still used by %u QPs: destroy those first", srq->refs);
		err = -EBUSY;
	} else {
		err = context_call_handle(ctx, ABI_DESTROY_SRQ, srq->o.handle);
	}
	if (!err)
		srq->pd->refs--;
	context_unlock(ctx);
	if (err)
		return err;
	object_retire(&srq->o);
	object_free(&srq->o);
	return 0;
}

void *uroce_srq_user(const struct uroce_srq *srq)
{
	return srq->user;
}

/* ---- size and limit ---- */

/* What is posted and was not taken when this began, to the same indices of another ring. The engine may take some of it from
 * the old one meanwhile; it goes on behind those. */
static void move_wqes(const struct post_queue *from, struct post_queue *to)
{
	uint32_t tail = atomic_load_explicit(&from->tail, memory_order_relaxed);
	/* Acquire: what the engine has given back it has read. */
	uint32_t head = atomic_load_explicit(&from->ring->engine_index, memory_order_acquire);
	if (tail - head > from->count) /* an impossible index */
		head = tail - from->count;
	for (uint32_t i = head; i != tail; i++)
		memcpy(to->slots + (size_t)(i & (to->count - 1)) * to->slot_bytes,
			from->slots + (size_t)(i & (from->count - 1)) * from->slot_bytes, to->slot_bytes);
	atomic_init(&to->tail, tail);
	atomic_init(&to->head, head);
	/* Release: the WQEs are visible before the tail that covers them. */
	atomic_store_explicit(&to->ring->client_index, tail, memory_order_release);
}

static int modify_locked(struct uroce_srq *srq, uint32_t mask, uint32_t value, struct abi_rep *rep)
{
	struct abi_req req = { .type = ABI_MODIFY_SRQ, .modify_srq = { .srq = srq->o.handle, .mask = mask } };
	if (mask == ABI_SRQ_LIMIT)
		req.modify_srq.limit = value;
	else
		req.modify_srq.max_wr = value;
	return context_call(srq->o.ctx, &req, rep);
}

static int resize_locked(struct uroce_srq *srq, uint32_t max_wr)
{
	struct post_queue fresh = { 0 };
	struct abi_rep rep;
	int err = modify_locked(srq, ABI_SRQ_MAX_WR, max_wr, &rep);
	if (!err)
		err = post_queue_init(srq->o.ctx, &fresh, &rep.srq.ring, srq->rq.slot_bytes, max_wr, srq->rq.max_sge, 0);
	if (err)
		return err;
	move_wqes(&srq->rq, &fresh);
	err = modify_locked(srq, ABI_SRQ_SWITCH, 0, &rep);
	if (err)
		return err;
	fresh.refusals = srq->rq.refusals;
	srq->rq = fresh;
	return 0;
}

int uroce_srq_modify(struct uroce_srq *srq, const struct uroce_srq_attr *attr, uint32_t mask)
{
	struct uroce_context *ctx = srq->o.ctx;
	struct abi_rep rep;
	int err = 0;
	if (!mask || mask & ~(uint32_t)(UROCE_SRQ_MAX_WR | UROCE_SRQ_LIMIT)) {
		log_write(context_log(ctx), LOG_WARN, "SRQ not modified: mask 0x%x, known are 0x%x", mask,
			(unsigned)(UROCE_SRQ_MAX_WR | UROCE_SRQ_LIMIT));
		return -EINVAL;
	}
	if (mask == (UROCE_SRQ_MAX_WR | UROCE_SRQ_LIMIT) && attr->limit > attr->max_wr) {
		log_write(context_log(ctx), LOG_WARN, "SRQ not modified: a limit of %u and room for %u", attr->limit, attr->max_wr);
		return -EINVAL;
	}
	context_lock(ctx);
	if (mask & UROCE_SRQ_MAX_WR)
		err = resize_locked(srq, attr->max_wr);
	if (!err && mask & UROCE_SRQ_LIMIT)
		err = modify_locked(srq, ABI_SRQ_LIMIT, attr->limit, &rep);
	context_unlock(ctx);
	return err;
}

int uroce_srq_query(struct uroce_srq *srq, struct uroce_srq_attr *attr)
{
	struct abi_req req = { .type = ABI_QUERY_SRQ, .handle = srq->o.handle };
	struct abi_rep rep;
	int err;
	context_lock(srq->o.ctx);
	err = context_call(srq->o.ctx, &req, &rep);
	context_unlock(srq->o.ctx);
	if (err)
		return err;
	*attr = (struct uroce_srq_attr){ .max_wr = rep.srq.max_wr, .max_sge = rep.srq.max_sge, .limit = rep.srq.limit };
	return 0;
}
