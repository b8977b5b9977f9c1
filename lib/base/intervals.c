/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the array of a set of intervals. Does not know what the numbers mean; meant for tens to thousands of intervals (a change
 * in the middle moves the rest of the array).
 * Invariant: v[0..n) is sorted, no interval is empty, and between two neighbours there is a gap: v[i].to < v[i + 1].from. So a
 * set has exactly one representation. */
#include "intervals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void intervals_init(struct intervals *s)
{
	*s = (struct intervals){ 0 };
}

void intervals_free(struct intervals *s)
{
	if (!s)
		return;
	free(s->v);
	intervals_init(s);
}

/* The first interval that ends at or after x, or n. */
static size_t find(const struct intervals *s, uint64_t x)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (s->v[middle].to < x)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int reserve_one(struct intervals *s)
{
	size_t room = s->room ? s->room * 2 : 8;
	struct interval *v;

	if (s->n < s->room)
		return 0;
	v = reallocarray(s->v, room, sizeof(*v));
	if (!v)
		return -ENOMEM;
	s->v = v;
	s->room = room;
	return 0;
}

/* Replaces v[first..last) by count intervals; the caller has reserved room. */
static void splice(struct intervals *s, size_t first, size_t last, const struct interval *by, size_t count)
{
	memmove(s->v + first + count, s->v + last, (s->n - last) * sizeof(*s->v));
	memcpy(s->v + first, by, count * sizeof(*s->v));
	s->n = s->n - (last - first) + count;
}

int intervals_add(struct intervals *s, uint64_t from, uint64_t to)
{
	struct interval all = { from, to };
	size_t first, last;
	int err;

	if (to < from)
		return -EINVAL;
	if (to == from)
		return 0;
	err = reserve_one(s);
	if (err)
		return err;
	/* What overlaps or only touches becomes one with the new one. */
	first = find(s, from);
	for (last = first; last < s->n && s->v[last].from <= to; last++) {
		if (s->v[last].from < all.from)
			all.from = s->v[last].from;
		if (s->v[last].to > all.to)
			all.to = s->v[last].to;
	}
	splice(s, first, last, &all, 1);
	return 0;
}

int intervals_remove(struct intervals *s, uint64_t from, uint64_t to)
{
	struct interval rest[2];
	size_t first, last, count = 0;
	int err;

	if (to < from)
		return -EINVAL;
	if (to == from)
		return 0;
	/* Only a hole inside one interval needs room, but then it must not fail half-way. */
	err = reserve_one(s);
	if (err)
		return err;
	first = find(s, from);
	for (last = first; last < s->n && s->v[last].from < to; last++) {
		struct interval old = s->v[last];
		if (old.from < from)
			rest[count++] = (struct interval){ old.from, from };
		if (old.to > to)
			rest[count++] = (struct interval){ to, old.to };
	}
	splice(s, first, last, rest, count);
	return 0;
}

bool intervals_contain(const struct intervals *s, uint64_t from, uint64_t to)
{
	size_t i;

	if (to <= from)
		return to == from; /* the empty interval is part of every set */
	i = find(s, to);
	return i < s->n && s->v[i].from <= from;
}

uint64_t intervals_total(const struct intervals *s)
{
	uint64_t total = 0;

	for (size_t i = 0; i < s->n; i++)
		total += s->v[i].to - s->v[i].from;
	return total;
}
