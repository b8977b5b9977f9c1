/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the table of options, from which the help is printed too. */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "complain.h"

#define SECONDS_MAX 1e6

bool options_number(const char *text, uint64_t most, uint64_t *n)
{
	char *end;
	errno = 0;
	*n = strtoull(text, &end, 0);
	return isdigit((unsigned char)text[0]) && !*end && !errno && *n <= most;
}

static bool parse_seconds(const char *text, double least, double *seconds)
{
	char *end;
	*seconds = strtod(text, &end);
	return isdigit((unsigned char)text[0]) && !*end && *seconds >= least && *seconds <= SECONDS_MAX;
}

/* ---- the table ---- */

static bool take_socket(struct options *o, const char *v)
{
	o->socket = strncmp(v, "unix:", 5) ? v : v + 5;
	return *o->socket;
}

static bool take_json(struct options *o, const char *v)
{
	return o->is_json = true;
}

static bool take_all(struct options *o, const char *v)
{
	return o->is_all = true;
}

static bool take_interval(struct options *o, const char *v)
{
	return parse_seconds(v, 0.1, &o->interval);
}

static bool take_count(struct options *o, const char *v)
{
	return options_number(v, UINT32_MAX, &o->count) && o->count;
}

static bool take_seconds(struct options *o, const char *v)
{
	return parse_seconds(v, 0.001, &o->seconds);
}

static const struct option_row {
	const char *name;
	bool (*take)(struct options *o, const char *value);
	const char *value;   /* NULL: takes none */
	const char *command; /* the one that has it; NULL: all */
	const char *takes, *text;
} rows[] = {
	{ "--socket", take_socket, "PATH", NULL, "the path of a daemon's socket", "the daemon (default: that of UROCE_DEVICE, else " OPTIONS_SOCKET ")" },
	{ "--json", take_json, NULL, NULL, NULL, "print JSON" },
	{ "--all", take_all, NULL, "show", NULL, "every row, and every member of each" },
	{ "--interval", take_interval, "SECONDS", "watch", "a number of seconds from 0.1", "how often to look (default 1)" },
	{ "--count", take_count, "N", "watch", "a number from 1", "end after so many looks" },
	{ "--seconds", take_seconds, "SECONDS", "capture", "a number of seconds, above 0", "end by itself (default: with Ctrl-C)" },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void print_help(void)
{
	printf("urocectl [options] command: look at a running uroced, and change it\n\ncommands:\n");
	for (unsigned i = 0; commands[i].name; i++)
		printf("  %-44s %s\n", commands[i].usage, commands[i].text);
	printf("\noptions, before or behind the command:\n");
	for (unsigned i = 0; i < ROWS; i++) {
		char name[48];
		snprintf(name, sizeof(name), "%s%s%s", rows[i].name, rows[i].value ? " " : "", rows[i].value ? rows[i].value : "");
		printf("  %-22s %s%s%s\n", name, rows[i].command ? rows[i].command : "", rows[i].command ? ": " : "", rows[i].text);
	}
	printf("  %-22s this\n  %-22s which one it is\n", "--help", "--version");
	printf("\nOnly root and the user that the daemon runs as may. Exit code: 0; 1: there is no daemon, or it refused; 2: the command makes no sense.\n");
}

/* ---- parsing ---- */

static const struct option_row *find_row(const char *arg)
{
	for (unsigned i = 0; i < ROWS; i++) {
		size_t len = strlen(rows[i].name);
		if (!strncmp(arg, rows[i].name, len) && (!arg[len] || arg[len] == '='))
			return &rows[i];
	}
	return NULL;
}

/* The value stands behind "=", or is the next argument, which *i is moved to. */
static int take_option(struct options *o, const struct option_row *r, int argc, char **argv, int *i)
{
	const char *behind = strchr(argv[*i], '='), *value = behind ? behind + 1 : NULL;
	if (!r->value && value)
		return complain_usage("%s: expected no value", argv[*i]);
	if (r->value && !value && *i + 1 < argc)
		value = argv[++*i];
	if (r->value && !value)
		return complain_usage("%s: expected %s", r->name, r->takes);
	if (!r->take(o, value))
		return complain_usage("%s %s: expected %s", r->name, value, r->takes);
	return EXIT_FINE;
}

/* Options that another command has. */
static int check_command(const struct options *o, const bool *is_given)
{
	for (unsigned i = 0; i < ROWS; i++)
		if (is_given[i] && rows[i].command && o->words && strcmp(rows[i].command, o->word[0]))
			return complain_usage("%s: expected with command %s, not %s", rows[i].name, rows[i].command, o->word[0]);
	return EXIT_FINE;
}

static int take_device(struct options *o)
{
	const char *device = getenv("UROCE_DEVICE");
	if (o->socket)
		return EXIT_FINE;
	o->socket = OPTIONS_SOCKET;
	if (!device || !*device)
		return EXIT_FINE;
	if (strncmp(device, "unix:", 5) || !device[5])
		return complain_usage("UROCE_DEVICE is %s: expected unix:PATH, a daemon's socket; or --socket PATH", device);
	o->socket = device + 5;
	return EXIT_FINE;
}

int options_parse(int argc, char **argv, struct options *o, bool *is_done)
{
	bool is_given[ROWS] = { false };
	*o = (struct options){ .interval = 1, .word = argv };
	*is_done = false;
	for (int i = 1; i < argc; i++) {
		const struct option_row *r = find_row(argv[i]);
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			print_help();
			*is_done = true;
			return EXIT_FINE;
		}
		if (!strcmp(argv[i], "--version")) {
			printf("urocectl " UROCE_VERSION "\n");
			*is_done = true;
			return EXIT_FINE;
		}
		if (!r && argv[i][0] == '-' && argv[i][1])
			return complain_usage("%s: expected one of the options that --help lists", argv[i]);
		if (!r) {
			o->word[o->words++] = argv[i];
			continue;
		}
		is_given[r - rows] = true;
		int code = take_option(o, r, argc, argv, &i);
		if (code)
			return code;
	}
	int code = check_command(o, is_given);
	return code ? code : take_device(o);
}
