/* SPDX-License-Identifier: BSD-3-Clause */
/* The nouns, and which members of theirs a table shows. */
#ifndef UROCECTL_COLUMNS_H
#define UROCECTL_COLUMNS_H

#include "table.h"

struct noun {
	const char *name;    /* NULL: the end */
	const char *counter; /* rows in which it is 0 are left out; NULL: none is */
	struct column column[TABLE_COLUMNS_MAX]; /* none: a member a line */
};
extern const struct noun nouns[];

/* NULL: there is none. */
const struct noun *noun_find(const char *name);

#endif
