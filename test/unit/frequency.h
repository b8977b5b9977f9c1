/* SPDX-License-Identifier: BSD-3-Clause */
/* How often numbers occur that are to be unpredictable. */
#ifndef UROCE_TEST_FREQUENCY_H
#define UROCE_TEST_FREQUENCY_H

#include <stdint.h>
#include <stdlib.h>

static inline int frequency_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* How often the most frequent one occurs; sorts them. */
static inline unsigned count_most_frequent(uint32_t *v, unsigned n)
{
	unsigned most = 0, run = 0;
	qsort(v, n, sizeof(*v), frequency_compare);
	for (unsigned i = 0; i < n; i++) {
		run = i && v[i] == v[i - 1] ? run + 1 : 1;
		most = run > most ? run : most;
	}
	return most;
}

#endif
