/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line: options, wherever they stand, and the words between them. */
#ifndef UROCECTL_OPTIONS_H
#define UROCECTL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define OPTIONS_SOCKET "/run/uroce/uroce0.sock"

struct options {
	const char *socket; /* path */
	bool is_json;
	bool is_all;
	double seconds;     /* of a capture; 0: until a signal */
	double interval;    /* of watch, seconds */
	uint64_t count;     /* of watch; 0: no end */
	int words;          /* the first names the command, if there is one */
	char **word;
};

/* Takes the options out of argv, which keeps the words. EXIT_FINE; EXIT_USAGE after one line. *is_done: help or version was asked for, and printed. Standard: UROCE_DEVICE, then OPTIONS_SOCKET. */
int options_parse(int argc, char **argv, struct options *o, bool *is_done);
/* A whole number up to `most`, decimal or with 0x. */
bool options_number(const char *text, uint64_t most, uint64_t *n);

#endif
