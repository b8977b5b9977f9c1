/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside core/: which QPs of a core are in which multicast groups (IBA vol. 1, 10.5), and what comes for a group. */
#ifndef UROCE_MCAST_H
#define UROCE_MCAST_H

#include <sys/queue.h>
#include <uthash.h>

#include "core.h"

struct core_client;
struct queue_pair;

/* One QP in one group. */
struct mcast_member {
	struct queue_pair *qp;
	struct mcast_group *group;
	TAILQ_ENTRY(mcast_member) of_group;
	LIST_ENTRY(mcast_member) of_qp;
};
LIST_HEAD(mcast_list, mcast_member);

struct mcast_group {
	struct gid gid;
	uint32_t n;
	TAILQ_HEAD(, mcast_member) members; /* in the order in which they came */
	UT_hash_handle hh;
};

struct mcast_table {
	struct mcast_group *groups;           /* by gid */
	uint16_t in_slot[CORE_MCAST_SLOTS];   /* groups whose GID has this hash */
};

struct mcast_group *mcast_find(const struct core *c, const struct gid *gid);
/* A datagram to QPN_MULTICAST at a group: a copy for each member. is_looped: from a QP of this engine. */
enum drop mcast_rx(struct core *c, const struct packet *p, bool is_looped);
/* Other cores that may have members of the group, a bit each. */
uint32_t mcast_other_cores(const struct core *c, const struct gid *gid);
/* The QP goes: it is in no group afterwards. */
void mcast_leave_all(struct core_client *k, struct queue_pair *p);

/* QPs that one client may have in one group. */
uint32_t mcast_group_qps(const struct core_client *k);

/* Requests. */
int mcast_attach(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);
int mcast_detach(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);

#endif
