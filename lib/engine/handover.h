/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from one core of an engine to another, where the port cannot steer by QPN and where QPs of two cores talk to each other: a ring for each core, into which all others put and from which it alone takes. */
#ifndef UROCE_HANDOVER_H
#define UROCE_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "log.h"

struct handover;
struct rte_mbuf;
struct wakeup;

enum handover_kind {
	HANDOVER_FRAME,  /* came on the wrong queue */
	HANDOVER_COPY,   /* is_copy of struct core_frame */
	HANDOVER_LOOPED, /* is_looped of struct core_frame */
};

/* 0; -ENOMEM after one log line. */
int handover_open(struct handover **out, unsigned cores, const struct log *log);
/* Frees what is still under way: before the mbufs' pool goes. NULL is fine. */
void handover_close(struct handover *h);
/* What ends the core's sleep. Before the first frame. */
void handover_join(struct handover *h, unsigned core, struct wakeup *wakeup);

/* The first how many of n mbufs core `to` has got; the others stay the caller's: its ring is full. Any core. */
unsigned handover_give(struct handover *h, unsigned to, struct rte_mbuf **m, unsigned n, enum handover_kind kind);
/* Up to room of the mbufs that core has got, in order. That core only, and so the next ones. */
unsigned handover_take(struct handover *h, unsigned core, struct rte_mbuf **m, unsigned room);
enum handover_kind handover_kind(const struct rte_mbuf *m);
/* true: who gives from now on ends the core's sleep. Set before the last look. */
void handover_set_sleeping(struct handover *h, unsigned core, bool sleeping);
bool handover_is_empty(const struct handover *h, unsigned core);

#endif
