/* SPDX-License-Identifier: BSD-3-Clause */
/* Where results go: opened before anything is measured, so that a name that cannot be written costs no measurement. */
#ifndef APP_OUTPUT_H
#define APP_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* Of a file name; "-": standard output. NULL after a line on standard error. */
FILE *output_open(const char *path);
/* Closes it; standard output stays open. false after a line on standard error: not all of it could be written. */
bool output_close(FILE *f, const char *path);

#endif
