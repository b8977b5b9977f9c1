/* SPDX-License-Identifier: BSD-3-Clause */
/* QP numbers. Owns which are in use. Invariant: a number is in `taken` from qpn_take until QPN_RESTING other numbers have been released after it. */
#include "qpn.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define NUMBERS (1u << (24 - CORE_INDEX_BITS))
#define SLOTS_MIN 64u

int qpn_table_init(struct qpn_table *t, uint32_t core_index, uint64_t seed)
{
	*t = (struct qpn_table){ .core_index = core_index, .mask = SLOTS_MIN - 1, .is_replayed = seed != 0 };
	rng_seed(&t->rng, seed);
	t->slot = calloc(SLOTS_MIN, sizeof(*t->slot));
	t->resting = calloc(QPN_RESTING, sizeof(*t->resting));
	t->taken = calloc(NUMBERS / 64, sizeof(*t->taken));
	if (t->slot && t->resting && t->taken)
		return 0;
	qpn_table_destroy(t);
	return -ENOMEM;
}

void qpn_table_destroy(struct qpn_table *t)
{
	free(t->slot);
	free(t->resting);
	free(t->taken);
	*t = (struct qpn_table){ 0 };
}

static void insert(struct qpn_slot *slot, uint32_t mask, struct qpn_slot s)
{
	uint32_t i = s.qpn >> CORE_INDEX_BITS;
	while (slot[i & mask].qpn)
		i++;
	slot[i & mask] = s;
}

static int grow(struct qpn_table *t)
{
	uint32_t n = (t->mask + 1) * 2;
	struct qpn_slot *slot = calloc(n, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i <= t->mask; i++)
		if (t->slot[i].qpn)
			insert(slot, n - 1, t->slot[i]);
	free(t->slot);
	t->slot = slot;
	t->mask = n - 1;
	return 0;
}

/* 0, 1 and 0xFFFFFF have meanings of their own. */
static bool is_reserved(uint32_t qpn)
{
	return qpn <= 1 || qpn == 0xffffff;
}

/* From the kernel each: numbers that followed from one another would tell a peer, who sees some, which come next. */
static int draw(struct qpn_table *t, uint32_t *n)
{
	if (t->is_replayed) {
		*n = (uint32_t)rng_below(&t->rng, NUMBERS);
		return 0;
	}
	int err = random_bytes(n, sizeof(*n));
	*n &= NUMBERS - 1;
	return err;
}

int qpn_take(struct qpn_table *t, struct qp *qp, uint32_t *qpn)
{
	if (t->count + QPN_RESTING >= NUMBERS / 2)
		return -ENOSPC;
	if (2 * (t->count + 1) > t->mask && grow(t))
		return -ENOMEM;
	for (;;) { /* at most half are taken: two draws on average */
		uint32_t n;
		int err = draw(t, &n);
		if (err)
			return err;
		*qpn = n << CORE_INDEX_BITS | t->core_index;
		if (is_reserved(*qpn) || t->taken[n / 64] >> (n % 64) & 1)
			continue;
		t->taken[n / 64] |= 1ull << (n % 64);
		break;
	}
	insert(t->slot, t->mask, (struct qpn_slot){ *qpn, qp });
	t->count++;
	return 0;
}

/* Closes the hole at i: entries behind it that hash before it move up. */
static void remove_slot(struct qpn_table *t, uint32_t i)
{
	for (uint32_t j = (i + 1) & t->mask; t->slot[j].qpn; j = (j + 1) & t->mask) {
		uint32_t home = t->slot[j].qpn >> CORE_INDEX_BITS & t->mask;
		if (((j - home) & t->mask) < ((j - i) & t->mask))
			continue;
		t->slot[i] = t->slot[j];
		i = j;
	}
	t->slot[i] = (struct qpn_slot){ 0 };
}

void qpn_release(struct qpn_table *t, uint32_t qpn)
{
	uint32_t i = qpn >> CORE_INDEX_BITS & t->mask;
	while (t->slot[i].qpn && t->slot[i].qpn != qpn)
		i = (i + 1) & t->mask;
	if (!t->slot[i].qpn)
		return;
	remove_slot(t, i);
	t->count--;
	uint32_t *rest = &t->resting[t->resting_next++ % QPN_RESTING];
	if (*rest) {
		uint32_t n = *rest >> CORE_INDEX_BITS;
		t->taken[n / 64] &= ~(1ull << (n % 64));
	}
	*rest = qpn;
}
