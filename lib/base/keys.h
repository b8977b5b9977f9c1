/* SPDX-License-Identifier: BSD-3-Clause */
/* A keyed permutation of 24-bit numbers: a small index becomes a number that a peer cannot predict from others it has seen, and
 * back, without a table. Used for memory keys and QP numbers (known-bugs V1, V2, V3, V5). Not a cipher; it has to stop
 * guessing, and the guess is limited by the PD, address and source checks as well. */
#ifndef UROCE_KEYS_H
#define UROCE_KEYS_H

#include <stdint.h>

struct key_perm {
	uint32_t round[6]; /* secret */
};

/* seed: 24 unpredictable bytes (or a test's own). */
void key_perm_init(struct key_perm *p, const uint8_t seed[24]);

/* One round: 12 bits of noise from the half that stays. Both factors depend on it, so the result is not linear in it, and one
 * multiplication is all the latency there is. */
static inline uint32_t key_perm_noise(uint32_t half, uint32_t key)
{
	return ((half + key) * (half ^ (key >> 16 | key << 16))) >> 20;
}

/* index below 2^24 -> number below 2^24; a bijection. Some ten nanoseconds, no memory but the six words. */
static inline uint32_t key_perm_apply(const struct key_perm *p, uint32_t index)
{
	uint32_t high = index >> 12 & 0xfff, low = index & 0xfff;

	for (int i = 0; i < 6; i += 2) {
		high ^= key_perm_noise(low, p->round[i]);
		low ^= key_perm_noise(high, p->round[i + 1]);
	}
	return high << 12 | low;
}

static inline uint32_t key_perm_invert(const struct key_perm *p, uint32_t number)
{
	uint32_t high = number >> 12 & 0xfff, low = number & 0xfff;

	for (int i = 4; i >= 0; i -= 2) {
		low ^= key_perm_noise(high, p->round[i + 1]);
		high ^= key_perm_noise(low, p->round[i]);
	}
	return high << 12 | low;
}

#endif
