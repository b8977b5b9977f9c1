/* SPDX-License-Identifier: BSD-3-Clause */
/* One core of an engine from the engine's side: made, started, stopped, closed. What others may do with it is in engine.h. */
#ifndef UROCE_ENGINE_CORE_H
#define UROCE_ENGINE_CORE_H

#include "engine.h"

struct capture;
struct core_hooks;
struct gid_index;
struct handover;
struct multicast;

/* Everything pointed to outlives the core. */
struct engine_core_config {
	const struct device_string *device;
	struct port *port;
	const struct core_hooks *hooks;
	const struct log *log; /* any thread */
	struct handover *handover; /* to the other cores; NULL: there are none */
	struct multicast *multicast; /* groups of all cores; the first one reports them */
	struct gid_index *gid_index; /* of all cores; NULL: addresses are our own */
	unsigned index;
};

/* The stack with its addresses, and what drives it; no thread yet. 0 or a negative errno after one log line. */
int engine_core_open(struct engine_core **out, const struct engine_core_config *config);
/* The thread of a poll core. 0 or a negative errno after one log line. */
int engine_core_start(struct engine_core *ec);
/* Ends the thread. */
void engine_core_stop(struct engine_core *ec);
/* Afterwards, on the calling thread: one round; whether it found anything. */
bool engine_core_run_out(struct engine_core *ec);
/* NULL is fine. */
void engine_core_close(struct engine_core *ec);
/* How many clients have been counted in and not out again (engine_core_leave). Any thread. */
unsigned engine_core_clients(const struct engine_core *ec);
void engine_core_enter(struct engine_core *ec);

/* By the driving thread between two rounds (engine_change.c has it do so). */
/* Other faults instead of those it has; spec NULL: none. 0, or a negative errno with a line in why: they are as they were. */
int engine_core_set_fault(struct engine_core *ec, const char *spec, char *why, uint32_t len);
/* Ends the capture that runs, if one does, and begins another, or none when it is NULL. Returns the one that ran. */
struct capture *engine_core_swap_capture(struct engine_core *ec, struct capture *with, uint64_t now_ns);
/* Any thread that is the only one to change it. */
bool engine_core_has_capture(const struct engine_core *ec);

#endif
