/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands about ports: what they are, their addresses and neighbours, what they have counted. The engine behind a port is looked at through lib/engine; of a daemon's only what its API tells is known here. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "counter_table.h"
#include "engine_change.h"
#include "engine_look.h"
#include "lab.h"

#define NEIGHBOURS_MAX 256u
#define COUNTERS_MAX 128u

/* Calls show for the port that is named, or all. */
static int each_port(struct lab *lab, const struct value *v, unsigned given, int (*show)(struct lab *lab, struct station *s))
{
	int err = 0;
	for (unsigned i = 0; i < lab->stations && !err; i++)
		if (!given || v[0].number == i)
			err = show(lab, &lab->station[i]);
	return err;
}

static int need_engine(const struct station *s)
{
	return s->engine ? 0 : lab_fail("port %u is a daemon's: expected a port with an engine in this process (embedded:, inline:); uroced answers for its own", s->number);
}

/* ---- port ---- */

static void print_gids(const struct station *s)
{
	struct uroce_device_attr a; /* there may be more by now */
	struct uroce_gid raw;
	struct gid gid;
	uint16_t vlan;
	char text[GID_TEXT_MAX];
	if (uroce_query_device(s->ctx, &a))
		return;
	for (uint32_t i = 0; i < a.gid_slots; i++) {
		if (uroce_query_gid(s->ctx, i, &raw, &vlan))
			continue;
		memcpy(gid.b, raw.raw, sizeof(gid.b));
		printf("  GID %-6u %s", i, gid_format(&gid, text));
		if (vlan != VLAN_NONE)
			printf(", VLAN %u", vlan);
		printf("\n");
	}
}

static int print_port(struct lab *lab, struct station *s)
{
	static const char *const modes[] = { "embedded", "inline", "served" };
	struct uroce_device_attr a;
	int err = uroce_query_device(s->ctx, &a);
	if (err)
		return lab_fail("port %u: %s", s->number, strerror(-err));
	printf("port %u: %s\n", s->number, s->device);
	printf("  %-10s %s, %s\n  %-10s %02x:%02x:%02x:%02x:%02x:%02x\n  %-10s %u\n", "mode", modes[a.mode % 3], a.port_up ? "up" : "down", "MAC", a.mac[0], a.mac[1], a.mac[2], a.mac[3], a.mac[4], a.mac[5], "path MTU",
		a.active_mtu);
	print_gids(s);
	return 0;
}

static int show_port(struct lab *lab, const struct value *v, unsigned given)
{
	return each_port(lab, v, given, print_port);
}

/* ---- gid, neigh ---- */

static int print_port_gids(struct lab *lab, struct station *s)
{
	printf("port %u\n", s->number);
	print_gids(s);
	return 0;
}

static int show_gid(struct lab *lab, const struct value *v, unsigned given)
{
	return each_port(lab, v, given, print_port_gids);
}

static int add_gid(struct lab *lab, const struct value *v, unsigned given)
{
	struct station *s = &lab->station[v[0].number];
	uint32_t index;
	int err = need_engine(s);
	if (err)
		return err;
	err = engine_gid_add(s->engine, &v[1].gid, VLAN_NONE, (unsigned)v[1].number, &index);
	if (err)
		return lab_fail("cannot add %s: %s", v[1].text, err == -EPERM ? "the port has the addresses of its kernel interface" : strerror(-err));
	printf("GID %u\n", index);
	return 0;
}

static int delete_gid(struct lab *lab, const struct value *v, unsigned given)
{
	struct station *s = &lab->station[v[0].number];
	int err = need_engine(s);
	if (err)
		return err;
	err = engine_gid_remove(s->engine, (uint32_t)v[1].number);
	return err ? lab_fail("cannot delete GID %" PRIu64 ": %s", v[1].number, err == -ENOENT ? "there is none; expected one that show gid lists" : strerror(-err)) : 0;
}

static int print_neighbours(struct lab *lab, struct station *s)
{
	struct addr_neighbour list[NEIGHBOURS_MAX];
	char text[GID_TEXT_MAX];
	int err = need_engine(s);
	if (err)
		return err;
	uint32_t all = engine_neighbours(engine_core_at(s->engine, 0), list, NEIGHBOURS_MAX);
	printf("port %u: %u neighbour%s\n", s->number, all, all == 1 ? "" : "s");
	for (uint32_t i = 0; i < all && i < NEIGHBOURS_MAX; i++) {
		const struct addr_neighbour *n = &list[i];
		printf("  %-40s %-8s ", gid_format(&n->gid, text), n->state);
		if (n->is_known)
			printf("%02x:%02x:%02x:%02x:%02x:%02x", n->mac[0], n->mac[1], n->mac[2], n->mac[3], n->mac[4], n->mac[5]);
		else
			printf("%17s", "-");
		printf(" users %u%s\n", n->users, n->is_static ? " static" : "");
	}
	return 0;
}

static int show_neigh(struct lab *lab, const struct value *v, unsigned given)
{
	return each_port(lab, v, given, print_neighbours);
}

