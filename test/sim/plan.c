/* SPDX-License-Identifier: BSD-3-Clause */
/* From a seed to hosts, cables and connections; the programs of a connection are program.c's. */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "stray.h"

const struct mistake_row mistake_rows[MISTAKES] = {
	[MISTAKE_NONE] = { "none" },
	[MISTAKE_KEY] = { "remote key", UROCE_WC_REM_ACCESS_ERR, UROCE_WC_SUCCESS, true, false },
	[MISTAKE_TOO_LONG] = { "SEND too long", UROCE_WC_REM_INV_REQ_ERR, UROCE_WC_LOC_LEN_ERR, true, false },
	[MISTAKE_LOCAL_KEY] = { "local key", UROCE_WC_LOC_PROT_ERR, UROCE_WC_SUCCESS, false, false },
	[MISTAKE_RECEIVE_KEY] = { "receive's key", UROCE_WC_REM_OP_ERR, UROCE_WC_LOC_PROT_ERR, true, false },
	[MISTAKE_RNR] = { "no receive", UROCE_WC_RNR_RETRY_EXC_ERR, UROCE_WC_SUCCESS, false, false },
	[MISTAKE_REVOKED] = { "memory revoked", UROCE_WC_REM_ACCESS_ERR, UROCE_WC_SUCCESS, true, true, true },
	[MISTAKE_PEER_GONE] = { "peer gone", UROCE_WC_RETRY_EXC_ERR, UROCE_WC_SUCCESS, false, true, true },
	[MISTAKE_HOST_GONE] = { "host gone", UROCE_WC_RETRY_EXC_ERR, UROCE_WC_SUCCESS, false, true, true },
	[MISTAKE_STOPPED] = { "stopped", UROCE_WC_WR_FLUSH_ERR, UROCE_WC_SUCCESS, false, true },
	[MISTAKE_DESTROYED] = { "destroyed", UROCE_WC_SUCCESS, UROCE_WC_SUCCESS, false, true, true },
	[MISTAKE_OWN_REVOKED] = { "own memory revoked", UROCE_WC_LOC_PROT_ERR, UROCE_WC_SUCCESS, false, true },
	[MISTAKE_AH_GONE] = { "address handle gone", UROCE_WC_LOC_QP_OP_ERR, UROCE_WC_SUCCESS, false, true },
};

void plan_fill(uint64_t seed, uint8_t *to, uint32_t len)
{
	struct rng r;
	uint64_t v;
	rng_seed(&r, seed);
	for (; len >= 8; len -= 8, to += 8) {
		v = rng_next(&r);
		memcpy(to, &v, 8);
	}
	v = rng_next(&r);
	memcpy(to, &v, len);
}

static uint64_t pick(struct rng *r, const uint64_t *of, unsigned n)
{
	return of[rng_below(r, n)];
}
#define PICK(r, ...) pick(r, (const uint64_t[]){ __VA_ARGS__ }, sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

/* ---- hosts and cables ---- */

static void make_fault(char to[128], struct rng *r, enum plan_faults faults)
{
	unsigned n = faults == PLAN_FAULTS_HEAVY ? 30 : 4; /* in a thousand */
	if (rng_below(r, 4) == 0)
		return;
	if (faults == PLAN_FAULTS_NONE) { /* nothing that loses or reorders */
		snprintf(to, 128, "ce:20%%/delay:0us:%uns/seed:%u/limit:32768", (unsigned)rng_below(r, 3000), (unsigned)rng_below(r, 1000000));
		return;
	}
	snprintf(to, 128, "drop:0.%03u/dup:0.%03u/reorder:0.%03u:%u:%uus/corrupt:0.%03u:%u/ce:1%%/delay:0us:%uns/seed:%u/limit:8192", (unsigned)rng_below(r, n), (unsigned)rng_below(r, n * 2), (unsigned)rng_below(r, n * 3),
		1 + (unsigned)rng_below(r, 16), 1 + (unsigned)rng_below(r, 200), (unsigned)rng_below(r, n / 2), 1 + (unsigned)rng_below(r, 3), (unsigned)rng_below(r, 3000), (unsigned)rng_below(r, 1000000));
}

