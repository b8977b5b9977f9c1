/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's records of READs, atomics, ATOMIC WRITEs and FLUSHes: what still has to be answered, and what may have to be answered again (IBA vol. 1, 9.7.5.1.2 to .5). A ring of max_dest_rd_atomic records,
 * allocated at RTR. Records are in PSN order; several may be pending, and the oldest pending one is answered first. */
#ifndef UROCE_REPLAY_H
#define UROCE_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "opcode.h"
#include "psn.h"

struct replay_record {
	struct psn first;
	uint32_t psns;       /* of the whole request */
	uint32_t msn;        /* after the request: every answer to it carries this one */
	uint8_t message;     /* enum message of the request */
	bool is_pending;     /* answers are due, from `from` on */
	bool was_answered;   /* in full, once: what is pending is a repetition */
	uint32_t rkey;
	uint32_t from;       /* READ: psn offset of the (repeated) request that is being answered: its first response is a FIRST or ONLY */
	uint32_t next;       /* READ: psn offset of the next response */
	uint32_t len;        /* bytes of READ responses: 0 for an ATOMIC WRITE and a FLUSH, which are answered by an empty one (annex A19) */
	union {
		uint64_t va;       /* READ */
		uint64_t original; /* atomic: the value before it, executed once */
	};
};

static inline bool replay_is_atomic(const struct replay_record *rec)
{
	return rec->message == MESSAGE_COMPARE_SWAP || rec->message == MESSAGE_FETCH_ADD;
}

struct replay {
	struct replay_record *record; /* ring of `room` */
	uint32_t room;
	uint32_t newest;  /* index of the newest record; valid when count > 0 */
	uint32_t count;
	uint32_t pending; /* how many are pending */
	struct replay_record *due; /* the oldest pending one; NULL when none is */
};

/* A ring of another size with the newest records, to be used instead of r or freed. room 0 is allowed: then nothing can be recorded. 0; -EBUSY: more answers are due than that; -ENOMEM. */
int replay_copy(const struct replay *r, uint32_t room, struct replay *to);
void replay_free(struct replay *r);
/* A slot for a new request, made pending by the caller through replay_mark; NULL when the peer has more outstanding than it may: the oldest has never been answered. A repetition of the oldest that is
 * still due is given up: a peer that is at its limit and sends a new request has the first answer. */
struct replay_record *replay_push(struct replay *r);
/* The newest record that psn belongs to; NULL when there is none. Records are kept however long ago they were made, so one from a former turn of the PSNs may name the same. */
struct replay_record *replay_find(const struct replay *r, struct psn psn);
void replay_mark(struct replay *r, struct replay_record *rec);
void replay_done(struct replay *r, struct replay_record *rec);
/* Forgets what is pending. */
void replay_clear(struct replay *r);

#endif
