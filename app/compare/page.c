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

bool page_write(FILE *f, json_t *document)
{
	char *json = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(6));
	if (!json) {
		fprintf(stderr, "uroce-compare: no memory for the page\n");
		return false;
	}
	fwrite(page_before, 1, sizeof(page_before), f);
	write_data(f, json);
	fwrite(page_after, 1, sizeof(page_after), f);
	free(json);
	return true;
}
