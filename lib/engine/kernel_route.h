/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's routes out of one interface, as addr has them. */
#ifndef UROCE_KERNEL_ROUTE_H
#define UROCE_KERNEL_ROUTE_H

#include <netlink/addr.h>
#include <netlink/route/route.h>
#include <netlink/socket.h>
#include <stdbool.h>

#include "addr.h"

#define KERNEL_ROUTES_MAX 512u /* they are compared with each other on a poll core; this host is an end, and no router */

struct kernel_route;

struct kernel_routes {
	int interface_index;
	struct addr *addr;
	struct kernel_route *v;
	unsigned n;
	bool are_too_many; /* there are more than KERNEL_ROUTES_MAX, of which the first are used */
};

/* Of libnl's address; false: it is none of a host's or network's (NULL: a default route has none). */
bool kernel_read_gid(const struct nl_addr *a, struct gid *gid);
/* Whether news of this route, that it comes or goes, may change what addr has. */
bool kernel_routes_concern(const struct kernel_routes *r, struct rtnl_route *route);
/* Reads them all; addr forgets those that are no more. 0 or a negative error of libnl's, and all is as it was. */
int kernel_routes_read(struct kernel_routes *r, struct nl_sock *ask);
void kernel_routes_free(struct kernel_routes *r);

#endif
