/* SPDX-License-Identifier: BSD-3-Clause */
/* One line to standard error, "urocectl: ...", and the exit code that goes with it. */
#ifndef UROCECTL_COMPLAIN_H
#define UROCECTL_COMPLAIN_H

enum { EXIT_FINE = 0, EXIT_REFUSED = 1, EXIT_USAGE = 2 };

/* The daemon is not there, or does not do it. Returns EXIT_REFUSED. */
int complain_refused(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What was typed makes no sense. Returns EXIT_USAGE. */
int complain_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
