/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading rings that another process may rewrite at any time: each word once, and all decisions on the copy. What was checked where is a table in doc/design/memory.md. */
#ifndef UROCE_HOSTILE_H
#define UROCE_HOSTILE_H

#include <stdint.h>
#include <string.h>

#include "ring.h"

/* The copy is what everything after is decided on. The compiler may not read the original again in its place, which it would else be free to do: it believes that nobody else writes it. */
static inline void snapshot(void *to, const void *from, uint32_t bytes)
{
	memcpy(to, from, bytes);
	__asm__ volatile("" : : "r"(to) : "memory");
}

/* How many WQEs the client says are posted beyond `taken`. Believe it when ring_is_possible. */
static inline uint32_t ring_posted(const struct abi_ring *ring, uint32_t taken)
{
	/* acquire: WQEs before this index are visible */
	return atomic_load_explicit(&ring->client_index, memory_order_acquire) - taken;
}

/* No more than there are slots, those that are still held apart: else the client's index went back, or beyond the slots that were free. */
static inline _Bool ring_is_possible(uint32_t posted, uint32_t slots, uint32_t held)
{
	return posted <= slots - held;
}

#endif
