/* SPDX-License-Identifier: BSD-3-Clause */
/* The set of intervals: cases by hand, and random ones against an array of flags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "intervals.h"
#include "random.h"

static void check(const struct intervals *s, size_t n, const struct interval *expected)
{
	assert_int_equal(s->n, n);
	for (size_t i = 0; i < n; i++) {
		assert_true(s->v[i].from == expected[i].from);
		assert_true(s->v[i].to == expected[i].to);
	}
}
#define CHECK(s, ...) \
	check(s, sizeof((struct interval[]){ __VA_ARGS__ }) / sizeof(struct interval), (struct interval[]){ __VA_ARGS__ })

static void test_empty(void **state)
{
	struct intervals s;

	intervals_init(&s);
	assert_int_equal(intervals_total(&s), 0);
	assert_false(intervals_contain(&s, 0, 1));
	assert_true(intervals_contain(&s, 5, 5));
	assert_int_equal(intervals_remove(&s, 0, 10), 0);
	assert_int_equal(intervals_add(&s, 3, 3), 0);
	assert_int_equal(s.n, 0);
	assert_int_equal(intervals_add(&s, 4, 3), -EINVAL);
	assert_int_equal(intervals_remove(&s, 4, 3), -EINVAL);
	assert_false(intervals_contain(&s, 4, 3));
	intervals_free(&s);
	intervals_free(&s);
	intervals_free(NULL);
}

static void test_add(void **state)
{
	struct intervals s;

	intervals_init(&s);
	assert_int_equal(intervals_add(&s, 10, 20), 0);
	assert_int_equal(intervals_add(&s, 30, 40), 0);
	assert_int_equal(intervals_add(&s, 0, 5), 0);
	CHECK(&s, { 0, 5 }, { 10, 20 }, { 30, 40 });
	assert_int_equal(intervals_add(&s, 12, 18), 0);      /* inside */
	CHECK(&s, { 0, 5 }, { 10, 20 }, { 30, 40 });
	assert_int_equal(intervals_add(&s, 20, 25), 0);      /* touches the end */
	CHECK(&s, { 0, 5 }, { 10, 25 }, { 30, 40 });
	assert_int_equal(intervals_add(&s, 8, 10), 0);       /* touches the start */
	CHECK(&s, { 0, 5 }, { 8, 25 }, { 30, 40 });
	assert_int_equal(intervals_add(&s, 25, 30), 0);      /* fills a gap exactly */
	CHECK(&s, { 0, 5 }, { 8, 40 });
	assert_int_equal(intervals_add(&s, 6, 7), 0);        /* between, touching nothing */
	CHECK(&s, { 0, 5 }, { 6, 7 }, { 8, 40 });
	assert_int_equal(intervals_total(&s), 38);
	assert_int_equal(intervals_add(&s, 1, 100), 0);      /* over all */
	CHECK(&s, { 0, 100 });
	intervals_free(&s);
	assert_int_equal(s.n, 0);
}

static void test_remove(void **state)
{
	struct intervals s;

	intervals_init(&s);
	assert_int_equal(intervals_add(&s, 10, 50), 0);
	assert_int_equal(intervals_remove(&s, 0, 10), 0);    /* touches only */
	assert_int_equal(intervals_remove(&s, 50, 60), 0);
	CHECK(&s, { 10, 50 });
	assert_int_equal(intervals_remove(&s, 20, 30), 0);   /* a hole */
	CHECK(&s, { 10, 20 }, { 30, 50 });
	assert_int_equal(intervals_remove(&s, 5, 12), 0);    /* a start */
	assert_int_equal(intervals_remove(&s, 48, 90), 0);   /* an end */
	CHECK(&s, { 12, 20 }, { 30, 48 });
	assert_int_equal(intervals_remove(&s, 15, 40), 0);   /* over a gap */
	CHECK(&s, { 12, 15 }, { 40, 48 });
	assert_int_equal(intervals_remove(&s, 12, 15), 0);   /* one exactly */
	CHECK(&s, { 40, 48 });
	assert_int_equal(intervals_remove(&s, 0, UINT64_MAX), 0);
	assert_int_equal(s.n, 0);
	intervals_free(&s);
}

static void test_contain(void **state)
{
	struct intervals s;

	intervals_init(&s);
	assert_int_equal(intervals_add(&s, 10, 20), 0);
	assert_int_equal(intervals_add(&s, 21, 30), 0);
	assert_true(intervals_contain(&s, 10, 20));
	assert_true(intervals_contain(&s, 10, 11));
	assert_true(intervals_contain(&s, 19, 20));
	assert_true(intervals_contain(&s, 21, 22));
	assert_false(intervals_contain(&s, 9, 11));
	assert_false(intervals_contain(&s, 19, 21));
	assert_false(intervals_contain(&s, 19, 22));
	assert_false(intervals_contain(&s, 20, 21));
	assert_false(intervals_contain(&s, 10, 30));
	assert_false(intervals_contain(&s, 30, 31));
	intervals_free(&s);
}

static void test_ends_of_the_space(void **state)
{
	struct intervals s;

	intervals_init(&s);
	assert_int_equal(intervals_add(&s, 0, UINT64_MAX), 0);
	assert_true(intervals_total(&s) == UINT64_MAX);
	assert_int_equal(intervals_remove(&s, UINT64_MAX - 1, UINT64_MAX), 0);
	assert_int_equal(intervals_remove(&s, 0, 1), 0);
	CHECK(&s, { 1, UINT64_MAX - 1 });
	assert_true(intervals_contain(&s, UINT64_MAX - 2, UINT64_MAX - 1));
	assert_false(intervals_contain(&s, UINT64_MAX - 2, UINT64_MAX));
	intervals_free(&s);
}

#define SPACE 300

static void compare_with_flags(const struct intervals *s, const bool *flag, struct rng *r)
{
	uint64_t total = 0, from = rng_below(r, SPACE), to = from + rng_below(r, 12);
	bool all = true;
	size_t i = 0;

	for (uint64_t x = 0; x < SPACE; x++) {
		total += flag[x];
		if (flag[x] && (!x || !flag[x - 1]))
			assert_true(i < s->n && s->v[i].from == x);
		if (flag[x] && (x == SPACE - 1 || !flag[x + 1]))
			assert_true(s->v[i++].to == x + 1);
	}
	assert_int_equal(i, s->n);
	assert_int_equal(intervals_total(s), total);
	for (uint64_t x = from; x < to; x++)
		all &= x < SPACE && flag[x];
	assert_int_equal(intervals_contain(s, from, to), all);
}

static void test_against_flags(void **state)
{
	bool flag[SPACE] = { 0 };
	struct intervals s;
	struct rng r;

	rng_seed(&r, 3);
	intervals_init(&s);
	for (int i = 0; i < 20000; i++) {
		uint64_t from = rng_below(&r, SPACE), to = from + rng_below(&r, i % 100 ? 8 : SPACE);
		bool is_add = rng_below(&r, 2);
		to = to > SPACE ? SPACE : to;
		memset(flag + from, is_add, to - from);
		assert_int_equal(is_add ? intervals_add(&s, from, to) : intervals_remove(&s, from, to), 0);
		compare_with_flags(&s, flag, &r);
	}
	intervals_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_remove),
		cmocka_unit_test(test_contain),
		cmocka_unit_test(test_ends_of_the_space),
		cmocka_unit_test(test_against_flags),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
