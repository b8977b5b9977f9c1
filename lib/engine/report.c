/* SPDX-License-Identifier: BSD-3-Clause */
/* The nouns of a report and those rows that are the engine's own. Owns nothing: everything is asked for anew. What clients have is report_objects.c's. */
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core_table.h"
#include "counter_table.h"
#include "engine_look.h"
#include "port.h"
#include "report_row.h"

#include <rte_ethdev.h>
#include <rte_mempool.h>

/* What each core looked like, one after the other. NULL: no memory, and that is noted. */
static struct engine_look *look_at_all(struct engine *e, struct report_rows *r)
{
	struct engine_look *looks = calloc(engine_cores(e), sizeof(*looks));
	r->is_short |= !looks;
	for (unsigned i = 0; looks && i < engine_cores(e); i++)
		engine_look(engine_core_at(e, i), &looks[i]);
	return looks;
}

/* ---- device, port ---- */

static void report_device(struct engine *e, struct report_rows *r)
{
	const struct port *p = engine_port(e);
	struct abi_device d;
	engine_describe(e, &d);
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
		{ "cores", engine_cores(e) }, { "path_mtu", 128u << d.active_mtu }, { "max_frame", p->max_frame }, { "gid_slots", d.gid_slots }, { "max_qp", d.max_qp }, { "max_cq", d.max_cq }, { "max_mr", d.max_mr }, { "max_mw", d.max_mw },
		{ "max_pd", d.max_pd }, { "max_srq", d.max_srq }, { "max_ah", d.max_ah }, { "max_qp_wr", d.max_qp_wr }, { "max_cqe", d.max_cqe }, { "max_sge", d.max_sge }, { "max_inline", d.max_inline },
		{ "max_rd_atomic", d.max_rd_atomic }, { "max_msg_bytes", d.max_msg_bytes }, { "max_mcast_grp", d.max_mcast_grp }, { "max_mcast_qp_attach", d.max_mcast_qp_attach },
	};
	report_row_begin(r);
	report_put_text(r, "name", p->text);
	report_put_text(r, "mode", device_mode_name(engine_mode(e)));
	report_put_mac(r, "mac", p->mac);
	report_put_text(r, "interface", p->interface[0] ? p->interface : NULL);
	if (p->node >= 0)
		report_put_number(r, "node", (uint64_t)p->node);
	else
		report_put_null(r, "node");
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		report_put_number(r, numbers[i].key, numbers[i].value);
}

static uint64_t sum_loops(const struct engine_look *looks, unsigned n, size_t at)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < n; i++)
		sum += *(const uint64_t *)(const void *)((const uint8_t *)&looks[i].loop + at);
	return sum;
}

static void put_driver_counters(const struct port *p, struct report_rows *r)
{
	struct rte_eth_stats s = { 0 };
	rte_eth_stats_get(p->id, &s);
	report_put_number(r, "rx_missed", s.imissed);
	report_put_number(r, "rx_errors", s.ierrors);
	report_put_number(r, "rx_no_mbuf", s.rx_nombuf);
	report_put_number(r, "tx_errors", s.oerrors);
}

/* Each counter of a port, the sum over n cores. */
static void put_counters(struct report_rows *r, const struct engine_look *looks, unsigned n)
{
	const char *name, *text;
	for (unsigned i = 0; counter_describe(i, &name, &text); i++) {
		uint64_t sum = 0;
		for (unsigned k = 0; k < n; k++)
			sum += counter_value(i, &looks[k]);
		report_put_number(r, name, sum);
	}
}

static void report_port(struct engine *e, struct report_rows *r)
{
	const struct port *p = engine_port(e);
	unsigned n = engine_cores(e);
	struct engine_look *looks = look_at_all(e, r);
	if (!looks)
		return;
	report_row_begin(r);
	report_put_text(r, "name", p->text);
	report_put_text(r, "state", port_is_down(p) ? "down" : "up");
	report_put_text(r, "interface", p->interface[0] ? p->interface : NULL);
	put_driver_counters(p, r);
	report_put_number(r, "tx_dropped", sum_loops(looks, n, offsetof(struct engine_stats, tx_dropped)));
	report_put_number(r, "rx_unusable", sum_loops(looks, n, offsetof(struct engine_stats, rx_unusable)));
	report_put_number(r, "handed_over_dropped", sum_loops(looks, n, offsetof(struct engine_stats, handed_over_dropped)));
	put_counters(r, looks, n);
	free(looks);
}

/* ---- gid, neigh ---- */

#define SPARE 64u /* more than there were a moment ago */

static const char *gid_kind(const struct gid *g)
{
	return gid_is_ip4(g) ? "ip4" : gid_is_link_local(g) ? "link-local" : "ip6";
}

