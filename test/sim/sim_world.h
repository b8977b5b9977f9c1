/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts around one switch, and the programs on them, in virtual time. Every event happens at the earliest time that something is due, in a fixed order, so a run follows from its configuration alone.
 * The switch knows all MAC addresses: unicast goes to its host, everything else to all the others. */
#ifndef UROCE_SIM_WORLD_H
#define UROCE_SIM_WORLD_H

#include <stdio.h>

#include "sim_host.h"

#define SIM_HOSTS_MAX 8u
#define SIM_ACTORS_MAX 64u

struct sim_world;

/* A program: says when it wants to run, and runs. */
struct sim_actor {
	uint64_t (*next)(void *arg, uint64_t now_ns); /* UINT64_MAX: never by itself */
	void (*act)(void *arg, uint64_t now_ns);
	void *arg;
};

/* The two links of a host, as seen from it. */
struct sim_cable {
	uint64_t bits_per_second, propagation_ns;
	uint32_t queue_frames;             /* of the switch towards it; its own side is bounded by tx_frames */
	const char *fault_out, *fault_in;  /* or NULL */
};

struct sim_world_config {
	uint64_t start_ns;
	FILE *capture;   /* pcapng, begun; or NULL */
	FILE *trace;     /* a line for each frame; or NULL */
};

struct sim_world *sim_world_new(const struct sim_world_config *config);
void sim_world_free(struct sim_world *w);
/* host->pool and host->uplink are set here. */
struct sim_host *sim_world_add_host(struct sim_world *w, struct sim_host_config *host, const struct sim_cable *cable);
void sim_world_add_actor(struct sim_world *w, const struct sim_actor *actor);
/* Cuts both links of a host, or mends them. */
void sim_world_cut(struct sim_world *w, unsigned host, bool is_cut);

uint64_t sim_world_now(const struct sim_world *w);
/* One moment: everything that is due next. false: nothing is due before until_ns, which it now is. */
bool sim_world_step(struct sim_world *w, uint64_t until_ns);

struct sim_world_stats {
	uint64_t moments, frames, overflows;
	uint64_t digest; /* of all frames that entered a link, and when: equal for equal runs */
};
void sim_world_stats(const struct sim_world *w, struct sim_world_stats *s);

#endif
