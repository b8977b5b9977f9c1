/* SPDX-License-Identifier: BSD-3-Clause */
/* What lets multicast groups in through a port: MAC filters of a NIC, or memberships of kernel sockets where the port is one of the kernel's interfaces. Slow path: system calls that may wait, so by no poll core. One thread at a time. */
#ifndef UROCE_GROUP_DOOR_H
#define UROCE_GROUP_DOOR_H

#include "device_string.h"
#include "gid.h"
#include "log.h"

struct group_door;
struct port;

/* p and log outlive it. 0 or a negative errno after one log line. */
int group_door_open(struct group_door **out, const struct port *p, const struct device_string *d, const struct log *log);
/* 0 or a negative errno: it stays outside. A group is let in once before it is shut out. */
int group_door_let_in(struct group_door *g, const struct gid *group);
void group_door_shut_out(struct group_door *g, const struct gid *group);
/* NULL is fine. */
void group_door_close(struct group_door *g);

#endif
