/* SPDX-License-Identifier: BSD-3-Clause */
/* One run: builds the world of a plan, connects, lets time pass until every program has what it can get, lets what is under way settle, and takes everything apart again, checking that nothing is left. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "actor.h"
#include "machine.h"
#include "pool.h"
#include "slot.h"

#define TIME_MAX_NS 60000000000u /* virtual */
#define MOMENTS_MAX 20000000u
#define SETTLE_NS 5000000u
#define START_NS 1000000u
#define REMOTE_RIGHTS (UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC | UROCE_ACCESS_FLUSH_GLOBAL)

struct run {
	const struct plan *plan;
	struct verdict verdict;
	struct sim_world *world;
	struct log log;
	struct uroce_open_attr attr;
	struct sim_host *host[PLAN_HOSTS_MAX];
	struct actor actor[PLAN_HOSTS_MAX][PLAN_CONTEXTS];
	struct end end[PLAN_ENDS_MAX];
	struct uroce_gid group[PLAN_GROUPS];
	FILE *history;
};

static void swallow(void *arg, enum log_level level, const char *line)
{
}

static void swallow_client(void *arg, int level, const char *line)
{
}

static void must(struct run *r, int err, const char *what, const char *who)
{
	if (err < 0)
		verdict_fail(&r->verdict, "%s: %s: %s", who, what, strerror(-err));
}

/* ---- building ---- */

static void add_host(struct run *r, unsigned i)
{
	const struct plan_host *h = &r->plan->host[i];
	struct sim_host_config c = {
		.number = (uint8_t)i, .is_ip6 = r->plan->is_ip6, .max_frame = r->plan->mtu + 102, .window_packets = r->plan->window_packets, .seed = r->plan->seed * 8 + i + 1, .turn_ns = h->turn_ns,
		.rx_frames = h->rx_frames, .tx_frames = h->tx_frames, .log = &r->log,
	};
	struct sim_cable cable = {
		.bits_per_second = h->bits_per_second, .propagation_ns = h->propagation_ns, .queue_frames = h->queue_frames, .fault_out = h->fault_out[0] ? h->fault_out : NULL,
		.fault_in = h->fault_in[0] ? h->fault_in : NULL,
	};
	snprintf(c.name, sizeof(c.name), "host %u", i);
	r->host[i] = sim_world_add_host(r->world, &c, &cable);
}

/* Completions of a context that may lie unpolled in one CQ. */
static uint32_t count_completions(const struct plan *p, unsigned host, unsigned context)
{
	uint32_t n = 1 + p->host[host].srq[context].buffers;
	for (unsigned i = 0; i < p->pairs; i++)
		for (unsigned s = 0; s < 2; s++) {
			const struct plan_end *e = &p->pair[i].end[s];
			if (e->host == host && e->context == context)
				n += e->steps + e->receives + e->pool.buffers;
		}
	return n;
}

static void make_nonblocking(struct run *r, int fd)
{
	must(r, fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) ? -EIO : 0, "a channel that does not block", "setup");
}

static void add_context(struct run *r, unsigned host, unsigned context)
{
	const struct plan_host *h = &r->plan->host[host];
	struct actor *a = &r->actor[host][context];
	*a = (struct actor){ .plan = r->plan, .verdict = &r->verdict, .all = r->end, .groups = r->group, .history = r->history, .host = r->host[host], .cqs = h->cqs[context], .next_ns = START_NS };
	rng_seed(&a->rng, r->plan->seed * 16 + host * 4 + context);
	a->ctx = sim_host_open(r->host[host], &r->attr);
	make_nonblocking(r, uroce_async_fd(a->ctx));
	must(r, uroce_pd_create(a->ctx, &a->pd), "PD", "setup");
	if (h->waits[context]) {
		must(r, uroce_channel_create(a->ctx, &a->channel), "channel", "setup");
		make_nonblocking(r, uroce_channel_fd(a->channel));
	}
	a->cq_needs = count_completions(r->plan, host, context);
	for (unsigned c = 0; c < a->cqs; c++)
		must(r, uroce_cq_create(a->ctx, a->cq_needs, a->channel, NULL, &a->cq[c]), "CQ", "setup");
	if (h->srq[context].buffers) {
		struct uroce_srq_init init = { .attr = { .max_wr = h->srq[context].buffers } };
		must(r, uroce_srq_create(a->pd, &init, &a->srq), "SRQ", "setup");
		must(r, pool_open(&a->srq_pool, a->pd, UINT64_C(0x7000000000000000), &h->srq[context], true), "MR", "setup");
	}
	struct sim_actor actor = { .next = actor_next, .act = actor_act, .arg = a };
	sim_world_add_actor(r->world, &actor);
}

