/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a completion queue that is in use: its size and the moderation of its events (IBA vol. 1, 11.2.6.3). Polling is
 * completion.c's.
 * Invariant: the slots that are polled are those into which the engine writes, whenever no call of this file is going on; also
 * when the engine died in the middle of one. */
#include <errno.h>

#include "client.h"

static int modify_locked(struct uroce_cq *cq, struct abi_req *req, uint32_t mask, struct abi_rep *rep)
{
	req->type = ABI_MODIFY_CQ;
	req->modify_cq.cq = cq->o.handle;
	req->modify_cq.mask = mask;
	return context_call(cq->o.ctx, req, rep);
}

/* What was not polled yet, to the places of the same indices. The engine writes behind it by now. */
static void move_cqes(const struct uroce_cq *cq, struct abi_cqe *to, uint32_t slots)
{
	for (uint32_t i = cq->head; i - cq->head < slots && completion_is_there(cq, i); i++) {
		struct abi_cqe *e = &to[i & (slots - 1)];
		completion_move(e, &cq->cqes[i & (cq->slots - 1)]);
		atomic_store_explicit(&e->phase, completion_phase(slots, i), memory_order_relaxed);
	}
}

/* The old slots are the engine's to give away from the moment it answers, but to nobody before this client's next request. */
static int switch_locked(struct uroce_cq *cq, struct abi_cqe *cqes, uint32_t slots)
{
	struct abi_req req = { 0 };
	struct abi_rep rep;
	uint32_t before = atomic_load_explicit(&cq->ring->resizes, memory_order_relaxed);
	int err = modify_locked(cq, &req, ABI_CQ_SWITCH, &rep);
	/* Acquire: whatever the engine wrote before it went on elsewhere is visible. It may have died before it could answer. */
	if (atomic_load_explicit(&cq->ring->resizes, memory_order_acquire) == before)
		return err ? err : -EPROTO;
	move_cqes(cq, cqes, slots);
	cq->cqes = cqes;
	cq->slots = cq->entries = slots;
	return err;
}

static int resize_locked(struct uroce_cq *cq, uint32_t entries)
{
	struct abi_req req = { .modify_cq.entries = entries };
	struct abi_rep rep;
	void *slots;
	int err = modify_locked(cq, &req, ABI_CQ_ENTRIES, &rep);
	if (!err)
		err = context_slots(cq->o.ctx, &rep.cq.ring, sizeof(struct abi_cqe), &slots);
	if (!err && (rep.cq.ring.slot_bytes != sizeof(struct abi_cqe) || rep.cq.ring.slots < entries))
		err = -EPROTO;
	if (err)
		return err;
	completion_clear(slots, rep.cq.ring.slots, cq->head);
	return switch_locked(cq, slots, rep.cq.ring.slots);
}

int uroce_cq_resize(struct uroce_cq *cq, uint32_t entries)
{
	struct uroce_context *ctx = cq->o.ctx;
	int err;
	if (!entries) {
		log_write(context_log(ctx), LOG_WARN, "CQ: 0 entries asked for, at least 1 is needed");
		return -EINVAL;
	}
	context_lock(ctx);
	err = resize_locked(cq, entries);
	context_unlock(ctx);
	return err;
}

uint32_t uroce_cq_entries(const struct uroce_cq *cq)
{
	return cq->entries;
}

int uroce_cq_moderate(struct uroce_cq *cq, uint32_t count, uint32_t period_us)
{
	struct uroce_context *ctx = cq->o.ctx;
	struct abi_req req = { .modify_cq = { .count = count, .period_us = period_us } };
	struct abi_rep rep;
	int err;
	context_lock(ctx);
	err = modify_locked(cq, &req, ABI_CQ_MODERATION, &rep);
	context_unlock(ctx);
	return err;
}