static void report_gids(struct engine *e, struct report_rows *r)
{
	struct engine_gid *list = NULL;
	uint32_t room = 0, n = SPARE;
	while (room < n) {
		room = n;
		free(list);
		list = calloc(room, sizeof(*list));
		if (!list) {
			r->is_short = true;
			return;
		}
		n = engine_gids(e, list, room);
	}
	for (uint32_t i = 0; i < n; i++) {
		report_row_begin(r);
		report_put_number(r, "index", list[i].index);
		report_put_gid(r, "gid", &list[i].gid);
		report_put_vlan(r, list[i].vlan);
		report_put_text(r, "kind", gid_kind(&list[i].gid));
	}
	free(list);
}

static void put_neighbour(struct report_rows *r, unsigned core, const struct addr_neighbour *n)
{
	report_row_begin(r);
	report_put_gid(r, "gid", &n->gid);
	report_put_vlan(r, n->vlan);
	if (n->is_known)
		report_put_mac(r, "mac", n->mac);
	else
		report_put_null(r, "mac");
	report_put_text(r, "state", n->state);
	report_put_truth(r, "static", n->is_static);
	report_put_number(r, "users", n->users);
	report_put_number(r, "core", core);
}

static void report_neighbours_of(struct engine_core *ec, struct report_rows *r)
{
	struct addr_neighbour *list = NULL;
	uint32_t room = 0, n = SPARE;
	while (room < n) {
		room = n + SPARE;
		free(list);
		list = calloc(room, sizeof(*list));
		if (!list) {
			r->is_short = true;
			return;
		}
		n = engine_neighbours(ec, list, room);
	}
	for (uint32_t i = 0; i < n; i++)
		put_neighbour(r, engine_core_index(ec), &list[i]);
	free(list);
}

static void report_neighbours(struct engine *e, struct report_rows *r)
{
	for (unsigned i = 0; i < engine_cores(e); i++)
		report_neighbours_of(engine_core_at(e, i), r);
}

/* ---- drops, cores ---- */

static void report_drops(struct engine *e, struct report_rows *r)
{
	struct engine_look *looks = look_at_all(e, r);
	char key[16];
	for (int d = DROP_NONE + 1; looks && d < DROP_COUNT; d++) {
		uint64_t sum = 0;
		report_row_begin(r);
		report_put_text(r, "name", drop_name((enum drop)d));
		report_put_text(r, "text", drop_text((enum drop)d));
		for (unsigned i = 0; i < engine_cores(e); i++)
			sum += looks[i].drops.count[d];
		report_put_number(r, "count", sum);
		for (unsigned i = 0; i < engine_cores(e); i++) {
			snprintf(key, sizeof(key), "core%u", i);
			report_put_number(r, key, looks[i].drops.count[d]);
		}
	}
	free(looks);
}

static void report_cores(struct engine *e, struct report_rows *r)
{
	struct engine_look *looks = look_at_all(e, r);
	const struct rte_mempool *pool = engine_port(e)->pool;
	for (unsigned i = 0; looks && i < engine_cores(e); i++) {
		const struct engine_stats *loop = &looks[i].loop;
		report_row_begin(r);
		report_put_number(r, "core", i);
		for (unsigned k = 0; core_table_name(k); k++)
			report_put_number(r, core_table_name(k), core_table_value(k, &looks[i]));
		report_put_number(r, "busy_percent", loop->rounds ? (loop->rounds - loop->idle_rounds) * 100 / loop->rounds : 0);
		report_put_number(r, "mbufs_available", rte_mempool_avail_count(pool));
		report_put_number(r, "mbufs_in_use", rte_mempool_in_use_count(pool));
		put_counters(r, &looks[i], 1); /* some are in both tables, and are the same */
	}
	free(looks);
}

/* ---- all of them ---- */

static const struct {
	const char *name;
	void (*put)(struct engine *e, struct report_rows *r);
} nouns[REPORT_NOUNS] = {
	[REPORT_DEVICE] = { "device", report_device },
	[REPORT_PORT] = { "port", report_port },
	[REPORT_GID] = { "gid", report_gids },
	[REPORT_NEIGH] = { "neigh", report_neighbours },
	[REPORT_CLIENT] = { "client", report_clients },
	[REPORT_QP] = { "qp", report_qps },
	[REPORT_CQ] = { "cq", report_cqs },
	[REPORT_MR] = { "mr", report_mrs },
	[REPORT_DROPS] = { "drops", report_drops },
	[REPORT_CORES] = { "cores", report_cores },
};

const char *report_noun_name(enum report_noun noun)
{
	return (unsigned)noun < REPORT_NOUNS ? nouns[noun].name : NULL;
}

json_t *report(struct engine *e, enum report_noun noun)
{
	struct report_rows r = { .list = json_array() };
	if ((unsigned)noun >= REPORT_NOUNS) {
		json_decref(r.list);
		errno = EINVAL;
		return NULL;
	}
	r.is_short = !r.list;
	if (!r.is_short)
		nouns[noun].put(e, &r);
	if (!r.is_short)
		return r.list;
	json_decref(r.list);
	errno = ENOMEM;
	return NULL;
}
