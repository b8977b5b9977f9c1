/* SPDX-License-Identifier: BSD-3-Clause */
/* What a lesson plays on: two programs with an engine each, A and B, a ring between them, all run by the calling thread, so that only whoever is told to does anything. And the looks at it: which memory has changed, which frames went by, how
 * often the kernel was called. */
#ifndef TESTROCE_STAGE_H
#define TESTROCE_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "station.h"
#include "tracer.h"

#define STAGE_BYTES 4096u /* of memory of each */

enum side { SIDE_A, SIDE_B, SIDES };

struct player {
	struct station station;
	struct uroce_pd *pd;
	struct uroce_mr *mr;
	struct uroce_cq *cq;
	struct uroce_qp *qp;
	struct uroce_endpoint endpoint;
	uint8_t *memory;
	uint32_t sent, received; /* WRs posted so far: the number of the next one's slot */
	uint32_t completed;      /* CQEs polled so far */
};

/* Frames that an engine has built since the last look. */
#define STAGE_FRAMES 8u
struct frames {
	unsigned n;
	enum side from[STAGE_FRAMES];
	char text[STAGE_FRAMES][256];
	bool is_ack[STAGE_FRAMES];
};

#define STAGE_WATCHES 16u
/* A piece of memory that somebody may have written. */
struct watch {
	const char *name;
	const void *at;
	uint32_t bytes;
	uint32_t slot_bytes; /* not 0: an array of slots; 0 and 4 bytes: an index */
	uint8_t *copy;       /* as it was when it was looked at last */
};

struct stage {
	struct player player[SIDES];
	struct frames frames;
	struct watch watch[STAGE_WATCHES];
	unsigned watches;
	struct tracer *tracer; /* NULL: calls cannot be counted here */
	int tracer_err;
	uint64_t calls;        /* when stage_begin was called last */
};

/* Everything but QPs and connection. Each: 0, or negative after a line on standard error. */
int stage_open(struct stage *s);
int stage_make_objects(struct stage *s);
int stage_connect(struct stage *s);
/* NULL objects are fine. */
void stage_close(struct stage *s);

/* Begins a step: forgets what was seen before. */
void stage_begin(struct stage *s);
/* Ends it: prints which memory has changed since, who having written it, and what the kernel did: that many system calls, which is returned. */
uint64_t stage_end(struct stage *s, const char *actor);
/* Has an engine do its rounds until it has built a frame (an ACK or another), or its CQ has a CQE that was not polled. Whether that came. */
bool stage_run_until_frame(struct stage *s, enum side side, bool is_ack);
bool stage_run_until_cqe(struct stage *s, enum side side);

#endif
