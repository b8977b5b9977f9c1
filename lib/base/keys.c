/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the making of a key permutation from a seed. Does not draw the seed (random_bytes does, anew at every start: known-bugs V2)
 * and does not hand out indices: whoever owns a table of MRs or QPs does, and keeps a used index away from quick reuse.
 * The network itself is inline in keys.h, for every packet with an rkey or a QP number runs it.
 * Invariant: the six rounds alternate over two halves of 12 bits, each XORs one half with a function of the other and a secret
 * word, so each is its own inverse and the whole a bijection of 24-bit numbers, whatever the seed.
 * Source: Luby and Rackoff, "How to Construct Pseudorandom Permutations from Pseudorandom Functions" (1988). */
#include "keys.h"

void key_perm_init(struct key_perm *p, const uint8_t seed[24])
{
	for (int i = 0; i < 6; i++) {
		const uint8_t *s = seed + 4 * i;
		p->round[i] = s[0] | (uint32_t)s[1] << 8 | (uint32_t)s[2] << 16 | (uint32_t)s[3] << 24;
	}
}
