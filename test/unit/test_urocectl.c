/* SPDX-License-Identifier: BSD-3-Clause */
/* What urocectl makes of reports without a daemon: tables, members, and rates of what happened between two looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "columns.h"
#include "rates.h"
#include "table.h"

static json_t *rows_of(const char *text)
{
	json_error_t error;
	json_t *rows = json_loads(text, 0, &error);
	assert_non_null(rows);
	return rows;
}

static void expect_table(const char *rows_text, const struct column *columns, size_t most, const char *expected)
{
	json_t *rows = rows_of(rows_text);
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	table_print(out, rows, columns, most);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	json_decref(rows);
}

static void tables_are_aligned(void **state)
{
	static const struct column columns[] = { { "name" }, { "n", "count" }, { "absent" }, { "last" }, { NULL } };
	expect_table("[{\"name\":\"a\",\"n\":1,\"last\":\"x\"},{\"name\":\"long name\",\"n\":1234567,\"last\":\"yy\"}]", columns, SIZE_MAX,
		"name         count  last\na                1  x\nlong name  1234567  yy\n");
	expect_table("[{\"name\":\"a\",\"n\":1,\"last\":null},{\"name\":true,\"n\":null,\"last\":null}]", columns, SIZE_MAX, "name  count  last\na         1     -\nyes       -     -\n");
	expect_table("[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"much longer\"}]", columns, 2, "name\na\nb\n"); /* what is not shown does not widen */
	expect_table("[]", columns, SIZE_MAX, "name  count  absent  last\n");
}

static void values_have_their_styles(void **state)
{
	static const struct {
		enum column_style style;
		const char *value, *expected;
	} rows[] = {
		{ COLUMN_HEX, "42", "0x00002a" }, { COLUMN_HEX, "16777214", "0xfffffe" }, { COLUMN_HEX, "null", "-" }, { COLUMN_TIME, "0", "-" }, { COLUMN_TIME, "999", "999ns" }, { COLUMN_TIME, "4300", "4.30us" },
		{ COLUMN_TIME, "153000", "153us" }, { COLUMN_TIME, "2050000000", "2.05s" }, { COLUMN_TIME, "90000000000000", "90000s" }, { COLUMN_SCALED, "0", "0" }, { COLUMN_SCALED, "999", "999" }, { COLUMN_SCALED, "1000", "1.00k" },
		{ COLUMN_SCALED, "64512", "64.5k" }, { COLUMN_SCALED, "8400000000", "8.40G" }, { COLUMN_SCALED, "0.97", "0.97" }, { COLUMN_PLAIN, "9007199254740993", "9007199254740993" }, { COLUMN_PLAIN, "false", "no" },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct column columns[] = { { "v", NULL, rows[i].style }, { NULL } };
		char text[64], expected[64];
		snprintf(text, sizeof(text), "[{\"v\":%s}]", rows[i].value);
		snprintf(expected, sizeof(expected), "%*s\n%s\n", rows[i].value[0] == 'f' ? 0 : (int)strlen(rows[i].expected), "v", rows[i].expected);
		expect_table(text, columns, SIZE_MAX, expected);
	}
}

static void members_are_lines(void **state)
{
	json_t *rows = rows_of("[{\"qpn\":7,\"tx\":0,\"last_error\":null},{\"qpn\":8,\"tx\":5,\"last_error\":\"why\"}]");
	for (int has_zeros = 0; has_zeros < 2; has_zeros++) {
		char *text;
		size_t len;
		FILE *out = open_memstream(&text, &len);
		table_print_members(out, rows, has_zeros);
		fclose(out);
		assert_string_equal(text, has_zeros ? "qpn         7\ntx          0\nlast_error  -\n\nqpn         8\ntx          5\nlast_error  why\n"
						    : "qpn         7\nlast_error  -\n\nqpn         8\ntx          5\nlast_error  why\n");
		free(text);
	}
	json_decref(rows);
}

static void every_noun_has_a_row(void **state)
{
	for (const struct noun *n = nouns; n->name; n++) {
		unsigned columns = 0;
		assert_ptr_equal(noun_find(n->name), n);
		while (columns < TABLE_COLUMNS_MAX && n->column[columns].key)
			columns++;
		assert_true(columns < TABLE_COLUMNS_MAX); /* the last one ends the list */
	}
	assert_null(noun_find("qps"));
	assert_null(noun_find(""));
}

/* ---- rates ---- */

static const struct rate_field fields[] = { { "id" }, { "name" }, { "tx", "tx_bits_per_s", 8 }, { "rx", "rx_bits_per_s", 8 }, { "drops", "dropped_per_s", 1 }, { NULL } };

static double rate(const json_t *rows, size_t i, const char *key)
{
	return json_number_value(json_object_get(json_array_get(rows, i), key));
}

static json_int_t id(const json_t *rows, size_t i)
{
	return json_integer_value(json_object_get(json_array_get(rows, i), "id"));
}

static void rates_are_differences(void **state)
{
	json_t *before = rows_of("[{\"id\":1,\"tx\":100,\"rx\":0,\"drops\":3},{\"id\":2,\"tx\":1000,\"rx\":1000,\"drops\":0},{\"id\":9,\"tx\":5,\"rx\":5,\"drops\":5}]");
	json_t *now = rows_of("[{\"id\":2,\"name\":\"two\",\"tx\":1000,\"rx\":1000,\"drops\":0},{\"id\":1,\"name\":\"one\",\"tx\":300,\"rx\":0,\"drops\":4},{\"id\":3,\"name\":\"new\",\"tx\":400,\"rx\":400,\"drops\":0},"
			      "{\"id\":4,\"name\":\"idle\",\"tx\":0,\"rx\":0}]");
	json_t *rates = rates_between(before, now, "id", fields, 2);
	assert_int_equal(json_array_size(rates), 4);
	/* a row that is new began at 0; the busiest is first, those alike stay in their order, and what is gone is gone */
	const json_int_t order[] = { 3, 1, 2, 4 };
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(id(rates, i), order[i]);
	assert_float_equal(rate(rates, 0, "tx_bits_per_s"), 1600, 1e-9);
	assert_float_equal(rate(rates, 1, "tx_bits_per_s"), 800, 1e-9);
	assert_float_equal(rate(rates, 1, "dropped_per_s"), 0.5, 1e-9);
	assert_float_equal(rate(rates, 2, "tx_bits_per_s"), 0, 1e-9);
	assert_true(json_is_null(json_object_get(json_array_get(rates, 3), "dropped_per_s"))); /* there is no such counter */
	assert_string_equal(json_string_value(json_object_get(json_array_get(rates, 1), "name")), "one");
	json_decref(rates);
	json_decref(before);
	json_decref(now);
}

static void a_counter_that_fell_began_anew(void **state)
{
	json_t *before = rows_of("[{\"id\":1,\"tx\":1000000,\"rx\":0,\"drops\":0}]"), *now = rows_of("[{\"id\":1,\"tx\":10,\"rx\":0,\"drops\":0}]");
	json_t *rates = rates_between(before, now, "id", fields, 1);
	assert_float_equal(rate(rates, 0, "tx_bits_per_s"), 80, 1e-9);
	json_decref(rates);
	json_decref(before);
	json_decref(now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_aligned), cmocka_unit_test(values_have_their_styles), cmocka_unit_test(members_are_lines), cmocka_unit_test(every_noun_has_a_row),
		cmocka_unit_test(rates_are_differences), cmocka_unit_test(a_counter_that_fell_began_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
