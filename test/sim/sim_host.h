/* SPDX-License-Identifier: BSD-3-Clause */
/* A host of the simulator: a whole core with contexts of the client library on it, and the loop that an engine would be, in virtual time. It receives from its own queue (what the network put there) and
 * sends into one link as long as the link's transmit ring has room. */
#ifndef UROCE_SIM_HOST_H
#define UROCE_SIM_HOST_H

#include "core.h"
#include "sim_link.h"
#include "uroce.h"

struct sim_host;

struct sim_host_config {
	char name[16];
	uint8_t number;          /* in its MAC and IP addresses */
	bool is_ip6;
	uint32_t max_frame;
	uint32_t window_packets;
	uint64_t seed;           /* not 0 */
	uint64_t turn_ns;        /* one turn of the loop takes so long: frames that come meanwhile are one burst */
	uint32_t rx_frames;      /* receive ring; further ones are lost */
	uint32_t tx_frames;      /* transmit ring */
	struct sim_pool *pool;
	struct sim_link *uplink; /* the world's */
	const struct log *log;
};

/* Ends the process when the core refuses. */
struct sim_host *sim_host_new(const struct sim_host_config *config, uint64_t now_ns);
void sim_host_free(struct sim_host *h);

/* A context of the client library on its core; uroce_close as usual, at the latest before the host is freed. Requests are carried out at the host's time. */
struct uroce_context *sim_host_open(struct sim_host *h, const struct uroce_open_attr *attr);
struct core *sim_host_core(struct sim_host *h);
const uint8_t *sim_host_mac(const struct sim_host *h);

/* A frame for its receive ring; taken over. */
void sim_host_deliver(struct sim_host *h, struct sim_frame *f);
/* When it is to have its next turn; UINT64_MAX: never by itself. */
uint64_t sim_host_next(struct sim_host *h, uint64_t now_ns);
void sim_host_turn(struct sim_host *h, uint64_t now_ns);
/* The time of requests that contexts make before the next turn. */
void sim_host_set_time(struct sim_host *h, uint64_t now_ns);
uint64_t sim_host_rx_overflows(const struct sim_host *h);
/* Events written into channels so far: programs that wait for one need not read theirs until it changes. */
uint64_t sim_host_events(const struct sim_host *h);

#endif
