/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of flat JSON objects for people: as an aligned table, or a member a line. */
#ifndef UROCECTL_TABLE_H
#define UROCECTL_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum column_style {
	COLUMN_PLAIN,
	COLUMN_HEX,   /* 0x00002a */
	COLUMN_TIME,  /* nanoseconds: 4.30us; 0 is "-" */
	COLUMN_SCALED /* 8.40G */
};

struct column {
	const char *key;
	const char *title; /* NULL: the key */
	enum column_style style;
};
#define TABLE_COLUMNS_MAX 24u

/* Columns end with a key of NULL; those that no row has are left out. At most `most` rows. Numbers stand to the right, texts to the left; null is "-". */
void table_print(FILE *out, const json_t *rows, const struct column *columns, size_t most);
/* Each object with a member a line, an empty line between two; without numbers that are 0, unless has_zeros. */
void table_print_members(FILE *out, const json_t *rows, bool has_zeros);

#endif
