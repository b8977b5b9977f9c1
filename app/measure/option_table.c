/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing; what options mean is the program's. */
#include "option_table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void print_help(const struct option_table *t)
{
	fputs(t->head, stdout);
	for (const struct option_row *r = t->rows; r < t->rows + t->count; r++)
		printf("  --%-10s %s%s%s\n", r->name, r->text, r->value ? ". Takes " : "", r->value ? r->takes : "");
	printf("  --%-10s this\nA value may also stand behind =, as in --%s=VALUE.\n", "help", t->rows->name);
}

/* By "--name", "--name=VALUE" or "-d". */
static const struct option_row *find_row(const struct option_table *t, const char *word)
{
	bool is_long = !strncmp(word, "--", 2);
	size_t len = is_long ? strcspn(word + 2, "=") : 0;
	for (const struct option_row *r = t->rows; r < t->rows + t->count; r++)
		if ((is_long && strlen(r->name) == len && !memcmp(word + 2, r->name, len)) || (r->letter && word[0] == '-' && word[1] == r->letter && !word[2]))
			return r;
	return NULL;
}

bool option_table_take(const struct option_table *t, struct options *o, const char *name, const char *value)
{
	for (unsigned i = 0; i < t->count; i++)
		if (!strcmp(name, t->rows[i].name))
			return t->rows[i].take(o, value);
	return false;
}

/* What is behind "=", or the next word. One that may be left out is not the next option; "-" by itself is none. NULL: there is no value. */
static const char *find_value(const struct option_row *r, char **argv, int *at)
{
	const char *equals = strncmp(argv[*at], "--", 2) ? NULL : strchr(argv[*at], '='), *next = argv[*at + 1];
	if (equals)
		return equals + 1;
	if (!next || r->value == NO_VALUE || (r->value == MAY_HAVE_VALUE && next[0] == '-' && next[1]))
		return NULL;
	return argv[++*at];
}

static bool take_row(const struct option_row *r, char **argv, int *at, struct options *o)
{
	const char *value = find_value(r, argv, at);
	bool is_fitting = value ? r->value != NO_VALUE : r->value != NEEDS_VALUE;
	if (is_fitting && r->take(o, value))
		return true;
	fprintf(stderr, "%s: --%s%s%s: expected %s\n", program_invocation_short_name, r->name, value ? " " : "", value ? value : "",
		value && r->value == NO_VALUE ? "no value" : r->takes[0] ? r->takes : "something else");
	return false;
}

bool option_table_parse(const struct option_table *t, int argc, char **argv, struct options *o, bool *is_done, uint64_t *given)
{
	*is_done = false;
	*given = 0;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			print_help(t);
			return *is_done = true;
		}
		const struct option_row *r = find_row(t, argv[i]);
		if (!r) {
			fprintf(stderr, "%s: %s: expected one of the options that --help lists\n", program_invocation_short_name, argv[i]);
			return false;
		}
		if (!take_row(r, argv, &i, o))
			return false;
		*given |= UINT64_C(1) << (r - t->rows);
	}
	return true;
}

bool option_table_check(const struct option_table *t, uint64_t given, const struct option_situation *situations, unsigned count)
{
	for (unsigned s = 0; s < count; s++)
		for (unsigned i = 0; i < t->count && situations[s].is_so; i++)
			if (given >> i & t->rows[i].idle >> s & 1) {
				fprintf(stderr, "%s: --%s with %s: expected %s\n", program_invocation_short_name, t->rows[i].name, situations[s].with, situations[s].expected);
				return false;
			}
	return true;
}
