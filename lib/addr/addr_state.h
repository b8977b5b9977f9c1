/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside addr/: what its parts share. */
#ifndef UROCE_ADDR_STATE_H
#define UROCE_ADDR_STATE_H

#include "addr.h"
#include "gid_table.h"
#include "membership.h"
#include "neigh.h"
#include "route.h"

#define REPLY_MAX 2044u /* with its length 2,048 bytes */

struct reply {
	uint32_t len;
	uint8_t frame[REPLY_MAX];
};

struct addr {
	struct addr_config config; /* defaults filled in */
	struct gid_table gids;
	struct route_table routes;
	struct neigh_table neighs;
	struct membership groups[2]; /* IPv4, IPv6 */
	struct ah *local;          /* AHs that need no neighbour: to ourselves, and to groups */
	struct ah *stranded;       /* AHs without a way */
	struct timer try_stranded; /* armed: one of them lacked only room for a question */
	struct reply *replies;     /* ring of config.max_replies */
	uint32_t reply_head, reply_count;
	unsigned turn;             /* replies, questions and reports take turns */
	struct addr_stats stats;
	void (*on_gids_changed)(void *arg); /* or NULL */
	void *on_gids_changed_arg;
};

/* Nobody else is one of us: such a message is a second host with our address, or a forger. */
static inline bool addr_can_be_neighbour(const struct addr *a, const struct gid *gid, uint16_t vlan)
{
	return gid_is_host(gid) && !gid_table_has(&a->gids, gid, vlan);
}

/* ah.c: addresses or routes have changed. */
void ah_route_all(struct addr *a);
/* ah.c: addr goes; AHs that are still open are closed. */
void ah_close_all(struct addr *a);
void ah_on_neigh_changed(struct neigh *n, uint64_t now_ns);
bool ah_has_progress(struct neigh *n);
void ah_try_stranded(struct timer *t, uint64_t now_ns);

#endif
