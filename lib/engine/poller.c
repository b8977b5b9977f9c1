/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop (DESIGN section 9): stamp the clock once, serve control, send a burst, receive a burst, run the timers. Owns the frames between core, port and the other cores, and the statistics; decides nothing
 * about the protocol.
 * Invariant: frames leave in the order in which the core built them, and none is dropped: what the port (or the core it is for) did not take goes first in the next round, and the core builds no more until it
 * has gone. Every core takes what it is given in every round, so none waits for ever. Received frames that another core has no room for are lost, as in a queue of the port, and counted. */
#include "poller.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_pause.h>
#include <rte_prefetch.h>

#include "handover.h"

#define AWAKE_NS 20000u /* how long the engine keeps its CPU after its last work: giving it up costs a switch or two */
#define NAP_MIN_NS 5000u
#define CORES_MAX (1u << CORE_INDEX_BITS)
#define STUCK_NS 1000000000u /* a port that has taken nothing for so long is down */
#define DOWN_NS 20000000u    /* and one that is known to be down is given so long to come up */
#define STAMP_AFTER 4u  /* rounds and frames */
#define AWAY_NS 1000000u
#define LATE_ROUNDS 64u /* enough for two thousand frames, a full queue of a port */
#define REFILL_AFTER (POLLER_BURST / 2) /* frames sent: asking the pool costs the same for one mbuf as for many */

static bool has_built(const struct poller *p)
{
	return p->sent != p->built;
}

/* Everything built is gone: puts mbufs into the slots that have none. */
static bool refill(struct poller *p)
{
	if (unlikely(rte_pktmbuf_alloc_bulk(p->config.port->pool, p->tx, p->sent))) {
		p->stats.tx_no_mbuf++;
		return false;
	}
	for (unsigned i = 0; i < p->sent; i++)
		p->tx_frame[i].data = rte_pktmbuf_mtod(p->tx[i], uint8_t *);
	p->sent = p->built = 0;
	return true;
}

int poller_start(struct poller *p, const struct poller_config *config)
{
	memset(p, 0, sizeof(*p));
	p->config = *config;
	p->sent = p->built = POLLER_BURST;
	for (unsigned i = 0; i < POLLER_BURST; i++)
		p->tx_frame[i].room = config->port->frame_room;
	p->start_ns = p->now_ns = p->last_work_ns = clock_now(&config->clock);
	p->has_slept = true; /* there is no round before the first */
	return refill(p) ? 0 : -ENOMEM;
}

void poller_stop(struct poller *p)
{
	rte_pktmbuf_free_bulk(p->tx + p->sent, POLLER_BURST - p->sent);
	p->sent = p->built = POLLER_BURST;
}

/* Frames in several segments, and those of the wrong place, are rare: made whole if they fit. */
static bool make_whole(struct poller *p, struct rte_mbuf *m)
{
	if (likely(m->nb_segs == 1) || !rte_pktmbuf_linearize(m))
		return true;
	p->stats.rx_unusable++;
	return false;
}

/* The cookie is the place of the mbuf in its burst. Written in place: a struct that is returned is copied by wide loads right after narrow stores, which costs 10 ns. */
static void describe(struct core_frame *f, struct rte_mbuf **at)
{
	const struct rte_mbuf *m = *at;
	*f = (struct core_frame){ .data = rte_pktmbuf_mtod(m, uint8_t *), .len = m->data_len, .vlan_tci = (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) ? m->vlan_tci : VLAN_NONE,
		.cookie = at };
}

/* ---- between cores ---- */

static void give(struct poller *p, unsigned to, struct rte_mbuf **m, unsigned n, enum handover_kind kind)
{
	unsigned given = handover_give(p->config.handover, to, m, n, kind);
	p->stats.handed_over_tx += given;
	p->stats.handed_over_dropped += n - given;
	rte_pktmbuf_free_bulk(m + given, n - given);
}

