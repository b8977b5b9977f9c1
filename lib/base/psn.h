/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet sequence number of IBA vol. 1, 9.7.2: 24 bits, compared modulo 2^24. A struct of one member, so that a PSN is never
 * compared or added to as a plain integer. Any two PSNs of one QP that are alive at one time are less than 2^23 apart. */
#ifndef UROCE_PSN_H
#define UROCE_PSN_H

#include <stdbool.h>
#include <stdint.h>

struct psn {
	uint32_t v;
};

#define PSN_MASK 0xffffffu
#define PSN_HALF 0x800000u

static inline struct psn psn_make(uint32_t v)
{
	return (struct psn){ v & PSN_MASK };
}

static inline struct psn psn_add(struct psn p, uint32_t n)
{
	return psn_make(p.v + n);
}

static inline struct psn psn_sub(struct psn p, uint32_t n)
{
	return psn_make(p.v - n);
}

/* Signed distance from b to a, -2^23 to 2^23-1: positive when a comes after b. */
static inline int32_t psn_distance(struct psn a, struct psn b)
{
	return (int32_t)((a.v - b.v) << 8) >> 8;
}

static inline bool psn_is_equal(struct psn a, struct psn b)
{
	return a.v == b.v;
}

static inline bool psn_is_before(struct psn a, struct psn b)
{
	return psn_distance(a, b) < 0;
}

/* first <= p < first + n */
static inline bool psn_is_within(struct psn p, struct psn first, uint32_t n)
{
	return ((p.v - first.v) & PSN_MASK) < n;
}

#endif
