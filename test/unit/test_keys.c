/* SPDX-License-Identifier: BSD-3-Clause */
/* The key permutation: a bijection with its inverse, and nothing that a peer could extrapolate from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "frequency.h"
#include "keys.h"
#include "random.h"

#define KEYS (1u << 24)
#define SAMPLE 10000u

static struct key_perm perm_of(uint64_t seed)
{
	struct key_perm p;
	struct rng r;
	uint8_t bytes[24];

	rng_seed(&r, seed);
	for (int i = 0; i < 3; i++) {
		uint64_t x = rng_next(&r);
		memcpy(bytes + 8 * i, &x, 8);
	}
	key_perm_init(&p, bytes);
	return p;
}

static void check_bijection(const struct key_perm *p)
{
	uint8_t *seen = calloc(1, KEYS / 8);

	assert_non_null(seen);
	for (uint32_t i = 0; i < KEYS; i++) {
		uint32_t number = key_perm_apply(p, i);
		if (number >= KEYS || (seen[number / 8] & 1 << number % 8) || key_perm_invert(p, number) != i)
			fail_msg("index %#x becomes %#x", i, number);
		seen[number / 8] |= (uint8_t)(1 << number % 8);
	}
	free(seen);
}

/* known-bugs: V1 V5 */
static void test_bijection(void **state)
{
	static const uint8_t zeros[24];
	struct key_perm p = perm_of(1);

	check_bijection(&p);
	key_perm_init(&p, zeros); /* even a seed that nobody should use gives a bijection */
	check_bijection(&p);
}

/* Of 10^4 keys one after the other, no step from key to key (difference, difference in bits, difference of differences) occurs more
 * often than it would among random numbers, where a number that occurs 6 times has a chance of about 10^-18. */
/* known-bugs: V1 V5 */
static void test_no_stride(void **state)
{
	static uint32_t step[SAMPLE], flip[SAMPLE], bend[SAMPLE];

	for (uint64_t seed = 0; seed < 50; seed++) {
		struct key_perm p = perm_of(seed);
		for (uint32_t i = 0; i < SAMPLE; i++) {
			uint32_t a = key_perm_apply(&p, i), b = key_perm_apply(&p, i + 1), c = key_perm_apply(&p, i + 2);
			step[i] = (b - a) % KEYS;
			flip[i] = a ^ b;
			bend[i] = (c - b - (b - a)) % KEYS;
		}
		assert_in_range(count_most_frequent(step, SAMPLE), 1, 5);
		assert_in_range(count_most_frequent(flip, SAMPLE), 1, 5);
		assert_in_range(count_most_frequent(bend, SAMPLE), 1, 5);
	}
}

/* Over the whole space: whoever knows a key and the most frequent step still guesses the next key less than once in 2^16. */
/* known-bugs: V1 */
static void test_best_guess(void **state)
{
	uint16_t *count = calloc(KEYS, sizeof(*count));
	struct key_perm p = perm_of(7);
	uint32_t before = key_perm_apply(&p, 0), most = 0;

	assert_non_null(count);
	for (uint32_t i = 1; i < KEYS; i++) {
		uint32_t key = key_perm_apply(&p, i), step = (key - before) % KEYS;
		if (++count[step] > most)
			most = count[step];
		before = key;
	}
	free(count);
	assert_true(most < KEYS >> 16);
}

/* Every bit of the index changes about half of the key's bits. */
static void test_avalanche(void **state)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		struct key_perm p = perm_of(seed);
		for (int bit = 0; bit < 24; bit++) {
			unsigned flips[24] = { 0 };
			for (uint32_t i = 0; i < SAMPLE; i++) {
				uint32_t d = key_perm_apply(&p, i * 1637) ^ key_perm_apply(&p, i * 1637 ^ 1u << bit);
				for (int k = 0; k < 24; k++)
					flips[k] += d >> k & 1;
			}
			for (int k = 0; k < 24; k++)
				assert_in_range(flips[k], SAMPLE * 2 / 5, SAMPLE * 3 / 5);
		}
	}
}

/* The same index at two seeds: equal keys are as rare as chance (10^4 / 2^24 expects none), each bit agrees half the time, and
 * the differences do not repeat. */
/* known-bugs: V1 V2 V3 */
static void test_two_seeds(void **state)
{
	static uint32_t difference[SAMPLE];

	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct key_perm a = perm_of(seed), b = perm_of(seed + 1);
		unsigned equal = 0, agree[24] = { 0 };

		for (uint32_t i = 0; i < SAMPLE; i++) {
			uint32_t x = key_perm_apply(&a, i), y = key_perm_apply(&b, i);
			equal += x == y;
			difference[i] = (x - y) % KEYS;
			for (int k = 0; k < 24; k++)
				agree[k] += ~(x ^ y) >> k & 1;
		}
		assert_in_range(equal, 0, 5);
		assert_in_range(count_most_frequent(difference, SAMPLE), 1, 5);
		for (int k = 0; k < 24; k++)
			assert_in_range(agree[k], SAMPLE * 9 / 20, SAMPLE * 11 / 20);
	}
}

/* Seeds drawn as an engine draws them, as in two processes or before and after a restart. */
/* known-bugs: V2 V3 */
static void test_drawn_seeds(void **state)
{
	struct key_perm p[2];
	unsigned equal = 0;

	for (int i = 0; i < 2; i++) {
		uint8_t seed[24];
		assert_int_equal(random_bytes(seed, sizeof(seed)), 0);
		key_perm_init(&p[i], seed);
	}
	assert_memory_not_equal(&p[0], &p[1], sizeof(p[0]));
	for (uint32_t i = 0; i < SAMPLE; i++)
		equal += key_perm_apply(&p[0], i) == key_perm_apply(&p[1], i);
	assert_in_range(equal, 0, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bijection),
		cmocka_unit_test(test_no_stride),
		cmocka_unit_test(test_best_guess),
		cmocka_unit_test(test_avalanche),
		cmocka_unit_test(test_two_seeds),
		cmocka_unit_test(test_drawn_seeds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