/* cores: a bit for each that gets one. */
static void give_copies(struct poller *p, struct rte_mbuf *m, uint32_t cores, enum handover_kind kind)
{
	for (unsigned to = 0; to < p->config.cores; to++) {
		if (to == p->config.index || !(cores >> to & 1))
			continue;
		struct rte_mbuf *copy = rte_pktmbuf_copy(m, p->config.port->pool, 0, UINT32_MAX);
		if (copy)
			give(p, to, &copy, 1, kind);
		else
			p->stats.handed_over_dropped++;
	}
}

/* A datagram to a group goes to each core that has members, and is counted at one of these: here, if here are some. */
static int share_among_members(struct poller *p, struct rte_mbuf *m, const struct gid *group)
{
	uint32_t cores = core_mcast_cores(p->config.mcast_map, group);
	bool is_for_us = !cores || cores >> p->config.index & 1;
	int owner = is_for_us ? (int)p->config.index : __builtin_ctz(cores);
	give_copies(p, m, cores & ~(1u << owner), HANDOVER_COPY);
	return owner;
}

/* Frames of other cores leave the burst, a hole in the place of each; how many stay. */
static __rte_noinline unsigned sort_out(struct poller *p, struct core_frame *frames, unsigned n)
{
	struct rte_mbuf *others[CORES_MAX][POLLER_BURST];
	unsigned count[CORES_MAX] = { 0 }, kept = 0;
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf **at = frames[i].cookie;
		struct gid group;
		int owner = core_frame_owner(frames[i].data, frames[i].len, p->config.cores, &group);
		if (owner == CORE_GROUP)
			owner = share_among_members(p, *at, &group);
		if (owner >= 0 && (unsigned)owner != p->config.index) {
			others[owner][count[owner]++] = *at;
			*at = NULL;
			continue;
		}
		if (owner == CORE_ALL)
			give_copies(p, *at, UINT32_MAX, HANDOVER_COPY);
		frames[kept++] = frames[i];
	}
	for (unsigned to = 0; to < p->config.cores; to++)
		if (count[to])
			give(p, to, others[to], count[to], HANDOVER_FRAME);
	return kept;
}

static __rte_noinline unsigned receive_handed_over(struct poller *p, uint64_t now_ns)
{
	struct rte_mbuf *rx[POLLER_BURST];
	struct core_frame frames[POLLER_BURST];
	unsigned n = handover_take(p->config.handover, p->config.index, rx, POLLER_BURST);
	if (!n)
		return 0;
	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(rx[i]);
	for (unsigned i = 0; i < n; i++) {
		describe(&frames[i], &rx[i]);
		rte_prefetch0(frames[i].data);
		rte_prefetch0(frames[i].data + RTE_CACHE_LINE_SIZE);
		frames[i].is_copy = handover_kind(rx[i]) == HANDOVER_COPY;
		frames[i].is_looped = handover_kind(rx[i]) == HANDOVER_LOOPED;
	}
	core_rx(p->config.core, now_ns, frames, n);
	rte_pktmbuf_free_bulk(rx, n);
	p->stats.handed_over_rx += n;
	return n;
}

/* ---- from and to the port ---- */

static unsigned receive(struct poller *p, uint64_t now_ns)
{
	struct rte_mbuf *rx[POLLER_BURST];
	struct core_frame frames[POLLER_BURST];
	unsigned n = rte_eth_rx_burst(p->config.port->id, p->config.queue, rx, POLLER_BURST), usable = 0;
	if (!n)
		return 0;
	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(rx[i]);
	for (unsigned i = 0; i < n; i++) {
		uint8_t *data = rte_pktmbuf_mtod(rx[i], uint8_t *);
		rte_prefetch0(data);
		rte_prefetch0(data + RTE_CACHE_LINE_SIZE);
		if (likely(make_whole(p, rx[i])))
			describe(&frames[usable++], &rx[i]);
	}
	if (unlikely(p->config.handover != NULL))
		usable = sort_out(p, frames, usable);
	core_rx(p->config.core, now_ns, frames, usable);
	rte_pktmbuf_free_bulk(rx, n);
	p->stats.rx_bursts++;
	p->stats.rx_frames += n;
	return n;
}

