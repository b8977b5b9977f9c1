/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include "number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool number_take(const char *text, uint64_t max, const char **end, uint64_t *out)
{
	static const char units[] = "KMG";
	char *after;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	uint64_t v = strtoull(text, &after, text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10);
	const char *unit = memchr(units, *after & ~0x20, sizeof(units) - 1);
	unsigned shift = unit ? 10u * (unsigned)(unit - units + 1) : 0;
	*end = after + (unit != NULL);
	if (errno || v > max >> shift)
		return false;
	*out = v << shift;
	return true;
}

bool number_take_all(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *end;
	return number_take(text, max, &end, out) && !*end && *out >= min;
}

const char *number_text(uint64_t bytes, char text[24])
{
	static const char units[] = "\0KMG";
	unsigned u = 0;
	while (u < 3 && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		u++;
	}
	snprintf(text, 24, "%llu%.1s", (unsigned long long)bytes, &units[u]);
	return text;
}

bool number_take_sizes(const char *text, uint64_t max, uint64_t *sizes, unsigned room, unsigned *count)
{
	*count = 0;
	while (*text) {
		uint64_t first, last;
		if (!number_take(text, max, &text, &first))
			return false;
		last = first;
		if (*text == ':' && (!first || !number_take(text + 1, max, &text, &last) || last < first))
			return false;
		for (uint64_t size = first; size <= last; size = size ? 2 * size : 1) {
			if (*count == room)
				return false;
			sizes[(*count)++] = size;
		}
		if (*text && *text++ != ',')
			return false;
	}
	return *count > 0;
}
