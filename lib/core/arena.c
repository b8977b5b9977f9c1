/* SPDX-License-Identifier: BSD-3-Clause */
/* Arenas. Owns the regions and what of them is free; does not own what is put there. Invariant: a place handed out is in no interval of `free`. */
#include "arena.h"

#include <errno.h>
#include <stdlib.h>

#define REGION_MIN (2ull << 20) /* a huge page, if there is one */
#define REGIONS_MAX 1024u

void arenas_init(struct arenas *a, const struct core_hooks *hooks)
{
	*a = (struct arenas){ .hooks = hooks };
}

void arenas_destroy(struct arenas *a)
{
	for (uint32_t i = 0; i < a->n; i++) {
		intervals_free(&a->v[i].free);
		a->hooks->region_free(a->hooks->arg, a->v[i].base, a->v[i].bytes, a->v[i].fd);
	}
	free(a->v);
	a->v = NULL;
	a->n = 0;
}

/* Room in a region; -ENOMEM: none. */
static int take_from(struct arena *r, uint64_t bytes, uint64_t align, uint64_t *offset)
{
	for (size_t i = 0; i < r->free.n; i++) {
		uint64_t at = (r->free.v[i].from + align - 1) & ~(align - 1);
		if (at > r->free.v[i].to || r->free.v[i].to - at < bytes)
			continue;
		*offset = at;
		return intervals_remove(&r->free, at, at + bytes);
	}
	return -ENOMEM;
}

uint64_t arenas_lack(const struct arenas *a)
{
	/* regions double, so that thousands of QPs make few of them */
	uint64_t room = a->n ? a->v[a->n - 1].bytes : REGION_MIN / 2;
	room = room < 64ull << 20 ? room * 2 : room;
	if (room < a->wanted)
		room = (a->wanted + REGION_MIN - 1) & ~(REGION_MIN - 1);
	return a->n < REGIONS_MAX ? room : 0;
}

int arenas_add(struct arenas *a, void *base, uint64_t bytes, int fd, uint32_t *arena)
{
	struct arena *v = realloc(a->v, (a->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	a->v = v;
	struct arena *r = &v[a->n];
	*r = (struct arena){ .base = base, .bytes = bytes, .fd = fd };
	intervals_init(&r->free);
	int rc = intervals_add(&r->free, 0, bytes);
	if (rc) {
		intervals_free(&r->free);
		return rc;
	}
	*arena = a->n++;
	return 0;
}

int arenas_grow(struct arenas *a, uint32_t *arena)
{
	uint64_t bytes = arenas_lack(a);
	void *base;
	int fd;
	if (!bytes)
		return -ENOMEM;
	int rc = a->hooks->region_new(a->hooks->arg, bytes, &base, &fd);
	if (rc)
		return rc;
	rc = arenas_add(a, base, bytes, fd, arena);
	if (rc)
		a->hooks->region_free(a->hooks->arg, base, bytes, fd);
	return rc;
}

int arenas_take(struct arenas *a, uint64_t bytes, uint64_t align, uint32_t *arena, uint64_t *offset)
{
	if (!bytes || bytes > 1ull << 40)
		return -EINVAL;
	bytes = (bytes + ABI_CACHE_LINE - 1) & ~(uint64_t)(ABI_CACHE_LINE - 1);
	for (uint32_t i = 0; i < a->n; i++)
		if (!take_from(&a->v[i], bytes, align, offset)) {
			*arena = i;
			return 0;
		}
	a->wanted = bytes;
	return -ENOBUFS;
}

void arenas_give(struct arenas *a, uint32_t arena, uint64_t offset, uint64_t bytes)
{
	bytes = (bytes + ABI_CACHE_LINE - 1) & ~(uint64_t)(ABI_CACHE_LINE - 1);
	intervals_add(&a->v[arena].free, offset, offset + bytes);
}
