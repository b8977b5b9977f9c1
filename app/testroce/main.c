/* SPDX-License-Identifier: BSD-3-Clause */
/* testroce: ports, traffic and a prompt in one process, in the manner of DPDK's testpmd. The main thread reads commands; the driver's thread runs engines and traffic. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "commands.h"
#include "interrupt.h"
#include "lab.h"
#include "lesson.h"
#include "options.h"
#include "prompt.h"
#include "values.h"

#define LINK_MS 300
#define PEER_S 60    /* an answer of the peer's takes no longer */
#define PERIOD_S 1.0 /* of the lines where there is no prompt */

static const char *const usual_device[STATIONS_MAX] = { "inline:net_ring,link=testroce,side=0,ip=10.0.0.1/24", "inline:net_ring,link=testroce,side=1,ip=10.0.0.2/24" };

static const struct section sections[] = {
	{ "program", "this program", commands_program },
	{ "traffic", "traffic between the ports", commands_traffic },
	{ "ports", "what the ports are, and what they have counted", commands_port },
	{ "links", "faults, and captures", commands_link },
	{ "objects", "PDs, CQs, SRQs, AHs and QPs by hand", commands_object },
	{ "memory", "MRs and memory windows by hand", commands_memory },
	{ "wrs", "work requests by hand, and their completions", commands_wr },
	{ .name = NULL },
};

/* testpmd's words for what has another name here. */
static const struct habit habits[] = {
	{ "show port stats", "show counters" },
	{ "show port xstats", "show counters" },
	{ "show port info", "show port" },
	{ "show fwd stats", "show fwd" },
	{ "clear port stats", "clear counters" },
	{ "clear port xstats", "clear counters" },
	{ .theirs = NULL },
};

/* Where our options begin: behind "--", or at once when there is none and so no options of DPDK's. */
static int find_own(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--"))
			return i + 1;
	return 1;
}

/* With options of its own DPDK is started as they say; without, the engine starts it as it suits the machine. */
static bool start_eal(int argc, char **argv, int own)
{
	if (own <= 2)
		return true;
	argv[own - 1] = NULL;
	if (rte_eal_init(own - 1, argv) >= 0)
		return true;
	fprintf(stderr, "testroce: DPDK does not start with these options: %s (expected: options of DPDK's before --, or none)\n", rte_strerror(rte_errno));
	return false;
}

static int open_peer(struct lab *lab, const struct options *o)
{
	lab->is_paired = o->listen || o->connect;
	lab->is_server = o->listen != NULL;
	if (!lab->is_paired)
		return 0;
	lab->peer = (struct exchange){ .fd = -1, .is_interrupted = interrupt_is_there, .patience_s = PEER_S };
	if (o->listen)
		printf("waiting for a testroce that connects\n");
	fflush(stdout);
	return o->listen ? exchange_listen(&lab->peer, o->listen, EXCHANGE_PORT) : exchange_connect(&lab->peer, o->connect, EXCHANGE_PORT);
}

/* An end of a link is up when the other one has been seen; with nobody there yet it is not waited for for long. */
static void wait_for_links(struct lab *lab)
{
	struct uroce_device_attr a;
	unsigned up = 0;
	for (unsigned i = 0; i < LINK_MS && up < lab->stations; i++) {
		up = 0;
		for (unsigned k = 0; k < lab->stations; k++)
			up += !uroce_query_device(lab->station[k].ctx, &a) && a.port_up;
		if (up < lab->stations)
			nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	}
}

static int open_lab(struct lab *lab, const struct options *o)
{
	unsigned n = o->devices ? o->devices : STATIONS_MAX;
	const char *const *device = o->devices ? o->device : usual_device;
	for (unsigned i = 0; i < n; i++) {
		if (station_open(&lab->station[i], i, device[i]))
			return -1;
		lab->stations++;
	}
	if (driver_start(&lab->driver, lab->station, lab->stations))
		return -1;
	wait_for_links(lab);
	events_look(lab, false);
	events_clear(&lab->events); /* of how the ports came up */
	return open_peer(lab, o);
}

static void close_lab(struct lab *lab)
{
	flow_free(lab->flow);
	driver_stop(&lab->driver);
	for (unsigned i = 0; i < lab->stations; i++)
		station_close(&lab->station[i]);
	exchange_close(&lab->peer);
}

/* Without a prompt: until Enter, a signal, or the traffic's own end; a server until its peer goes. Where nobody can press Enter (CI, cron) the end of standard input is none for traffic that was asked to tell of itself. */
static void run_alone(struct lab *lab)
{
	bool has_period = lab->stats_seconds > 0, has_keyboard = !lab->is_server;
	if (!has_period)
		lab->stats_seconds = PERIOD_S;
	if (has_keyboard)
		printf("press Enter to end\n");
	fflush(stdout);
	while (!interrupt_is_there() && !lab->is_quitting && (lab->is_server || !(lab->flow && lab->flow->is_said))) {
		if (!prompt_wait(lab, PERIOD_S, has_keyboard))
			continue;
		if (!prompt_is_closed())
			break;
		lab_fail("standard input is closed: %s", has_period ? "the traffic goes on until a signal" : "the traffic ends; --stats-period SECONDS lets it go on until a signal, and --cmdline-file for as long as it says");
		if (!has_period)
			break;
		has_keyboard = false;
	}
}

/* What still runs is ended as by stop, or has just failed; a second signal makes that short. */
static void end_traffic(struct lab *lab)
{
	interrupt_forget();
	if (traffic_is_open(lab))
		traffic_stop(lab, NULL, 0);
}

static int run(struct lab *lab, const struct options *o)
{
	bool is_wrong = o->cmdline_file && prompt_run_file(lab, o->cmdline_file);
	bool is_alone = !o->is_interactive && !o->cmdline_file;
	if (!lab->is_quitting && (o->is_auto_start || (is_alone && !lab->is_server)) && traffic_start(lab, NULL, 0))
		is_wrong = true;
	if (o->is_interactive && !lab->is_quitting)
		is_wrong |= prompt_run(lab) > 0;
	else if ((is_alone || o->is_auto_start) && !is_wrong)
		run_alone(lab);
	end_traffic(lab);
	return is_wrong || lab->failures;
}

int main(int argc, char **argv)
{
	static struct lab lab = { .peer.fd = -1 };
	static struct options o;
	bool is_done;
	int own = find_own(argc, argv);
	if (!options_parse(argc, argv, own, &o, &is_done))
		return 2;
	if (is_done)
		return 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	if (!start_eal(argc, argv, own))
		return 1;
	interrupt_catch();
	if (o.is_lesson)
		return lesson_run(o.is_interactive) != 0;
	const struct grammar grammar = { .sections = sections, .kinds = value_kinds, .habits = habits, .lab = &lab };
	lab.grammar = &grammar;
	lab.config = o.config;
	lab.stats_seconds = o.stats_seconds;
	lab.is_interactive = o.is_interactive;
	int failed = open_lab(&lab, &o) ? 1 : run(&lab, &o);
	close_lab(&lab);
	return failed;
}
