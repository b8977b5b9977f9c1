/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside addr/: routes, and the choice of the next hop. */
#ifndef UROCE_ROUTE_H
#define UROCE_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "gid.h"
#include "gid_table.h"

struct route {
	struct gid network, gateway; /* gateway zero: on link */
	uint8_t bits;                /* counted in the whole GID */
	bool has_gateway;
};

struct route_table {
	struct route *v; /* longest prefix first */
	uint32_t n, room;
};

void route_table_free(struct route_table *t);
/* -EEXIST: there is one to this network; -EINVAL: prefix, families, a gateway that is no host; -ENOMEM. Bits behind the prefix are
 * ignored. */
int route_add(struct route_table *t, const struct gid *network, unsigned prefix_len, const struct gid *gateway);
/* -ENOENT, -EINVAL. */
int route_remove(struct route_table *t, const struct gid *network, unsigned prefix_len);
/* Where a packet to dgid goes on the link of this VLAN; false: nowhere. On-link networks of the GIDs win over routes of the same
 * length. */
bool route_find(const struct route_table *t, const struct gid_table *gids, const struct gid *dgid, uint16_t vlan, struct gid *next_hop);

#endif
