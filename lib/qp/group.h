/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs that have something to send, in groups. A group is the QPs of one owner; groups share the sending of a core by bytes, however many QPs each has ready, and the QPs of a group take turns. This floor
 * does not know who owns a group: qp_wake puts a QP into its group, the core takes it out.
 *
 * Invariant, but for the time that the core is choosing: a group is in the list of groups exactly while a QP of it is ready. */
#ifndef UROCE_GROUP_H
#define UROCE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

struct qp;

#define GROUP_QUANTUM 16384 /* bytes of frames that a group may send in its turn; more than one frame */

/* FIFO through qp->ready_next and qp->ready_before. */
struct qp_list {
	struct qp *head, *tail;
};

struct qp_group {
	struct qp_list ready;
	struct qp_group *next, *before; /* in the list of groups */
	int32_t credit;                 /* bytes left in its turn; below 0: it has sent so much more than it might */
	bool is_queued;                 /* in the list of groups */
	uint32_t lingering;             /* the core's: how many of its idle SQs are looked at without a doorbell */
};

struct qp_group_list {
	struct qp_group *head, *tail;
};

static inline void group_list_append(struct qp_group_list *l, struct qp_group *g)
{
	g->is_queued = true;
	g->next = 0;
	g->before = l->tail;
	if (l->tail)
		l->tail->next = g;
	else
		l->head = g;
	l->tail = g;
}

static inline void group_list_prepend(struct qp_group_list *l, struct qp_group *g)
{
	g->is_queued = true;
	g->before = 0;
	g->next = l->head;
	if (l->head)
		l->head->before = g;
	else
		l->tail = g;
	l->head = g;
}

static inline void group_list_remove(struct qp_group_list *l, struct qp_group *g)
{
	g->is_queued = false;
	if (g->before)
		g->before->next = g->next;
	else
		l->head = g->next;
	if (g->next)
		g->next->before = g->before;
	else
		l->tail = g->before;
}

/* A group that has just got its first ready QP waits for its turn. What it had left of its last turn is gone, what it owes is not. */
static inline void group_wait(struct qp_group_list *l, struct qp_group *g)
{
	g->credit = (g->credit < 0 ? g->credit : 0) + GROUP_QUANTUM;
	group_list_append(l, g);
}

#endif