static unsigned send_to_port(struct poller *p, unsigned n)
{
	n = rte_eth_tx_burst(p->config.port->id, p->config.queue, p->tx + p->sent, (uint16_t)n);
	p->stats.tx_bursts++;
	p->stats.tx_frames += n;
	return n;
}

static unsigned send_to_core(struct poller *p, unsigned to, unsigned n)
{
	n = handover_give(p->config.handover, to, p->tx + p->sent, n, HANDOVER_LOOPED);
	p->stats.handed_over_tx += n;
	return n;
}

/* Datagrams to groups that members on other cores get too; what these have no room for is lost, as on the way from the port. */
static __rte_noinline void copy_to_members(struct poller *p)
{
	struct gid group;
	for (unsigned i = p->sent; i < p->built; i++) {
		struct core_frame *f = &p->tx_frame[i];
		if (f->to_core != CORE_TO_GROUP)
			continue;
		f->to_core = CORE_TO_WIRE;
		if (core_frame_owner(f->data, f->len, p->config.cores, &group) == CORE_GROUP)
			give_copies(p, p->tx[i], core_mcast_cores(p->config.mcast_map, &group), HANDOVER_LOOPED);
	}
}

/* Runs of frames of one way each, in order. */
static __rte_noinline void send_each_way(struct poller *p)
{
	while (p->sent < p->built) {
		unsigned n = 1, to = p->tx_frame[p->sent].to_core;
		while (p->sent + n < p->built && p->tx_frame[p->sent + n].to_core == to)
			n++;
		unsigned gone = to == CORE_TO_WIRE ? send_to_port(p, n) : send_to_core(p, to, n);
		p->sent += gone;
		if (gone < n)
			return;
	}
}

/* As a wire without a carrier does; else nothing would be sent, retried and at last given up by any QP. */
static void drop_stuck(struct poller *p)
{
	rte_pktmbuf_free_bulk(p->tx + p->sent, p->built - p->sent);
	p->stats.tx_dropped += p->built - p->sent;
	p->sent = p->built;
}

/* Has the core build frames where there are empty mbufs. false: there is nothing to send. */
static bool build(struct poller *p, uint64_t now_ns)
{
	if (p->sent >= REFILL_AFTER && unlikely(!refill(p)) && p->sent == POLLER_BURST)
		return false;
	p->built += core_tx(p->config.core, now_ns, p->tx_frame + p->built, POLLER_BURST - p->built);
	for (unsigned i = p->sent; i < p->built; i++)
		p->tx[i]->data_len = (uint16_t)(p->tx[i]->pkt_len = p->tx_frame[i].len);
	if (unlikely(p->config.handover != NULL))
		copy_to_members(p);
	p->taken_ns = now_ns;
	return has_built(p);
}

static unsigned transmit(struct poller *p, uint64_t now_ns)
{
	if (!has_built(p) && !build(p, now_ns))
		return 0;
	unsigned before = p->sent;
	if (unlikely(p->config.handover != NULL))
		send_each_way(p);
	else
		p->sent += send_to_port(p, p->built - p->sent);
	unsigned n = p->sent - before;
	if (likely(!has_built(p)))
		return n;
	p->stats.tx_partial++;
	if (n)
		p->taken_ns = now_ns;
	else if (now_ns - p->taken_ns > (port_is_down(p->config.port) ? DOWN_NS : STUCK_NS))
		drop_stuck(p);
	return n;
}

static void account(struct poller *p, uint64_t now_ns, unsigned work)
{
	uint64_t round_ns = now_ns - p->now_ns;
	if (unlikely(round_ns > p->stats.longest_round_ns) && !p->has_slept)
		p->stats.longest_round_ns = round_ns;
	p->has_slept = false;
	p->now_ns = now_ns;
	p->stats.rounds++;
	if (work)
		p->last_work_ns = now_ns;
	else
		p->stats.idle_rounds++;
}

/* Reading the clock costs as much as an idle round, so light rounds share one reading: four idle ones, or one with a few frames. The time is then late by a fraction of a microsecond, below the resolution
 * of the timers. What is to be sent has its timers from a fresh one: nobody knows how long ago the last round was. */