static uint8_t *get_memory(struct run *r, struct end *e, uint32_t bytes)
{
	void *p = NULL;
	if (e->plan->is_pool)
		must(r, uroce_alloc(e->actor->ctx, bytes, &p), "pool memory", e->name);
	else
		p = aligned_alloc(64, (bytes + 63) & ~63u);
	if (!p)
		abort();
	return p;
}

static void add_memory(struct run *r, struct end *e)
{
	const struct plan_end *p = e->plan;
	struct uroce_pd *pd = e->actor->pd;
	e->local = get_memory(r, e, p->local_bytes);
	e->target_memory = get_memory(r, e, p->target_bytes);
	plan_fill(p->fill_seed, e->local, p->local_bytes);
	plan_fill(p->fill_seed + 1, e->target_memory, p->target_bytes);
	/* addresses on the wire are the plan's and not this process's */
	e->local_iova = UINT64_C(0x100000000) * (e->number + 1);
	e->target_iova = e->local_iova + 0x80000000;
	must(r, uroce_mr_register_iova(pd, e->local, p->source_bytes, e->local_iova, 0, &e->source), "MR", e->name);
	must(r, uroce_mr_register_iova(pd, e->local + p->source_bytes, p->local_bytes - p->source_bytes, e->local_iova + p->source_bytes, UROCE_ACCESS_LOCAL_WRITE, &e->landing), "MR", e->name);
	must(r, uroce_mr_register_iova(pd, e->target_memory, p->target_bytes, e->target_iova,
		UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_MW_BIND | REMOTE_RIGHTS, &e->target), "MR", e->name);
	if (p->pool.buffers)
		must(r, pool_open(&e->pool, pd, e->local_iova + 0x40000000, &p->pool, false), "MR", e->name);
	must(r, slots_open(e), "windows", e->name);
	if (verdict_is_bad(&r->verdict))
		return;
	e->source_lkey = uroce_mr_lkey(e->source);
	e->landing_lkey = uroce_mr_lkey(e->landing);
	e->target_rkey = uroce_mr_rkey(e->target);
}

static void add_end(struct run *r, uint32_t number)
{
	const struct plan_end *p = plan_end_of(r->plan, number);
	struct end *e = &r->end[number];
	struct actor *a = &r->actor[p->host][p->context];
	enum uroce_service service = r->plan->pair[number / 2].service;
	struct uroce_qp_init init = { .service = service, .send_cq = a->cq[p->send_cq], .recv_cq = a->cq[p->recv_cq], .srq = p->uses_srq ? a->srq : NULL, .cap = p->cap, .signal_all = p->signal_all, .block_own_multicast = p->blocks_own };
	struct uroce_qp_attr to_init = { .state = UROCE_QP_INIT, .qkey = p->attr.qkey, .port_num = 1, .access = REMOTE_RIGHTS };
	*e = (struct end){ .plan = p, .peer = &r->end[number ^ 1], .actor = a, .number = number, .service = service, .failed_step = NO_INDEX };
	snprintf(e->name, sizeof(e->name), "connection %u side %u", number / 2, number % 2);
	e->is_lost = calloc(p->steps + 1, sizeof(*e->is_lost));
	if (!e->is_lost)
		abort();
	a->end[a->ends++] = e;
	add_memory(r, e);
	must(r, uroce_qp_create(a->pd, &init, &e->qp), "QP", e->name);
	if (verdict_is_bad(&r->verdict))
		return;
	e->qpn = uroce_qp_num(e->qp);
	must(r, uroce_qp_modify(e->qp, &to_init, UROCE_QP_STATE | UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | (service == UROCE_UD ? UROCE_QP_QKEY : UROCE_QP_ACCESS_FLAGS)), "INIT", e->name);
}

static void join_groups(struct run *r, struct end *e)
{
	for (unsigned g = 0; g < PLAN_GROUPS; g++)
		if (e->plan->is_member[g])
			must(r, uroce_qp_attach_multicast(e->qp, &r->group[g]), "joining a group", e->name);
}

/* The first one explicitly, the other with the QP. */
static void leave_groups(struct run *r, struct end *e)
{
	if (e->plan->is_member[0])
		must(r, uroce_qp_detach_multicast(e->qp, &r->group[0]), "leaving a group", e->name);
}

static const uint32_t attr_masks[] = { [UROCE_RC] = PLAN_RC_ATTR_MASK, [UROCE_UC] = UROCE_QP_PATH_MTU, [UROCE_UD] = UROCE_QP_QKEY };

