/* SPDX-License-Identifier: BSD-3-Clause */
/* How long things took: buckets that are 1/64 of a power of two wide, so that a percentile is right to 1.6 %. Allocates nothing. */
#ifndef APP_HISTOGRAM_H
#define APP_HISTOGRAM_H

#include <stdint.h>
#include <string.h>

#define HISTOGRAM_SUB 64u  /* buckets of one power of two */
#define HISTOGRAM_BITS 40u /* longer ones (18 minutes in ns) count as the longest bucket */

struct histogram {
	uint64_t count, sum, max;
	uint64_t bucket[HISTOGRAM_SUB * (HISTOGRAM_BITS - 5)];
};

static inline unsigned histogram_bucket(uint64_t value)
{
	if (value < HISTOGRAM_SUB)
		return (unsigned)value;
	if (value >> HISTOGRAM_BITS)
		value = (UINT64_C(1) << HISTOGRAM_BITS) - 1;
	unsigned shift = 63u - (unsigned)__builtin_clzll(value) - 6u;
	return HISTOGRAM_SUB * (shift + 1) + (unsigned)(value >> shift) - HISTOGRAM_SUB;
}

static inline void histogram_add(struct histogram *h, uint64_t value)
{
	h->count++;
	h->sum += value;
	if (value > h->max)
		h->max = value;
	h->bucket[histogram_bucket(value)]++;
}

static inline void histogram_clear(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
}

/* The smallest value v, to the middle of its bucket, such that a share (0..1) of all values is not above it (0: the smallest there is); 0 when there are none. */
uint64_t histogram_percentile(const struct histogram *h, double share);

#endif
