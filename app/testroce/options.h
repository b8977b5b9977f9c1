/* SPDX-License-Identifier: BSD-3-Clause */
/* What was asked for on the command line: DPDK's options before "--", ours behind it. */
#ifndef TESTROCE_OPTIONS_H
#define TESTROCE_OPTIONS_H

#include <stdbool.h>

#include "flow.h"
#include "station.h"

struct options {
	const char *device[STATIONS_MAX];
	unsigned devices;
	const char *cmdline_file, *listen, *connect;
	double stats_seconds;
	struct flow_config config;
	bool is_interactive, is_auto_start, is_lesson;
};

/* argv[first..argc). false after one line that says what was wrong and what is expected; *is_done: help was asked for and printed. */
bool options_parse(int argc, char **argv, int first, struct options *o, bool *is_done);

#endif
