/* SPDX-License-Identifier: BSD-3-Clause */
/* A plan carried out: the world, and in it the programs of a plan on the client library, checked at every completion and at the end. */
#ifndef UROCE_SIM_RUN_H
#define UROCE_SIM_RUN_H

#include <stdio.h>

#include "plan.h"
#include "sim_world.h"

struct run_result {
	char failure[400]; /* empty: all is as planned */
	uint64_t virtual_ns, wrs;
	struct sim_world_stats world;
};

struct run_config {
	FILE *capture, *trace; /* or NULL: frames */
	FILE *history;         /* or NULL: what programs do and see */
	bool is_talkative;     /* log lines of the stack go to stderr */
};

/* true: as planned. Always frees everything it made. */
bool run_plan(const struct plan *p, const struct run_config *config, struct run_result *result);

#endif