static void connect_pair(struct run *r, struct end *end)
{
	struct uroce_endpoint point[2];
	for (unsigned i = 0; i < 2; i++) {
		post_early(&end[i]);
		must(r, uroce_qp_endpoint(end[i].qp, 0, &point[i]), "endpoint", end[i].name);
		point[i].psn = end[i].plan->psn;
		end[i].gid = point[i].gid;
	}
	for (unsigned i = 0; i < 2; i++)
		join_groups(r, &end[i]);
	for (unsigned i = 0; i < 2; i++)
		must(r, uroce_qp_connect(end[i].qp, &point[i], &point[!i], &end[i].plan->attr, attr_masks[end[i].service]), "connect", end[i].name);
}

static void build(struct run *r)
{
	for (unsigned i = 0; i < r->plan->hosts; i++) {
		add_host(r, i);
		for (unsigned c = 0; c < r->plan->host[i].contexts; c++)
			add_context(r, i, c);
	}
	for (uint32_t i = 0; i < 2 * r->plan->pairs; i++)
		r->end[i].plan = plan_end_of(r->plan, i);
	for (uint32_t i = 0; i < 2 * r->plan->pairs && !verdict_is_bad(&r->verdict); i++)
		add_end(r, i);
	for (unsigned i = 0; i < r->plan->pairs && !verdict_is_bad(&r->verdict); i++)
		connect_pair(r, &r->end[2 * i]);
}

/* ---- running ---- */

static bool is_over(const struct run *r)
{
	for (uint32_t i = 0; i < 2 * r->plan->pairs; i++)
		if (!check_is_done(&r->end[i]))
			return false;
	return true;
}

static void say_stuck(struct run *r)
{
	for (uint32_t i = 0; i < 2 * r->plan->pairs; i++) {
		const struct end *e = &r->end[i];
		if (!check_is_done(e))
			verdict_fail(&r->verdict, "%s: stuck at %llu ns: sends %u of %u posted, %u done; receives %u of %u posted, %u done, %u good", e->name, (unsigned long long)sim_world_now(r->world), e->steps_posted,
				e->plan->steps, e->steps_done, e->receives_posted, e->plan->receives, e->receives_done, e->receives_good);
	}
}

static void let_run(struct run *r)
{
	struct sim_world_stats stats = { 0 };
	bool is_dead = r->plan->dead_host == NO_INDEX, is_moving = true;
	while (!verdict_is_bad(&r->verdict) && !is_over(r)) {
		is_moving = sim_world_step(r->world, is_dead ? TIME_MAX_NS : r->plan->dead_ns);
		if (!is_dead && sim_world_now(r->world) >= r->plan->dead_ns) {
			sim_world_cut(r->world, r->plan->dead_host, true);
			is_dead = is_moving = true;
		}
		sim_world_stats(r->world, &stats);
		if (!is_moving || stats.moments > MOMENTS_MAX) {
			say_stuck(r);
			return;
		}
	}
}

/* Late duplicates and ACKs: nothing may come of them. */
static void let_settle(struct run *r)
{
	uint64_t until_ns = sim_world_now(r->world) + SETTLE_NS;
	while (!verdict_is_bad(&r->verdict) && sim_world_step(r->world, until_ns))
		;
}

/* ---- taking apart ---- */

static void remove_end(struct run *r, struct end *e)
{
	if (e->qp) {
		leave_groups(r, e);
		must(r, uroce_qp_destroy(e->qp), "destroying the QP", e->name);
	}
	for (uint32_t i = 0; i < PLAN_WAYS_MAX; i++)
		must(r, uroce_ah_destroy(e->ah[i]), "destroying an AH", e->name);
	free(e->is_lost);
	must(r, slots_close(e), "ending windows", e->name);
	must(r, uroce_mr_deregister(e->source), "deregistering", e->name);
	must(r, uroce_mr_deregister(e->landing), "deregistering", e->name);
	must(r, uroce_mr_deregister(e->target), "deregistering", e->name);
	if (e->plan->pool.buffers)
		must(r, pool_close(&e->pool), "deregistering", e->name);
	if (!e->plan->is_pool) {
		free(e->local);
		free(e->target_memory);
	} else {
		must(r, uroce_free(e->actor->ctx, e->local), "freeing", e->name);
		must(r, uroce_free(e->actor->ctx, e->target_memory), "freeing", e->name);
	}
}

