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
#include "lab.h"
#include "lesson.h"
#include "options.h"
#include "prompt.h"
#include "values.h"

#define FOREVER_S 1e9
#define LINK_MS 300
#define PERIOD_S 1.0 /* of the lines where there is no prompt */

static const char *const usual_device[STATIONS_MAX] = { "inline:net_ring,link=testroce,side=0,ip=10.0.0.1/24", "inline:net_ring,link=testroce,side=1,ip=10.0.0.2/24" };

static const struct command *const tables[] = { commands_traffic, commands_port, commands_link, commands_object, commands_wr, NULL };

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
	return open_peer(lab, o);
}

static void close_lab(struct lab *lab)
{
	if (lab->flow)
		driver_take_back(&lab->driver, lab->flow);
	flow_free(lab->flow);
	objects_free(&lab->objects);
	driver_stop(&lab->driver);
	for (unsigned i = 0; i < lab->stations; i++)
		station_close(&lab->station[i]);
	exchange_close(&lab->peer);
}

/* Without a prompt: until Enter, a signal, or the traffic's own end; a server until its peer goes. */
static void run_alone(struct lab *lab)
{
	if (lab->stats_seconds <= 0)
		lab->stats_seconds = PERIOD_S;
	if (!lab->is_server)
		printf("press Enter to end\n");
	fflush(stdout);
	while (!prompt_is_interrupted() && !lab->is_quitting && (lab->is_server || !(lab->flow && lab->flow->is_said)))
		if (prompt_wait(lab, PERIOD_S, !lab->is_server))
			break;
	if (!lab->is_server && lab->flow && !lab->flow->is_said)
		traffic_stop(lab, NULL, 0);
}

static int run(struct lab *lab, const struct options *o)
{
	int wrong = o->cmdline_file ? prompt_run_file(lab, o->cmdline_file) : 0;
	bool is_alone = !o->is_interactive && !o->cmdline_file;
	if (!lab->is_quitting && (o->is_auto_start || (is_alone && !lab->is_server)) && traffic_start(lab, NULL, 0))
		wrong++;
	if (o->is_interactive && !lab->is_quitting)
		prompt_run(lab);
	else if ((is_alone || o->is_auto_start) && !wrong)
		run_alone(lab);
	return wrong || lab->failures;
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
	prompt_catch_signals();
	if (o.is_lesson)
		return lesson_run(o.is_interactive) != 0;
	const struct grammar grammar = { .tables = tables, .kinds = value_kinds, .lab = &lab };
	lab.grammar = &grammar;
	lab.config = o.config;
	lab.stats_seconds = o.stats_seconds;
	lab.is_interactive = o.is_interactive;
	int failed = open_lab(&lab, &o) ? 1 : run(&lab, &o);
	close_lab(&lab);
	return failed;
}
