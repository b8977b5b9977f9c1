/* SPDX-License-Identifier: BSD-3-Clause */
/* QP numbers: unpredictable, never reserved, at rest after use; the look-up through growth and holes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qpn.h"

static struct qp *fake(uint32_t i)
{
	return (struct qp *)(uintptr_t)(0x1000 + i * 8);
}

static void test_found_through_growth_and_holes(void **state)
{
	enum { N = 5000 };
	struct qpn_table t;
	uint32_t *qpn = calloc(N, sizeof(*qpn));
	assert_int_equal(qpn_table_init(&t, 3, 42), 0);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(qpn_take(&t, fake(i), &qpn[i]), 0);
		assert_int_equal(qpn[i] & ((1u << CORE_INDEX_BITS) - 1), 3);
		assert_true(qpn[i] > 1 && qpn[i] < 0xffffff);
	}
	for (uint32_t i = 0; i < N; i += 2)
		qpn_release(&t, qpn[i]);
	for (uint32_t i = 0; i < N; i++)
		assert_ptr_equal(qpn_find(&t, qpn[i]), i % 2 ? fake(i) : NULL);
	qpn_release(&t, qpn[0]); /* a number that is not in use changes nothing */
	assert_int_equal(t.count, N / 2);
	qpn_table_destroy(&t);
	free(qpn);
}

/* known-bugs: 20 V5 */
static void test_a_freed_number_rests(void **state)
{
	struct qpn_table t;
	uint32_t first, qpn;
	assert_int_equal(qpn_table_init(&t, 0, 7), 0);
	assert_int_equal(qpn_take(&t, fake(0), &first), 0);
	qpn_release(&t, first);
	for (uint32_t i = 0; i < QPN_RESTING - 1; i++) {
		assert_int_equal(qpn_take(&t, fake(i), &qpn), 0);
		assert_int_not_equal(qpn, first);
		qpn_release(&t, qpn);
	}
	assert_true(t.taken[(first >> CORE_INDEX_BITS) / 64] >> ((first >> CORE_INDEX_BITS) % 64) & 1);
	qpn_table_destroy(&t);
}

/* known-bugs: V2 V3 V5 */
static void test_no_stride_and_no_repetition(void **state)
{
	enum { N = 10000 };
	struct qpn_table a, b;
	uint32_t before = 0, same_stride = 0, equal = 0, stride = 0, x, y;
	assert_int_equal(qpn_table_init(&a, 0, 0), 0); /* seeded by the kernel, as two processes or two starts are */
	assert_int_equal(qpn_table_init(&b, 0, 0), 0);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(qpn_take(&a, fake(i), &x), 0);
		assert_int_equal(qpn_take(&b, fake(i), &y), 0);
		equal += x == y;
		same_stride += x - before == stride;
		stride = x - before;
		before = x;
	}
	assert_true(equal < 5);
	assert_true(same_stride < 5);
	qpn_table_destroy(&a);
	qpn_table_destroy(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_through_growth_and_holes),
		cmocka_unit_test(test_a_freed_number_rests),
		cmocka_unit_test(test_no_stride_and_no_repetition),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
