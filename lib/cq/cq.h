/* SPDX-License-Identifier: BSD-3-Clause */
/* A completion queue, the engine's side: writes CQEs into the ring that the client polls, finds out when the client fell behind, and says when an event is due.
 * One thread: the core's. */
#ifndef UROCE_CQ_H
#define UROCE_CQ_H

#include <stdbool.h>
#include <stdint.h>

#include "cqe.h"
#include "ring.h"

struct cq {
	struct abi_ring *ring;   /* in the arena, hostile */
	struct abi_cqe *slots;
	uint32_t mask;
	uint32_t produced;       /* free running; what the client sees is engine_index and the phases */
	uint32_t taken;          /* the client's index as last read, bounded */
	bool is_overrun;         /* a CQE was lost: no CQE is written any more (IBA vol. 1, 11.6.3.1) */
	bool is_dirty;           /* in the list of CQs whose arm word has to be looked at */
	bool has_solicited;      /* since then: a solicited receive or an error was among the new CQEs */
	int event_fd;            /* writing end of its channel, -1: none */
	struct cq *next_dirty;
	uint64_t cookie;         /* the client's name for it in events */
	uint32_t refs;           /* QPs */
	uint32_t handle;
};

/* slots: zeroed, a power of two. The ring starts empty. */
void cq_init(struct cq *q, struct abi_ring *ring, struct abi_cqe *slots, uint32_t n);

/* The next slot to fill, or NULL: the client has not taken what is there, and the CQ is overrun from now on. */
struct abi_cqe *cq_reserve_slow(struct cq *q);
static inline struct abi_cqe *cq_reserve(struct cq *q)
{
	if (__builtin_expect(q->produced - q->taken > q->mask || q->is_overrun, 0))
		return cq_reserve_slow(q);
	return &q->slots[q->produced & q->mask];
}

/* Two steps of making the slot of the last cq_reserve visible. Between them the head of the WQE's queue moves, so that wherever the engine dies a client can tell which WRs have completed (ring.h). */
static inline void cq_count(struct cq *q)
{
	q->produced++;
	/* the body is visible before the tail that counts it */
	atomic_store_explicit(&q->ring->engine_index, q->produced, memory_order_release);
}

static inline void cq_commit(struct cq *q, struct abi_cqe *cqe)
{
	uint32_t phase = !((q->produced - 1) & (q->mask + 1));
	/* a client that sees this phase sees the body, and the heads, written before */
	atomic_store_explicit(&cqe->phase, phase, memory_order_release);
}

/* CQEs that the client has not taken; UINT32_MAX: its index says what cannot be. */
uint32_t cq_held(struct cq *q);
/* Goes on in other slots, n of them, a power of two, at the same index; what is held in the old ones is the client's to move. false: so much does not fit, and nothing has changed. */
bool cq_switch(struct cq *q, struct abi_cqe *slots, uint32_t n);

/* Whether the arm word asks for an event for the CQEs committed since has_solicited was cleared. */
bool cq_is_due(const struct cq *q);
/* Whether the arm word asks for an event for the CQEs committed since the last call; disarms it. Publish, full fence, exchange: a client that arms and then polls
 * either finds the CQE or has its arm word found here. */
bool cq_take_arm(struct cq *q);

#endif
