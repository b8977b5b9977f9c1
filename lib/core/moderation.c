/* SPDX-License-Identifier: BSD-3-Clause */
/* Moderation of completion events: one that is due is held back until a number of CQEs has come, a period at most. Owns what is held back; that an event is due, and writing it, are the CQ's and event.c's.
 *
 * Invariant: while an event is held back its timer runs and the arm word stays as it was found, so that whoever has armed is woken within a period, and arming again meanwhile is one arming. */
#include "machine.h"

static struct completion_queue *queue_of(struct moderation *m)
{
	return (struct completion_queue *)((uint8_t *)m - offsetof(struct completion_queue, moderation));
}

/* Whether there is somebody to be told, still. */
static bool let_go(struct core *c, struct completion_queue *q)
{
	q->moderation.is_holding = false;
	wheel_cancel(c->env.wheel, &q->moderation.timer);
	return cq_take_arm(&q->cq);
}

static void on_period_over(struct timer *t, uint64_t now_ns)
{
	struct completion_queue *q = queue_of((struct moderation *)((uint8_t *)t - offsetof(struct moderation, timer)));
	struct core *c = q->client->core;
	if (let_go(c, q))
		event_fire(c, q);
}

void moderation_init(struct moderation *m)
{
	timer_init(&m->timer, on_period_over);
}

void moderation_set(struct core *c, struct completion_queue *q, uint32_t count, uint32_t period_us)
{
	struct moderation *m = &q->moderation;
	if (m->is_holding && let_go(c, q)) /* by the old rule, not later than it would have been */
		event_fire(c, q);
	m->count = count;
	m->period_ns = (uint64_t)period_us * 1000;
	m->seen = q->cq.produced;
}

bool moderation_is_over(struct core *c, struct completion_queue *q)
{
	struct moderation *m = &q->moderation;
	uint32_t before = m->seen;
	m->seen = q->cq.produced;
	if (!m->is_holding) {
		if (!cq_is_due(&q->cq)) {
			q->cq.has_solicited = false;
			return false;
		}
		m->is_holding = true;
		m->since = before;
		wheel_arm(c->env.wheel, &m->timer, c->env.now_ns + m->period_ns);
	}
	return q->cq.produced - m->since >= m->count && let_go(c, q);
}

void moderation_forget(struct core *c, struct moderation *m)
{
	wheel_cancel(c->env.wheel, &m->timer);
}
