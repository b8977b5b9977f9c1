/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the engine's source of time. Invariant: clock_now never goes backwards on one thread, nor from a thread to the next that owns the engine. */
#include "clock.h"

#include <stdbool.h>

#include <rte_cpuflags.h>

static bool is_tsc_invariant(void)
{
#ifdef RTE_ARCH_X86
	return rte_cpu_get_flag_enabled(RTE_CPUFLAG_INVTSC) > 0;
#else
	return true; /* the generic timer of arm64 and the time base of ppc64 are */
#endif
}

void clock_start(struct clock *c)
{
	uint64_t hz = rte_get_tsc_hz();
	*c = (struct clock){ .start_tsc = rte_rdtsc() };
	if (hz && is_tsc_invariant())
		c->mult = (uint64_t)(((unsigned __int128)1000000000u << 32) / hz);
}
