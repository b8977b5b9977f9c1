/* SPDX-License-Identifier: BSD-3-Clause */
/* Which index an address of the kernel's has in the GID tables of an engine's cores: the same on all, though each core hears of it in its own time. */
#ifndef UROCE_GID_INDEX_H
#define UROCE_GID_INDEX_H

#include <stdint.h>

#include "gid.h"

#define GID_INDEX_MAX 64u /* addresses, with those that are held after they went */

struct gid_index;

/* 0 or -ENOMEM. */
int gid_index_open(struct gid_index **out);
/* After the cores. NULL is fine. */
void gid_index_close(struct gid_index *g);
/* Any core's thread. 0 and the slot that it has to be in: where other cores have it, else the lowest that is free on all; -ENOSPC. */
int gid_index_take(struct gid_index *g, unsigned core, const struct gid *gid, uint32_t *index);
/* The core's slot is empty. */
void gid_index_leave(struct gid_index *g, unsigned core, const struct gid *gid);

#endif
