/* SPDX-License-Identifier: BSD-3-Clause */
/* A core for one run of a fuzz target, made quickly. */
#ifndef UROCE_FUZZ_CORE_H
#define UROCE_FUZZ_CORE_H

#include "core.h"

/* At 10.0.0.1, with MAC 02:00:00:00:00:01, tables for few objects and all random numbers from a seed. window_packets 0: the default. Ends the process when there is none. */
struct core *fuzz_core_new(uint32_t window_packets, uint64_t now_ns);

#endif
