/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of one client's objects of one kind: 20 bits of index and 12 of generation, so that a stale handle does not name a new object. 0 is never valid. */
#ifndef UROCE_HANDLES_H
#define UROCE_HANDLES_H

#include <stdint.h>
#include <stdlib.h>

#define HANDLE_INDEX_BITS 20u

struct handles {
	void **object;
	uint32_t *generation;
	uint32_t room;
	uint32_t hint; /* no free slot below it */
	uint32_t count;
};

/* A new handle for object; 0 without memory or at the limit. */
uint32_t handles_add(struct handles *h, void *object);
static inline void *handles_get(const struct handles *h, uint32_t handle)
{
	uint32_t i = handle & ((1u << HANDLE_INDEX_BITS) - 1);
	return i < h->room && h->generation[i] == handle >> HANDLE_INDEX_BITS ? h->object[i] : NULL;
}
void handles_remove(struct handles *h, uint32_t handle);
void handles_free(struct handles *h);

#endif
