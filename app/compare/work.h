/* SPDX-License-Identifier: BSD-3-Clause */
/* What is done over a link, in phases: some messages to warm up, as many as fit in a time, and a number of them under the eyes of a tracer. The client begins and says which is the last. */
#ifndef COMPARE_WORK_H
#define COMPARE_WORK_H

#include <jansson.h>

#include "histogram.h"
#include "link.h"
#include "tracer.h"

struct work_row {
	const char *name, *text;
	uint64_t least, most; /* sizes */
};
/* Indexed by enum work. */
extern const struct work_row works[WORKS];
/* By a name of len characters, or -1. */
int work_find(const char *name, size_t len);

struct phase {
	uint64_t messages; /* 0: as many as fit in the time */
	double seconds;
	bool is_counted;   /* system calls and copies are, and nothing else is worth anything */
};

/* What a phase was at one end. */
struct tally {
	uint64_t messages; /* client: handed over; server: whole ones that came. Of the ping-pong, in each direction */
	double cpu_s;
	uint64_t switches;
	bool is_counted;   /* the rest has values */
	uint64_t calls, call_bytes; /* system calls; bytes that they copied */
	uint64_t copied;   /* bytes of messages that were copied otherwise */
	uint32_t calls_of[TRACER_NUMBERS];
};

/* What it was at the client. */
struct outcome {
	struct tally ends[2];  /* client, server */
	double seconds;
	struct histogram latency; /* ping-pong: half round trips, ns */
};

/* 0, or a negative errno with l->error. daemon: as usage_read. */
int work_run(struct link *l, const struct phase *p, pid_t daemon, struct outcome *o);
/* message: what the client announced. */
int work_serve(struct link *l, json_t *message, pid_t daemon);

#endif
