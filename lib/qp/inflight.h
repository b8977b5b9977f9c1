/* SPDX-License-Identifier: BSD-3-Clause */
/* The in-flight record of a requester: the WRs taken and not yet retired, in post order, and where in their PSNs it stands.
 *
 *      oldest ........... cursor ............ newest
 *      |  una             |  next                        frontier: one beyond the highest PSN ever sent
 *      |<- acknowledged   |<- sent     to be sent ->
 *
 * una <= next <= frontier. Sending moves next (and frontier), acknowledgement moves una, loss moves next back to una. PSNs are given to WRs when they are taken, since the
 * order is fixed then. It knows nothing of packets, timers or completions. */
#ifndef UROCE_INFLIGHT_H
#define UROCE_INFLIGHT_H

#include "wr.h"

struct inflight {
	struct wr *oldest, *newest;
	struct wr *cursor;     /* holds `next`; NULL when all WRs taken have been sent */
	uint32_t cursor_psn;   /* next - cursor->first */
	struct psn una, next, frontier;
	struct psn end;        /* PSN for the next WR to be taken */
	uint32_t ssn;          /* of the last WR taken */
};

static inline void inflight_init(struct inflight *f, struct psn first)
{
	*f = (struct inflight){ .una = first, .next = first, .frontier = first, .end = first };
}

/* Prepare: takes w (psns set) as the newest. messages: request messages it will be on the wire. */
static inline void inflight_append(struct inflight *f, struct wr *w, uint32_t messages)
{
	w->next = 0;
	w->first = f->end;
	f->end = psn_add(f->end, w->psns);
	f->ssn = (f->ssn + messages) & PSN_MASK;
	w->ssn = f->ssn;
	if (f->newest)
		f->newest->next = w;
	else
		f->oldest = w;
	f->newest = w;
	if (!f->cursor) {
		f->cursor = w;
		f->cursor_psn = 0;
	}
}

/* Commit: psns of the cursor's WR have gone out. */
static inline void inflight_sent(struct inflight *f, uint32_t psns)
{
	f->next = psn_add(f->next, psns);
	f->cursor_psn += psns;
	if (psn_is_before(f->frontier, f->next))
		f->frontier = f->next;
	if (f->cursor_psn >= f->cursor->psns) {
		f->cursor = f->cursor->next;
		f->cursor_psn = 0;
	}
}

/* Lost: everything from una on is to be sent again. */
static inline void inflight_rewind(struct inflight *f)
{
	f->cursor = f->oldest;
	f->cursor_psn = f->oldest ? (f->una.v - f->oldest->first.v) & PSN_MASK : 0;
	f->next = f->una;
}

/* Acknowledged: una moves to `to`, inside the oldest WR. What has been rewound and is acknowledged after all is not sent again. */
static inline void inflight_acked(struct inflight *f, struct psn to)
{
	f->una = to;
	if (psn_is_before(f->next, to))
		inflight_rewind(f);
}

/* The oldest WR, wholly acknowledged: out of the record, the caller's now. */
static inline struct wr *inflight_retire(struct inflight *f)
{
	struct wr *w = f->oldest;
	f->oldest = w->next;
	if (!f->oldest)
		f->newest = 0;
	f->una = wr_end(w);
	if (f->cursor == w || psn_is_before(f->next, f->una))
		inflight_rewind(f);
	return w;
}

/* Nothing of the WR at the cursor, if there is one, was ever sent. */
static inline bool inflight_is_at_boundary(const struct inflight *f)
{
	return !f->cursor || psn_is_equal(f->cursor->first, f->frontier);
}

/* PSNs sent and not acknowledged. */
static inline uint32_t inflight_psns(const struct inflight *f)
{
	return (f->next.v - f->una.v) & PSN_MASK;
}

/* Whether p was sent and is not acknowledged yet. */
static inline bool inflight_has(const struct inflight *f, struct psn p)
{
	return psn_is_within(p, f->una, (f->frontier.v - f->una.v) & PSN_MASK);
}

#endif
