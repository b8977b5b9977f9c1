/* SPDX-License-Identifier: BSD-3-Clause */
/* Results for people, a line each as they come, and for programs, a JSON list at the end. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "measure.h"
#include "options.h"

struct report {
	const char *json;     /* file name, "-": standard output instead of the table; NULL: only the table */
	FILE *file;           /* of json; closed by report_end */
	bool has_progress, has_head;
	bool is_only_verify;  /* nothing is measured: fewer columns */
	const char *mode, *port;
	const struct options *options;
	uint32_t mtu;
	uint32_t qps, depth, batch; /* that the reader was told last */
	uint64_t paced_ns;    /* when progress was shown last */
	char progress[96];    /* which trial it is of */
	const char *cores[2]; /* of client and server */
	unsigned spinning;    /* threads of both that never sleep */
	json_t *rows;
};

void report_start(struct report *r);
/* One operation and size: results[test] of what was done, NULL of what was not; error: "", or why there is less. */
void report_add(struct report *r, const struct trial *t, const struct result *const results[TESTS], const char *error);
/* How far the trial is that report_progress announced. Any number of calls; a line now and then. */
void report_pace(void *report, uint64_t messages, double seconds);
void report_progress(struct report *r, const struct trial *t, unsigned number, unsigned of);
/* Writes the JSON list. false: it, or the table, could not be written, said on standard error. */
bool report_end(struct report *r);

#endif