static void make_host(struct plan *p, struct plan_host *h, struct rng *r, const struct plan_fixed *fixed)
{
	bool is_calm = p->faults == PLAN_FAULTS_NONE; /* then nothing may be lost */
	h->turn_ns = PICK(r, 50, 200, 700, 2000);
	h->bits_per_second = PICK(r, 1, 10, 25, 100, 100) * 1000000000u;
	h->propagation_ns = PICK(r, 50, 300, 2000, 20000);
	h->rx_frames = is_calm ? 16384 : (uint32_t)PICK(r, 64, 256, 1024);
	h->queue_frames = is_calm ? 16384 : (uint32_t)PICK(r, 64, 256, 1024);
	h->tx_frames = (uint32_t)PICK(r, 4, 32, 256);
	h->contexts = 1 + (unsigned)rng_below(r, PLAN_CONTEXTS);
	for (unsigned c = 0; c < h->contexts; c++) {
		h->cqs[c] = 1 + (unsigned)rng_below(r, 3);
		h->waits[c] = rng_below(r, 3) == 0;
		h->srq[c].buffers = rng_below(r, 2) ? 0 : 1 + (uint32_t)rng_below(r, 64);
	}
	make_fault(h->fault_out, r, p->faults);
	make_fault(h->fault_in, r, p->faults);
	if (!fixed->fault)
		return;
	const char *fault = strcmp(fixed->fault, "none") ? fixed->fault : "";
	snprintf(h->fault_out, sizeof(h->fault_out), "%s", fault);
	snprintf(h->fault_in, sizeof(h->fault_in), "%s", fault);
}

/* ---- connections ---- */

static void place_end(const struct plan *p, struct plan_end *e, unsigned host, struct rng *r)
{
	e->host = host;
	e->context = (unsigned)rng_below(r, p->host[host].contexts);
	e->send_cq = (unsigned)rng_below(r, p->host[host].cqs[e->context]);
	e->recv_cq = (unsigned)rng_below(r, p->host[host].cqs[e->context]);
	e->uses_srq = p->host[host].srq[e->context].buffers && rng_below(r, 2);
}

/* Retries that chance alone does not use up, and timeouts longer than queues. */
static void make_attr(const struct plan *p, const struct plan_pair *pair, struct plan_end *e, struct rng *r)
{
	e->attr.path_mtu = pair->mtu;
	e->attr.timeout = (uint8_t)PICK(r, 14, 15, 16);
	e->attr.retry_cnt = 7;
	e->attr.rnr_retry = 7;
	e->attr.min_rnr_timer = (uint8_t)PICK(r, 1, 2, 5, 10, 14);
	e->attr.max_rd_atomic = (uint8_t)PICK(r, 1, 2, 4, 16);
	e->attr.max_dest_rd_atomic = 16;
	e->attr.qkey = 0x1000 + (uint32_t)(p->seed & 0xfff);
	e->psn = (uint32_t)PICK(r, rng_below(r, 1u << 24), 0xffffff - rng_below(r, 64), 0x7fffff - rng_below(r, 64), rng_below(r, 4));
}

static void make_style(struct plan_end *e, struct rng *r)
{
	e->fill_seed = rng_next(r);
	e->cap.max_send_wr = (uint32_t)PICK(r, 1, 4, 16, 64);
	e->cap.max_recv_wr = (uint32_t)PICK(r, 1, 4, 16, 64);
	e->cap.max_send_sge = 1 + (uint32_t)rng_below(r, PIECES_MAX);
	e->cap.max_recv_sge = 1 + (uint32_t)rng_below(r, PIECES_MAX);
	e->cap.max_inline = (uint32_t)PICK(r, 0, 16, 64, 220, 512);
	e->signal_all = rng_below(r, 5) == 0;
	e->is_pool = rng_below(r, 4) == 0;
	e->posts_late = rng_below(r, 3) == 0;
	e->gap_ns = PICK(r, 200, 2000, 20000);
	e->batch = (uint32_t)PICK(r, 1, 3, 8, 32);
	e->drain_ns = rng_below(r, 5) ? 0 : 1000000 + rng_below(r, 300000);
}

/* Nobody answers UC and UD: what the peer does not grant is no mistake there. */
static const struct choices {
	unsigned n;
	enum mistake of[12];
} mistake_choices[] = {
	[UROCE_RC] = { 11, { MISTAKE_KEY, MISTAKE_KEY, MISTAKE_TOO_LONG, MISTAKE_LOCAL_KEY, MISTAKE_RECEIVE_KEY, MISTAKE_RNR, MISTAKE_REVOKED, MISTAKE_PEER_GONE, MISTAKE_STOPPED, MISTAKE_DESTROYED, MISTAKE_OWN_REVOKED } },
	[UROCE_UC] = { 6, { MISTAKE_LOCAL_KEY, MISTAKE_REVOKED, MISTAKE_PEER_GONE, MISTAKE_STOPPED, MISTAKE_DESTROYED, MISTAKE_OWN_REVOKED } },
	[UROCE_UD] = { 7, { MISTAKE_LOCAL_KEY, MISTAKE_REVOKED, MISTAKE_PEER_GONE, MISTAKE_STOPPED, MISTAKE_DESTROYED, MISTAKE_OWN_REVOKED, MISTAKE_AH_GONE } },
};

