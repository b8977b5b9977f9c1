/* SPDX-License-Identifier: BSD-3-Clause */
/* One direction of a cable in virtual time: a queue in front of it that overflows, a rate, a propagation delay, and at its far end the faults of drivers/net/fault. Frames go in by send and come out, in the
 * order of their arrival, by receive. */
#ifndef UROCE_SIM_LINK_H
#define UROCE_SIM_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "sim_frame.h"

struct sim_link;

/* Sees each frame as it enters the link, as it leaves it, and as it is lost. */
enum sim_link_event { SIM_LINK_ENTERS, SIM_LINK_LEAVES, SIM_LINK_OVERFLOWS };
typedef void sim_link_tap_fn(void *arg, const char *link, enum sim_link_event event, uint64_t now_ns, const struct sim_frame *f);

struct sim_link_config {
	char name[16];
	uint64_t bits_per_second;
	uint64_t propagation_ns;
	uint32_t queue_frames;    /* further ones are lost */
	const char *fault;        /* specification, or NULL */
	struct sim_pool *pool;
	sim_link_tap_fn *tap;     /* or NULL */
	void *tap_arg;
};

/* Ends the process with a line when the fault specification is wrong: it is the test's own. */
struct sim_link *sim_link_new(const struct sim_link_config *config);
void sim_link_free(struct sim_link *l);

/* Takes f over. */
void sim_link_send(struct sim_link *l, uint64_t now_ns, struct sim_frame *f);
/* The next frame that has arrived by now_ns; the caller's. NULL: none. */
struct sim_frame *sim_link_receive(struct sim_link *l, uint64_t now_ns);
/* When sim_link_receive is to be called next; UINT64_MAX: nothing is under way. */
uint64_t sim_link_next(const struct sim_link *l);

/* Frames that have not begun to leave the sender yet, and when there will be fewer than `frames` of them (now_ns or before: already). */
uint32_t sim_link_backlog(struct sim_link *l, uint64_t now_ns);
uint64_t sim_link_room_at(struct sim_link *l, uint64_t now_ns, uint32_t frames);

/* From now on everything that arrives is lost; or no more. */
void sim_link_cut(struct sim_link *l, bool is_cut);
uint64_t sim_link_overflows(const struct sim_link *l);
bool sim_link_has_faults(const struct sim_link *l);

#endif
