/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the chunks of a slab. Does not own the objects in use (nobody is told when slab_destroy takes them away), does not clear
 * them and knows no threads.
 * Invariant: in_use objects are with the caller, total - in_use on the free list, total <= limit where there is a limit; every
 * object starts on a cache line, so two objects never share one. */
#include "slab.h"

#include <stdbool.h>
#include <stdlib.h>

#define LINE 64u

/* The first line of every chunk. The objects follow. */
struct chunk {
	struct chunk *next;
};

static size_t round_to_line(size_t n)
{
	return (n + LINE - 1) & ~(size_t)(LINE - 1);
}

void slab_init(struct slab *s, size_t object_size, uint32_t per_chunk, uint32_t limit)
{
	*s = (struct slab){
		/* an object on the free list holds a pointer; a size that wraps stays 0 and slab_grow refuses it */
		.object_size = round_to_line(object_size ? object_size : 1),
		.per_chunk = per_chunk ? per_chunk : 1,
		.limit = limit,
	};
}

void slab_destroy(struct slab *s)
{
	struct chunk *next;

	if (!s)
		return;
	for (struct chunk *c = s->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	s->free = s->chunks = NULL;
	s->in_use = s->total = 0;
}

/* How many objects the next chunk gets: what is left of the limit, and of the counters. */
static uint32_t size_chunk(const struct slab *s)
{
	uint32_t left = (s->limit ? s->limit : UINT32_MAX) - s->total;

	return s->per_chunk < left ? s->per_chunk : left;
}

static bool add_chunk(struct slab *s)
{
	uint32_t n = size_chunk(s);
	size_t size;
	struct chunk *c;

	if (!n || !s->object_size || __builtin_mul_overflow(s->object_size, (size_t)n, &size) ||
	    __builtin_add_overflow(size, (size_t)LINE, &size))
		return false;
	c = aligned_alloc(LINE, size);
	if (!c)
		return false;
	c->next = s->chunks;
	s->chunks = c;
	s->total += n;
	/* Last one first, so that objects are handed out in the order of their addresses. */
	for (uint32_t i = n; i-- > 0;) {
		void *p = (char *)c + LINE + i * s->object_size;
		*(void **)p = s->free;
		s->free = p;
	}
	return true;
}

void *slab_grow(struct slab *s)
{
	void *p;

	if (!s->free && !add_chunk(s))
		return NULL;
	p = s->free;
	s->free = *(void **)p;
	s->in_use++;
	return p;
}