static enum mistake choose_mistake(const struct plan *p, const struct plan_pair *pair, struct rng *r, const struct plan_fixed *fixed)
{
	/* which receive a message gets is not said where there is an SRQ */
	bool is_shared = pair->end[0].uses_srq || pair->end[1].uses_srq;
	const struct choices *c = &mistake_choices[pair->service];
	uint64_t chance = rng_below(r, 4);
	enum mistake m = c->of[rng_below(r, c->n)];
	if (fixed->no_mistakes)
		return MISTAKE_NONE;
	if ((pair->end[0].host == p->dead_host) != (pair->end[1].host == p->dead_host))
		return MISTAKE_HOST_GONE;
	if (is_shared && (m == MISTAKE_TOO_LONG || m == MISTAKE_RECEIVE_KEY || m == MISTAKE_RNR))
		return MISTAKE_NONE;
	return chance ? MISTAKE_NONE : m;
}

static void make_pair(struct plan *p, struct plan_pair *pair, struct rng *r, const struct plan_fixed *fixed)
{
	unsigned a = (unsigned)rng_below(r, p->hosts), b = (unsigned)rng_below(r, p->hosts);
	if (a == b && rng_below(r, 2))
		b = (b + 1) % p->hosts; /* else a loopback connection */
	do
		pair->mtu = (uint32_t)PICK(r, 256, 512, 1024, 2048, 4096);
	while (pair->mtu > p->mtu);
	place_end(p, &pair->end[0], a, r);
	place_end(p, &pair->end[1], b, r);
	static const enum uroce_service choices[] = { UROCE_RC, UROCE_RC, UROCE_RC, UROCE_UC, UROCE_UC, UROCE_UD };
	pair->service = choices[rng_below(r, 6)];
	pair->steps_most = fixed->steps ? fixed->steps : UINT32_MAX;
	if (pair->service == UROCE_UD)
		pair->mtu = p->mtu;
	enum mistake mistake = choose_mistake(p, pair, r, fixed);
	for (unsigned i = 0; i < 2; i++) {
		struct plan_end *e = &pair->end[i];
		make_style(e, r);
		make_attr(p, pair, e, r);
		e->mistake_step = NO_INDEX;
	}
	if (pair->service != UROCE_RC && p->faults == PLAN_FAULTS_NONE) /* nothing may be lost for lack of a receive */
		pair->end[0].uses_srq = pair->end[1].uses_srq = false;
	program_make(pair, mistake, p->faults == PLAN_FAULTS_NONE, r);
}

/* Each from a seed of its own: what one is does not depend on whether others are there. */
static void make_pairs(struct plan *p, unsigned n, struct rng *r, const struct plan_fixed *fixed)
{
	for (unsigned i = 0; i < n; i++) {
		struct rng own;
		rng_seed(&own, rng_next(r));
		if (fixed->only && !(fixed->only >> i & 1))
			continue;
		p->pair[p->pairs].number = i;
		make_pair(p, &p->pair[p->pairs++], &own, fixed);
	}
}

/* An SRQ's buffers take what any of its users may get. */
static void fit_srqs(struct plan *p)
{
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 2 * p->pairs; i++) {
			struct plan_end *e = &p->pair[i / 2].end[i % 2];
			struct plan_pool *srq = &p->host[e->host].srq[e->context];
			if (!e->uses_srq)
				continue;
			if (srq->room < e->pool.room)
				srq->room = e->pool.room;
			e->pool.room = srq->room;
		}
}

struct plan *plan_new(uint64_t seed, const struct plan_fixed *fixed)
{
	struct plan *p = calloc(1, sizeof(*p));
	struct rng rng, *r = &rng;
	unsigned pairs;
	if (!p)
		abort();
	rng_seed(r, seed);
	p->seed = seed;
	p->hosts = 2 + (unsigned)rng_below(r, 2);
	pairs = 1 + (unsigned)rng_below(r, rng_below(r, 2) ? 2 : 8);
	p->is_ip6 = rng_below(r, 3) == 0;
	p->faults = (enum plan_faults)rng_below(r, 3);
	p->mtu = (uint32_t)PICK(r, 256, 1024, 2048, 4096, 4096);
	p->window_packets = (uint32_t)PICK(r, 8, 16, 64, 256);
	p->dead_host = rng_below(r, 20) ? NO_INDEX : (unsigned)rng_below(r, p->hosts);
	p->dead_ns = 1000000 + rng_below(r, 500000);
	if (fixed->qps)
		pairs = fixed->qps < PLAN_PAIRS_MAX ? fixed->qps : PLAN_PAIRS_MAX;
	if (fixed->mtu)
		p->mtu = fixed->mtu;
	if (fixed->no_mistakes)
		p->dead_host = NO_INDEX;
	if (fixed->fault)
		p->faults = strcmp(fixed->fault, "none") ? PLAN_FAULTS_HEAVY : PLAN_FAULTS_NONE;
	for (unsigned i = 0; i < p->hosts; i++)
		make_host(p, &p->host[i], r, fixed);
	make_pairs(p, pairs, r, fixed);
	stray_datagrams(p);
	fit_srqs(p);
	return p;
}

