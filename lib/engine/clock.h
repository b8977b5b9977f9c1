/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's clock: nanoseconds since some moment, by the time stamp counter where it runs at an invariant rate (one multiplication), else by CLOCK_MONOTONIC. */
#ifndef UROCE_CLOCK_H
#define UROCE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "dpdk_compat.h"

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

struct clock {
	uint64_t start_tsc;
	uint64_t mult; /* ns per tick, 32.32; 0: the counter cannot be used */
};

static inline uint64_t clock_monotonic(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_now(const struct clock *c)
{
	if (likely(c->mult))
		return (uint64_t)(((unsigned __int128)(rte_rdtsc() - c->start_tsc) * c->mult) >> 32) + 1;
	return clock_monotonic();
}

/* After the EAL started (it calibrates the counter). */
void clock_start(struct clock *c);

#endif
