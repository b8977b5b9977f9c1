/* SPDX-License-Identifier: BSD-3-Clause */
/* Replay records of READs and atomics. Owns the ring; does not own what an answer looks like (reply.c) or whether a request is right (resp.c).
 * Invariant: records are contiguous in the ring, oldest to newest, in the order in which their requests were executed. */
#include "replay.h"

#include <errno.h>
#include <stdlib.h>

/* i-th record from the oldest. */
static struct replay_record *record_at(const struct replay *r, uint32_t i)
{
	uint32_t at = r->newest + 1 + (r->room - r->count) + i;
	while (at >= r->room)
		at -= r->room;
	return &r->record[at];
}

int replay_copy(const struct replay *r, uint32_t room, struct replay *to)
{
	struct replay_record *record = NULL;
	uint32_t kept = r->count < room ? r->count : room;
	for (uint32_t i = 0; i < r->count - kept; i++)
		if (record_at(r, i)->is_pending)
			return -EBUSY;
	if (room && !(record = calloc(room, sizeof(*record))))
		return -ENOMEM;
	*to = (struct replay){ .record = record, .room = room, .count = kept, .newest = kept ? kept - 1 : 0 };
	for (uint32_t i = 0; i < kept; i++) {
		record[i] = *record_at(r, r->count - kept + i);
		if (record[i].is_pending) {
			record[i].is_pending = false;
			replay_mark(to, &record[i]);
		}
	}
	return 0;
}

void replay_free(struct replay *r)
{
	free(r->record);
	*r = (struct replay){ 0 };
}

struct replay_record *replay_push(struct replay *r)
{
	if (!r->room)
		return NULL;
	if (r->count == r->room) {
		struct replay_record *oldest = record_at(r, 0);
		if (oldest->is_pending && !oldest->was_answered)
			return NULL;
		replay_done(r, oldest);
		r->count--;
	}
	r->newest = r->newest + 1 >= r->room ? 0 : r->newest + 1;
	r->count++;
	struct replay_record *rec = &r->record[r->newest];
	*rec = (struct replay_record){ 0 };
	return rec;
}

struct replay_record *replay_find(const struct replay *r, struct psn psn)
{
	for (uint32_t i = r->count; i-- > 0;) {
		struct replay_record *rec = record_at(r, i);
		if (psn_is_within(psn, rec->first, rec->psns))
			return rec;
	}
	return NULL;
}

/* The oldest pending record after `rec`, which may be as far as the newest. */
static struct replay_record *find_pending(const struct replay *r, struct replay_record *rec)
{
	while (rec != &r->record[r->newest]) {
		rec = rec + 1 == r->record + r->room ? r->record : rec + 1;
		if (rec->is_pending)
			return rec;
	}
	return NULL;
}

void replay_mark(struct replay *r, struct replay_record *rec)
{
	r->pending += !rec->is_pending;
	rec->is_pending = true;
	if (!r->due || psn_is_before(rec->first, r->due->first))
		r->due = rec;
}

void replay_done(struct replay *r, struct replay_record *rec)
{
	r->pending -= rec->is_pending;
	rec->is_pending = false;
	rec->was_answered = true;
	if (rec == r->due)
		r->due = r->pending ? find_pending(r, rec) : NULL;
}

void replay_clear(struct replay *r)
{
	for (uint32_t i = 0; i < r->count; i++)
		record_at(r, i)->is_pending = false;
	r->pending = 0;
	r->due = NULL;
}
