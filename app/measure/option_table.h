/* SPDX-License-Identifier: BSD-3-Clause */
/* Long options as a table, one row each: what is read, what --help says and what a wrong value is answered with are the same row. */
#ifndef APP_OPTION_TABLE_H
#define APP_OPTION_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct options; /* each program's own */

enum option_value { NO_VALUE, NEEDS_VALUE, MAY_HAVE_VALUE };

struct option_row {
	const char *name;
	enum option_value value;
	bool (*take)(struct options *o, const char *value); /* false: not this value */
	const char *takes, *text;
	char letter; /* -d for --device; 0: none */
	unsigned idle; /* bit i: it would say nothing in the program's situation i, and is refused */
};

/* What a command line comes to, such as being the server. */
struct option_situation {
	bool is_so;
	const char *with, *expected; /* of the line that refuses an option */
};

struct option_table {
	const char *head; /* of --help */
	const struct option_row *rows;
	unsigned count; /* at most 64 */
};

/* false after one line that says what was wrong and what is expected; *is_done: help was asked for and printed; *given, bit i: the i-th row was there. */
bool option_table_parse(const struct option_table *t, int argc, char **argv, struct options *o, bool *is_done, uint64_t *given);
/* Whether each row that was given says something in each of the situations that there is; false after one line about one that does not. */
bool option_table_check(const struct option_table *t, uint64_t given, const struct option_situation *situations, unsigned count);
/* One of the options that there are, by its name; false: it does not take this value. */
bool option_table_take(const struct option_table *t, struct options *o, const char *name, const char *value);

#endif