static int add_neigh(struct lab *lab, const struct value *v, unsigned given)
{
	struct station *s = &lab->station[v[0].number];
	int err = need_engine(s);
	if (err)
		return err;
	err = engine_neighbour_add(s->engine, &v[1].gid, VLAN_NONE, v[2].mac);
	return err ? lab_fail("cannot add neighbour %s: %s", v[1].text, err == -EINVAL ? "expected the address of one host, and its MAC" : strerror(-err)) : 0;
}

/* ---- counters ---- */

/* What clear took away. */
static struct {
	uint64_t counter[COUNTERS_MAX], drop[DROP_COUNT];
} before[STATIONS_MAX];

static uint64_t sum_counter(const struct station *s, unsigned i)
{
	uint64_t sum = 0;
	struct engine_look look;
	for (unsigned core = 0; core < engine_cores(s->engine); core++) {
		engine_look(engine_core_at(s->engine, core), &look);
		sum += counter_value(i, &look);
	}
	return sum;
}

static uint64_t sum_drop(const struct station *s, unsigned why)
{
	uint64_t sum = 0;
	struct engine_look look;
	for (unsigned core = 0; core < engine_cores(s->engine); core++) {
		engine_look(engine_core_at(s->engine, core), &look);
		sum += look.drops.count[why];
	}
	return sum;
}

static int print_counters(struct lab *lab, struct station *s)
{
	const char *name, *text;
	int err = need_engine(s);
	if (err)
		return err;
	printf("port %u\n", s->number);
	for (unsigned i = 0; i < COUNTERS_MAX && counter_describe(i, &name, &text); i++) {
		uint64_t n = sum_counter(s, i) - before[s->number].counter[i];
		if (n)
			printf("  %-26s %14" PRIu64 "  %s\n", name, n, text);
	}
	return 0;
}

static int show_counters(struct lab *lab, const struct value *v, unsigned given)
{
	return each_port(lab, v, given, print_counters);
}

static int print_drops(struct lab *lab, struct station *s)
{
	int err = need_engine(s);
	if (err)
		return err;
	printf("port %u\n", s->number);
	for (unsigned d = DROP_NONE + 1; d < DROP_COUNT; d++) {
		uint64_t n = sum_drop(s, d) - before[s->number].drop[d];
		if (n)
			printf("  %-26s %14" PRIu64 "  %s\n", drop_name((enum drop)d), n, drop_text((enum drop)d));
	}
	return 0;
}

static int show_drops(struct lab *lab, const struct value *v, unsigned given)
{
	return each_port(lab, v, given, print_drops);
}

static int clear_port(struct lab *lab, struct station *s)
{
	const char *name, *text;
	int err = need_engine(s);
	if (err)
		return err;
	for (unsigned i = 0; i < COUNTERS_MAX && counter_describe(i, &name, &text); i++)
		before[s->number].counter[i] = sum_counter(s, i);
	for (unsigned d = 0; d < DROP_COUNT; d++)
		before[s->number].drop[d] = sum_drop(s, d);
	return 0;
}

static int clear_counters(struct lab *lab, const struct value *v, unsigned given)
{
	return each_port(lab, v, given, clear_port);
}

static int show_events(struct lab *lab, const struct value *v, unsigned given)
{
	events_look(lab, true); /* those that nobody has been told of yet */
	events_print(&lab->events);
	return 0;
}

static int clear_events(struct lab *lab, const struct value *v, unsigned given)
{
	events_look(lab, true);
	events_clear(&lab->events);
	return 0;
}

static int print_cores(struct lab *lab, struct station *s)
{
	struct engine_look l;
	int err = need_engine(s);
	for (unsigned i = 0; !err && i < engine_cores(s->engine); i++) {
		engine_look(engine_core_at(s->engine, i), &l);
		printf("port %u core %u: clients %u, QPs %u, CQs %u, MRs %u, rounds %" PRIu64 " of which idle %" PRIu64 ", longest %.1f us, slept %" PRIu64 " times, WQEs %" PRIu64 ", CQEs %" PRIu64 "\n", s->number, i,
			l.core.clients, l.core.qps, l.core.cqs, l.core.mrs, l.loop.rounds, l.loop.idle_rounds, (double)l.loop.longest_round_ns / 1000, l.loop.sleeps, l.core.wqes, l.core.cqes);
	}
	return err;
}

static int show_cores(struct lab *lab, const struct value *v, unsigned given)
{
	return each_port(lab, v, given, print_cores);
}

const struct command commands_port[] = {
	{ "show port [<port|all>]", show_port, "device, MAC, path MTU, GIDs" },
	{ "show gid [<port|all>]", show_gid, "the addresses" },
	{ "show neigh [<port|all>]", show_neigh, "who has which MAC" },
	{ "show counters [<port|all>]", show_counters, "those that are not 0, by rdma-core's names" },
	{ "show drops [<port|all>]", show_drops, "why packets were not accepted" },
	{ "show cores [<port|all>]", show_cores, "what the engine's cores do" },
	{ "show event [all]", show_events, "what happened to ports and objects outside of any WR" },
	{ "clear event", clear_events, "forget those" },
	{ "clear counters [<port|all>]", clear_counters, "count from now on" },
	{ "gid add <port> <network>", add_gid, "a further address" },
	{ "gid del <port> <index>", delete_gid, "an address" },
	{ "neigh add <port> <address> <mac>", add_neigh, "a neighbour that is never asked for" },
	{ .pattern = NULL },
};
