/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands about the traffic: what the next one is, and that which runs. */
#include <inttypes.h>
#include <stdio.h>

#include "commands.h"
#include "lab.h"
#include "pair.h"

bool traffic_is_running(const struct lab *lab)
{
	return lab->flow && atomic_load_explicit(&lab->driver.flow, memory_order_acquire) == lab->flow;
}

bool traffic_is_open(const struct lab *lab)
{
	/* in this order: what does not run any more has the state that it ended in */
	return traffic_is_running(lab) || (lab->flow && !lab->flow->is_said && atomic_load_explicit(&lab->flow->state, memory_order_acquire) == FLOW_FAILED);
}

/* ---- set ---- */

static int set_mode(struct lab *lab, const struct value *v, unsigned given)
{
	lab->config.mode = mode_find(v->text);
	return 0;
}

static int set_size(struct lab *lab, const struct value *v, unsigned given)
{
	lab->config.size = v->number;
	return 0;
}

static int set_depth(struct lab *lab, const struct value *v, unsigned given)
{
	lab->config.depth = (uint32_t)v->number;
	return 0;
}

static int set_qps(struct lab *lab, const struct value *v, unsigned given)
{
	lab->config.qps = (uint32_t)v->number;
	return 0;
}

static int set_mtu(struct lab *lab, const struct value *v, unsigned given)
{
	lab->config.mtu = (uint32_t)v->number;
	return 0;
}

static int set_verify(struct lab *lab, const struct value *v, unsigned given)
{
	lab->config.is_verified = v->number;
	return 0;
}

static int set_seed(struct lab *lab, const struct value *v, unsigned given)
{
	lab->config.seed = v->number;
	return 0;
}

static int set_period(struct lab *lab, const struct value *v, unsigned given)
{
	lab->stats_seconds = (double)v->number / 1000;
	return 0;
}

/* ---- start and stop ---- */

int traffic_start(struct lab *lab, const struct value *v, unsigned given)
{
	if (traffic_is_running(lab))
		return lab_fail("mode %s runs: expected stop before the next start", lab->flow->end[0].mode->name);
	if (lab->peer.fd < 0 && lab->is_paired)
		return lab_fail("the peer is gone: expected a testroce that listens (restart both)");
	flow_free(lab->flow);
	lab->flow = NULL;
	if (lab->is_paired)
		return pair_start(lab);
	lab->flow = flow_new(&lab->station[0], &lab->station[lab->stations - 1], &lab->config);
	if (!lab->flow)
		return -1;
	driver_give(&lab->driver, lab->flow);
	return 0;
}

int traffic_stop(struct lab *lab, const struct value *v, unsigned given)
{
	if (!traffic_is_open(lab))
		return lab_fail("nothing runs: expected start before stop");
	driver_take_back(&lab->driver, lab->flow);
	flow_print(lab->flow);
	if (lab->is_paired)
		pair_stop(lab);
	if (lab->flow->state == FLOW_FAILED && !lab->flow->is_said) {
		lab->flow->is_said = true;
		lab->failures++;
		return -1;
	}
	return 0;
}

static int show_traffic(struct lab *lab, const struct value *v, unsigned given)
{
	if (!lab->flow)
		return lab_fail("no traffic yet: expected start first");
	flow_print(lab->flow);
	return 0;
}

static int show_config(struct lab *lab, const struct value *v, unsigned given)
{
	const struct flow_config *c = &lab->config;
	printf("mode %s\nsize %" PRIu64 "\ndepth %u\nqps %u\nmtu ", c->mode->name, c->size, c->depth, c->qps);
	printf(c->mtu ? "%u\n" : "as the ports carry\n", c->mtu);
	printf("verify %s\nseed %" PRIu64 "\nstats-period %g\n", c->is_verified ? "on" : "off", c->seed, lab->stats_seconds);
	return 0;
}

static int show_modes(struct lab *lab, const struct value *v, unsigned given)
{
	const struct mode *m;
	for (unsigned i = 0; (m = mode_at(i)); i++)
		printf("  %-10s %s\n", m->name, m->help);
	return 0;
}

const struct command commands_traffic[] = {
	{ "set fwd <mode>", set_mode, "what start does; show modes explains them" },
	{ "set size <bytes>", set_size, "bytes of a message" },
	{ "set depth <count>", set_depth, "messages outstanding on a QP" },
	{ "set qps <count>", set_qps, "QPs" },
	{ "set mtu <mtu>", set_mtu, "path MTU" },
	{ "set verify <on|off>", set_verify, "look at every byte" },
	{ "set seed <number>", set_seed, "what mode mixed follows from" },
	{ "set stats-period <seconds>", set_period, "a line about the traffic every so often; 0: none" },
	{ "start", traffic_start, "start the traffic" },
	{ "stop", traffic_stop, "end it, and show what it did" },
	{ "show fwd", show_traffic, "the traffic that runs, or ran last" },
	{ "show config", show_config, "what the next start takes" },
	{ "show modes", show_modes, "the traffic modes" },
	{ .pattern = NULL },
};
