/* SPDX-License-Identifier: BSD-3-Clause */
/* A core: makes the parts, joins them, takes them apart. Owns the wheel, the tables and the shared environment of the QPs; the data path is in dispatch.c, schedule.c and doorbell.c. */
#include "core.h"

#include <errno.h>
#include <stdlib.h>

#include "machine.h"

/* Frame bytes beyond the payload of the longest RC packet with a full MTU: Ethernet, VLAN, IPv6, UDP, BTH, RETH, immediate, ICRC. */
#define FRAME_OVERHEAD (14u + 4u + 40u + 8u + BTH_LEN + 16u + 4u + ICRC_LEN)
#define DEFAULT_OBJECTS 65536u
#define DEFAULT_WINDOW 256u
#define MAX_RD_ATOMIC 128u
#define DEFAULT_GROUPS 1024u
#define DEFAULT_GROUP_QPS 240u
#define CORES_MAX (1u << CORE_INDEX_BITS)

static uint32_t largest_mtu(uint32_t max_frame)
{
	for (uint32_t m = ABI_MTU_4096; m >= ABI_MTU_256; m--)
		if ((128u << m) + FRAME_OVERHEAD <= max_frame)
			return m;
	return 0;
}

/* Powers of two from 8 to 2^20: far below 2^23, so that no two live PSNs of a QP are half the space apart. */
static uint32_t choose_window(uint32_t packets)
{
	uint32_t w = 8;
	if (!packets)
		packets = DEFAULT_WINDOW;
	while (w * 2 <= packets && w < 1u << 20)
		w *= 2;
	return w;
}

static int make_seeds(uint64_t seed, uint8_t keys[24], uint64_t *qpns)
{
	*qpns = 0;
	if (!seed)
		return random_bytes(keys, 24);
	struct rng r;
	rng_seed(&r, seed);
	for (unsigned i = 0; i < 24; i++)
		keys[i] = (uint8_t)rng_next(&r);
	*qpns = rng_next(&r) | 1;
	return 0;
}

static void apply_defaults(struct core_config *c)
{
	c->max_qp = c->max_qp ? c->max_qp : DEFAULT_OBJECTS;
	c->max_cq = c->max_cq ? c->max_cq : DEFAULT_OBJECTS;
	c->max_srq = c->max_srq ? c->max_srq : DEFAULT_OBJECTS;
	c->max_ah = c->max_ah ? c->max_ah : DEFAULT_OBJECTS;
	c->max_mr = c->max_mr ? c->max_mr : DEFAULT_OBJECTS;
	c->max_mw = c->max_mw ? c->max_mw : DEFAULT_OBJECTS;
	c->max_groups = c->max_groups ? c->max_groups : DEFAULT_GROUPS;
	c->max_group_qps = c->max_group_qps ? c->max_group_qps : DEFAULT_GROUP_QPS;
	c->cores = c->cores ? c->cores : 1;
	c->hooks = c->hooks ? c->hooks : &core_host_hooks;
}

int core_new(struct core **out, const struct core_config *config, uint64_t now_ns)
{
	uint8_t keys[24];
	uint64_t qpns;
	uint32_t mtu = largest_mtu(config->max_frame);
	if (!mtu) {
		log_write(config->log, LOG_ERROR, "%s: frames of %u bytes cannot carry a path MTU of 256; at least %u are needed", config->name, config->max_frame, 256u + FRAME_OVERHEAD);
		return -EINVAL;
	}
	if (config->cores > CORES_MAX || config->core_index >= (config->cores ? config->cores : CORES_MAX)) {
		log_write(config->log, LOG_ERROR, "%s: core %u of %u: an engine has at most %u cores", config->name, config->core_index, config->cores, CORES_MAX);
		return -EINVAL;
	}
	struct core *c = aligned_alloc(ABI_CACHE_LINE, (sizeof(*c) + ABI_CACHE_LINE - 1) & ~(size_t)(ABI_CACHE_LINE - 1));
	if (!c)
		return -ENOMEM;
	*c = (struct core){ .config = *config, .limits = { mtu, MAX_RD_ATOMIC, config->mode <= 1 } };
	apply_defaults(&c->config);
	TAILQ_INIT(&c->late);
	TAILQ_INIT(&c->overruns);
	c->is_port_up = true;
	memcpy(c->filter.mac, config->addr.mac, 6);
	struct qp_env *e = &c->env;
	circle_init(&e->groups);
	e->now_ns = now_ns;
	e->log = config->log;
	e->window_packets = choose_window(config->window_packets);
	e->on_event = event_on_qp;
	e->on_srq_event = event_on_srq;
	e->on_cq_overrun = event_on_cq_overrun;
	e->on_sq_idle = doorbell_on_idle;
	slab_init(&e->wr_small, sizeof(struct wr), 256, 0);
	slab_init(&e->wr_large, WR_LARGE_BYTES, 64, 0);
	e->wheel = wheel_new(now_ns);
	int rc = e->wheel ? make_seeds(config->seed, keys, &qpns) : -ENOMEM;
	if (!rc)
		rc = qpn_table_init(&c->qpns, config->core_index, qpns);
	if (!rc)
		rc = mr_table_new(&e->mrs, keys, c->config.max_mr + c->config.max_mw);
	if (!rc)
		rc = addr_new(&e->addr, &config->addr, e->wheel, now_ns);
	if (rc) {
		core_free(c);
		return rc;
	}
	addr_watch_gids(c->env.addr, event_on_gids_changed, c);
	*out = c;
	return 0;
}

