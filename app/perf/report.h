/* SPDX-License-Identifier: BSD-3-Clause */
/* Results for people, a line each as they come, or for programs, one JSON object at the end. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "measure.h"

struct report {
	bool is_json, has_progress, has_head;
	enum test kind;       /* TEST_VERIFY has columns of its own */
	const char *cores[2]; /* of client and server */
	unsigned spinning;    /* threads of both that never sleep */
	json_t *results;
};

void report_start(struct report *r);
/* One operation and size: what was measured of it, NULL if not; error: "" or why there is less. */
void report_add(struct report *r, const struct trial *t, const struct result *stream, const struct result *latency, const char *error);
void report_add_verified(struct report *r, const struct trial *t, const struct result *result, const char *error);
void report_progress(struct report *r, const struct trial *t, unsigned number, unsigned of);
/* Ends the report; about: what was used, which becomes part of it. */
void report_end(struct report *r, json_t *about, bool is_good);

#endif
