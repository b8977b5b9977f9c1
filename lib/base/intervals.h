/* SPDX-License-Identifier: BSD-3-Clause */
/* A sorted set of disjoint half-open intervals [from, to) of 64-bit numbers: free space of an arena, bytes seen in a test. */
#ifndef UROCE_INTERVALS_H
#define UROCE_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
	uint64_t from, to;
};
struct intervals {
	struct interval *v;
	size_t n, room;
};

void intervals_init(struct intervals *s);
void intervals_free(struct intervals *s);
/* Adds [from, to), merging with neighbours. 0, -EINVAL (to < from) or -ENOMEM (nothing changed). */
int intervals_add(struct intervals *s, uint64_t from, uint64_t to);
int intervals_remove(struct intervals *s, uint64_t from, uint64_t to);
bool intervals_contain(const struct intervals *s, uint64_t from, uint64_t to);
/* Sum of the lengths. */
uint64_t intervals_total(const struct intervals *s);

#endif