void plan_free(struct plan *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->pairs; i++)
		for (unsigned e = 0; e < 2; e++)
			program_free(&p->pair[i].end[e]);
	free(p);
}

/* ---- printing ---- */

static const char *const services[] = { [UROCE_RC] = "RC", [UROCE_UC] = "UC", [UROCE_UD] = "UD" };

static void print_step(const struct step *s, uint32_t i)
{
	static const char *const names[] = { "SEND", "SEND_IMM", "WRITE", "WRITE_IMM", "READ", "CMP_SWAP", "FETCH_ADD", "AT_WRITE", "FLUSH", "SEND_INV", "BIND_MW", "LOCAL_INV", "REG_MR" };
	printf("      %3u %-9s %5u bytes in %u%s%s%s%s%s%s remote +%u%s%s", i, names[s->opcode], s->len, s->pieces, s->flags & UROCE_SEND_SIGNALED ? " signaled" : "", s->flags & UROCE_SEND_FENCE ? " fence" : "",
		s->flags & UROCE_SEND_INLINE ? " inline" : "", s->flags & UROCE_SEND_SOLICITED ? " solicited" : "", s->garbage ? " garbage" : "", s->is_mistaken ? " MISTAKE" : "", s->remote_offset,
		s->takes_receive ? " takes a receive" : "", s->is_unwanted ? ", wrong Q_Key" : "");
	if (s->stray != NO_INDEX && s->stray < PLAN_ENDS_MAX)
		printf(", to connection %u side %u", s->stray / 2, s->stray % 2);
	else if (s->stray != NO_INDEX)
		printf(", to group %u", s->stray - PLAN_ENDS_MAX);
	if (s->opening != NO_INDEX)
		printf(", opening %u", s->opening);
	if (s->after != NO_INDEX)
		printf(", after the peer's %u", s->after);
	printf("\n");
}

static void print_end(const struct plan_end *e, bool is_long)
{
	printf("    host %u context %u: %u sends, %u receives, SQ %u, RQ %u, SGEs %u/%u, inline %u, psn 0x%06x, rd_atomic %u, timeout %u, rnr timer %u, gap %llu ns, batch %u%s%s%s%s, pool %u of %u bytes%s, mistake: %s at step %d\n", e->host,
		e->context, e->steps, e->receives, e->cap.max_send_wr, e->cap.max_recv_wr, e->cap.max_send_sge, e->cap.max_recv_sge, e->cap.max_inline, e->psn, e->attr.max_rd_atomic, e->attr.timeout, e->attr.min_rnr_timer,
		(unsigned long long)e->gap_ns, e->batch, e->signal_all ? ", signal_all" : "", e->is_pool ? ", pool" : "", e->posts_late ? ", late receives" : "", e->recovers ? ", recovers" : "", e->pool.buffers, e->pool.room, e->uses_srq ? ", SRQ" : "", mistake_rows[e->mistake].name, (int)e->mistake_step);
	for (uint32_t i = 0; is_long && i < e->steps; i++)
		print_step(&e->step[i], i);
}

void plan_print(const struct plan *p, bool is_long)
{
	printf("seed %llu: %u hosts, %u connections, IPv%c, port MTU %u, window %u\n", (unsigned long long)p->seed, p->hosts, p->pairs, p->is_ip6 ? '6' : '4', p->mtu, p->window_packets);
	for (unsigned i = 0; i < p->hosts; i++) {
		const struct plan_host *h = &p->host[i];
		printf("  host %u: %llu Gbit/s, %llu ns away, turn %llu ns, rx %u, tx %u, queue %u, out \"%s\", in \"%s\"\n", i, (unsigned long long)(h->bits_per_second / 1000000000), (unsigned long long)h->propagation_ns,
			(unsigned long long)h->turn_ns, h->rx_frames, h->tx_frames, h->queue_frames, h->fault_out, h->fault_in);
	}
	if (p->dead_host != NO_INDEX)
		printf("  host %u is cut off at %llu ns\n", p->dead_host, (unsigned long long)p->dead_ns);
	for (unsigned i = 0; i < p->pairs; i++) {
		printf("  connection %u (%u of the seed's), %s, path MTU %u\n", i, p->pair[i].number, services[p->pair[i].service], p->pair[i].mtu);
		print_end(&p->pair[i].end[0], is_long);
		print_end(&p->pair[i].end[1], is_long);
	}
}
