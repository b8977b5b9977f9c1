/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes out: address packets first, then the clients that have something to send, in turn, some bytes each (deficit round robin), and of a client its QPs in turn, a few packets each. Owns the order;
 * does not own the packets. */
#include <stdlib.h>

#include "machine.h"

#define TURN 16u          /* packets of one QP before the next of its group has its turn */
#define STUCK 8u          /* QPs without a buffer, or with a long queue to flush, in one call */
#define COPIES 256u       /* for members of groups, of one call: they are made before anything else is looked at */
#define AHEAD 3u          /* frames whose lines are asked for before they are written: fewer come too late, many more are forgotten again */
#define AHEAD_BYTES 192u  /* of each: a datagram of 64 bytes, whole; the processor sees by itself where longer ones go on */
#define ADDRESS_FRAMES 4u /* ARP, ND and echo in one call: a flood of questions must not stop the QPs */

static uint8_t *loop_buffer(struct core *c)
{
	struct loop *l = &c->loop;
	if (l->tail - l->head == LOOP_FRAMES)
		return NULL;
	if (!l->buffer)
		l->buffer = aligned_alloc(ABI_CACHE_LINE, (size_t)LOOP_FRAMES * LOOP_FRAME_BYTES);
	return l->buffer ? l->buffer + (size_t)(l->tail % LOOP_FRAMES) * LOOP_FRAME_BYTES : NULL;
}

static __attribute__((noinline)) void tap_sent(struct core *c, const struct qp *q, const uint8_t *frame, uint32_t len)
{
	struct core_seen seen = { .now_ns = c->env.now_ns, .frame = frame, .len = len, .is_tx = true };
	if (q) {
		seen.qpn = q->qpn;
		seen.qp_state = q->state;
	}
	c->tap(c->tap_arg, &seen);
}

/* The frames of the caller. */
struct outlet {
	struct core_frame *frames;
	unsigned n, used;
	unsigned crossed; /* of those used, to other cores */
	uint64_t bytes;   /* of the others */
	unsigned copies;  /* for members of groups, which the next round makes */
	unsigned stuck;   /* QPs that had to stop for want of a buffer, or with much left to do */
};

#define TO_LOOP (-1)   /* beside CORE_TO_WIRE and the number of another core */
#define TO_NOBODY (-2) /* there is nothing to send */
#define TO_GROUP (-3)  /* to the wire and to members of a multicast group, here and on other cores */

static int way_to(const struct core *c, bool is_local, uint32_t dest_qpn)
{
	if (!is_local)
		return CORE_TO_WIRE;
	uint32_t core = dest_qpn & ((1u << CORE_INDEX_BITS) - 1);
	return core != c->config.core_index && core < c->config.cores ? (int)core : TO_LOOP;
}

/* Where the packets of a connected QP go; a UD QP has a way for each. */
static int way_of(const struct core *c, const struct qp *q)
{
	return way_to(c, q->has_ah && q->ah.is_local, q->dest_qpn);
}

/* Where the next packet of a UD QP goes. */
static int way_of_next(const struct core *c, struct qp *q, const struct ah **ah)
{
	uint32_t qpn;
	*ah = qp_next_ah(q, &qpn);
	if (!*ah)
		return TO_NOBODY;
	return (*ah)->is_group ? TO_GROUP : way_to(c, (*ah)->is_local, qpn);
}

/* Has the processor get a line that will be written. There is an instruction of its own for it, which compilers use only when told that every processor has it; where it is missing it does nothing. */
static inline void claim_line(const uint8_t *line)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* Whoever received a frame that was in this buffer before, over a ring between two cores, still has its lines. Stores are done in order, so each would wait for its own line; and loads that need what several of
 * them stored, as those of the ICRC do, wait too. Measured where the cores are far apart: a third more datagrams of 64 bytes. */
static inline void claim_ahead(const struct outlet *o)
{
	if (o->used + AHEAD < o->n)
		for (unsigned at = 0; at < AHEAD_BYTES; at += ABI_CACHE_LINE)
			claim_line(o->frames[o->used + AHEAD].data + at);
}

