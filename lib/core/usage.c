/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of what a client has. */
#include "usage.h"

#include <stdbool.h>
#include <stddef.h>

#define ROW(member, text, is_wide) { #member, text, offsetof(struct core_usage, member), is_wide }
static const struct {
	const char *key, *text;
	size_t at;
	bool is_wide; /* uint64_t, else uint32_t */
} rows[USAGE_ROWS] = {
	ROW(pds, "PDs", false),
	ROW(qps, "QPs", false),
	ROW(cqs, "CQs", false),
	ROW(srqs, "SRQs", false),
	ROW(ahs, "AHs", false),
	ROW(mrs, "MRs", false),
	ROW(mws, "MWs", false),
	ROW(channels, "completion channels", false),
	ROW(attachments, "attachments to multicast groups", false),
	ROW(registered_bytes, "registered bytes", true),
	ROW(ring_bytes, "bytes of rings", true),
	ROW(pool_bytes, "bytes of pool memory", true),
};

const char *usage_row_key(unsigned row)
{
	return rows[row].key;
}

const char *usage_row_text(unsigned row)
{
	return rows[row].text;
}

uint64_t usage_row_value(const struct core_usage *u, unsigned row)
{
	const void *at = (const uint8_t *)u + rows[row].at;
	return rows[row].is_wide ? *(const uint64_t *)at : *(const uint32_t *)at;
}

void usage_row_set(struct core_usage *u, unsigned row, uint64_t value)
{
	void *at = (uint8_t *)u + rows[row].at;
	if (rows[row].is_wide)
		*(uint64_t *)at = value;
	else
		*(uint32_t *)at = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}
