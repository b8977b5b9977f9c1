/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the formatting of a line and the bound on how many there are. Does not own the sink, the clock (time is an argument) or a
 * file, and keeps no state of its own.
 * Invariant: a line is one line, printable and at most LINE_MAX_BYTES long, whatever a peer put into the arguments; the
 * level of a line reaches the sink beside it, and standard error as a word in front of it. */
#include "log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 512
#define LIMIT_WINDOW_NS 1000000000u
#define LIMIT_BURST 5

static const char *const level_names[] = {
	[LOG_ERROR] = "error",
	[LOG_WARN] = "warn",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};
#define LEVELS (sizeof(level_names) / sizeof(level_names[0]))

static bool is_wanted(const struct log *log, enum log_level level)
{
	return log && level <= log->level && (unsigned)level < LEVELS;
}

/* A newline or an escape sequence in an argument must not become a second line or a command to a terminal. */
static void clean_line(char *line)
{
	for (; *line; line++)
		if ((unsigned char)*line < ' ' || *line == 0x7f)
			*line = '?';
}

static void write_line(const struct log *log, enum log_level level, const char *line)
{
	if (log->sink)
		log->sink(log->arg, level, line);
	else
		fprintf(stderr, "uroce: %s: %s\n", level_names[level], line);
}

/* Fills line and returns its length; a line that does not fit ends in dots. */
static size_t format_line(char line[LINE_MAX_BYTES], const char *format, va_list args)
{
	int n = vsnprintf(line, LINE_MAX_BYTES, format, args);

	if (n < 0) {
		/* an argument that the locale cannot print: the format alone still says what happened */
		n = snprintf(line, LINE_MAX_BYTES, "%s", format);
	}
	if (n >= LINE_MAX_BYTES) {
		memcpy(line + LINE_MAX_BYTES - 4, "...", 4);
		n = LINE_MAX_BYTES - 1;
	}
	clean_line(line);
	return (size_t)n;
}

void log_write_v(const struct log *log, enum log_level level, const char *format, va_list args)
{
	char line[LINE_MAX_BYTES];

	if (!is_wanted(log, level))
		return;
	format_line(line, format, args);
	write_line(log, level, line);
}

void log_write(const struct log *log, enum log_level level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_write_v(log, level, format, args);
	va_end(args);
}

/* Whether one more line may be written now. */
static bool take_turn(struct log_limit *limit, uint64_t now_ns)
{
	uint32_t burst = limit->burst ? limit->burst : LIMIT_BURST;

	if (now_ns - limit->second_start_ns >= LIMIT_WINDOW_NS) {
		limit->second_start_ns = now_ns;
		limit->in_second = 0;
	}
	if (limit->in_second >= burst) {
		if (limit->suppressed != UINT32_MAX)
			limit->suppressed++;
		return false;
	}
	limit->in_second++;
	return true;
}

void log_limited(const struct log *log, struct log_limit *limit, uint64_t now_ns, enum log_level level, const char *format, ...)
{
	char line[LINE_MAX_BYTES + 48];
	size_t len;
	va_list args;

	if (!is_wanted(log, level) || !take_turn(limit, now_ns))
		return;
	va_start(args, format);
	len = format_line(line, format, args);
	va_end(args);
	if (limit->suppressed) {
		snprintf(line + len, sizeof(line) - len, " (%u more like this left out)", limit->suppressed);
		limit->suppressed = 0;
	}
	write_line(log, level, line);
}

int log_level_parse(const char *text, enum log_level *level)
{
	for (unsigned i = 0; i < LEVELS; i++) {
		bool is_digit = text[0] == (char)('0' + i) && !text[1];
		if (is_digit || !strcmp(text, level_names[i])) {
			*level = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}
