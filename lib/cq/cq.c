/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues (IBA vol. 1, 11.6.3). Owns the engine's end of a CQ ring. Does not own the channel: it only says that an event is due.
 * Invariant: produced - taken is never above the number of slots; a CQE that has no slot is not dropped in silence but makes the CQ overrun. */
#include "cq.h"

#include <stddef.h>

void cq_init(struct cq *q, struct abi_ring *ring, struct abi_cqe *slots, uint32_t n)
{
	*q = (struct cq){ .ring = ring, .slots = slots, .mask = n - 1, .event_fd = -1 };
}

uint32_t cq_held(struct cq *q)
{
	/* acquire: the client has read the slots before this index before it let go of them */
	uint32_t head = atomic_load_explicit(&q->ring->client_index, memory_order_acquire);
	/* an index from the future or the far past is the client's lie */
	if (q->produced - head > q->mask + 1)
		return UINT32_MAX;
	q->taken = head;
	return q->produced - head;
}

struct abi_cqe *cq_reserve_slow(struct cq *q)
{
	/* a lie is as good as never having polled */
	if (q->is_overrun || cq_held(q) > q->mask) {
		q->is_overrun = true;
		return NULL;
	}
	return &q->slots[q->produced & q->mask];
}

bool cq_switch(struct cq *q, struct abi_cqe *slots, uint32_t n)
{
	if (cq_held(q) > n)
		return false;
	q->slots = slots;
	q->mask = n - 1;
	/* before any CQE in the new slots: whoever finds this count unchanged finds all of them in the old ones */
	atomic_fetch_add_explicit(&q->ring->resizes, 1, memory_order_release);
	return true;
}

bool cq_is_due(const struct cq *q)
{
	/* the CQEs are visible before the arm word is read; the client arms, fences and polls in the opposite order */
	atomic_thread_fence(memory_order_seq_cst);
	uint32_t arm = atomic_load_explicit(&q->ring->arm, memory_order_relaxed);
	return arm != ABI_ARM_NONE && (arm != ABI_ARM_SOLICITED || q->has_solicited);
}

bool cq_take_arm(struct cq *q)
{
	bool is_due = cq_is_due(q);
	q->has_solicited = false;
	return is_due && atomic_exchange_explicit(&q->ring->arm, ABI_ARM_NONE, memory_order_acq_rel) != ABI_ARM_NONE;
}
