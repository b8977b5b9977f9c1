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
	printf("  --%-10s this\n", "help");
}

/* By "--name" or "-d". */
static const struct option_row *find_row(const struct option_table *t, const char *word)
{
	for (const struct option_row *r = t->rows; r < t->rows + t->count; r++)
		if ((!strncmp(word, "--", 2) && !strcmp(word + 2, r->name)) || (r->letter && word[0] == '-' && word[1] == r->letter && !word[2]))
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

static bool take_row(const struct option_row *r, char **argv, int *at, struct options *o)
{
	const char *value = NULL;
	if (r->value != NO_VALUE && argv[*at + 1] && (r->value == NEEDS_VALUE || strncmp(argv[*at + 1], "--", 2)))
		value = argv[++*at];
	if ((r->value != NEEDS_VALUE || value) && r->take(o, value))
		return true;
	fprintf(stderr, "%s: --%s%s%s: expected %s\n", program_invocation_short_name, r->name, value ? " " : "", value ? value : "", r->takes[0] ? r->takes : "something else");
	return false;
}

bool option_table_parse(const struct option_table *t, int argc, char **argv, struct options *o, bool *is_done)
{
	*is_done = false;
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
	}
	return true;
}