void core_free(struct core *c)
{
	if (!c)
		return;
	while (c->clients)
		core_client_free(c->clients);
	addr_free(c->env.addr);
	mr_table_free(c->env.mrs);
	qpn_table_destroy(&c->qpns);
	wheel_free(c->env.wheel);
	slab_destroy(&c->env.wr_small);
	slab_destroy(&c->env.wr_large);
	free(c->loop.buffer);
	free(c);
}

struct addr *core_addr(struct core *c)
{
	return c->env.addr;
}

static inline void run(struct core *c, uint64_t now_ns, bool has_timers)
{
	c->env.now_ns = now_ns;
	if (c->loop.head != c->loop.tail)
		dispatch_loop(c);
	if (!TAILQ_EMPTY(&c->late))
		channel_retry_late(c);
	if (has_timers)
		wheel_run(c->env.wheel, now_ns);
	if (!TAILQ_EMPTY(&c->overruns))
		event_handle_overruns(c);
	if (c->env.dirty)
		event_notify(c);
}

void core_run(struct core *c, uint64_t now_ns)
{
	run(c, now_ns, true);
}

void core_run_without_timers(struct core *c, uint64_t now_ns)
{
	run(c, now_ns, false);
}

bool core_has_packets(const struct core *c)
{
	return !circle_is_empty(&c->env.groups) || c->loop.head != c->loop.tail || addr_has_tx(c->env.addr);
}

uint64_t core_next(const struct core *c)
{
	if (core_has_packets(c) || !TAILQ_EMPTY(&c->overruns) || c->env.dirty || c->lingering || doorbell_is_rung(c))
		return c->env.now_ns;
	uint64_t at = wheel_next(c->env.wheel);
	return !TAILQ_EMPTY(&c->late) && c->late_at < at ? c->late_at : at;
}

void core_set_sleeping(struct core *c, bool sleeping)
{
	for (struct core_client *k = c->clients; k; k = k->next)
		atomic_store_explicit(&k->page->sleeping, sleeping, memory_order_relaxed);
	if (!sleeping) /* who woke it may have rung */
		doorbell_sweep_all(c);
	/* the flag is visible before the doorbells are looked at for the last time; a client rings, fences and reads the flag */
	atomic_thread_fence(memory_order_seq_cst);
}

const uint64_t *core_qp_counters(const struct core *c)
{
	return c->env.qp_counter;
}

const struct drop_counters *core_drops(const struct core *c)
{
	return &c->env.drops;
}

void core_stats(const struct core *c, struct core_stats *s)
{
	struct addr_stats a;
	addr_stats(c->env.addr, &a);
	*s = c->stats;
	s->group_queries = a.group_queries;
	s->group_reports = a.group_reports;
	s->wqes = c->env.wqes;
	s->cqes = c->env.cqes;
	s->bad_wqes = c->env.bad_wqes;
	s->bad_indices = c->env.bad_indices;
	s->mrs = mr_table_count(c->env.mrs) - c->n_mws;
	s->mws = c->n_mws;
	s->clients = c->n_clients;
	s->qps = c->qpns.count;
	s->cqs = c->n_cqs;
	s->qp_bytes = c->env.qp_bytes + (uint64_t)s->qps * sizeof(struct queue_pair);
}

void core_set_tap(struct core *c, void (*tap)(void *arg, const struct core_seen *seen), void *arg)
{
	c->tap = tap;
	c->tap_arg = arg;
}
