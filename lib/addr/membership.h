/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside addr/: what a host tells routers and switches of the multicast groups that it is in (RFC 3376, RFC 3810), for one family of addresses. */
#ifndef UROCE_MEMBERSHIP_H
#define UROCE_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uthash.h>

#include "addr.h"
#include "igmp.h"
#include "random.h"

struct membership_group {
	struct gid gid;
	bool is_member;       /* else it is left, and there only as long as that is still to be told */
	bool is_queued;       /* in `due` */
	bool is_asked;        /* of what is due: a query's answer; else a change */
	uint8_t changes;      /* reports of the last change still to be sent */
	uint64_t change_at;   /* with changes */
	uint64_t answer_at;   /* 0: nobody has asked */
	uint64_t answered_at; /* last */
	TAILQ_ENTRY(membership_group) link;
	UT_hash_handle hh;
};

struct membership {
	bool is_ip4;
	const struct addr_config *config;
	struct addr_stats *stats;
	struct wheel *wheel;
	struct membership_group *groups; /* by gid */
	TAILQ_HEAD(, membership_group) due;
	uint32_t members, left;   /* of groups, by is_member */
	uint8_t robustness;       /* how often a change is told */
	uint64_t answer_all_at;   /* 0: no query of all groups waits for its answer */
	uint64_t answered_all_at;
	uint64_t older_until;     /* an older router asks: it is answered in its own words */
	uint64_t armed_for;
	struct timer timer;
	struct rng rng;
};

void membership_init(struct membership *m, bool is_ip4, const struct addr_config *config, struct addr_stats *stats, struct wheel *wheel, uint64_t now_ns);
void membership_free(struct membership *m);
/* 0; -EEXIST, -ENOSPC, -ENOMEM. */
int membership_join(struct membership *m, const struct gid *group, uint64_t now_ns);
/* -ENOENT. */
int membership_leave(struct membership *m, const struct gid *group, uint64_t now_ns);
/* Tells all of them again, as if they had just been joined: what a link that was down has heard of them is forgotten there, or was never heard. */
void membership_tell_again(struct membership *m);
/* DROP_GROUP_IGNORED: of a group that we are not in. */
enum drop membership_asked(struct membership *m, const struct group_query *q, uint64_t now_ns);
static inline bool membership_has_tx(const struct membership *m)
{
	return !TAILQ_EMPTY(&m->due);
}
/* Writes the next report into frame; 0: none is due. source, vlan: as whom and where. */
uint32_t membership_tx(struct membership *m, const struct gid *source, uint16_t vlan, uint64_t now_ns, uint8_t *frame, uint32_t room);

#endif
