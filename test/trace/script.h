/* SPDX-License-Identifier: BSD-3-Clause */
/* Trace scripts, line by line. A line is an optional time, a verb, and words `key=value` or `flag`; # begins a comment. Reading a word marks it: what no reader asked for is a mistake in the script.
 *
 *     +40us..80us > SEND_ONLY psn=100 len=8
 */
#ifndef UROCE_TRACE_SCRIPT_H
#define UROCE_TRACE_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#define WORDS_MAX 24u

struct word {
	char *key;
	char *value; /* NULL: a flag */
	bool is_used;
};

struct line {
	unsigned number;
	char text[256];   /* as written */
	char store[256];  /* what the words point into */
	bool has_time;
	uint64_t from_ns, to_ns; /* after the event before it; equal without a range */
	const char *verb;
	struct word words[WORDS_MAX];
	unsigned n;
};

/* Takes a line apart; false: nothing in it. */
bool line_parse(struct line *l, const char *text, unsigned number);
/* Complains of words that nobody read. */
void line_finish(const struct line *l);
bool line_has(struct line *l, const char *key);
/* NULL when there is none. */
const char *line_text(struct line *l, const char *key);
uint64_t line_number(struct line *l, const char *key, uint64_t fallback);
/* The first word, if it is a flag: an operation's name. Fails when there is none. */
const char *line_first(struct line *l);
/* "10us", "1.5ms", "0": to nanoseconds. */
uint64_t parse_time(const char *text);
uint64_t parse_number(const char *text);

/* The script is not kept: says so, with the line, and ends the process. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* What fail shows besides. */
void fail_in(const char *file, const struct line *l, void (*show)(void));

#endif
