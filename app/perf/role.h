/* SPDX-License-Identifier: BSD-3-Clause */
/* The two ends: a client, which decides and reports, and a server, which does what it is told. */
#ifndef PERF_ROLE_H
#define PERF_ROLE_H

#include <stdio.h>

#include "exchange.h"
#include "options.h"

/* How an end runs. */
struct role {
	const struct options *options;
	const char *device;   /* NULL: TCP */
	const char *cores;    /* for the report: "0", "0+1", "any" */
	unsigned spinning;    /* threads of this end that never sleep */
	unsigned cpus;        /* that all its threads, and those of a peer on the same machine, share */
	FILE *json;           /* where the results go as JSON; NULL: nowhere */
	struct exchange exchange; /* closed when the role ends; without a socket until role_open */
};

/* The program's exit code: 0, or 1 if anything failed. */
int client_run(struct role *role);
int server_run(struct role *role);
/* Either end, when the other one is one of rdma-core's ibv_*_pingpong. */
int pingpong_run(struct role *role);
#define PINGPONG_PORT "18515"

struct end;
/* Opens the end's device (NULL: TCP), and only then meets the peer, unless it is in this process: what is wrong with a device shows at once. 0, or -1 after a line on standard error. */
int role_open(struct role *role, struct end *end);
/* Both: says who we are, hears who the peer is (to be released by the caller). end->is_crowded: more threads spin on this machine than there are CPUs, and each should give way. NULL: the
 * peer does not fit, said on standard error. */
json_t *role_meet(struct role *role, struct end *end);

#endif
