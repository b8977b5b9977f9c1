/* SPDX-License-Identifier: BSD-3-Clause */
/* server_report: what an operator wants to know, one thing a line: a word that says what it is, then `key value` pairs; no key or value has a space in it. Keys are only ever added.
 * What belongs to a poll core is copied by mail, so a line is of one moment. */
#include <string.h>

#include <rte_mempool.h>

#include "engine_look.h"
#include "multicast.h"
#include "port.h"
#include "server_inside.h"

static void print_core(const struct engine_core *core, const struct engine_look *m, FILE *out)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{ "clients", m->core.clients }, { "qps", m->core.qps }, { "cqs", m->core.cqs }, { "mrs", m->core.mrs }, { "mws", m->core.mws }, { "age_ns", m->loop.age_ns }, { "rounds", m->loop.rounds },
		{ "idle_rounds", m->loop.idle_rounds }, { "longest_round_ns", m->loop.longest_round_ns }, { "sleeps", m->loop.sleeps }, { "slept_ns", m->loop.slept_ns },
		{ "rx_frames", m->loop.rx_frames }, { "tx_frames", m->loop.tx_frames }, { "tx_partial", m->loop.tx_partial }, { "tx_no_mbuf", m->loop.tx_no_mbuf },
		{ "rx_unusable", m->loop.rx_unusable }, { "handed_over_tx", m->loop.handed_over_tx }, { "handed_over_rx", m->loop.handed_over_rx },
		{ "handed_over_dropped", m->loop.handed_over_dropped }, { "rx_packets", m->core.rx_packets }, { "tx_packets", m->core.tx_packets }, { "rx_bytes", m->core.rx_bytes },
		{ "tx_bytes", m->core.tx_bytes }, { "loopback_packets", m->core.loopback_packets },
		{ "group_copies", m->core.group_copies }, { "group_copies_dropped", m->core.group_copies_dropped }, { "group_queries", m->core.group_queries }, { "group_reports", m->core.group_reports },
		 { "wqes", m->core.wqes }, { "cqes", m->core.cqes }, { "events", m->core.events },
		{ "doorbells", m->core.doorbells }, { "bad_wqes", m->core.bad_wqes }, { "bad_indices", m->core.bad_indices }, { "bad_doorbells", m->core.bad_doorbells },
		{ "cq_overruns", m->core.cq_overruns }, { "lost_events", m->core.lost_events }, { "refused_requests", m->core.refused_requests }, { "qp_bytes", m->core.qp_bytes },
	};
	fprintf(out, "core %u", engine_core_index(core));
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		fprintf(out, " %s %llu", rows[i].name, (unsigned long long)rows[i].value);
	fputc('\n', out);
	for (unsigned e = 0; e < ABI_EVENT_TYPES; e++)
		if (m->core.raised[e])
			fprintf(out, "event %s core %u count %llu\n", core_event_name(e), engine_core_index(core), (unsigned long long)m->core.raised[e]);
	for (int d = DROP_NONE + 1; d < DROP_COUNT; d++)
		if (m->drops.count[d])
			fprintf(out, "drop %s core %u count %llu\n", drop_name(d), engine_core_index(core), (unsigned long long)m->drops.count[d]);
}

static void print_cores(const struct server *s, FILE *out)
{
	for (unsigned i = 0; i < engine_cores(s->engine); i++) {
		struct engine_look look;
		engine_look(engine_core_at(s->engine, i), &look);
		print_core(engine_core_at(s->engine, i), &look, out);
	}
}

static void print_usage(const struct core_usage *u, FILE *out)
{
	for (unsigned i = 0; i < USAGE_ROWS; i++)
		fprintf(out, " %s %llu", usage_row_key(i), (unsigned long long)usage_row_value(u, i));
}

static void print_users(const struct server *s, FILE *out)
{
	for (const struct quota_user *u = s->quota.users; u; u = u->hh.next) {
		fprintf(out, "user %u clients %u grown_bytes %llu", u->uid, u->clients, (unsigned long long)u->grown_bytes);
		print_usage(&u->used, out);
		fputc('\n', out);
	}
}

static void print_clients(const struct server *s, FILE *out)
{
	for (const struct connection *c = s->clients; c; c = c->next) {
		fprintf(out, "client %ld uid %u program %s state %s", (long)c->peer.pid, c->peer.uid, c->program, connection_state_name(c->state));
		if (c->core)
			fprintf(out, " core %u", engine_core_index(c->core));
		fprintf(out, " grown_bytes %llu", (unsigned long long)c->grown_bytes);
		print_usage(&c->used, out);
		fputc('\n', out);
	}
}

void server_report(struct server *s, FILE *out)
{
	struct rte_mempool *pool = engine_port(s->engine)->pool;
	struct multicast_stats groups;
	fprintf(out, "server %s cores %u clients %u\n", s->config.path, engine_cores(s->engine), s->n_clients);
	print_cores(s, out);
	fprintf(out, "mbufs available %u in_use %u\n", rte_mempool_avail_count(pool), rte_mempool_in_use_count(pool));
	multicast_stats(engine_multicast(s->engine), &groups);
	fprintf(out, "multicast groups %u refused %llu\n", groups.groups, (unsigned long long)groups.refused);
	for (int i = 0; i < SERVER_COUNTS; i++)
		if (server_count(s, i))
			fprintf(out, "count %s %llu\n", server_count_name(i), (unsigned long long)server_count(s, i));
	print_users(s, out);
	print_clients(s, out);
}
