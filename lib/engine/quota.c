/* SPDX-License-Identifier: BSD-3-Clause */
/* Totals of users. Invariant: `used` of a user is the sum of what its clients were last seen to have; a user without clients is not kept. */
#define HASH_NONFATAL_OOM 1
#include "quota.h"

#include <stddef.h>
#include <stdlib.h>

static const struct {
	const char *name;
	size_t at;
	bool is_wide; /* uint64_t, else uint32_t */
} rows[QUOTA_ROWS] = {
	{ "pds", offsetof(struct core_usage, pds), false },
	{ "qps", offsetof(struct core_usage, qps), false },
	{ "cqs", offsetof(struct core_usage, cqs), false },
	{ "srqs", offsetof(struct core_usage, srqs), false },
	{ "ahs", offsetof(struct core_usage, ahs), false },
	{ "mrs", offsetof(struct core_usage, mrs), false },
	{ "channels", offsetof(struct core_usage, channels), false },
	{ "registered_bytes", offsetof(struct core_usage, registered_bytes), true },
	{ "ring_bytes", offsetof(struct core_usage, ring_bytes), true },
	{ "pool_bytes", offsetof(struct core_usage, pool_bytes), true },
};

const char *quota_row_name(unsigned row)
{
	return rows[row].name;
}

uint64_t quota_row_value(const struct core_usage *u, unsigned row)
{
	const void *at = (const uint8_t *)u + rows[row].at;
	return rows[row].is_wide ? *(const uint64_t *)at : *(const uint32_t *)at;
}

static void set_value(struct core_usage *u, unsigned row, uint64_t value)
{
	void *at = (uint8_t *)u + rows[row].at;
	if (rows[row].is_wide)
		*(uint64_t *)at = value;
	else
		*(uint32_t *)at = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

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
	for (unsigned i = 0; i < QUOTA_ROWS; i++)
		set_value(&u->used, i, quota_row_value(&u->used, i) - quota_row_value(was, i) + quota_row_value(is, i));
}

struct core_usage quota_most(const struct quota_user *u, const struct core_usage *used, const struct core_usage *per_client, const struct core_usage *per_user)
{
	struct core_usage most;
	for (unsigned i = 0; i < QUOTA_ROWS; i++) {
		uint64_t others = quota_row_value(&u->used, i) - quota_row_value(used, i);
		uint64_t of_user = quota_row_value(per_user, i), of_client = quota_row_value(per_client, i);
		uint64_t left = of_user > others ? of_user - others : 0;
		set_value(&most, i, left < of_client ? left : of_client);
	}
	return most;
}
