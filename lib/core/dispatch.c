/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes in: a burst of frames in three passes - parse all, look all QPs up, process all in order - so that the cache misses of one overlap those of the others. Owns the way of a packet to its QP;
 * does not own what the QP does with it. Every frame ends accepted or under one drop reason. */
#include "machine.h"

#define BURST 32u

struct arrival {
	struct packet packet;
	struct qp *qp;
	enum drop drop;
};

static __attribute__((noinline)) void tap_received(struct core *c, const struct arrival *a, const struct core_frame *f)
{
	struct core_seen seen = { .now_ns = c->env.now_ns, .frame = f->data, .len = f->len, .why = a->drop };
	if (a->qp) {
		seen.qpn = a->qp->qpn;
		seen.qp_state = a->qp->state;
	}
	c->tap(c->tap_arg, &seen);
}

static void settle(struct core *c, const struct arrival *a, const struct core_frame *f)
{
	c->env.drops.count[a->drop]++;
	if (c->tap)
		tap_received(c, a, f);
}

static void parse(struct core *c, struct arrival *a, const struct core_frame *f)
{
	a->qp = NULL;
	/* a packet from ourselves to ourselves: what the wire would do to it, it does not need */
	if (__builtin_expect(f->is_looped, 0))
		a->drop = packet_parse(&a->packet, f->data, f->len, VLAN_NONE, NULL);
	else
		a->drop = packet_parse(&a->packet, f->data, f->len, f->vlan_tci, &c->filter);
}

static void look_up(struct core *c, struct arrival *a)
{
	if (a->drop != DROP_NONE || a->packet.kind != PACKET_ROCE)
		return;
	a->qp = qpn_find(&c->qpns, a->packet.dqpn);
	if (!a->qp)
		return;
	__builtin_prefetch(&a->qp->state);
	__builtin_prefetch(&a->qp->resp);
	__builtin_prefetch(&a->qp->ah);
}

/* Of no QP of this core. */
static __attribute__((noinline)) enum drop process_nobodys(struct core *c, const struct packet *p, bool is_looped)
{
	if (p->dqpn == QPN_MULTICAST && p->is_multicast)
		return mcast_rx(c, p, is_looped);
	if (!addr_is_ours(c->env.addr, &p->dst, p->vlan))
		return DROP_IP_NOT_OURS;
	if (!packet_is_icrc_ok(p))
		return DROP_ICRC;
	return p->dqpn <= 1 || p->dqpn == QPN_MULTICAST ? DROP_QP_RESERVED : DROP_QP_UNKNOWN;
}

static enum drop process(struct core *c, const struct arrival *a, bool is_looped)
{
	if (a->drop != DROP_NONE)
		return a->drop;
	if (a->packet.kind != PACKET_ROCE)
		return addr_rx(c->env.addr, c->env.now_ns, &a->packet);
	if (!a->qp)
		return process_nobodys(c, &a->packet, is_looped);
	if (!packet_is_icrc_ok(&a->packet))
		return addr_is_ours(c->env.addr, &a->packet.dst, a->packet.vlan) ? DROP_ICRC : DROP_IP_NOT_OURS;
	/* a QP takes what is for its own address alone; only where it refuses does it matter whether the address is ours at all */
	enum drop d = qp_rx(a->qp, &a->packet);
	return d == DROP_DESTINATION && !addr_is_ours(c->env.addr, &a->packet.dst, a->packet.vlan) ? DROP_IP_NOT_OURS : d;
}

static void finish(struct core *c, struct arrival *a, const struct core_frame *f)
{
	a->drop = process(c, a, f->is_looped);
	settle(c, a, f);
}

/* Looped packets and copies are not among those of the wire. */
static __attribute__((noinline)) void finish_rare(struct core *c, struct arrival *a, const struct core_frame *f)
{
	c->stats.rx_packets--; /* it is counted with its burst */
	if (f->is_looped) {
		c->stats.loopback_packets++;
		finish(c, a, f);
	} else if (a->drop == DROP_NONE && a->packet.kind == PACKET_ROCE) {
		process(c, a, false); /* counted where it came */
	} else if (a->drop == DROP_NONE) {
		addr_rx_copy(c->env.addr, c->env.now_ns, &a->packet);
	}
}

static void take_burst(struct core *c, const struct core_frame *frames, unsigned n)
{
	struct arrival arrivals[BURST];
	for (unsigned i = 0; i < n; i++) {
		if (i + 4 < n)
			__builtin_prefetch(frames[i + 4].data);
		parse(c, &arrivals[i], &frames[i]);
	}
	for (unsigned i = 0; i < n; i++)
		look_up(c, &arrivals[i]);
	c->stats.rx_packets += n;
	for (unsigned i = 0; i < n; i++) {
		const struct core_frame *f = &frames[i];
		if (__builtin_expect(f->is_looped || f->is_copy, 0)) {
			finish_rare(c, &arrivals[i], f);
			continue;
		}
		finish(c, &arrivals[i], f);
		c->stats.rx_bytes += f->len;
	}
}

void dispatch_loop(struct core *c)
{
	struct core_frame frames[BURST];
	struct loop *l = &c->loop;
	uint32_t end = l->tail; /* answers to these wait for the next round */
	while (l->head != end) {
		unsigned n = 0;
		for (; l->head != end && n < BURST; l->head++, n++) {
			uint32_t i = l->head % LOOP_FRAMES;
			frames[n] = (struct core_frame){ .data = l->buffer + (size_t)i * LOOP_FRAME_BYTES, .len = l->len[i], .is_looped = true };
		}
		take_burst(c, frames, n);
	}
}

void core_rx(struct core *c, uint64_t now_ns, const struct core_frame *frames, unsigned n)
{
	c->env.now_ns = now_ns;
	for (unsigned i = 0; i < n; i += BURST)
		take_burst(c, frames + i, n - i < BURST ? n - i : BURST);
	if (c->env.dirty)
		event_notify(c);
}
