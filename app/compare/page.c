/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. The page is page.html with the document in the middle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page_text.h"
#include "table.h"

/* In a script element only "<" could end it; inside a string of JSON it may be written otherwise. */
static void write_data(FILE *f, const char *json)
{
	for (size_t len; *json; json += len) {
		len = strcspn(json, "<");
		fwrite(json, 1, len, f);
		if (json[len] == '<') {
			fputs("\\u003c", f);
			len++;
		}
	}
}

bool page_write(const char *path, json_t *document)
{
	char *json = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(6));
	FILE *f = json ? fopen(path, "we") : NULL;
	bool is_written = f != NULL;
	if (f) {
		fwrite(page_before, 1, sizeof(page_before), f);
		write_data(f, json);
		fwrite(page_after, 1, sizeof(page_after), f);
		is_written = !ferror(f);
		is_written &= !fclose(f);
	}
	free(json);
	if (!is_written)
		fprintf(stderr, "uroce-compare: cannot write %s\n", path);
	return is_written;
}
