/* SPDX-License-Identifier: BSD-3-Clause */
/* server_report: what an operator wants to know, one thing a line: a word that says what it is, then `key value` pairs; no key or value has a space in it. Keys are only ever added.
 * What belongs to a poll core is copied by mail, so a line is of one moment. */
#include <string.h>

#include <rte_mempool.h>

#include "core_table.h"
#include "engine_look.h"
#include "multicast.h"
#include "port.h"
#include "server_inside.h"

static void print_core(const struct engine_core *core, const struct engine_look *m, FILE *out)
{
	fprintf(out, "core %u", engine_core_index(core));
	for (unsigned i = 0; core_table_name(i); i++)
		fprintf(out, " %s %llu", core_table_name(i), (unsigned long long)core_table_value(i, m));
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
		fprintf(out, "%s %ld uid %u program %s state %s", c->is_operator ? "operator" : "client", (long)c->peer.pid, c->peer.uid, c->program, connection_state_name(c->state));
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
