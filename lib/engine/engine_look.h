/* SPDX-License-Identifier: BSD-3-Clause */
/* What an engine shows of itself while it runs. Each call is carried out by the thread that drives the core it is about, so that what it copies is of one moment. Any thread but that one. */
#ifndef UROCE_ENGINE_LOOK_H
#define UROCE_ENGINE_LOOK_H

#include "addr.h"
#include "core.h"
#include "counters.h"
#include "engine.h"
#include "look.h"

struct engine_look {
	struct core_stats core;
	struct drop_counters drops;
	struct engine_stats loop;
	uint64_t qp[QP_COUNTER_COUNT]; /* core_qp_counters */
};
void engine_look(struct engine_core *ec, struct engine_look *look);
/* The first `room` neighbours that a core knows; how many it knows. In several letters, so that one that knows thousands is not held up. */
uint32_t engine_neighbours(struct engine_core *ec, struct addr_neighbour *list, uint32_t room);

struct engine_gid {
	uint32_t index;
	struct gid gid;
	uint16_t vlan;
};
/* The first `room` GIDs, which all cores have alike; how many there are. */
uint32_t engine_gids(struct engine *e, struct engine_gid *list, uint32_t room);
/* What clients are told of their device. */
void engine_describe(struct engine *e, struct abi_device *device);

/* The next piece of a core's objects: core_look. */
unsigned engine_look_objects(struct engine_core *ec, enum look_kind kind, struct look_place *at, struct look_row rows[LOOK_OBJECTS]);

#endif
