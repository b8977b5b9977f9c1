/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the table of options. */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "values.h"

#define STATS_PERIOD_MIN 0.1 /* seconds */

static bool take_device(struct options *o, const char *v)
{
	if (o->devices == STATIONS_MAX || !*v)
		return false;
	o->device[o->devices++] = v;
	return true;
}

static bool take_file(struct options *o, const char *v)
{
	o->cmdline_file = v;
	return *v;
}

static bool take_listen(struct options *o, const char *v)
{
	o->listen = v;
	return true;
}

static bool take_connect(struct options *o, const char *v)
{
	o->connect = v;
	return *v;
}

static bool take_period(struct options *o, const char *v)
{
	return value_seconds(v, &o->stats_seconds) && o->stats_seconds >= STATS_PERIOD_MIN;
}

static bool take_mode(struct options *o, const char *v)
{
	return (o->config.mode = mode_find(v)) != NULL;
}

static bool take_size(struct options *o, const char *v)
{
	return value_bytes(v, &o->config.size);
}

static bool take_depth(struct options *o, const char *v)
{
	return value_count(v, &o->config.depth);
}

static bool take_qps(struct options *o, const char *v)
{
	return value_count(v, &o->config.qps);
}

static bool take_interactive(struct options *o, const char *v)
{
	return o->is_interactive = true;
}

static bool take_auto_start(struct options *o, const char *v)
{
	return o->is_auto_start = true;
}

static bool take_lesson(struct options *o, const char *v)
{
	return o->is_lesson = true;
}

static const struct option_row {
	const char *name;
	bool (*take)(struct options *o, const char *value);
	const char *value; /* NULL: takes none */
	const char *takes, *text;
} rows[] = {
	{ "interactive", take_interactive, NULL, NULL, "a prompt (also -i)" },
	{ "device", take_device, "STRING", "a device string, at most twice", "a port: inline:..., embedded:... or unix:PATH; twice: two ports, joined by whatever they are (default: two ends of a ring in this process)" },
	{ "cmdline-file", take_file, "FILE", "a file name", "carry out these commands first" },
	{ "auto-start", take_auto_start, NULL, NULL, "start the traffic at once" },
	{ "stats-period", take_period, "SECONDS", "a number of seconds from 0.1", "a line about the traffic every so often" },
	{ "forward-mode", take_mode, "MODE", "a mode: " MODE_NAMES, "the traffic (default send)" },
	{ "size", take_size, "BYTES", VALUE_BYTES, "of a message (default 4096)" },
	{ "depth", take_depth, "N", VALUE_COUNT, "messages outstanding on a QP (default 16)" },
	{ "qps", take_qps, "N", VALUE_COUNT, "QPs (default 1)" },
	{ "listen", take_listen, "[HOST:]PORT", "an address to listen at", "wait for another testroce there, and serve its traffic" },
	{ "connect", take_connect, "HOST[:PORT]", "the address of a testroce that listens", "send to that one" },
	{ "lesson", take_lesson, NULL, NULL, "the life of a SEND, step by step, then WRITE, READ, and a socket beside it" },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void print_help(void)
{
	printf("testroce [DPDK's options] -- [options]: try RDMA over RoCEv2, in one process or between two\n");
	for (unsigned i = 0; i < ROWS; i++) {
		char name[48];
		snprintf(name, sizeof(name), "--%s%s%s", rows[i].name, rows[i].value ? " " : "", rows[i].value ? rows[i].value : "");
		printf("  %-28s %s\n", name, rows[i].text);
	}
	printf("  %-28s %s\n", "--help", "this");
	printf("Without -i, a file or a lesson the traffic runs until Enter is pressed, or a signal. Without DPDK's options DPDK is started as it suits this machine.\n");
}

static bool take_row(const struct option_row *r, const char *value, struct options *o)
{
	if (r->value && !value) {
		fprintf(stderr, "testroce: --%s: expected %s\n", r->name, r->takes);
		return false;
	}
	if (!r->value && value) {
		fprintf(stderr, "testroce: --%s=%s: expected no value\n", r->name, value);
		return false;
	}
	if (r->take(o, value))
		return true;
	fprintf(stderr, "testroce: --%s %s: expected %s\n", r->name, value, r->takes);
	return false;
}

static const struct option_row *find_row(const char *arg)
{
	if (!strcmp(arg, "-i"))
		return &rows[0];
	for (unsigned i = 0; i < ROWS && !strncmp(arg, "--", 2); i++) {
		size_t len = strlen(rows[i].name);
		if (!strncmp(arg + 2, rows[i].name, len) && (!arg[2 + len] || arg[2 + len] == '='))
			return &rows[i];
	}
	return NULL;
}

static bool check_whole(const struct options *o)
{
	const char *wrong = NULL;
	if (o->listen && o->connect)
		wrong = "--listen and --connect: expected one of them";
	else if ((o->listen || o->connect) && o->devices != 1)
		wrong = "--listen and --connect: expected one --device, this side's port";
	else if (o->listen && o->is_auto_start)
		wrong = "--auto-start: expected at the side that connects";
	if (wrong)
		fprintf(stderr, "testroce: %s\n", wrong);
	return !wrong;
}

bool options_parse(int argc, char **argv, int first, struct options *o, bool *is_done)
{
	*o = (struct options){ .config = { .mode = mode_at(0), .size = 4096, .depth = 16, .qps = 1, .is_verified = true, .seed = 1 } };
	*is_done = false;
	for (int i = first; i < argc; i++) {
		const struct option_row *r = find_row(argv[i]);
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			print_help();
			return *is_done = true;
		}
		if (!r) {
			fprintf(stderr, "testroce: %s: expected one of the options that --help lists\n", argv[i]);
			return false;
		}
		const char *value = strncmp(argv[i], "--", 2) ? NULL : strchr(argv[i], '=');
		value = value ? value + 1 : r->value && i + 1 < argc ? argv[++i] : NULL;
		if (!take_row(r, value, o))
			return false;
	}
	return check_whole(o);
}
