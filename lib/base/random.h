/* SPDX-License-Identifier: BSD-3-Clause */
/* Randomness: unpredictable bytes from the kernel, and a fast seeded generator whose sequence a test can replay. */
#ifndef UROCE_RANDOM_H
#define UROCE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* Fills buf with unpredictable bytes (getrandom). 0, or a negative errno. */
int random_bytes(void *buf, size_t len);

/* xoshiro256** seeded by splitmix64. Not for keys. */
struct rng {
	uint64_t s[4];
};
void rng_seed(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);
/* Uniform in 0..n-1; n > 0. */
uint64_t rng_below(struct rng *r, uint64_t n);

#endif
