/* SPDX-License-Identifier: BSD-3-Clause */
/* The in-flight record: prepare, commit, acked, lost, against positions worked out by hand, at the PSN wrap and at the largest message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inflight.h"

static struct wr make(uint32_t psns)
{
	return (struct wr){ .psns = psns };
}

static void check(const struct inflight *f, uint32_t una, uint32_t next, uint32_t frontier)
{
	assert_int_equal(f->una.v, una & PSN_MASK);
	assert_int_equal(f->next.v, next & PSN_MASK);
	assert_int_equal(f->frontier.v, frontier & PSN_MASK);
}

static void test_sends_in_order(void **state)
{
	struct wr a = make(3), b = make(1);
	struct inflight f;
	inflight_init(&f, psn_make(100));
	inflight_append(&f, &a, 1);
	inflight_append(&f, &b, 1);
	assert_int_equal(a.first.v, 100);
	assert_int_equal(b.first.v, 103);
	assert_int_equal(a.ssn, 1);
	assert_int_equal(b.ssn, 2);
	assert_ptr_equal(f.cursor, &a);
	for (unsigned i = 0; i < 3; i++)
		inflight_sent(&f, 1);
	assert_ptr_equal(f.cursor, &b);
	inflight_sent(&f, 1);
	assert_null(f.cursor);
	check(&f, 100, 104, 104);
	assert_int_equal(inflight_psns(&f), 4);
}

static void test_append_after_all_was_sent(void **state)
{
	struct wr a = make(1), b = make(2);
	struct inflight f;
	inflight_init(&f, psn_make(0));
	inflight_append(&f, &a, 1);
	inflight_sent(&f, 1);
	inflight_append(&f, &b, 1);
	assert_ptr_equal(f.cursor, &b);
	assert_int_equal(f.cursor_psn, 0);
}

/* known-bugs: 3 10 */
static void test_rewind_to_the_middle_of_a_message_at_the_wrap(void **state)
{
	struct wr a = make(8), b = make(1);
	struct inflight f;
	inflight_init(&f, psn_make(0xfffffc));
	inflight_append(&f, &a, 1);
	inflight_append(&f, &b, 1);
	for (unsigned i = 0; i < 9; i++)
		inflight_sent(&f, 1);
	check(&f, 0xfffffc, 5, 5);
	inflight_acked(&f, psn_make(1));
	inflight_rewind(&f);
	assert_ptr_equal(f.cursor, &a);
	assert_int_equal(f.cursor_psn, 5);
	check(&f, 1, 1, 5);
	assert_true(inflight_has(&f, psn_make(4)));
	assert_false(inflight_has(&f, psn_make(5)));
	assert_false(inflight_has(&f, psn_make(0)));
}

static void test_late_ack_overtakes_a_rewind(void **state)
{
	struct wr a = make(4), b = make(4);
	struct inflight f;
	inflight_init(&f, psn_make(0));
	inflight_append(&f, &a, 1);
	inflight_append(&f, &b, 1);
	for (unsigned i = 0; i < 8; i++)
		inflight_sent(&f, 1);
	inflight_rewind(&f);
	assert_ptr_equal(inflight_retire(&f), &a);
	check(&f, 4, 4, 8);
	assert_ptr_equal(f.cursor, &b);
	assert_int_equal(f.cursor_psn, 0);
	inflight_acked(&f, psn_make(6));
	check(&f, 6, 6, 8);
	assert_int_equal(f.cursor_psn, 2);
}

static void test_retire_of_all_leaves_nothing(void **state)
{
	struct wr a = make(1);
	struct inflight f;
	inflight_init(&f, psn_make(9));
	inflight_append(&f, &a, 1);
	inflight_sent(&f, 1);
	assert_ptr_equal(inflight_retire(&f), &a);
	assert_null(f.oldest);
	assert_null(f.newest);
	assert_null(f.cursor);
	check(&f, 10, 10, 10);
	assert_int_equal(inflight_psns(&f), 0);
	assert_false(inflight_has(&f, psn_make(10)));
}

/* known-bugs: 19 */
static void test_message_of_half_the_psn_space(void **state)
{
	struct wr a = make(1u << 23);
	struct inflight f;
	inflight_init(&f, psn_make(5));
	inflight_append(&f, &a, 1);
	inflight_sent(&f, 1u << 20);
	assert_int_equal(inflight_psns(&f), 1u << 20);
	for (unsigned i = 1; i < 8; i++) {
		inflight_acked(&f, psn_add(psn_make(5), i << 20));
		inflight_sent(&f, 1u << 20);
		assert_int_equal(inflight_psns(&f), 1u << 20);
	}
	assert_null(f.cursor);
	inflight_rewind(&f);
	assert_ptr_equal(f.cursor, &a);
	assert_int_equal(f.cursor_psn, 7u << 20);
	inflight_sent(&f, 1u << 20);
	assert_ptr_equal(inflight_retire(&f), &a);
	check(&f, 5 + (1u << 23), 5 + (1u << 23), 5 + (1u << 23));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sends_in_order),
		cmocka_unit_test(test_append_after_all_was_sent),
		cmocka_unit_test(test_rewind_to_the_middle_of_a_message_at_the_wrap),
		cmocka_unit_test(test_late_ack_overtakes_a_rewind),
		cmocka_unit_test(test_retire_of_all_leaves_nothing),
		cmocka_unit_test(test_message_of_half_the_psn_space),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
