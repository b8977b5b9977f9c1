/* SPDX-License-Identifier: BSD-3-Clause */
/* One direction of a link that loses, duplicates, reorders, delays, corrupts and marks frames, by chance or by rules (fault_spec.h). Pure logic: frames are handles of the caller's, time is an argument,
 * and what happens to the n-th frame follows from the specification and n alone. Frames are pushed in as they come and popped when they are due, so a caller with little room simply stops popping.
 *
 * One thread. Nothing below fails for lack of memory but fault_new: a frame that cannot be copied is lost and counted. */
#ifndef UROCE_FAULT_H
#define UROCE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

struct fault;

/* What the caller's frames can do. */
struct fault_frames {
	/* The bytes of a frame, from the Ethernet header on, in one piece and writable. */
	uint8_t *(*data)(void *frame, uint32_t *len);
	/* A deep copy, or NULL. */
	void *(*copy)(void *arg, void *frame);
	void (*free)(void *arg, void *frame);
	void *arg;
};

/* Frames so far; a frame may count under several. */
enum fault_counter {
	FAULT_IN,
	FAULT_OUT,
	FAULT_DROPPED,
	FAULT_DUPLICATED,
	FAULT_REORDERED,  /* held back */
	FAULT_CORRUPTED,
	FAULT_CE_MARKED,
	FAULT_OVERFLOWED, /* lost: `limit` frames were waiting */
	FAULT_NO_MEMORY,  /* lost: no copy could be had */
	FAULT_COUNTERS
};
const char *fault_counter_name(enum fault_counter c);

/* 0; -EINVAL with one line in why (len bytes, always ended); -ENOMEM. frames is copied. */
int fault_new(struct fault **out, const char *spec, const struct fault_frames *frames, char *why, uint32_t len);
/* Frees the frames that wait, too. f may be NULL. */
void fault_free(struct fault *f);

/* Off: frames pass as they are, behind those that wait, which are due from now on. On at first. Frames are counted for rules and chance only while it is on. */
void fault_switch(struct fault *f, bool is_on);
/* Takes a frame over. A frame that is to be changed is replaced by a changed copy: nobody else's reference sees the change. */
void fault_push(struct fault *f, uint64_t now_ns, void *frame);
/* The next frame that is due, the caller's; NULL when there is none. */
void *fault_pop(struct fault *f, uint64_t now_ns);
/* When fault_pop will have one at the latest, perhaps long ago; UINT64_MAX when none waits. */
uint64_t fault_next_due(const struct fault *f);
/* Frames that wait. */
uint32_t fault_waiting(const struct fault *f);
uint64_t fault_counter(const struct fault *f, enum fault_counter c);

#endif
