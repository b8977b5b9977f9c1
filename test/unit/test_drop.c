/* SPDX-License-Identifier: BSD-3-Clause */
/* Every drop reason has a name that a script can use as a key, and a sentence for a person. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "drop.h"

/* known-bugs: V7 */
static void test_all_present(void **state)
{
	for (int d = 0; d < DROP_COUNT; d++) {
		const char *name = drop_name((enum drop)d), *text = drop_text((enum drop)d);
		assert_non_null(name);
		assert_non_null(text);
		assert_string_not_equal(name, "unknown");
		assert_in_range(strlen(name), 3, 32);
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(name));
		assert_in_range(strlen(text), 10, 100);
		assert_int_equal(text[strlen(text) - 1], '.');
	}
}

static void test_unique(void **state)
{
	for (int a = 0; a < DROP_COUNT; a++)
		for (int b = 0; b < a; b++) {
			assert_string_not_equal(drop_name((enum drop)a), drop_name((enum drop)b));
			assert_string_not_equal(drop_text((enum drop)a), drop_text((enum drop)b));
		}
}

/* Names that users of other adapters look for; they are an interface. */
static void test_known_names(void **state)
{
	assert_string_equal(drop_name(DROP_ICRC), "rx_icrc_errors");
	assert_string_equal(drop_name(DROP_DUPLICATE), "duplicate_request");
	assert_string_equal(drop_name(DROP_PSN_AHEAD), "out_of_sequence");
	assert_string_equal(drop_name(DROP_RNR), "out_of_buffer");
	assert_string_equal(drop_name(DROP_LOCAL_LENGTH), "resp_local_length_error");
	assert_string_equal(drop_name(DROP_REMOTE_ACCESS), "resp_remote_access_errors");
	assert_string_equal(drop_name(DROP_CNP), "rp_cnp_ignored");
}

static void test_out_of_range(void **state)
{
	assert_string_equal(drop_name(DROP_COUNT), "unknown");
	assert_string_equal(drop_name((enum drop)-1), "unknown");
	assert_non_null(drop_text((enum drop)1000));
	assert_non_null(drop_text((enum drop)-1));
}

/* doc/guide/troubleshooting.md has a row for each, with this very sentence, and for nothing else. */
static void test_guide_has_all(void **state)
{
	FILE *file = fopen(SOURCE_ROOT "/doc/guide/troubleshooting.md", "r");
	char line[1024], expected[DROP_COUNT][256];
	int rows = 0, found[DROP_COUNT] = { 0 };
	assert_non_null(file);
	for (int d = DROP_NONE + 1; d < DROP_COUNT; d++)
		snprintf(expected[d], sizeof(expected[d]), "| `%s` | %s | ", drop_name((enum drop)d), drop_text((enum drop)d));
	while (fgets(line, sizeof(line), file) && strcmp(line, "<!-- drop reasons -->\n"))
		continue;
	while (fgets(line, sizeof(line), file) && strcmp(line, "<!-- end of drop reasons -->\n")) {
		rows += line[0] == '|' && line[2] == '`';
		for (int d = DROP_NONE + 1; d < DROP_COUNT; d++)
			found[d] += !strncmp(line, expected[d], strlen(expected[d]));
	}
	fclose(file);
	for (int d = DROP_NONE + 1; d < DROP_COUNT; d++)
		if (found[d] != 1)
			print_error("doc/guide/troubleshooting.md: %d rows begin with: %s\n", found[d], expected[d]);
	for (int d = DROP_NONE + 1; d < DROP_COUNT; d++)
		assert_int_equal(found[d], 1);
	assert_int_equal(rows, DROP_COUNT - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_present),
		cmocka_unit_test(test_unique),
		cmocka_unit_test(test_known_names),
		cmocka_unit_test(test_out_of_range),
		cmocka_unit_test(test_guide_has_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