static void remove_context(struct run *r, struct actor *a)
{
	struct uroce_wc wc;
	if (a->srq) {
		must(r, uroce_srq_destroy(a->srq), "destroying an SRQ", "end");
		must(r, pool_close(&a->srq_pool), "deregistering", "end");
	}
	for (unsigned c = 0; c < a->cqs; c++) {
		if (uroce_cq_poll(a->cq[c], &wc, 1) > 0)
			verdict_fail(&r->verdict, "a CQE is left after its QP is gone");
		must(r, uroce_cq_destroy(a->cq[c]), "destroying a CQ", "end");
	}
	must(r, uroce_channel_destroy(a->channel), "destroying a channel", "end");
	must(r, uroce_pd_destroy(a->pd), "destroying a PD", "end");
	uroce_close(a->ctx);
}

static void check_core(struct run *r, struct core *c, unsigned host)
{
	struct core_stats s;
	core_stats(c, &s);
	if (c->env.wr_small.in_use || c->env.wr_large.in_use)
		verdict_fail(&r->verdict, "host %u: %u small and %u large WR records are not given back", host, c->env.wr_small.in_use, c->env.wr_large.in_use);
	if (s.qps || s.cqs || s.mrs || s.clients)
		verdict_fail(&r->verdict, "host %u: %u QPs, %u CQs, %u MRs, %u clients are left", host, s.qps, s.cqs, s.mrs, s.clients);
	if (!circle_is_empty(&c->env.groups) || c->lingering)
		verdict_fail(&r->verdict, "host %u: QPs that are gone are still in a list", host);
}

/* Datagrams with a wrong Q_Key are counted, each of them, where nothing else can happen to them. */
static void check_unwanted(struct run *r)
{
	uint64_t sent = 0, dropped = 0;
	for (uint32_t i = 0; i < 2 * r->plan->pairs; i++)
		for (uint32_t k = 0; k < r->end[i].plan->steps; k++)
			sent += r->end[i].plan->step[k].is_unwanted;
	for (unsigned i = 0; i < r->plan->hosts; i++)
		dropped += core_drops(sim_host_core(r->host[i]))->count[DROP_QKEY];
	if (dropped != sent && r->plan->faults == PLAN_FAULTS_NONE)
		verdict_fail(&r->verdict, "%llu datagrams had a wrong Q_Key, %llu were dropped for it", (unsigned long long)sent, (unsigned long long)dropped);
}

static void take_apart(struct run *r)
{
	bool was_good = !verdict_is_bad(&r->verdict);
	for (unsigned i = 0; was_good && i < r->plan->hosts; i++)
		for (unsigned c = 0; c < r->plan->host[i].contexts; c++)
			actor_finish(&r->actor[i][c], sim_world_now(r->world));
	for (uint32_t i = 0; was_good && i < 2 * r->plan->pairs; i++)
		check_end(&r->end[i], &r->verdict);
	if (was_good)
		check_unwanted(r);
	for (uint32_t i = 0; i < 2 * r->plan->pairs; i++)
		if (r->end[i].actor)
			remove_end(r, &r->end[i]);
	for (unsigned i = 0; i < r->plan->hosts; i++) {
		for (unsigned c = 0; c < r->plan->host[i].contexts; c++)
			remove_context(r, &r->actor[i][c]);
		check_core(r, sim_host_core(r->host[i]), i);
	}
}

bool run_plan(const struct plan *p, const struct run_config *config, struct run_result *result)
{
	struct sim_world_config world = { .start_ns = START_NS, .capture = config->capture, .trace = config->trace };
	struct run *r = calloc(1, sizeof(*r));
	if (!r)
		abort();
	r->plan = p;
	r->log = (struct log){ .sink = config->is_talkative ? NULL : swallow, .level = config->is_talkative ? LOG_DEBUG : LOG_ERROR };
	r->attr = (struct uroce_open_attr){ .log = config->is_talkative ? NULL : swallow_client, .log_level = config->is_talkative ? 4 : 1 };
	r->history = config->history;
	for (unsigned g = 0; g < PLAN_GROUPS; g++)
		r->group[g] = p->is_ip6 ? (struct uroce_gid){ { 0xff, 0x0e, [15] = (uint8_t)(0x71 + g) } } : (struct uroce_gid){ { [10] = 0xff, 0xff, 239, 1, 2, (uint8_t)(0x71 + g) } };
	r->world = sim_world_new(&world);
	build(r);
	let_run(r);
	let_settle(r);
	take_apart(r);
	memset(result, 0, sizeof(*result));
	memcpy(result->failure, r->verdict.text, sizeof(result->failure));
	result->virtual_ns = sim_world_now(r->world) - START_NS;
	for (unsigned i = 0; i < p->pairs; i++)
		result->wrs += p->pair[i].end[0].steps + p->pair[i].end[1].steps;
	sim_world_stats(r->world, &result->world);
	sim_world_free(r->world);
	free(r);
	return !result->failure[0];
}
