/* SPDX-License-Identifier: BSD-3-Clause */
/* What options mean together: the defaults of what was not said, and the combinations that make no sense. Looks at nothing but them and UROCE_DEVICE. */
#include <stdlib.h>

#include "operation.h"
#include "options.h"
#include "program.h"

#define BATCH 16u

/* [1]: of --all. A datagram of 1 KiB goes through every Ethernet. */
static const char *const usual_sizes[][2] = {
	[UROCE_RC] = { "8,4K,64K,1M", "0,1:64M" },
	[UROCE_UC] = { "8,4K,64K,1M", "0,1:64M" },
	[UROCE_UD] = { "8,64,1K", "0,1:1K" },
};

struct rule {
	bool is_broken;
	const char *text;
};

/* The first that is broken, or NULL. */
static const char *judge(const struct rule *rules, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (rules[i].is_broken)
			return rules[i].text;
	return NULL;
}

/* Defaults are those of rdma-core's program, since both ends have to be given the same. */
static const char *settle_pingpong(struct options *o)
{
	const struct program *p = program_find(o->service, o->has_srq);
	const struct rule rules[] = {
		{ !o->listen && !o->connect, "--peer without --listen or --connect: expected one of them" },
		{ !p, "--peer pingpong with --srq and a service: expected one of them; ibv_srq_pingpong has reliable connections" },
		{ o->size_count > 1, "--peer pingpong with several --sizes: expected one" },
		{ p && o->qps > p->cards, "--peer pingpong with --qps: expected at most 256 with --srq, without it 1" },
	};
	const char *wrong = judge(rules, sizeof(rules) / sizeof(rules[0]));
	if (wrong)
		return wrong;
	if (!o->size_count) {
		o->size_count = 1;
		o->sizes[0] = p->size;
	}
	if (!o->qps)
		o->qps = p->qps;
	if (!o->mtu && o->service != UROCE_UD)
		o->mtu = 1024;
	if (!o->iters)
		o->iters = 1000;
	o->depth = o->batch = 1;
	return NULL;
}

static uint32_t operations_of(enum uroce_service service)
{
	uint32_t ops = 0;
	for (unsigned i = 0; operation_at(i); i++)
		if (operation_at(i)->services & 1u << service)
			ops |= 1u << i;
	return ops;
}

static void settle_usual(struct options *o)
{
	if (!o->ops || o->ops == OPTIONS_OPS_ALL)
		o->ops = operations_of(o->service);
	if (!o->size_count)
		options_take(o, "sizes", usual_sizes[o->service][o->is_all]);
	if (!o->qps)
		o->qps = 1;
	if (!o->batch)
		o->batch = o->depth < BATCH ? o->depth : BATCH;
	if (!o->tests)
		options_take(o, "test", "all");
	if (o->is_verify)
		options_take(o, "test", "verify");
}

static bool has_daemon(const struct options *o)
{
	return (o->device[0] && is_served(o->device[0])) || (o->device[1] && is_served(o->device[1]));
}

const char *options_settle(struct options *o)
{
	const char *usual = getenv("UROCE_DEVICE"), *wrong = o->is_pingpong ? settle_pingpong(o) : NULL;
	bool is_self = !o->listen && !o->connect;
	if (wrong)
		return wrong;
	if (!o->device[0] && !o->is_tcp && usual && *usual)
		o->device[0] = usual;
	settle_usual(o);
	const struct rule rules[] = {
		{ o->ops & ~operations_of(o->service), "--op with something that the --service has not: expected send or send-imm; of uc write and write-imm, too" },
		{ o->mtu && o->service == UROCE_UD, "--mtu with --service ud: expected none; a datagram is one packet of up to the port's MTU" },
		{ o->batch > o->depth, "--batch is more than --depth: expected at most as much" },
		{ !is_self && !o->is_tcp && !o->device[0],
			"no --device: expected one, such as --device inline:net_af_packet0,iface=eth0 (only both ends in one process have a default)" },
		{ o->fault && has_daemon(o), "--fault with unix:: expected fault= among the settings of uroced, whose port it is" },
		{ !is_self && o->device[1], "two --device: expected one, when the other end is another process" },
	};
	o->depth -= o->depth % o->batch;
	return judge(rules, sizeof(rules) / sizeof(rules[0]));
}
