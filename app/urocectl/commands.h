/* SPDX-License-Identifier: BSD-3-Clause */
/* What urocectl can do: one row a command. */
#ifndef UROCECTL_COMMANDS_H
#define UROCECTL_COMMANDS_H

#include "options.h"

struct command {
	const char *name; /* NULL: the end of the table */
	const char *usage, *text;
	int (*run)(const struct options *o); /* its words begin at o->word[1]; the exit code, after one line if it is not 0 */
};
extern const struct command commands[];

int show_run(const struct options *o);
int watch_run(const struct options *o);
int gid_run(const struct options *o);
int client_run(const struct options *o);
int capture_run(const struct options *o);

#endif
