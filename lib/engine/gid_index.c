/* SPDX-License-Identifier: BSD-3-Clause */
/* See gid_index.h. Owns who has what where, under a lock that is held for one look through 64 slots.
 * Invariant: a slot has one address as long as any core has that address, be it removed and held: so no two cores have different ones there, and none has one twice. */
#include "gid_index.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct gid_index {
	pthread_mutex_t lock;
	struct {
		struct gid gid;
		uint32_t cores; /* bits; 0: free */
	} slot[GID_INDEX_MAX];
};

int gid_index_open(struct gid_index **out)
{
	struct gid_index *g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	pthread_mutex_init(&g->lock, NULL);
	*out = g;
	return 0;
}

void gid_index_close(struct gid_index *g)
{
	if (!g)
		return;
	pthread_mutex_destroy(&g->lock);
	free(g);
}

/* The slot that it has, or GID_INDEX_MAX; *room: the lowest that is free, or GID_INDEX_MAX. */
static uint32_t find(const struct gid_index *g, const struct gid *gid, uint32_t *room)
{
	*room = GID_INDEX_MAX;
	for (uint32_t i = 0; i < GID_INDEX_MAX; i++) {
		if (g->slot[i].cores && gid_is_equal(&g->slot[i].gid, gid))
			return i;
		if (!g->slot[i].cores && *room == GID_INDEX_MAX)
			*room = i;
	}
	return GID_INDEX_MAX;
}

int gid_index_take(struct gid_index *g, unsigned core, const struct gid *gid, uint32_t *index)
{
	uint32_t room;
	pthread_mutex_lock(&g->lock);
	uint32_t i = find(g, gid, &room);
	if (i == GID_INDEX_MAX)
		i = room;
	if (i < GID_INDEX_MAX) {
		g->slot[i].gid = *gid;
		g->slot[i].cores |= 1u << core;
	}
	pthread_mutex_unlock(&g->lock);
	*index = i;
	return i < GID_INDEX_MAX ? 0 : -ENOSPC;
}

void gid_index_leave(struct gid_index *g, unsigned core, const struct gid *gid)
{
	uint32_t room;
	pthread_mutex_lock(&g->lock);
	uint32_t i = find(g, gid, &room);
	if (i < GID_INDEX_MAX)
		g->slot[i].cores &= ~(1u << core);
	pthread_mutex_unlock(&g->lock);
}
