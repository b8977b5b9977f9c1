/* SPDX-License-Identifier: BSD-3-Clause */
/* What was asked for on the command line. */
#ifndef COMPARE_OPTIONS_H
#define COMPARE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define OPTIONS_SIZES 64u

struct options {
	const char *device[2]; /* the second one only when both ends are here; NULL: not given */
	const char *listen, *connect; /* neither: both ends on this machine; "" as listen: the usual port */
	const char *json, *html; /* file names; "-" as json: standard output instead of the table; NULL: none */
	unsigned transports; /* bit i: transport_at(i) */
	unsigned works;      /* bits of enum work */
	uint64_t sizes[OPTIONS_SIZES];
	unsigned size_count;
	double seconds;
	int cpu[2];          /* of the program at each end; -1: any */
	uint32_t gid_index;
	bool is_uncounted;
};

/* false after one line that says what was wrong and what is expected; *is_done: help was asked for and printed. */
bool options_parse(int argc, char **argv, struct options *o, bool *is_done);

#endif
