/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client has of a core, and how much it may have: one table of its members, for whoever adds up, compares or prints them. */
#ifndef UROCE_USAGE_H
#define UROCE_USAGE_H

#include <stdint.h>

struct core_usage {
	uint32_t pds, qps, cqs, srqs, ahs, mrs, mws, channels;
	uint32_t attachments; /* of QPs to multicast groups */
	uint64_t registered_bytes, ring_bytes, pool_bytes;
};

#define USAGE_ROWS 12u
/* For scripts: the member's name. */
const char *usage_row_key(unsigned row);
/* For people: what there are so many of. */
const char *usage_row_text(unsigned row);
uint64_t usage_row_value(const struct core_usage *u, unsigned row);
/* What does not fit is the most that does. */
void usage_row_set(struct core_usage *u, unsigned row, uint64_t value);

#endif
