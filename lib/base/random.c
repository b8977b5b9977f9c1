/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: the kernel's random source behind one error convention, and the seeded generator's arithmetic. Does not decide
 * who needs which: secrets (keys, QP numbers, starting PSNs) come from random_bytes, simulated faults from a seed.
 * Invariant: the state of an rng is never all zero; rng_seed guarantees it, for splitmix64 is a bijection and its four
 * successive outputs cannot all be zero.
 * Sources: getrandom(2); Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators" (2018), xoshiro256**;
 * Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014), splitmix64;
 * Lemire, "Fast Random Integer Generation in an Interval" (2019). */
#include "random.h"

#include <errno.h>
#include <sys/random.h>

int random_bytes(void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len) {
		ssize_t n = getrandom(p, len, 0);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static uint64_t split_mix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline uint64_t rotate_left(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

void rng_seed(struct rng *r, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		r->s[i] = split_mix(&seed);
}

uint64_t rng_next(struct rng *r)
{
	uint64_t *s = r->s;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	unsigned __int128 m = (unsigned __int128)rng_next(r) * n;

	if ((uint64_t)m < n) {
		/* 2^64 is no multiple of n: the lowest 2^64 mod n products would make some results likelier than others. */
		uint64_t excess = -n % n;
		while ((uint64_t)m < excess)
			m = (unsigned __int128)rng_next(r) * n;
	}
	return (uint64_t)(m >> 64);
}
