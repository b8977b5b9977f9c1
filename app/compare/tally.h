/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking the tally of a phase at one end, and telling it to the other. */
#ifndef COMPARE_TALLY_H
#define COMPARE_TALLY_H

#include "usage.h"
#include "work.h"

/* From the moment before the first message to the one after the last. */
struct tally_watch {
	struct tracer *tracer; /* NULL: not counted */
	pid_t daemon;
	struct usage usage;
	uint64_t calls, call_bytes, copied, calls_of[TRACER_NUMBERS];
};

/* Before the ends agree to begin, which takes its time: 0, or a negative errno after link_fail. tally_close in any case. */
int tally_open(struct tally_watch *w, struct link *l, bool is_counted, pid_t daemon);
/* Right before the first message, and right after the last. */
void tally_begin(struct tally_watch *w, struct link *l);
void tally_end(struct tally_watch *w, struct link *l, struct tally *t);
void tally_close(struct tally_watch *w);

json_t *tally_pack(const struct tally *t);
/* false: it is none. */
bool tally_unpack(json_t *message, struct tally *t);

#endif
