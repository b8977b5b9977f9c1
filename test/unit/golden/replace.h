/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking the place of one side of a capture, and comparing what is sent. */
#ifndef UROCE_GOLDEN_REPLACE_H
#define UROCE_GOLDEN_REPLACE_H

#include <stdbool.h>

#include "capture.h"
#include "host.h"

/* What was compared, over all files. */
struct golden_tally {
	unsigned files, connections, responders, requesters;
	unsigned answers, acks;         /* of captured responders: READ and atomic responses, NAKs; positive ACKs */
	unsigned requests, completions; /* of captured requesters */
	unsigned flows, sent, received; /* of UC and UD: packets that we sent in the place of the sender; messages that we took in that of the receiver */
};

/* For messages of a failure. */
extern struct golden_place {
	const char *file;
	unsigned side; /* whose place is taken */
} golden_place;

/* Fails the test; p: the packet in question, or NULL. */
__attribute__((format(printf, 2, 3), noreturn)) void golden_fail(const struct packet *p, const char *format, ...);

/* Take the place of a side as responder (if the other one sent requests), as requester (if it did). */
void golden_replace_responder(const struct golden *g, unsigned side, struct golden_tally *t);
void golden_replace_requester(const struct golden *g, unsigned side, struct golden_tally *t);

/* The same for a flow of UC or UD, which is not answered. */
void golden_replace_sender(const struct golden *g, struct golden_tally *t);
void golden_replace_receiver(const struct golden *g, struct golden_tally *t);

struct golden_range {
	uint32_t rkey;
	uint64_t va, len;
};
/* What a request names of the responder's memory; false: nothing. */
bool golden_get_range(const struct packet *p, struct golden_range *r);
/* A region for each key that requests of a side were granted, as far as they reach; and the one for a key. */
void golden_register_regions(struct golden_host *h, const struct golden *g, unsigned requester);
struct golden_region *golden_find_region(struct golden_host *h, uint32_t captured_rkey);

static inline bool golden_is_request(const struct golden_frame *f, unsigned side)
{
	return f->side == side && f->p.op->flags & OPCODE_REQUEST;
}

static inline bool golden_is_response(const struct golden_frame *f, unsigned side)
{
	return f->side == side && f->p.op->flags & OPCODE_RESPONSE;
}

/* First request that a side sends; -1: none, or the capture misses some of them, so that the state cannot be set up. */
int golden_first_request(const struct golden *g, unsigned side);

static inline bool golden_is_ack(const struct packet *p)
{
	return p->op->message == MESSAGE_ACKNOWLEDGE && !(p->aeth.syndrome & 0xe0);
}

static inline bool golden_is_nak(const struct packet *p, uint8_t syndrome)
{
	return p->op->message == MESSAGE_ACKNOWLEDGE && p->aeth.syndrome == syndrome;
}

#endif
