/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include "output.h"

#include <errno.h>
#include <string.h>

static void complain(const char *path, int err)
{
	fprintf(stderr, "%s: cannot write %s: %s\n", program_invocation_short_name, strcmp(path, "-") ? path : "to standard output", strerror(err));
}

FILE *output_open(const char *path)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "we") : stdout;
	if (!f)
		complain(path, errno);
	return f;
}

bool output_close(FILE *f, const char *path)
{
	errno = 0;
	int has_failed = fflush(f) | ferror(f), err = errno;
	if (f != stdout && fclose(f) && !has_failed) {
		has_failed = 1;
		err = errno;
	}
	if (has_failed)
		complain(path, err ? err : EIO); /* a line of a table failed, some time ago */
	return !has_failed;
}
