/* SPDX-License-Identifier: BSD-3-Clause */
/* What a phase cost one end: CPU time and context switches of all threads of this process, and of the daemon that it is a client of. */
#ifndef COMPARE_USAGE_H
#define COMPARE_USAGE_H

#include <stdint.h>
#include <sys/types.h>

struct usage {
	double cpu_s;
	uint64_t switches; /* voluntary or not */
};

/* daemon: 0 for none. */
struct usage usage_read(pid_t daemon);
struct usage usage_between(struct usage from, struct usage to);
/* Who serves a socket (device unix:PATH); 0: nobody, or in another PID namespace. */
pid_t usage_find_daemon(const char *device);

#endif
