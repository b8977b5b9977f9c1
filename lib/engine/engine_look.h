/* SPDX-License-Identifier: BSD-3-Clause */
/* What an engine shows of itself while it runs. Each call is carried out by the thread that drives the core it is about, so that what it copies is of one moment. Any thread but that one. */
#ifndef UROCE_ENGINE_LOOK_H
#define UROCE_ENGINE_LOOK_H

#include "addr.h"
#include "core.h"
#include "counters.h"
#include "engine.h"

struct engine_look {
	struct core_stats core;
	struct drop_counters drops;
	struct engine_stats loop;
	uint64_t qp[QP_COUNTER_COUNT]; /* core_qp_counters */
};
void engine_look(struct engine_core *ec, struct engine_look *look);
/* The first `room` neighbours that a core knows; how many it knows. */
uint32_t engine_neighbours(struct engine_core *ec, struct addr_neighbour *list, uint32_t room);

#endif
