/* SPDX-License-Identifier: BSD-3-Clause */
/* What is written into the channels of clients, and what finds no room there. A completion event waits at its CQ, which has one at most; an asynchronous one in a ring of its client's, as long as that has room.
 * Owns the list of channels in which something waits. A channel that nobody reads costs a bounded number of system calls a millisecond, however many objects its client has.
 *
 * Invariant: a CQ is late exactly while an event of it has been fired and is not in its channel; a channel is late exactly while something waits for room in it, and nothing overtakes what waits. */
#include <errno.h>
#include <stdlib.h>

#include "machine.h"

#define LATE_NS 1000000u  /* until what found its channel full is tried again */
#define LATE_CHANNELS 16u /* tried then, */
#define LATE_EVENTS 64u   /* so many events of each, */
#define LATE_WRITES 256u  /* and of all of them */
#define WAITING_MAX 4096u

struct waiting_events {
	uint32_t head, tail; /* free running */
	struct abi_async_event event[WAITING_MAX];
};

int channel_init(struct channel *ch, const struct core_hooks *h, bool is_async)
{
	*ch = (struct channel){ .read_fd = -1, .write_fd = -1 };
	TAILQ_INIT(&ch->late);
	if (is_async) {
		ch->waiting = malloc(sizeof(*ch->waiting));
		if (!ch->waiting)
			return -ENOMEM;
		ch->waiting->head = ch->waiting->tail = 0; /* the rest is not touched before there is a need: pages of a program that reads are never had */
	}
	int rc = h->channel_new(h->arg, &ch->read_fd, &ch->write_fd);
	if (rc)
		free(ch->waiting);
	return rc;
}

void channel_destroy(struct channel *ch, const struct core_hooks *h)
{
	h->channel_free(h->arg, ch->read_fd, ch->write_fd);
	free(ch->waiting);
}

static int write_record(const struct core *c, const struct channel *ch, const void *record, uint32_t bytes)
{
	const struct core_hooks *h = c->config.hooks;
	return h->channel_write(h->arg, ch->write_fd, record, bytes);
}

static int write_completion(const struct core *c, const struct completion_queue *q)
{
	return write_record(c, q->channel, &q->cq.cookie, sizeof(q->cq.cookie));
}

static void make_late(struct core *c, struct channel *ch)
{
	if (ch->is_late)
		return;
	ch->is_late = true;
	if (TAILQ_EMPTY(&c->late))
		c->late_at = c->env.now_ns + LATE_NS;
	TAILQ_INSERT_TAIL(&c->late, ch, late_link);
}

/* Something has left. */
static void check_late(struct core *c, struct channel *ch)
{
	if (!TAILQ_EMPTY(&ch->late) || (ch->waiting && ch->waiting->head != ch->waiting->tail))
		return;
	ch->is_late = false;
	TAILQ_REMOVE(&c->late, ch, late_link);
}

static void leave_late(struct core *c, struct completion_queue *q)
{
	q->is_late = false;
	TAILQ_REMOVE(&q->channel->late, q, late_link);
	check_late(c, q->channel);
}

bool channel_put_completion(struct core *c, struct completion_queue *q)
{
	int rc = q->channel->is_late ? -EAGAIN : write_completion(c, q);
	if (rc != -EAGAIN)
		return !rc;
	q->is_late = true;
	TAILQ_INSERT_TAIL(&q->channel->late, q, late_link);
	make_late(c, q->channel);
	return true;
}

bool channel_put_async(struct core *c, struct channel *ch, const struct abi_async_event *e, bool may_wait)
{
	struct waiting_events *w = ch->waiting;
	int rc = ch->is_late ? -EAGAIN : write_record(c, ch, e, sizeof(*e));
	if (rc != -EAGAIN)
		return !rc;
	if (!may_wait || w->tail - w->head == WAITING_MAX)
		return false;
	w->event[w->tail++ % WAITING_MAX] = *e;
	make_late(c, ch);
	return true;
}

/* What has waited for the longest; it does so no more unless there is still no room. */
static int write_oldest(struct core *c, struct channel *ch)
{
	struct waiting_events *w = ch->waiting;
	struct completion_queue *q = TAILQ_FIRST(&ch->late);
	int rc = w ? write_record(c, ch, &w->event[w->head % WAITING_MAX], sizeof(w->event[0])) : write_completion(c, q);
	if (rc == -EAGAIN)
		return rc;
	c->stats.lost_events += rc != 0;
	if (w) {
		w->head++;
		check_late(c, ch);
	} else {
		leave_late(c, q);
	}
	return 0;
}

/* As many as it has room for, within bounds. */
static void retry_channel(struct core *c, struct channel *ch, unsigned *writes)
{
	for (unsigned i = 0; i < LATE_EVENTS && *writes && ch->is_late; i++, --*writes)
		if (write_oldest(c, ch))
			return;
}

/* Each of them once, from the one that has waited for the longest. */
void channel_retry_late(struct core *c)
{
	struct channel *ch, *last = TAILQ_LAST(&c->late, late_channels);
	unsigned writes = LATE_WRITES;
	if (c->env.now_ns < c->late_at)
		return;
	c->late_at = c->env.now_ns + LATE_NS;
	for (unsigned i = 0; i < LATE_CHANNELS && writes; i++) {
		ch = TAILQ_FIRST(&c->late);
		retry_channel(c, ch, &writes);
		if (ch->is_late) {
			TAILQ_REMOVE(&c->late, ch, late_link);
			TAILQ_INSERT_TAIL(&c->late, ch, late_link);
		}
		if (ch == last)
			return;
	}
}

void channel_forget_cq(struct core *c, struct completion_queue *q)
{
	if (q->is_late)
		leave_late(c, q);
}

void channel_forget_async(struct core *c, struct channel *ch)
{
	ch->waiting->head = ch->waiting->tail;
	if (ch->is_late)
		check_late(c, ch);
}
