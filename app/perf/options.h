/* SPDX-License-Identifier: BSD-3-Clause */
/* What was asked for on the command line. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "uroce.h"

#define OPTIONS_SIZES 128u
#define OPTIONS_CORES 16u
#define OPTIONS_OPS_ALL UINT32_MAX

struct options {
	const char *device[2]; /* the second one only when both ends are here; NULL: not given */
	const char *listen, *connect; /* neither: both ends in this process; "" as listen: the usual port */
	const char *fault;
	enum uroce_service service;
	bool has_srq;
	uint32_t ops;          /* bit i: operation_at(i) */
	unsigned tests;        /* bits of enum test */
	uint64_t sizes[OPTIONS_SIZES];
	unsigned size_count;
	unsigned cores[OPTIONS_CORES];
	unsigned core_count;
	const char *json;      /* file name, "-": standard output instead of the table; NULL: none */
	bool is_tcp, is_progress, is_verify, is_all;
	bool is_pingpong; /* the other end is one of rdma-core's ibv_*_pingpong, or does as it does */
	uint32_t qps, depth, batch, inline_bytes, mtu, gid_index;
	uint64_t iters, bytes;
	double seconds;
};

/* Whether a device is a daemon's. */
static inline bool is_served(const char *device)
{
	return !strncmp(device, "unix:", 5);
}

/* false after one line that says what was wrong and what is expected; *is_done: help was asked for and printed. */
bool options_parse(int argc, char **argv, struct options *o, bool *is_done);

/* One of the options that there are, by its name; false: it does not take this value. */
bool options_take(struct options *o, const char *name, const char *value);
/* Puts in what was not said. Returns why all of it together makes no sense, or NULL. */
const char *options_settle(struct options *o);

#endif