static uint8_t *next_buffer(struct core *c, const struct outlet *o, int way)
{
	if (way == TO_LOOP)
		return loop_buffer(c);
	if (way == TO_GROUP && (o->copies >= COPIES || !loop_buffer(c))) /* for the members here */
		return NULL;
	claim_ahead(o);
	return o->used < o->n ? o->frames[o->used].data : NULL;
}

static void keep_looped(struct core *c, uint32_t len)
{
	c->loop.len[c->loop.tail++ % LOOP_FRAMES] = len;
}

/* A datagram to a group, which is to leave by the wire: copies for the members here, and where other cores may have some, whoever sends it makes more. The way to say of it. */
static int copy_to_members(struct core *c, struct outlet *o, struct qp_group *sender, const struct gid *group, const uint8_t *frame, uint32_t len)
{
	const struct mcast_group *g = mcast_find(c, group);
	if (g) {
		memcpy(loop_buffer(c), frame, len);
		keep_looped(c, len);
		o->copies += g->n;
		sender->credit -= (int32_t)(len * g->n); /* each copy costs this core what a frame does */
	}
	return mcast_other_cores(c, group) ? CORE_TO_GROUP : CORE_TO_WIRE;
}

/* q: whose it is, NULL: an address packet. */
static void sent(struct core *c, struct outlet *o, int way, const struct qp *q, const uint8_t *frame, uint32_t len)
{
	if (c->tap)
		tap_sent(c, q, frame, len);
	if (way == TO_LOOP) {
		keep_looped(c, len);
		return;
	}
	struct core_frame *f = &o->frames[o->used++];
	f->len = len;
	f->to_core = (uint8_t)way;
	if (way == CORE_TO_WIRE || way == CORE_TO_GROUP)
		o->bytes += len;
	else
		o->crossed++;
}

/* ---- whose turn it is ---- */

/* How a QP's turn ended. */
enum turn {
	TURN_DONE,      /* nothing more to send now */
	TURN_OVER,      /* its packets are used up: it stands at the end of its group */
	TURN_NO_CREDIT, /* its group's bytes are used up */
	TURN_NO_BUFFER,
	TURN_LATER,     /* it has much to do that gives no packet: the rest in the next round */
};

/* The next group's turn; where no other waits, the same one goes on. */
static bool renew_credit(struct core *c, struct qp_group *g)
{
	g->credit += GROUP_QUANTUM;
	if (circle_has_one(&c->env.groups))
		return true;
	circle_remove(&g->turn);
	circle_append(&c->env.groups, &g->turn);
	return false;
}

/* It costs its group what its CQEs take. */
static enum turn flush(struct core *c, struct qp *q, struct outlet *o)
{
	struct qp_group *g = q->group;
	if (g->credit <= 0 && !renew_credit(c, g))
		return TURN_NO_CREDIT;
	uint32_t n = qp_flush(q);
	g->credit -= (int32_t)(n * sizeof(struct abi_cqe));
	if (n < QP_FLUSH_PIECE)
		return TURN_DONE;
	o->stuck++;
	return TURN_LATER;
}

/* What sends nothing costs its group what its CQEs take. */
static enum turn charge_local(struct qp *q, struct outlet *o, enum turn t)
{
	q->group->credit -= (int32_t)(q->local.done * sizeof(struct abi_cqe));
	q->local.done = 0;
	if (t != TURN_DONE || !q->local.has_more)
		return t;
	o->stuck++;
	return TURN_LATER;
}

