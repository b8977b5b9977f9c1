/* SPDX-License-Identifier: BSD-3-Clause */
/* The inside of the table of keys; for mr.c, which owns it, and mw.c, which binds keys to memory. */
#ifndef UROCE_MR_ENTRY_H
#define UROCE_MR_ENTRY_H

#include <sys/queue.h>

#include "mr.h"

enum {
	CHUNK = 512,           /* entries; 64 KiB */
	RECENT = 256,          /* power of two */
	REST_MAX = 1024,       /* most frees that an index waits for before it may be taken again, and most that are then drawn from; a power of two */
	MR_MAX = 1 << 20,
	INDEX_NONE = UINT32_MAX,
};

struct entry {
	struct mr mr; /* first: an mr is its entry */
	/* what no access looks at */
	uint32_t index;
	uint32_t next_resting;
	struct entry *of;            /* what it is bound to; NULL: nothing, or it is no window or MR_FAST */
	LIST_ENTRY(entry) in_list;   /* a bound MW_TYPE_2: of mr.through */
	uint8_t low;                 /* last low bits of the key; the table's own never come twice in a row */
};

struct mr_table {
	struct key_perm perm;      /* index -> upper 24 bits of the key */
	struct key_perm low_perm;  /* serial number -> noise: low 8 bits of the key, and which index */
	/* Entries by upper key bits, filled by look-ups: these bits are a permutation's and so spread by themselves. Saves the
	 * inversion of `perm` for every packet. */
	struct entry **recent;
	struct entry **chunk;
	uint32_t taken;            /* indices ever used: below them every chunk exists */
	uint32_t max;
	uint32_t rest;             /* an index has rested when more than so many rest */
	uint32_t count;
	uint32_t serial;
	uint32_t resting, rest_head, rest_tail;
	/* Rested ones to draw from: taken in the order in which they were freed, they would come around in the same order for ever, and who has seen the keys of one round would know all but 8 bits of the next. */
	uint32_t *drawn;
	uint32_t drawable, draw_from; /* now, and at least before one is drawn: a power of two */
};

static inline struct entry *entry_at(const struct mr_table *t, uint32_t index)
{
	return &t->chunk[index / CHUNK][index % CHUNK];
}

/* The byte behind the range may be 2^64 itself. */
static inline bool range_is_wrapping(uint64_t from, uint64_t len)
{
	return len && from > UINT64_MAX - (len - 1);
}

/* IBA vol. 1, 10.6.3.1: what can be granted together. */
bool access_is_sound(uint32_t access);
/* A free index, with 8 bits that nobody knows; NULL with -ENOSPC or -ENOMEM. */
struct entry *entry_take(struct mr_table *t, uint8_t *low, int *error);
/* Forgets a live key: it is dead at once. */
void entry_forget_key(struct mr_table *t, struct entry *e);
/* The entry with these upper 24 bits, live, dead or bound to nothing; NULL: there was never one. */
struct entry *entry_by_upper(const struct mr_table *t, uint32_t upper);
/* Gives the index back. Its key is forgotten. */
void entry_give(struct mr_table *t, struct entry *e);

#endif
