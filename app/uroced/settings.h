/* SPDX-License-Identifier: BSD-3-Clause */
/* What the daemon was told to do: command line over file over defaults. One table (settings.c) drives all three and the help. */
#ifndef UROCED_SETTINGS_H
#define UROCED_SETTINGS_H

#include <stdio.h>

#include "device_string.h"
#include "log.h"
#include "server.h"

#define SETTINGS_PATH_MAX 108u /* of a unix socket */

struct settings {
	char device[2048];           /* for engine_open: "served:..." */
	struct device_string parsed; /* the same, taken apart */
	char path[SETTINGS_PATH_MAX];
	char group[64];              /* as it is called, "": as it comes */
	uint32_t sleep_us;           /* 0: not given */
	struct server_config server; /* path is the one above; log and node are the caller's to fill in */
	enum log_level log_level;
};

enum settings_outcome {
	SETTINGS_RUN,
	SETTINGS_DONE,  /* help or version was asked for and printed to out */
	SETTINGS_WRONG, /* one line to err says what is wrong and what was expected */
};

/* Asks the system only for groups and the file that --config names. */
enum settings_outcome settings_read(struct settings *s, int argc, char **argv, FILE *out, FILE *err);

/* One row of the table, for tests and documentation; false beyond the last. */
struct setting_help {
	const char *section, *key;
	const char *option; /* without dashes; NULL: only in a file */
	const char *takes, *text;
};
bool settings_help(unsigned i, struct setting_help *help);

#endif
