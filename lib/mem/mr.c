/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory regions of one poll core. Owns the table, the keys and the decision whether an access is granted; owns neither the
 * memory that an MR names nor the protection domains, and knows nothing of packets: who is told what about a refusal is qp's
 * business.
 *
 * Invariants: an entry never moves and its chunk stays until the table goes; a live entry's key is not 0 and differs from every
 * other live key, a dead one's is 0; `recent` holds live entries only; live entries, resting ones and those that wait to be drawn
 * are all that were ever taken.
 *
 * IBA vol. 1, 10.6.2 and 10.6.3 (registration, access rights), 10.6.3.1 (remote write needs local write), 9.7.4.1.5 and 9.7.4.1.6
 * (R_Key, rights and bounds of a request). */
#include "mr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHUNK = 512,           /* entries; 32 KiB */
	RECENT = 256,          /* power of two */
	REST_MAX = 1024,       /* most frees that an index waits for before it may be taken again, and most that are then drawn from; a power of two */
	MR_MAX = 1 << 20,
	INDEX_NONE = UINT32_MAX,
};

/* One cache line. */
struct entry {
	_Alignas(64) struct mr mr; /* first: an mr is its entry */
	uint32_t index;
	uint32_t next_resting;
	uint8_t low;               /* last low bits of the key; they never come twice in a row */
};
_Static_assert(sizeof(struct entry) == 64, "one cache line");

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

static const char *const verdict_name[MEM_VERDICT_COUNT] = {
	[MEM_OK] = "granted",
	[MEM_BAD_KEY] = "no such key",
	[MEM_BAD_PD] = "key of another protection domain",
	[MEM_BAD_RIGHTS] = "right not granted",
	[MEM_BAD_RANGE] = "out of range",
};

const char *mem_verdict_name(enum mem_verdict v)
{
	return (unsigned)v < MEM_VERDICT_COUNT ? verdict_name[v] : "unknown";
}

/* ---- table ---- */

int mr_table_new(struct mr_table **out, const uint8_t seed[24], uint32_t max)
{
	uint8_t other[24];
	if (max == 0 || max > MR_MAX)
		return -EINVAL;
	struct mr_table *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->max = max;
	t->rest = max / 4 < REST_MAX ? max / 4 : REST_MAX;
	t->rest_head = t->rest_tail = INDEX_NONE;
	for (t->draw_from = 1; 2 * t->draw_from <= t->rest; t->draw_from *= 2)
		;
	t->chunk = calloc((max + t->rest + t->draw_from + CHUNK - 1) / CHUNK, sizeof(*t->chunk));
	t->recent = calloc(RECENT, sizeof(*t->recent));
	t->drawn = calloc(t->draw_from, sizeof(*t->drawn));
	if (!t->chunk || !t->recent || !t->drawn) {
		mr_table_free(t);
		return -ENOMEM;
	}
	/* The low bits must not follow from the upper ones. */
	for (unsigned i = 0; i < sizeof(other); i++)
		other[i] = (uint8_t)(seed[(i * 7 + 5) % sizeof(other)] ^ 0x5c);
	key_perm_init(&t->perm, seed);
	key_perm_init(&t->low_perm, other);
	*out = t;
	return 0;
}

void mr_table_free(struct mr_table *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; t->chunk && i < (t->taken + CHUNK - 1) / CHUNK; i++)
		free(t->chunk[i]);
	free(t->chunk);
	free(t->recent);
	free(t->drawn);
	free(t);
}

uint32_t mr_table_count(const struct mr_table *t)
{
	return t->count;
}

static inline struct entry *entry_at(const struct mr_table *t, uint32_t index)
{
	return &t->chunk[index / CHUNK][index % CHUNK];
}

static struct entry **recent_of(const struct mr_table *t, uint32_t key)
{
	return &t->recent[key >> 8 & (RECENT - 1)];
}

/* ---- registration ---- */

static uint32_t pop_rested(struct mr_table *t)
{
	uint32_t index = t->rest_head;
	t->rest_head = entry_at(t, index)->next_resting;
	if (t->rest_head == INDEX_NONE)
		t->rest_tail = INDEX_NONE;
	t->resting--;
	return index;
}

/* noise: 10 bits that nobody knows. NULL: too few have rested. */
static struct entry *take_rested(struct mr_table *t, uint32_t noise)
{
	while (t->drawable < t->draw_from && t->resting > t->rest)
		t->drawn[t->drawable++] = pop_rested(t);
	if (t->drawable < t->draw_from || t->resting <= t->rest)
		return NULL;
	uint32_t *at = &t->drawn[noise & (t->draw_from - 1)], index = *at;
	*at = pop_rested(t);
	return entry_at(t, index);
}

