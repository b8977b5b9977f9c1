/* SPDX-License-Identifier: BSD-3-Clause */
/* show: rows of a report, those that the words ask for, as a table or as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "commands.h"
#include "complain.h"
#include "dialogue.h"

#define NOUNS "device, port, gid, neigh, client, qp, cq, mr, drops or cores"

/* ---- MEMBER=VALUE ---- */

static bool is_value(const json_t *value, const char *text)
{
	uint64_t n;
	if (json_is_integer(value))
		return options_number(text, UINT64_MAX, &n) && n == (uint64_t)json_integer_value(value);
	if (json_is_string(value))
		return !strcmp(json_string_value(value), text);
	return !strcmp(json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "-", text);
}

/* Takes away the rows that have another value. */
static int filter(json_t *rows, const char *noun, const char *word)
{
	const char *text = strchr(word, '=');
	char key[64];
	if (!text || text == word || text - word >= (long)sizeof(key) || !text[1])
		return complain_usage("%s: expected MEMBER=VALUE, as in client=3", word);
	snprintf(key, sizeof(key), "%.*s", (int)(text - word), word);
	if (json_array_size(rows) && !json_object_get(json_array_get(rows, 0), key))
		return complain_usage("%s: expected a member of %s, as urocectl show %s --all lists them", key, noun, noun);
	for (size_t i = json_array_size(rows); i-- > 0;)
		if (!is_value(json_object_get(json_array_get(rows, i), key), text + 1))
			json_array_remove(rows, i);
	return EXIT_FINE;
}

static void leave_out_zeros(json_t *rows, const char *counter)
{
	for (size_t i = json_array_size(rows); i-- > 0;)
		if (!json_integer_value(json_object_get(json_array_get(rows, i), counter)))
			json_array_remove(rows, i);
}

/* ---- */

static int print(const struct options *o, const struct noun *n, json_t *rows)
{
	for (int i = 2; i < o->words; i++) {
		int code = filter(rows, n->name, o->word[i]);
		if (code)
			return code;
	}
	if (n->counter && !o->is_all && !o->is_json)
		leave_out_zeros(rows, n->counter);
	if (o->is_json) {
		json_dumpf(rows, stdout, JSON_INDENT(2));
		putchar('\n');
	} else if (n->column[0].key && (!o->is_all || n->counter)) {
		table_print(stdout, rows, n->column, SIZE_MAX);
	} else {
		table_print_members(stdout, rows, o->is_all);
	}
	return EXIT_FINE;
}

int show_run(const struct options *o)
{
	const struct noun *n = o->words > 1 ? noun_find(o->word[1]) : NULL;
	struct dialogue talk;
	json_t *rows = NULL;
	if (!n)
		return complain_usage("show%s%s: expected %s", o->words > 1 ? " " : "", o->words > 1 ? o->word[1] : "", NOUNS);
	int code = dialogue_open(&talk, o->socket) && dialogue_show(&talk, n->name, &rows) ? print(o, n, rows) : EXIT_REFUSED;
	json_decref(rows);
	dialogue_close(&talk);
	return code;
}
