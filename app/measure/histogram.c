/* SPDX-License-Identifier: BSD-3-Clause */
/* Percentiles from buckets. Invariant: never above the largest value that was added. */
#include "histogram.h"

#include <math.h>

static uint64_t middle_of(unsigned bucket)
{
	if (bucket < HISTOGRAM_SUB)
		return bucket;
	unsigned shift = bucket / HISTOGRAM_SUB - 1;
	uint64_t low = (uint64_t)(bucket % HISTOGRAM_SUB + HISTOGRAM_SUB) << shift;
	return low + (UINT64_C(1) << shift) / 2;
}

uint64_t histogram_percentile(const struct histogram *h, double share)
{
	uint64_t rank = (uint64_t)ceil(share * (double)h->count), seen = 0;
	if (!h->count)
		return 0;
	for (unsigned i = 0; i < sizeof(h->bucket) / sizeof(h->bucket[0]); i++) {
		seen += h->bucket[i];
		if (seen >= rank && seen)
			return middle_of(i) < h->max ? middle_of(i) : h->max;
	}
	return h->max;
}
