/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of the simulator and the pool they come from. A frame has one owner at a time; a pool belongs to one world. */
#ifndef UROCE_SIM_FRAME_H
#define UROCE_SIM_FRAME_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define SIM_FRAME_ROOM 4352u

struct sim_frame {
	struct sim_frame *next; /* in the pool */
	uint32_t len;
	uint8_t b[SIM_FRAME_ROOM];
};

struct sim_pool {
	struct sim_frame *free;
	uint32_t in_use;
};

/* Never NULL: without memory the process ends, since a simulation would not be the same one. */
static inline struct sim_frame *sim_frame_new(struct sim_pool *p)
{
	struct sim_frame *f = p->free;
	if (f)
		p->free = f->next;
	else if (!(f = malloc(sizeof(*f))))
		abort();
	p->in_use++;
	return f;
}

static inline void sim_frame_free(struct sim_pool *p, struct sim_frame *f)
{
	f->next = p->free;
	p->free = f;
	p->in_use--;
}

static inline struct sim_frame *sim_frame_copy(struct sim_pool *p, const struct sim_frame *f)
{
	struct sim_frame *c = sim_frame_new(p);
	c->len = f->len;
	memcpy(c->b, f->b, f->len);
	return c;
}

static inline void sim_pool_free(struct sim_pool *p)
{
	while (p->free) {
		struct sim_frame *f = p->free;
		p->free = f->next;
		free(f);
	}
}

#endif
