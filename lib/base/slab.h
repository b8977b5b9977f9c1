/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool of objects of one size, aligned to a cache line, that grows by chunks and gives nothing back before slab_destroy.
 * One thread. */
#ifndef UROCE_SLAB_H
#define UROCE_SLAB_H

#include <stddef.h>
#include <stdint.h>

struct slab {
	void *free;        /* singly linked through the objects */
	void *chunks;
	size_t object_size;
	uint32_t per_chunk;
	uint32_t in_use;
	uint32_t total;
	uint32_t limit;    /* most objects it may hold; 0: no limit */
};

void slab_init(struct slab *s, size_t object_size, uint32_t per_chunk, uint32_t limit);
void slab_destroy(struct slab *s);
/* NULL at the limit or without memory. Contents are undefined. */
void *slab_grow(struct slab *s);

static inline void *slab_get(struct slab *s)
{
	void *p = s->free;
	if (__builtin_expect(!p, 0))
		return slab_grow(s);
	s->free = *(void **)p;
	s->in_use++;
	return p;
}

static inline void slab_put(struct slab *s, void *p)
{
	*(void **)p = s->free;
	s->free = p;
	s->in_use--;
}

#endif
