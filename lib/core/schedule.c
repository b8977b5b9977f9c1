/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes out: address packets first, then the QPs that have something to send, in turn, a few packets each. Owns the order; does not own the packets. Events for completions leave here too, once per burst. */
#include <stdlib.h>

#include "machine.h"

#define TURN 16u          /* packets of one QP before the next has its turn */
#define LATE_NS 1000000u  /* until an event that found its pipe full is tried again */
#define ADDRESS_FRAMES 4u /* ARP, ND and echo in one call: a flood of questions must not stop the QPs */

static struct qp *take_ready(struct core *c)
{
	struct qp_list *l = &c->env.ready;
	struct qp *q = l->head;
	if (!q)
		return NULL;
	l->head = q->ready_next;
	if (!l->head)
		l->tail = NULL;
	else
		__builtin_prefetch(l->head);
	q->is_ready = false;
	return q;
}

static uint8_t *loop_buffer(struct core *c)
{
	struct loop *l = &c->loop;
	if (l->tail - l->head == LOOP_FRAMES)
		return NULL;
	if (!l->buffer)
		l->buffer = aligned_alloc(ABI_CACHE_LINE, (size_t)LOOP_FRAMES * LOOP_FRAME_BYTES);
	return l->buffer ? l->buffer + (size_t)(l->tail % LOOP_FRAMES) * LOOP_FRAME_BYTES : NULL;
}

static void tap_sent(struct core *c, const uint8_t *frame, uint32_t len)
{
	if (c->tap)
		c->tap(c->tap_arg, c->env.now_ns, frame, len, true, DROP_NONE);
}

/* The frames of the caller. */
struct outlet {
	struct core_frame *frames;
	unsigned n, used;
};

#define TO_LOOP (-1) /* beside CORE_TO_WIRE and the number of another core */

/* Where the packets of q go. */
static int way_of(const struct core *c, const struct qp *q)
{
	if (!q->has_ah || !q->ah.is_local)
		return CORE_TO_WIRE;
	uint32_t core = q->dest_qpn & ((1u << CORE_INDEX_BITS) - 1);
	return core != c->config.core_index && core < c->config.cores ? (int)core : TO_LOOP;
}

static uint8_t *next_buffer(struct core *c, const struct outlet *o, int way)
{
	if (way == TO_LOOP)
		return loop_buffer(c);
	return o->used < o->n ? o->frames[o->used].data : NULL;
}

static void sent(struct core *c, struct outlet *o, int way, const uint8_t *frame, uint32_t len)
{
	tap_sent(c, frame, len);
	if (way == TO_LOOP) {
		c->loop.len[c->loop.tail++ % LOOP_FRAMES] = len;
		return;
	}
	struct core_frame *f = &o->frames[o->used++];
	f->len = len;
	f->to_core = (uint8_t)way;
	if (way != CORE_TO_WIRE)
		return;
	c->stats.tx_packets++;
	c->stats.tx_bytes += len;
}

static void append(struct qp_list *l, const struct qp_list *more)
{
	if (!more->head)
		return;
	if (l->tail)
		l->tail->ready_next = more->head;
	else
		l->head = more->head;
	l->tail = more->tail;
}

/* Puts those that found no buffer back in front, in their order. */
static void give_back(struct core *c, struct qp_list *held)
{
	struct qp_list *l = &c->env.ready;
	if (!held->head)
		return;
	held->tail->ready_next = l->head;
	l->head = held->head;
	if (!l->tail)
		l->tail = held->tail;
}

static void hold(struct qp_list *held, struct qp *q)
{
	q->is_ready = true;
	q->ready_next = NULL;
	if (held->tail)
		held->tail->ready_next = q;
	else
		held->head = q;
	held->tail = q;
}

/* false: it has more to send, but no buffer was left. */
static bool take_turn(struct core *c, struct qp *q, struct outlet *o)
{
	int way = way_of(c, q);
	for (; q->turn < TURN; q->turn++) {
		uint8_t *frame = next_buffer(c, o, way);
		if (!frame)
			return false;
		uint32_t len = qp_tx(q, frame);
		if (!len) {
			q->turn = 0;
			return true;
		}
		sent(c, o, way, frame, len);
	}
	q->turn = 0;
	qp_wake(q);
	return true;
}

unsigned core_tx(struct core *c, uint64_t now_ns, struct core_frame *frames, unsigned n)
{
	struct outlet o = { frames, n, 0 };
	struct qp_list held = { NULL, NULL }, later = { NULL, NULL };
	unsigned stuck = 0;
	uint32_t len;
	c->env.now_ns = now_ns;
	while (o.used < n && o.used < ADDRESS_FRAMES && addr_has_tx(c->env.addr) && (len = addr_tx(c->env.addr, now_ns, frames[o.used].data, frames[o.used].room)))
		sent(c, &o, CORE_TO_WIRE, frames[o.used].data, len);
	/* a QP whose buffers are used up may stand before one of the other kind: look past a few */
	while (stuck < 8) {
		struct qp *q = take_ready(c);
		if (!q)
			break;
		if (take_turn(c, q, &o)) {
			if (!q->is_ready && qp_has_late_ack(q))
				hold(&later, q);
			continue;
		}
		if (!q->is_ready) /* else it was woken in its turn and stands at the end already */
			hold(&held, q);
		stuck++;
	}
	give_back(c, &held);
	append(&c->env.ready, &later);
	c->env.round++;
	if (c->env.dirty)
		schedule_notify(c);
	return o.used;
}

static void notify(struct core *c, struct cq *cq)
{
	const struct core_hooks *h = c->config.hooks;
	if (!cq_take_arm(cq) && !cq->is_event_due)
		return;
	c->stats.events++;
	cq->is_event_due = h->channel_write(h->arg, cq->event_fd, &cq->cookie, sizeof(cq->cookie)) != 0;
}

void schedule_retry_events(struct core *c)
{
	struct cq *cq = c->late;
	if (c->env.now_ns < c->late_at)
		return;
	c->late = NULL;
	while (cq) {
		struct cq *next = cq->next_dirty;
		cq->is_dirty = false;
		env_mark_dirty(&c->env, cq);
		cq = next;
	}
}

void schedule_notify(struct core *c)
{
	struct cq *cq = c->env.dirty;
	c->env.dirty = NULL;
	while (cq) {
		struct cq *next = cq->next_dirty;
		cq->is_dirty = false;
		notify(c, cq);
		if (cq->is_event_due) { /* the pipe is full: again in a while, so the wake-up is late but never lost */
			cq->is_dirty = true;
			cq->next_dirty = c->late;
			c->late = cq;
			c->late_at = c->env.now_ns + LATE_NS;
		}
		cq = next;
	}
}
