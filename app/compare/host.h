/* SPDX-License-Identifier: BSD-3-Clause */
/* One of the two ends: its process, its device, and what it knows of the other. */
#ifndef COMPARE_HOST_H
#define COMPARE_HOST_H

#include <stdio.h>

#include "link.h"
#include "options.h"

/* What an end says of itself. */
struct about {
	char machine[64]; /* equal: both are on one machine */
	char name[65], system[140];
	int cpus, cpu; /* how many; which one the program is on, -1: any */
	int spinning;  /* threads that never sleep while uroce is used */
	int daemon;    /* process that serves the device, 0: none */
	int can_trace;
};

struct host {
	const struct options *options;
	const char *device; /* NULL: none is needed */
	int cpu;
	bool is_client;
	FILE *json, *html; /* where the client's results go; NULL: nowhere */
	struct exchange exchange;
	struct end end;
	bool is_open; /* end */
	struct about self, peer;
	pid_t daemon; /* whose usage this end reads; 0: none, or the other end does */
};

/* Pins this thread, and those that it begins. 0, or -1 after a line on standard error. */
int host_pin(const struct host *h);
/* Says who we are and hears who the other end is. 0, or -1 after a line on standard error. */
int host_meet(struct host *h);
/* Opens the device before a transport that needs it, and closes it before one that does not: a poll core would be in its way, as would af_packet's socket. 0, or negative after a line on standard error. */
int host_choose(struct host *h, const struct transport *t);
void host_close(struct host *h);

/* The program's exit code. Each ends the host. */
int client_run(struct host *h);
int server_run(struct host *h);

#endif
