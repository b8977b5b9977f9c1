/* SPDX-License-Identifier: BSD-3-Clause */
/* Replay records: order, eviction, what is pending, resizing under way. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay.h"

static struct replay_record *push(struct replay *r, uint32_t first, uint32_t psns)
{
	struct replay_record *rec = replay_push(r);
	if (rec) {
		rec->first = psn_make(first);
		rec->psns = psns;
		replay_mark(r, rec);
	}
	return rec;
}

static int resize(struct replay *r, uint32_t room)
{
	struct replay to;
	int err = replay_copy(r, room, &to);
	if (!err) {
		replay_free(r);
		*r = to;
	}
	return err;
}

/* known-bugs: 40 */
static void test_no_room_at_all(void **state)
{
	struct replay r = { 0 };
	assert_null(replay_push(&r));
	assert_int_equal(resize(&r, 0), 0);
	assert_null(replay_push(&r));
	assert_null(replay_find(&r, psn_make(0)));
	assert_null(r.due);
}

/* known-bugs: 40 */
static void test_more_outstanding_than_allowed(void **state)
{
	struct replay r = { 0 };
	assert_int_equal(resize(&r, 2), 0);
	struct replay_record *a = push(&r, 10, 4);
	assert_non_null(push(&r, 14, 1));
	assert_null(replay_push(&r));
	replay_done(&r, a);
	assert_non_null(push(&r, 15, 1));
	assert_null(replay_find(&r, psn_make(10)));
	replay_free(&r);
}

static void test_oldest_pending_first_through_the_ring(void **state)
{
	struct replay r = { 0 };
	assert_int_equal(resize(&r, 3), 0);
	for (uint32_t i = 0; i < 50; i++) {
		struct replay_record *rec = push(&r, 0xfffff0 + i * 2, 2);
		assert_ptr_equal(r.due, rec);
		assert_ptr_equal(replay_find(&r, psn_make(0xfffff0 + i * 2 + 1)), rec);
		replay_done(&r, rec);
		assert_null(r.due);
	}
	struct replay_record *second = replay_find(&r, psn_make(0xfffff0 + 48 * 2)), *first = replay_find(&r, psn_make(0xfffff0 + 47 * 2));
	replay_mark(&r, second);
	replay_mark(&r, first);
	assert_ptr_equal(r.due, first);
	replay_done(&r, first);
	assert_ptr_equal(r.due, second);
	assert_int_equal(r.pending, 1);
	replay_mark(&r, second);
	assert_int_equal(r.pending, 1);
	replay_clear(&r);
	assert_null(r.due);
	replay_free(&r);
}

/* known-bugs: 40 */
static void test_resize_keeps_the_newest(void **state)
{
	struct replay r = { 0 };
	assert_int_equal(resize(&r, 4), 0);
	for (uint32_t i = 0; i < 6; i++)
		replay_done(&r, push(&r, i, 1));
	assert_int_equal(resize(&r, 2), 0);
	assert_null(replay_find(&r, psn_make(3)));
	assert_non_null(replay_find(&r, psn_make(4)));
	assert_non_null(replay_find(&r, psn_make(5)));
	push(&r, 6, 1);
	push(&r, 7, 1);
	assert_int_equal(resize(&r, 1), -EBUSY);
	assert_int_equal(resize(&r, 128), 0);
	assert_int_equal(r.due->first.v, 6);
	assert_non_null(push(&r, 8, 1));
	assert_int_equal(r.pending, 3);
	replay_free(&r);
}

/* Records have no age: one from 2^24 PSNs ago is still there when nothing but WRITEs came since. */
static void test_the_newest_of_two_with_the_same_psn(void **state)
{
	struct replay r = { 0 };
	assert_int_equal(resize(&r, 3), 0);
	replay_done(&r, push(&r, 100, 1000));
	replay_done(&r, push(&r, 2000, 1));
	struct replay_record *now = push(&r, 500, 1);
	replay_done(&r, now);
	assert_ptr_equal(replay_find(&r, psn_make(500)), now);
	assert_int_equal(replay_find(&r, psn_make(501))->first.v, 100);
	replay_free(&r);
}

/* A change that is refused for another reason has changed nothing. */
static void test_a_copy_leaves_the_records(void **state)
{
	struct replay r = { 0 }, to;
	assert_int_equal(resize(&r, 2), 0);
	push(&r, 10, 1);
	replay_done(&r, r.due);
	struct replay_record *due = push(&r, 11, 1);
	assert_int_equal(replay_copy(&r, 1, &to), 0);
	assert_int_equal(to.room, 1);
	assert_int_equal(to.due->first.v, 11);
	replay_free(&to);
	assert_ptr_equal(r.due, due);
	assert_int_equal(r.count, 2);
	assert_non_null(replay_find(&r, psn_make(10)));
	replay_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_room_at_all),
		cmocka_unit_test(test_more_outstanding_than_allowed),
		cmocka_unit_test(test_oldest_pending_first_through_the_ring),
		cmocka_unit_test(test_resize_keeps_the_newest),
		cmocka_unit_test(test_the_newest_of_two_with_the_same_psn),
		cmocka_unit_test(test_a_copy_leaves_the_records),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
