/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic of PSNs modulo 2^24: around the wrap, and at exactly half the space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "psn.h"
#include "random.h"

static struct psn at(uint32_t v)
{
	return psn_make(v);
}

/* known-bugs: 10 */
static void test_wrap(void **state)
{
	assert_int_equal(psn_make(0x1000005).v, 5);
	assert_int_equal(psn_make(UINT32_MAX).v, PSN_MASK);
	assert_int_equal(psn_add(at(0xffffff), 1).v, 0);
	assert_int_equal(psn_add(at(0xfffff0), 0x20).v, 0x10);
	assert_int_equal(psn_sub(at(0), 1).v, 0xffffff);
	assert_int_equal(psn_sub(at(0x10), 0x20).v, 0xfffff0);
	assert_int_equal(psn_add(at(7), 1u << 24).v, 7);
	assert_true(psn_is_equal(psn_add(at(0xfffff0), 16), at(0)));
	assert_false(psn_is_equal(at(0), at(0xffffff)));
}

/* known-bugs: 10 19 */
static void test_distance(void **state)
{
	static const struct {
		uint32_t a, b;
		int32_t distance;
	} rows[] = {
		{ 0, 0, 0 },
		{ 1, 0, 1 },
		{ 0, 1, -1 },
		{ 0, 0xffffff, 1 },
		{ 0xffffff, 0, -1 },
		{ 0x000010, 0xfffff0, 0x20 },
		{ 0xfffff0, 0x000010, -0x20 },
		{ 0x7fffff, 0, 0x7fffff },
		{ 0x800000, 0, -0x800000 },
		{ 0x800001, 0, -0x7fffff },
		{ 0, 0x800000, -0x800000 },
		{ 0x7ffffe, 0xffffff, 0x7fffff },
		{ 0x7fffff, 0xffffff, -0x800000 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(psn_distance(at(rows[i].a), at(rows[i].b)), rows[i].distance);
		assert_int_equal(psn_is_before(at(rows[i].a), at(rows[i].b)), rows[i].distance < 0);
	}
}

/* A walk of 10,000 messages from just before the wrap: never out of order at any step. */
/* known-bugs: 10 */
static void test_walk(void **state)
{
	struct psn first = at(0xfffff0), p = first;
	int32_t sum = 0;

	for (uint32_t i = 0; i < 10000; i++) {
		struct psn next = psn_add(p, i % 9 + 1);
		assert_true(psn_is_before(p, next));
		assert_false(psn_is_before(next, p));
		assert_false(psn_is_before(p, p));
		sum += (int32_t)(i % 9 + 1);
		assert_int_equal(psn_distance(next, first), sum);
		assert_true(psn_is_equal(psn_sub(next, (uint32_t)sum), first));
		p = next;
	}
}

static void test_window(void **state)
{
	assert_false(psn_is_within(at(5), at(5), 0));
	assert_true(psn_is_within(at(5), at(5), 1));
	assert_false(psn_is_within(at(4), at(5), 1000));
	assert_true(psn_is_within(at(2), at(0xfffffe), 5));
	assert_false(psn_is_within(at(3), at(0xfffffe), 5));
	assert_false(psn_is_within(at(0xfffffd), at(0xfffffe), 5));
	assert_true(psn_is_within(at(0x7fffff), at(0), PSN_HALF));
	assert_false(psn_is_within(at(0x800000), at(0), PSN_HALF));
	assert_true(psn_is_within(at(4), at(5), 1u << 24));
}

/* distance is the inverse of add for every start and every signed step. */
static void test_random_pairs(void **state)
{
	struct rng r;

	rng_seed(&r, 24);
	for (int i = 0; i < 100000; i++) {
		struct psn p = psn_make((uint32_t)rng_next(&r));
		int32_t d = (int32_t)rng_below(&r, 1u << 24) - (int32_t)PSN_HALF;
		struct psn q = psn_add(p, (uint32_t)d);
		assert_true(q.v <= PSN_MASK);
		assert_int_equal(psn_distance(q, p), d);
		assert_int_equal(psn_is_within(q, p, PSN_HALF), d >= 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_distance),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_random_pairs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