static uint64_t stamp(struct poller *p)
{
	if (!core_scan(p->config.core) && p->since_stamp < STAMP_AFTER)
		return p->now_ns;
	p->since_stamp = 0;
	return clock_now(&p->config.clock);
}

/* Who drives this core may have been away (without a CPU, or a program with something else to do). What came meanwhile came in time, so no timer fires before it has been looked at: until a round finds nothing
 * to do, or for so many rounds, of which each further absence takes half; then the timers run once, whatever there is to do. A round that finds nothing runs the timers itself, for there may be an absence before each. */
static void run_core(struct poller *p, uint64_t now_ns, unsigned work)
{
	if (unlikely(now_ns - p->now_ns > AWAY_NS))
		p->late_rounds = p->late_rounds ? p->late_rounds / 2 : LATE_ROUNDS;
	bool is_late = unlikely(p->late_rounds > 1) && (work || core_has_packets(p->config.core));
	p->late_rounds = is_late ? p->late_rounds - 1 : 0;
	if (is_late)
		core_run_without_timers(p->config.core, now_ns);
	else
		core_run(p->config.core, now_ns);
}

/* Sends before it receives: what a program posts before it drives a round leaves at once, and the acknowledgement of its former WR, which is in the port by then, costs time while the peer has something to do. The timers come behind what was received. */
unsigned poller_round(struct poller *p)
{
	uint64_t now_ns = stamp(p);
	unsigned work = 0;
	if (unlikely(mailbox_has_mail(p->config.mailbox)))
		work += mailbox_serve(p->config.mailbox, now_ns);
	if (unlikely(now_ns >= p->tick_at_ns)) {
		p->tick_at_ns = now_ns + POLLER_TICK_NS;
		p->stats.age_ns = now_ns - p->start_ns;
		p->config.on_tick(p->config.arg, now_ns);
	}
	work += transmit(p, now_ns);
	work += receive(p, now_ns);
	if (unlikely(p->config.handover != NULL))
		work += receive_handed_over(p, now_ns);
	run_core(p, now_ns, work);
	account(p, now_ns, work);
	p->since_stamp += 1 + work;
	return work;
}

static bool has_work(const struct poller *p)
{
	return has_built(p) || mailbox_has_mail(p->config.mailbox) || (p->config.handover && !handover_is_empty(p->config.handover, p->config.index));
}

static void set_sleeping(struct poller *p, bool sleeping)
{
	core_set_sleeping(p->config.core, sleeping);
	if (p->config.handover)
		handover_set_sleeping(p->config.handover, p->config.index, sleeping);
}

/* Who rings after set_sleeping(true) writes to an eventfd; what was rung before is seen by the look after it. Frames from the port wake nobody (the virtual devices have no RX interrupt), so sleep is short. */
static void nap(struct poller *p)
{
	set_sleeping(p, true);
	uint64_t now_ns = clock_now(&p->config.clock), next_ns = core_next(p->config.core);
	uint64_t nap_ns = next_ns > now_ns ? next_ns - now_ns : 0;
	if (nap_ns > (uint64_t)p->config.sleep_us * 1000)
		nap_ns = (uint64_t)p->config.sleep_us * 1000;
	if (nap_ns >= NAP_MIN_NS && !has_work(p)) {
		wakeup_wait(p->config.wakeup, nap_ns);
		p->stats.sleeps++;
		p->stats.slept_ns += clock_now(&p->config.clock) - now_ns;
		p->has_slept = true;
	}
	set_sleeping(p, false);
}

void poller_idle(struct poller *p)
{
	bool is_lasting = p->now_ns - p->last_work_ns >= AWAKE_NS && !has_built(p);
	if (p->config.idle == DEVICE_IDLE_SPIN)
		return;
	if (!is_lasting) {
		rte_pause();
		return;
	}
	p->since_stamp = STAMP_AFTER; /* what follows may take any time */
	if (p->config.idle == DEVICE_IDLE_PAUSE)
		sched_yield(); /* whoever waits for this CPU may be the one we wait for; returns at once when nobody does */
	else
		nap(p);
}
