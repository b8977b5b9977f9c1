/* SPDX-License-Identifier: BSD-3-Clause */
/* The arenas of one client: a few large regions that engine and client both map, cut into rings and pool memory. A place is (arena number, offset), never an address. */
#ifndef UROCE_ARENA_H
#define UROCE_ARENA_H

#include "core.h"
#include "intervals.h"

struct arena {
	void *base; /* the core's mapping */
	uint64_t bytes;
	int fd;
	struct intervals free;
};
struct arenas {
	struct arena *v;
	uint32_t n;
	uint64_t wanted; /* bytes that the last arenas_take did not find */
	const struct core_hooks *hooks;
};

void arenas_init(struct arenas *a, const struct core_hooks *hooks);
void arenas_destroy(struct arenas *a);
/* `bytes` bytes, aligned to `align` (a power of two up to 4096); zeroed when they are used for the first time, else as the client left them. 0, -EINVAL; -ENOBUFS: no region has room, arenas_grow makes one that has. */
int arenas_take(struct arenas *a, uint64_t bytes, uint64_t align, uint32_t *arena, uint64_t *offset);
/* How large a region has to be for what the last arenas_take did not find; 0: there are too many regions. */
uint64_t arenas_lack(const struct arenas *a);
/* Takes a region over that was made elsewhere, as the hook region_new makes them; region_free ends it. 0 or -ENOMEM: it stays the caller's. */
int arenas_add(struct arenas *a, void *base, uint64_t bytes, int fd, uint32_t *arena);
/* Both, with a region of the hook's: makes a region for what the last arenas_take did not find. 0, -ENOMEM or the hook's error. System calls. */
int arenas_grow(struct arenas *a, uint32_t *arena);
void arenas_give(struct arenas *a, uint32_t arena, uint64_t offset, uint64_t bytes);
static inline void *arenas_at(const struct arenas *a, uint32_t arena, uint64_t offset)
{
	return (uint8_t *)a->v[arena].base + offset;
}

#endif
