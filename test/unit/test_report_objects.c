/* SPDX-License-Identifier: BSD-3-Clause */
/* How a client's parts become one row: added up, begun anew when QPs went between two parts, and not for ever. The core that is looked at is a list of pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine_look.h"
#include "report_row.h"

struct part {
	uint32_t client, gone, naks;
};
struct piece {
	struct part part[4];
	bool is_last;
};

static const struct piece *next_piece; /* of a script that ends with client 0 */
static uint32_t begun_at[16]; /* client that each call began with, 0: the first one */
static unsigned calls;

unsigned engine_look_objects(struct engine_core *ec, enum look_kind kind, struct look_place *at, struct look_row rows[LOOK_OBJECTS])
{
	unsigned n = 0;
	assert_int_equal(kind, LOOK_CLIENT);
	assert_true(calls < 16);
	begun_at[calls++] = at->slot ? UINT32_MAX : at->client;
	for (; n < 4 && next_piece->part[n].client; n++) {
		rows[n] = (struct look_row){ .client = next_piece->part[n].client, .of_client = { .qps_gone = next_piece->part[n].gone } };
		rows[n].of_client.counter[QP_NAKS_SENT] = next_piece->part[n].naks;
	}
	*at = (struct look_place){ .client = rows[n - 1].client, .slot = 1, .is_over = next_piece->is_last };
	next_piece++;
	return n;
}

unsigned engine_cores(const struct engine *e)
{
	return 1;
}

struct engine_core *engine_core_at(struct engine *e, unsigned i)
{
	return NULL;
}

unsigned engine_core_index(const struct engine_core *ec)
{
	return 0;
}

/* Rows as "client:naks,". */
static void report_script(const struct piece *script, const char *expected)
{
	struct report_rows r = { .list = json_array() };
	char text[100] = "";
	size_t i;
	json_t *row;
	next_piece = script;
	calls = 0;
	report_clients(NULL, &r);
	assert_false(r.is_short);
	json_array_foreach(r.list, i, row)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d:%d,", (int)json_integer_value(json_object_get(row, "id")), (int)json_integer_value(json_object_get(row, "naks_sent")));
	assert_string_equal(text, expected);
	json_decref(r.list);
}

static void test_parts_are_added(void **state)
{
	static const struct piece script[] = { { { { 9, 0, 1 }, { 8, 5, 10 } } }, { { { 8, 5, 20 } } }, { { { 8, 5, 30 }, { 7, 0, 2 } }, true } };
	report_script(script, "9:1,8:60,7:2,");
	assert_int_equal(calls, 3);
}

/* What had been added up is forgotten, and what came behind the part that did not fit comes again. */
static void test_begun_anew(void **state)
{
	static const struct piece script[] = { { { { 9, 0, 1 }, { 8, 5, 10 } } }, { { { 8, 6, 20 }, { 7, 0, 2 } }, true }, { { { 8, 6, 15 } } }, { { { 8, 6, 20 }, { 7, 0, 2 } }, true } };
	report_script(script, "9:1,8:35,7:2,");
	assert_int_equal(calls, 4);
	assert_int_equal(begun_at[2], 8);
}

/* A client whose QPs never stand still is shown as well as can be. */
static void test_not_for_ever(void **state)
{
	static const struct piece script[] = { { { { 8, 1, 1 } } }, { { { 8, 2, 1 } } }, { { { 8, 3, 1 } } }, { { { 8, 4, 1 } } }, { { { 8, 5, 1 } } }, { { { 8, 6, 1 } } }, { { { 8, 7, 1 } } }, { { { 8, 8, 1 } }, true } };
	report_script(script, "8:2,");
	assert_int_equal(calls, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_parts_are_added), cmocka_unit_test(test_begun_anew), cmocka_unit_test(test_not_for_ever) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
