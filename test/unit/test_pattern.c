/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce-perf's pattern: a check that finds nothing wrong where something is would make --verify worthless. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pattern.h"

#define MOST 200u

static uint8_t data[MOST + 64];

static void each_changed_byte_is_found(void **state)
{
	for (uint64_t len = 0; len <= MOST; len++) {
		pattern_fill(data, len, 7 + len);
		assert_int_equal(pattern_check(data, len, 7 + len), PATTERN_FINE);
		for (uint64_t at = 0; at < len; at++) {
			data[at] ^= 0x10;
			assert_int_equal(pattern_check(data, len, 7 + len), at);
			data[at] ^= 0x10;
		}
	}
}

static void nothing_beyond_the_length_is_written(void **state)
{
	for (uint64_t len = 0; len <= MOST; len++) {
		memset(data, PATTERN_GUARD, sizeof(data));
		pattern_fill(data, len, len);
		assert_int_equal(pattern_check_guard(data + len, sizeof(data) - len), PATTERN_FINE);
		data[len + 5] = 0;
		assert_int_equal(pattern_check_guard(data + len, sizeof(data) - len), 5);
	}
}

/* Bytes of another message, QP, direction, or from another place of the same message. */
static void what_belongs_elsewhere_is_found(void **state)
{
	const uint64_t seed = pattern_seed(3, 41, 0);
	const uint64_t others[] = { pattern_seed(3, 40, 0), pattern_seed(3, 42, 0), pattern_seed(2, 41, 0), pattern_seed(3, 41, 1), pattern_seed(41, 3, 0), pattern_seed(3, 41 + 128, 0) };
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		pattern_fill(data, MOST, others[i]);
		assert_int_not_equal(pattern_check(data, MOST, seed), PATTERN_FINE);
	}
	pattern_fill(data, MOST, seed);
	for (unsigned shift = 1; shift <= 64; shift++)
		assert_int_not_equal(pattern_check(data + shift, MOST - shift, seed), PATTERN_FINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_changed_byte_is_found),
		cmocka_unit_test(nothing_beyond_the_length_is_written),
		cmocka_unit_test(what_belongs_elsewhere_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
