/* SPDX-License-Identifier: BSD-3-Clause */
/* What was measured, the figures that follow from it, and all of it as one JSON object: the table and the page show nothing that is not in there. */
#ifndef COMPARE_RESULT_H
#define COMPARE_RESULT_H

#include <jansson.h>

#include "host.h"
#include "work.h"

/* One work with messages of one size over one transport. */
struct result {
	const struct transport *transport;
	enum work work;
	uint64_t size;
	struct outcome timed;
	struct tally counted[2]; /* of a phase of its own */
	char note[256];
	const char *copying; /* as of the link */
	char error[1024]; /* "" if all of it was done */
};

/* Messages are those in one direction, of both ends together. What cannot be told is NAN. */
struct figures {
	double messages, sent, bytes; /* came, were sent */
	double lost, lost_share;      /* of the ping-pong: round trips */
	double msgs_per_s, gbit_per_s;
	double p50_ns, p99_ns, p999_ns, max_ns; /* half round trip; of the ping-pong */
	double cpu_s_per_gib, cpu_us_per_msg;
	double switches_per_msg, calls_per_msg, copies_per_msg; /* a copy: as many bytes as the message has */
};
struct figures result_figures(const struct result *r);

/* To be released by the caller; NULL: no memory. */
json_t *result_document(const struct host *h, const struct result *results, unsigned count);

#endif
