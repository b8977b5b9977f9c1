/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce-perf's histogram: every bucket is found again by what it stands for, and percentiles are right to the width of a bucket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "histogram.h"

#define BUCKETS (sizeof(((struct histogram *)NULL)->bucket) / sizeof(uint64_t))

static struct histogram h;

static void buckets_rise_with_the_value(void **state)
{
	unsigned before = histogram_bucket(0);
	assert_int_equal(before, 0);
	for (uint64_t v = 1; v < 100000; v++) {
		unsigned b = histogram_bucket(v);
		assert_true(b == before || b == before + 1);
		before = b;
	}
	for (unsigned bit = 7; bit < 64; bit++) {
		uint64_t v = UINT64_C(1) << bit;
		assert_true(histogram_bucket(v - 1) <= histogram_bucket(v));
		assert_true(histogram_bucket(v) < BUCKETS);
	}
	assert_int_equal(histogram_bucket(UINT64_MAX), BUCKETS - 1);
}

static void percentiles_are_right_to_a_bucket(void **state)
{
	static const double shares[] = { 0.01, 0.5, 0.9, 0.99, 0.999 };
	histogram_clear(&h);
	for (uint64_t v = 1; v <= 1000000; v++)
		histogram_add(&h, v);
	assert_int_equal(histogram_percentile(&h, 0), 1); /* the smallest */
	for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		double exact = shares[i] * 1e6, found = (double)histogram_percentile(&h, shares[i]);
		assert_true(found > exact * 0.984 && found < exact * 1.016);
	}
	assert_int_equal(h.max, 1000000);
	assert_true(histogram_percentile(&h, 1) <= h.max);
}

static void one_value_is_every_percentile(void **state)
{
	histogram_clear(&h);
	assert_int_equal(histogram_percentile(&h, 0.5), 0);
	histogram_add(&h, 37);
	assert_int_equal(histogram_percentile(&h, 0), 37);
	assert_int_equal(histogram_percentile(&h, 0.5), 37);
	assert_int_equal(histogram_percentile(&h, 1), 37);
}

static void what_is_too_long_counts_as_the_longest(void **state)
{
	histogram_clear(&h);
	histogram_add(&h, UINT64_MAX);
	assert_int_equal(h.max, UINT64_MAX);
	assert_true(histogram_percentile(&h, 0.5) >> (HISTOGRAM_BITS - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_rise_with_the_value),
		cmocka_unit_test(percentiles_are_right_to_a_bucket),
		cmocka_unit_test(one_value_is_every_percentile),
		cmocka_unit_test(what_is_too_long_counts_as_the_longest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
