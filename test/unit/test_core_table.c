/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of a core: names are unique and can stand in a line of words, and each row reads its own number, of either width. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core_table.h"

static uint64_t value_of(const char *name, const struct engine_look *look)
{
	for (unsigned i = 0; core_table_name(i); i++)
		if (!strcmp(core_table_name(i), name))
			return core_table_value(i, look);
	fail_msg("there is no number %s", name);
	return 0;
}

static void test_names(void **state)
{
	for (unsigned i = 0; core_table_name(i); i++) {
		assert_null(strpbrk(core_table_name(i), " \t\n"));
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(core_table_name(i), core_table_name(j));
	}
}

static void test_values(void **state)
{
	struct engine_look look;
	memset(&look, 0xff, sizeof(look));
	look.core.clients = 3;
	look.core.qps = 4;
	look.core.qp_bytes = 5;
	look.core.rx_packets = 6;
	look.loop.rounds = 7;
	look.loop.handed_over_dropped = 8;
	assert_int_equal(value_of("clients", &look), 3);
	assert_int_equal(value_of("qps", &look), 4);
	assert_int_equal(value_of("qp_bytes", &look), 5);
	assert_int_equal(value_of("rx_packets", &look), 6);
	assert_int_equal(value_of("rounds", &look), 7);
	assert_int_equal(value_of("handed_over_dropped", &look), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names), cmocka_unit_test(test_values) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
