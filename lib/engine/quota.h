/* SPDX-License-Identifier: BSD-3-Clause */
/* How much each user has through all of its clients together. Quotas of one request follow from it; the core enforces them (core_client_set_quota). For the control thread. */
#ifndef UROCE_QUOTA_H
#define UROCE_QUOTA_H

#include <stdint.h>
#include <sys/types.h>

#include <uthash.h>

#include "core.h"

struct quota_user {
	uid_t uid;
	uint32_t clients;
	struct core_usage used;
	uint64_t grown_bytes; /* regions beyond each client's first */
	UT_hash_handle hh;
};
struct quota {
	struct quota_user *users;
};

/* Clients of this user. */
uint32_t quota_clients(const struct quota *q, uid_t uid);
/* Counts a client in; NULL: no memory. */
struct quota_user *quota_join(struct quota *q, uid_t uid);
/* Counts a client out that has nothing any more. */
void quota_leave(struct quota *q, struct quota_user *u);
/* A client of this user had `was` and has `is`. */
void quota_update(struct quota_user *u, const struct core_usage *was, const struct core_usage *is);
/* The most that a client which has `used` may have: as one client, and as one of its user's. */
struct core_usage quota_most(const struct quota_user *u, const struct core_usage *used, const struct core_usage *per_client, const struct core_usage *per_user);

#endif
