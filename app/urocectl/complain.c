/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the form of an error. */
#include "complain.h"

#include <stdarg.h>
#include <stdio.h>

static int complain(int code, const char *format, va_list args)
{
	fputs("urocectl: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	return code;
}

int complain_refused(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int code = complain(EXIT_REFUSED, format, args);
	va_end(args);
	return code;
}

int complain_usage(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int code = complain(EXIT_USAGE, format, args);
	va_end(args);
	return code;
}
