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
/* index below 2^24 -> number below 2^24; a bijection. */
uint32_t key_perm_apply(const struct key_perm *p, uint32_t index);
uint32_t key_perm_invert(const struct key_perm *p, uint32_t number);

#endif
