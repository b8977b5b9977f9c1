/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. A counter that has become smaller belongs to something new under an old name: it began at 0. */
#include "rates.h"

#include <stdio.h>
#include <stdlib.h>

static const char *name_row(const json_t *row, const char *id, char *name, size_t room)
{
	const json_t *value = json_object_get(row, id);
	if (json_is_string(value))
		return json_string_value(value);
	snprintf(name, room, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return name;
}

/* An object of all rows by their names, which has them in it but not copied. */
static json_t *index_rows(const json_t *rows, const char *id)
{
	json_t *index = json_object(), *row;
	char name[32];
	size_t i;
	json_array_foreach(rows, i, row)
		json_object_set(index, name_row(row, id, name, sizeof(name)), row);
	return index;
}

static json_t *rate_of(const json_t *before, const json_t *now, const struct rate_field *f, double seconds)
{
	const json_t *value = json_object_get(now, f->key);
	if (!json_is_integer(value))
		return json_null();
	json_int_t from = json_integer_value(json_object_get(before, f->key)), to = json_integer_value(value);
	return json_real((double)(to >= from ? to - from : to) * f->factor / seconds);
}

static json_t *convert(const json_t *before, const json_t *now, const struct rate_field *fields, double seconds)
{
	json_t *row = json_object();
	for (const struct rate_field *f = fields; f->key; f++) {
		if (f->as)
			json_object_set_new(row, f->as, rate_of(before, now, f, seconds));
		else
			json_object_set(row, f->key, json_object_get(now, f->key));
	}
	return row;
}

/* ---- order ---- */

struct ranked {
	json_t *row;
	double rate;
	size_t place; /* before: ties stay in their order */
};

static double rank(const json_t *row, const struct rate_field *fields)
{
	double sum = 0;
	unsigned n = 0;
	for (const struct rate_field *f = fields; f->key && n < 2; f++) {
		if (!f->as)
			continue;
		sum += json_number_value(json_object_get(row, f->as));
		n++;
	}
	return sum;
}

static int compare(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->rate != y->rate)
		return x->rate > y->rate ? -1 : 1;
	return x->place < y->place ? -1 : 1;
}

static json_t *sort(struct ranked *rows, size_t n)
{
	json_t *sorted = json_array();
	qsort(rows, n, sizeof(*rows), compare);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(sorted, rows[i].row);
	return sorted;
}

json_t *rates_between(const json_t *before, const json_t *now, const char *id, const struct rate_field *fields, double seconds)
{
	size_t n = json_array_size(now);
	struct ranked *rows = calloc(n + 1, sizeof(*rows));
	json_t *index = index_rows(before, id);
	char name[32];
	for (size_t i = 0; rows && i < n; i++) {
		const json_t *row = json_array_get(now, i);
		rows[i].row = convert(json_object_get(index, name_row(row, id, name, sizeof(name))), row, fields, seconds);
		rows[i].rate = rank(rows[i].row, fields);
		rows[i].place = i;
	}
	json_t *sorted = rows ? sort(rows, n) : NULL;
	json_decref(index);
	free(rows);
	return sorted;
}
