/* SPDX-License-Identifier: BSD-3-Clause */
/* The multicast groups of an engine: the union of what its cores are in, which the port has to let in and one core has to report. */
#ifndef UROCE_MULTICAST_H
#define UROCE_MULTICAST_H

#include <stdbool.h>
#include <stdint.h>

#include "device_string.h"
#include "gid.h"
#include "log.h"

struct addr;
struct core_mcast_map;
struct multicast;
struct port;

#define MULTICAST_GROUPS_MAX 1024u

/* What on_group of a core gets as its arg. */
struct multicast_end {
	struct multicast *multicast;
	unsigned core;
};

/* Everything pointed to outlives it. 0 or a negative errno after one log line. */
int multicast_open(struct multicast **out, const struct port *p, const struct device_string *d, const struct log *log);
/* After the cores. NULL is fine. */
void multicast_close(struct multicast *m);
struct core_mcast_map *multicast_map(struct multicast *m);
/* on_group of struct core_config; arg: a struct multicast_end. Short: no system call. 0, -ENOSPC, -ENOMEM. */
int multicast_on_group(void *arg, const struct gid *group, bool is_joined);
/* On the thread of the one core whose addr reports for all; cheap when nothing has changed. */
void multicast_tell(struct multicast *m, struct addr *addr, uint64_t now_ns);
/* After requests and ends of clients, by a thread that may wait: what has changed is let in or shut out. A group that cannot be let in is told by a log line and tried again with the next change. */
void multicast_settle(struct multicast *m);

struct multicast_stats {
	uint32_t groups;
	uint64_t refused; /* by the port or the kernel */
};
void multicast_stats(struct multicast *m, struct multicast_stats *s);

#endif
