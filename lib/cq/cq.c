/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues (IBA vol. 1, 11.6.3). Owns the engine's end of a CQ ring. Does not own the channel: it only says that an event is due.
 * Invariant: produced - taken is never above the number of slots; a CQE that has no slot is not dropped in silence but makes the CQ overrun. */
#include "cq.h"

#include <stddef.h>

void cq_init(struct cq *q, struct abi_ring *ring, struct abi_cqe *slots, uint32_t n)
{
	*q = (struct cq){ .ring = ring, .slots = slots, .mask = n - 1, .event_fd = -1 };
}

struct abi_cqe *cq_reserve_slow(struct cq *q)
{
	if (q->is_overrun)
		return NULL;
	/* acquire: the client has read the slots before this index before it let go of them */
	uint32_t head = atomic_load_explicit(&q->ring->client_index, memory_order_acquire);
	uint32_t behind = q->produced - head;
	/* an index from the future or the far past is the client's lie: as good as never having polled */
	if (behind > q->mask) {
		q->is_overrun = true;
		return NULL;
	}
	q->taken = head;
	return &q->slots[q->produced & q->mask];
}

bool cq_take_arm(struct cq *q)
{
	bool has_solicited = q->has_solicited;
	q->has_solicited = false;
	/* the CQEs are visible before the arm word is read; the client arms, fences and polls in the opposite order */
	atomic_thread_fence(memory_order_seq_cst);
	uint32_t arm = atomic_load_explicit(&q->ring->arm, memory_order_relaxed);
	if (arm == ABI_ARM_NONE || (arm == ABI_ARM_SOLICITED && !has_solicited))
		return false;
	return atomic_exchange_explicit(&q->ring->arm, ABI_ARM_NONE, memory_order_acq_rel) != ABI_ARM_NONE;
}
