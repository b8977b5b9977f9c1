/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns how a value is written. A table is measured in a first pass over its rows and printed in a second. */
#include "table.h"

#include <string.h>

#define CELL_MAX 192u

/* Three digits and the unit, the largest that leaves something before the point. */
static void format_scaled(char *cell, double value, const char *const *units, double step)
{
	unsigned i = 0;
	while (value >= step && units[i + 1]) {
		value /= step;
		i++;
	}
	bool is_whole = !i && value == (double)(int64_t)value;
	snprintf(cell, CELL_MAX, "%.*f%s", is_whole ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0, value, units[i]);
}

static void format_number(char *cell, const json_t *value, enum column_style style)
{
	static const char *const times[] = { "ns", "us", "ms", "s", NULL }, *const scales[] = { "", "k", "M", "G", "T", NULL };
	double number = json_number_value(value);
	if (style == COLUMN_HEX)
		snprintf(cell, CELL_MAX, "0x%06llx", (unsigned long long)json_integer_value(value));
	else if (style == COLUMN_TIME && number == 0)
		strcpy(cell, "-"); /* not known yet */
	else if (style == COLUMN_TIME)
		format_scaled(cell, number, times, 1000);
	else if (style == COLUMN_SCALED)
		format_scaled(cell, number, scales, 1000);
	else if (json_is_real(value))
		snprintf(cell, CELL_MAX, "%.3f", number);
	else
		snprintf(cell, CELL_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
}

static void format_cell(char *cell, const json_t *value, enum column_style style)
{
	if (json_is_number(value))
		format_number(cell, value, style);
	else if (json_is_string(value))
		snprintf(cell, CELL_MAX, "%s", json_string_value(value));
	else
		snprintf(cell, CELL_MAX, "%s", json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "-");
}

struct measured {
	const struct column *column;
	const char *title;
	int width;
	bool is_text;
};

static bool measure(struct measured *m, const json_t *rows, const struct column *column, size_t most)
{
	char cell[CELL_MAX];
	bool is_there = !json_array_size(rows);
	*m = (struct measured){ .column = column, .title = column->title ? column->title : column->key };
	m->width = (int)strlen(m->title);
	for (size_t i = 0; i < json_array_size(rows) && i < most; i++) {
		const json_t *value = json_object_get(json_array_get(rows, i), column->key);
		format_cell(cell, value, column->style);
		m->width = (int)strlen(cell) > m->width ? (int)strlen(cell) : m->width;
		m->is_text |= json_is_string(value) || json_is_boolean(value);
		is_there |= value != NULL;
	}
	return is_there;
}

/* The last text of a line needs no padding. */
static void print_cell(FILE *out, const struct measured *m, const char *cell, bool is_last)
{
	fprintf(out, "%*s", m->is_text ? is_last ? 0 : -m->width : m->width, cell);
	fputs(is_last ? "\n" : "  ", out);
}

void table_print(FILE *out, const json_t *rows, const struct column *columns, size_t most)
{
	struct measured m[TABLE_COLUMNS_MAX];
	char cell[CELL_MAX];
	unsigned n = 0;
	for (; columns->key && n < TABLE_COLUMNS_MAX; columns++)
		n += measure(&m[n], rows, columns, most);
	for (unsigned c = 0; c < n; c++)
		print_cell(out, &m[c], m[c].title, c + 1 == n);
	for (size_t i = 0; i < json_array_size(rows) && i < most; i++) {
		for (unsigned c = 0; c < n; c++) {
			format_cell(cell, json_object_get(json_array_get(rows, i), m[c].column->key), m[c].column->style);
			print_cell(out, &m[c], cell, c + 1 == n);
		}
	}
}

static void print_members(FILE *out, json_t *row, bool has_zeros)
{
	char cell[CELL_MAX];
	const char *key;
	json_t *value;
	int width = 0;
	json_object_foreach(row, key, value)
		width = (int)strlen(key) > width ? (int)strlen(key) : width;
	json_object_foreach(row, key, value) {
		if (!has_zeros && json_is_number(value) && json_number_value(value) == 0)
			continue;
		format_cell(cell, value, COLUMN_PLAIN);
		fprintf(out, "%-*s  %s\n", width, key, cell);
	}
}

void table_print_members(FILE *out, const json_t *rows, bool has_zeros)
{
	for (size_t i = 0; i < json_array_size(rows); i++) {
		if (i)
			fputc('\n', out);
		print_members(out, json_array_get(rows, i), has_zeros);
	}
}
