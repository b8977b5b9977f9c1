/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs that have something to send, in groups. A group is the QPs of one owner; groups share the sending of a core by bytes, however many QPs each has ready, and the QPs of a group take turns. This floor
 * does not know who owns a group: qp_wake puts a QP into its group, the core takes it out.
 *
 * Invariant, but for the time that the core is choosing: a group is in the line of groups exactly while a QP of it is ready. */
#ifndef UROCE_GROUP_H
#define UROCE_GROUP_H

#include <stdint.h>

#include "circle.h"

#define GROUP_QUANTUM 16384 /* bytes of frames that a group may send in its turn; more than one frame */

struct qp_group {
	struct circle turn;   /* first: its place in the line of groups */
	struct circle ready;  /* its QPs that are ready */
	int32_t credit;     /* bytes left in its turn; below 0: it has sent so much more than it might */
	uint32_t lingering; /* the core's: how many of its idle SQs are looked at without a doorbell */
};

static inline struct qp_group *group_of_turn(const struct circle *turn)
{
	return (struct qp_group *)turn;
}

static inline void group_init(struct qp_group *g)
{
	*g = (struct qp_group){ .credit = 0 };
	circle_init(&g->ready);
}

/* A group that has just got its first ready QP waits for its turn. What it had left of its last turn is gone, what it owes is not. */
static inline void group_wait(struct circle *groups, struct qp_group *g)
{
	g->credit = (g->credit < 0 ? g->credit : 0) + GROUP_QUANTUM;
	circle_append(groups, &g->turn);
}

#endif