static enum turn take_turn(struct core *c, struct qp *q, struct outlet *o)
{
	struct qp_group *g = q->group;
	const struct ah *ah = NULL;
	int way = way_of(c, q);
	enum turn rest = TURN_DONE; /* when it has no packet */
	if (__builtin_expect(q->is_flushing, 0) && (rest = flush(c, q, o)) == TURN_NO_CREDIT)
		return rest;
	for (; q->turn < TURN; q->turn++) {
		if (__builtin_expect(g->credit <= 0, 0) && !renew_credit(c, g))
			return TURN_NO_CREDIT;
		if (q->service == SERVICE_UD && (way = way_of_next(c, q, &ah)) == TO_NOBODY) {
			q->turn = 0;
			return rest;
		}
		uint8_t *frame = next_buffer(c, o, way);
		if (!frame) {
			o->stuck++;
			return TURN_NO_BUFFER;
		}
		uint32_t len = ah ? qp_tx_to(q, ah, frame) : qp_tx(q, frame);
		if (!len) {
			q->turn = 0;
			return __builtin_expect(q->local.done, 0) ? charge_local(q, o, rest) : rest;
		}
		g->credit -= (int32_t)len;
		if (__builtin_expect(way == TO_GROUP, 0))
			way = copy_to_members(c, o, g, &ah->dgid, frame, len);
		sent(c, o, way, q, frame, len);
	}
	q->turn = 0;
	qp_wake(q);
	return __builtin_expect(q->local.done, 0) ? charge_local(q, o, TURN_OVER) : TURN_OVER;
}

/* What is for later in this call, or for the next one. In these lists a QP counts as ready, so that nobody puts it into its group meanwhile. */
struct aside {
	struct circle held;  /* had no buffer: back in front, in their order */
	struct circle later; /* wait for a round: to the end */
};

static void put_aside(struct aside *a, struct qp *q, enum turn t)
{
	if (circle_is_in(&q->ready)) /* it was woken in its turn and stands at the end already */
		return;
	if (t == TURN_DONE ? qp_has_late_ack(q) : t == TURN_LATER)
		circle_append(&a->later, &q->ready);
	else if (t == TURN_NO_BUFFER)
		circle_append(&a->held, &q->ready);
	else if (t == TURN_NO_CREDIT)
		circle_prepend(&q->group->ready, &q->ready);
}

static void put_back(struct core *c, struct aside *a)
{
	while (!circle_is_empty(&a->held)) {
		struct qp *q = qp_of_ready(a->held.before);
		circle_remove(&q->ready);
		circle_prepend(&q->group->ready, &q->ready);
		if (!circle_is_in(&q->group->turn))
			circle_prepend(&c->env.groups, &q->group->turn);
	}
	while (!circle_is_empty(&a->later)) {
		struct qp *q = qp_of_ready(a->later.next);
		circle_remove(&q->ready);
		qp_wake(q);
	}
}

/* The next QP of the group whose turn it is, taken out. */
static struct qp *take_ready(struct qp_group *g)
{
	struct qp *q = qp_of_ready(g->ready.next);
	circle_remove(&q->ready);
	return q;
}

/* A QP whose buffers are used up may stand before one of the other kind, so a few are looked past. */
static void send_in_turn(struct core *c, struct outlet *o)
{
	struct aside a;
	circle_init(&a.held);
	circle_init(&a.later);
	while (!circle_is_empty(&c->env.groups) && o->stuck < STUCK) {
		struct qp_group *g = group_of_turn(c->env.groups.next);
		struct qp *q = take_ready(g);
		put_aside(&a, q, take_turn(c, q, o));
		if (circle_is_empty(&g->ready))
			circle_remove(&g->turn);
	}
	put_back(c, &a);
}

static void send_address_packets(struct core *c, struct outlet *o)
{
	uint32_t len;
	while (o->used < o->n && o->used < ADDRESS_FRAMES && (len = addr_tx(c->env.addr, c->env.now_ns, o->frames[o->used].data, o->frames[o->used].room)))
		sent(c, o, CORE_TO_WIRE, NULL, o->frames[o->used].data, len);
}

bool core_scan(struct core *c)
{
	doorbell_scan(c);
	return core_has_packets(c);
}

unsigned core_tx(struct core *c, uint64_t now_ns, struct core_frame *frames, unsigned n)
{
	struct outlet o = { .frames = frames, .n = n };
	c->env.now_ns = now_ns;
	if (addr_has_tx(c->env.addr))
		send_address_packets(c, &o);
	if (!circle_is_empty(&c->env.groups))
		send_in_turn(c, &o);
	c->env.round++;
	c->stats.tx_packets += o.used - o.crossed;
	c->stats.tx_bytes += o.bytes;
	if (c->env.dirty)
		event_notify(c);
	return o.used;
}
