/* SPDX-License-Identifier: BSD-3-Clause */
/* Totals of users. Invariant: `used` of a user is the sum of what its clients were last seen to have; a user without clients is not kept. */
#define HASH_NONFATAL_OOM 1
#include "quota.h"

#include <stdlib.h>

static struct quota_user *find(const struct quota *q, uid_t uid)
{
	struct quota_user *u;
	HASH_FIND(hh, q->users, &uid, sizeof(uid), u);
	return u;
}

uint32_t quota_clients(const struct quota *q, uid_t uid)
{
	const struct quota_user *u = find(q, uid);
	return u ? u->clients : 0;
}

struct quota_user *quota_join(struct quota *q, uid_t uid)
{
	struct quota_user *u = find(q, uid);
	if (!u) {
		u = calloc(1, sizeof(*u));
		if (!u)
			return NULL;
		u->uid = uid;
		HASH_ADD(hh, q->users, uid, sizeof(u->uid), u);
		if (!u->hh.tbl) {
			free(u);
			return NULL;
		}
	}
	u->clients++;
	return u;
}

void quota_leave(struct quota *q, struct quota_user *u)
{
	if (--u->clients)
		return;
	HASH_DELETE(hh, q->users, u);
	free(u);
}

void quota_update(struct quota_user *u, const struct core_usage *was, const struct core_usage *is)
{
	for (unsigned i = 0; i < USAGE_ROWS; i++)
		usage_row_set(&u->used, i, usage_row_value(&u->used, i) - usage_row_value(was, i) + usage_row_value(is, i));
}

struct core_usage quota_most(const struct quota_user *u, const struct core_usage *used, const struct core_usage *per_client, const struct core_usage *per_user)
{
	struct core_usage most;
	for (unsigned i = 0; i < USAGE_ROWS; i++) {
		uint64_t others = usage_row_value(&u->used, i) - usage_row_value(used, i);
		uint64_t of_user = usage_row_value(per_user, i), of_client = usage_row_value(per_client, i);
		uint64_t left = of_user > others ? of_user - others : 0;
		usage_row_set(&most, i, left < of_client ? left : of_client);
	}
	return most;
}
