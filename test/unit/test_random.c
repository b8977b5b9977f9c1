/* SPDX-License-Identifier: BSD-3-Clause */
/* The seeded generator gives the published sequence; the kernel's bytes differ from call to call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "random.h"

/* The first outputs of xoshiro256** from the state 1, 2, 3, 4. */
static void test_known_sequence(void **state)
{
	static const uint64_t expected[] = {
		11520u, 0u, 1509978240u, 1215971899390074240u, 1216172134540287360u,
		607988272756665600u, 16172922978634559625u, 8476171486693032832u, 10595114339597558777u, 2904607092377533576u,
	};
	struct rng r = { { 1, 2, 3, 4 } };

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_true(rng_next(&r) == expected[i]);
}

/* The seed goes through splitmix64: its first outputs from the state 1234567, and the first from 0. */
static void test_known_seeding(void **state)
{
	static const uint64_t expected[4] = {
		6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u,
	};
	struct rng r;

	rng_seed(&r, 1234567);
	assert_memory_equal(r.s, expected, sizeof(expected));
	rng_seed(&r, 0);
	assert_true(r.s[0] == 0xe220a8397b1dcdafu);
}

static void test_replay(void **state)
{
	struct rng a, b, c;
	unsigned equal = 0;

	rng_seed(&a, 42);
	rng_seed(&b, 42);
	rng_seed(&c, 43);
	for (int i = 0; i < 1000; i++) {
		uint64_t x = rng_next(&a);
		assert_true(x == rng_next(&b));
		equal += x == rng_next(&c);
	}
	assert_int_equal(equal, 0);
}

static void test_below(void **state)
{
	struct rng r;
	unsigned count[7] = { 0 }, upper = 0;

	rng_seed(&r, 1);
	for (int i = 0; i < 70000; i++) {
		uint64_t x = rng_below(&r, 7);
		assert_true(x < 7);
		count[x]++;
	}
	for (int i = 0; i < 7; i++)
		assert_in_range(count[i], 9500, 10500);
	for (int i = 0; i < 100; i++)
		assert_int_equal(rng_below(&r, 1), 0);
	/* 2^63 + 1 does not divide 2^64 at all evenly: without rejection the even results would come twice as often. */
	for (int i = 0; i < 10000; i++) {
		uint64_t n = (1ull << 63) + 1, x = rng_below(&r, n);
		assert_true(x < n);
		upper += x & 1;
	}
	assert_in_range(upper, 4700, 5300);
	for (int i = 0; i < 1000; i++)
		assert_true(rng_below(&r, UINT64_MAX) < UINT64_MAX);
}

/* known-bugs: V2 V3 V6 */
static void test_bytes(void **state)
{
	static uint8_t a[4096], b[4096];
	unsigned bits = 0;

	assert_int_equal(random_bytes(a, sizeof(a)), 0);
	assert_int_equal(random_bytes(b, sizeof(b)), 0);
	assert_memory_not_equal(a, b, 16);
	for (size_t i = 0; i < sizeof(a); i++)
		bits += (unsigned)__builtin_popcount(a[i]);
	assert_in_range(bits, 15700, 17000);
	/* No byte beyond the length, and none at all for a length of 0. */
	memset(b, 0x5a, 64);
	assert_int_equal(random_bytes(b, 24), 0);
	assert_int_equal(random_bytes(b + 32, 0), 0);
	for (int i = 24; i < 64; i++)
		assert_int_equal(b[i], 0x5a);
	/* More than one system call gives at a time. */
	static uint8_t big[1 << 20];
	assert_int_equal(random_bytes(big, sizeof(big)), 0);
	assert_memory_not_equal(big + sizeof(big) - 16, (uint8_t[16]){ 0 }, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_sequence),
		cmocka_unit_test(test_known_seeding),
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
