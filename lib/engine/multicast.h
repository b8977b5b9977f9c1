/* SPDX-License-Identifier: BSD-3-Clause */
/* The multicast groups that a port is in: what QPs of its cores are attached to, and where neighbours look for its own addresses. The port has to let them in and one core has to report them. */
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

#define MULTICAST_GROUPS_MAX 1024u                       /* that QPs are attached to */
#define MULTICAST_ENTRIES_MAX (4 * MULTICAST_GROUPS_MAX) /* with those of addresses, and those that were left and are not settled yet */

/* Everything pointed to outlives it. 0 or a negative errno after one log line. */
int multicast_open(struct multicast **out, const struct port *p, const struct device_string *d, const struct log *log);
/* After the cores. NULL is fine. */
void multicast_close(struct multicast *m);
struct core_mcast_map *multicast_map(struct multicast *m);

/* From any core; short: no system call, and no wait for anybody who has a lot to do. arg is the struct multicast. 0, -ENOSPC, -ENOMEM; leaving is always 0. */
/* on_group of struct core_config: a core's first member comes, or its last one has left. */
int multicast_on_group(void *arg, const struct gid *group, bool is_joined);
/* on_address of struct addr_config: an address of a core's. Those of a kernel interface are the kernel's business. */
int multicast_on_address(void *arg, const struct gid *address, bool is_ours);

/* On the thread of the one core whose addr reports for all, which must have room for MULTICAST_ENTRIES_MAX; cheap when nothing has changed. */
void multicast_tell(struct multicast *m, struct addr *addr, uint64_t now_ns);
/* After requests and ends of clients, by a thread that may wait: what has changed is let in or shut out. A group that cannot be let in is told by one log line, and tried again when another has been shut out. */
void multicast_settle(struct multicast *m);

struct multicast_stats {
	uint32_t groups;  /* with QPs */
	uint64_t refused; /* by the port or the kernel: how often */
};
void multicast_stats(struct multicast *m, struct multicast_stats *s);

#endif