/* There are max + rest + draw_from indices, so with fewer than max live, no more than `rest` resting and draw_from to be drawn, one that was never used is left. */
static struct entry *take_unused(struct mr_table *t)
{
	uint32_t chunk = t->taken / CHUNK;
	if (t->taken % CHUNK == 0) {
		t->chunk[chunk] = aligned_alloc(64, CHUNK * sizeof(struct entry));
		if (!t->chunk[chunk])
			return NULL;
		memset(t->chunk[chunk], 0, CHUNK * sizeof(struct entry));
	}
	struct entry *e = entry_at(t, t->taken);
	e->index = t->taken++;
	return e;
}

static uint32_t make_key(struct mr_table *t, struct entry *e, uint8_t low)
{
	uint32_t upper = key_perm_apply(&t->perm, e->index);
	/* Not the one that a stale copy of this index's last key carries, and never key 0. */
	while (low == e->low || (upper == 0 && low == 0))
		low++;
	e->low = low;
	return upper << 8 | low;
}

static bool has_sound_access(uint32_t access)
{
	if (access & ~(uint32_t)MEM_ACCESS_ALL)
		return false;
	/* IBA vol. 1, 10.6.3.1 */
	return !(access & (MEM_REMOTE_WRITE | MEM_REMOTE_ATOMIC)) || (access & MEM_LOCAL_WRITE);
}

/* The byte behind the range may be 2^64 itself. */
static bool is_wrapping(uint64_t from, uint64_t len)
{
	return len && from > UINT64_MAX - (len - 1);
}

int mr_register(struct mr_table *t, struct pd *pd, void *host, uint64_t iova, uint64_t len, uint32_t access, enum mr_kind kind, struct mr **out)
{
	if (access & MEM_FLUSH_PERSISTENT)
		return -EOPNOTSUPP;
	if (!has_sound_access(access) || is_wrapping(iova, len) || is_wrapping((uintptr_t)host, len))
		return -EINVAL;
	if (t->count == t->max)
		return -ENOSPC;
	uint32_t noise = key_perm_apply(&t->low_perm, t->serial++ & 0xffffff);
	struct entry *e = take_rested(t, noise >> 14);
	if (!e)
		e = take_unused(t);
	if (!e)
		return -ENOMEM;
	e->mr = (struct mr){ .iova = iova, .len = len, .host = host, .pd = pd, .key = make_key(t, e, (uint8_t)noise), .access = access, .kind = (uint8_t)kind };
	pd->refs++;
	t->count++;
	*out = &e->mr;
	return 0;
}

void mr_deregister(struct mr_table *t, struct mr *mr)
{
	if (!mr)
		return;
	struct entry *e = (struct entry *)mr;
	struct entry **recent = recent_of(t, mr->key);
	if (*recent == e)
		*recent = NULL;
	mr->pd->refs--;
	mr->pd = NULL;
	mr->key = 0;
	e->next_resting = INDEX_NONE;
	if (t->rest_tail == INDEX_NONE)
		t->rest_head = e->index;
	else
		entry_at(t, t->rest_tail)->next_resting = e->index;
	t->rest_tail = e->index;
	t->resting++;
	t->count--;
}

/* ---- look-up ---- */

/* A dead entry's key is 0, and 0 is nobody's. */
static __attribute__((noinline)) struct mr *find_slowly(const struct mr_table *t, uint32_t key)
{
	uint32_t index = key_perm_invert(&t->perm, key >> 8);
	if (key == 0 || index >= t->taken)
		return NULL;
	struct entry *e = entry_at(t, index);
	if (e->mr.key != key)
		return NULL;
	*recent_of(t, key) = e;
	return &e->mr;
}

static inline struct mr *find(const struct mr_table *t, uint32_t key)
{
	struct entry *e = *recent_of(t, key);
	if (__builtin_expect(e && e->mr.key == key, 1))
		return &e->mr;
	return find_slowly(t, key);
}

struct mr *mr_find(const struct mr_table *t, uint32_t key)
{
	return find(t, key);
}

enum mem_verdict mr_check(const struct mr_table *t, const struct pd *pd, uint32_t key, uint64_t addr, uint32_t len, uint32_t access, uint8_t **host)
{
	const struct mr *mr = find(t, key);
	if (!mr)
		return MEM_BAD_KEY;
	if (mr->pd != pd)
		return MEM_BAD_PD;
	if (access & ~mr->access)
		return MEM_BAD_RIGHTS;
	/* An address below iova gives an offset of at least 2^64 - iova, which registration has made no less than mr->len: so this
	 * subtraction may wrap. Nothing is added. */
	uint64_t offset = addr - mr->iova;
	if (offset > mr->len || len > mr->len - offset)
		return MEM_BAD_RANGE;
	*host = mr->host + offset;
	return MEM_OK;
}
