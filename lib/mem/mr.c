/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory regions of one poll core. Owns the table, the keys and the decision whether an access is granted; owns neither the
 * memory that an MR names nor the protection domains, nor which keys are bound to a part of another's memory (mw.c), and knows
 * nothing of packets: who is told what about a refusal is qp's business.
 *
 * Invariants: an entry never moves and its chunk stays until the table goes; a live entry's key is not 0 and differs from every
 * other live key, a dead one's is 0; `recent` holds live entries only; live entries, resting ones and those that wait to be drawn
 * are all that were ever taken.
 *
 * IBA vol. 1, 10.6.2 and 10.6.3 (registration, access rights), 10.6.3.1 (remote write needs local write), 9.7.4.1.5 and 9.7.4.1.6
 * (R_Key, rights and bounds of a request). */
#include "mr_entry.h"
#include "mw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const verdict_name[MEM_VERDICT_COUNT] = {
	[MEM_OK] = "granted",
	[MEM_BAD_KEY] = "no such key",
	[MEM_BAD_PD] = "key of another protection domain",
	[MEM_BAD_QP] = "window of another QP",
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

bool access_is_sound(uint32_t access)
{
	if (access & ~(uint32_t)(MEM_ACCESS_ALL | MEM_MW_BIND))
		return false;
	return !(access & (MEM_REMOTE_WRITE | MEM_REMOTE_ATOMIC)) || (access & MEM_LOCAL_WRITE);
}

struct entry *entry_take(struct mr_table *t, uint8_t *low, int *error)
{
	if (t->count == t->max) {
		*error = -ENOSPC;
		return NULL;
	}
	uint32_t noise = key_perm_apply(&t->low_perm, t->serial++ & 0xffffff);
	struct entry *e = take_rested(t, noise >> 14);
	if (!e)
		e = take_unused(t);
	*error = e ? 0 : -ENOMEM;
	t->count += e != NULL;
	*low = (uint8_t)noise;
	return e;
}

void entry_give(struct mr_table *t, struct entry *e)
{
	e->next_resting = INDEX_NONE;
	if (t->rest_tail == INDEX_NONE)
		t->rest_head = e->index;
	else
		entry_at(t, t->rest_tail)->next_resting = e->index;
	t->rest_tail = e->index;
	t->resting++;
	t->count--;
}

void entry_forget_key(struct mr_table *t, struct entry *e)
{
	struct entry **recent = recent_of(t, e->mr.key);
	if (*recent == e)
		*recent = NULL;
	e->mr.key = 0;
}

/* What can be registered so. */
static int check_region(uint64_t iova, const void *host, uint64_t len, uint32_t access)
{
	if (access & MEM_FLUSH_PERSISTENT)
		return -EOPNOTSUPP;
	return access_is_sound(access) && !range_is_wrapping(iova, len) && !range_is_wrapping((uintptr_t)host, len) ? 0 : -EINVAL;
}

int mr_register(struct mr_table *t, struct pd *pd, void *host, uint64_t iova, uint64_t len, uint32_t access, enum mr_kind kind, struct mr **out)
{
	uint8_t low;
	int rc = check_region(iova, host, len, access);
	if (rc)
		return rc;
	struct entry *e = entry_take(t, &low, &rc);
	if (!e)
		return rc;
	e->mr = (struct mr){ .iova = iova, .len = len, .host = host, .pd = pd, .key = make_key(t, e, low), .access = access | MEM_LKEY, .kind = (uint8_t)kind };
	pd->refs++;
	*out = &e->mr;
	return 0;
}

void mr_deregister(struct mr_table *t, struct mr *mr)
{
	if (!mr)
		return;
	struct entry *e = (struct entry *)mr;
	if (e->of)
		mw_unbind(t, mr);
	else
		entry_forget_key(t, e);
	mr->pd->refs--;
	mr->pd = NULL;
	entry_give(t, e);
}

int mr_change(struct mr_table *t, struct mr *mr, const struct mr_change *to)
{
	struct entry *e = (struct entry *)mr;
	uint32_t access = to->has_access ? to->access : mr->access & ~(uint32_t)MEM_LKEY;
	int rc = check_region(to->has_memory ? to->iova : mr->iova, to->has_memory ? to->host : mr->host, to->has_memory ? to->len : mr->len, access);
	if (rc)
		return rc;
	mr->access = access | MEM_LKEY;
	if (to->pd) {
		mr->pd->refs--;
		mr->pd = to->pd;
		mr->pd->refs++;
	}
	if (to->has_memory) {
		uint8_t low = (uint8_t)key_perm_apply(&t->low_perm, t->serial++ & 0xffffff);
		entry_forget_key(t, e);
		mr->host = to->host;
		mr->iova = to->iova;
		mr->len = to->len;
		mr->kind = (uint8_t)to->kind;
		mr->key = make_key(t, e, low);
	}
	return 0;
}

/* ---- look-up ---- */

struct entry *entry_by_upper(const struct mr_table *t, uint32_t upper)
{
	uint32_t index = key_perm_invert(&t->perm, upper);
	return index < t->taken ? entry_at(t, index) : NULL;
}

/* A dead entry's key is 0, and 0 is nobody's. */
static __attribute__((noinline)) struct mr *find_slowly(const struct mr_table *t, uint32_t key)
{
	struct entry *e = key ? entry_by_upper(t, key >> 8) : NULL;
	if (!e || e->mr.key != key)
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

enum mem_verdict mr_check_remote(const struct mr_table *t, const struct pd *pd, const struct mw_list *through, uint32_t key, uint64_t addr, uint32_t len, uint32_t access, uint8_t **host)
{
	const struct mr *mr = find(t, key);
	if (!mr)
		return MEM_BAD_KEY;
	if (mr->pd != pd)
		return MEM_BAD_PD;
	if (__builtin_expect(mr->through != NULL, 0) && mr->through != through)
		return MEM_BAD_QP;
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

enum mem_verdict mr_check(const struct mr_table *t, const struct pd *pd, uint32_t key, uint64_t addr, uint32_t len, uint32_t access, uint8_t **host)
{
	return mr_check_remote(t, pd, NULL, key, addr, len, access, host);
}
