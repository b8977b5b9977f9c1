/* SPDX-License-Identifier: BSD-3-Clause */
/* One line per event, to a sink that the owner of the object chose. There is no global logger: two engines in one process may
 * have two. A line that a peer can cause goes through log_limited. */
#ifndef UROCE_LOG_H
#define UROCE_LOG_H

#include <stdarg.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

struct log {
	void (*sink)(void *arg, enum log_level level, const char *line); /* NULL: standard error */
	void *arg;
	enum log_level level; /* lines above it are not formatted */
};

/* Bounds the lines of one kind: at most `burst` in a second (0: 5); the next line after a pause says how many were left out. */
struct log_limit {
	uint64_t second_start_ns;
	uint32_t in_second;
	uint32_t suppressed;
	uint32_t burst;
};

/* log may be NULL (nothing is written). No newline at the end of format. Any thread, if the sink allows it. */
void log_write(const struct log *log, enum log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));
void log_write_v(const struct log *log, enum log_level level, const char *format, va_list args);
void log_limited(const struct log *log, struct log_limit *limit, uint64_t now_ns, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* "error", "warn", "info", "debug" (or 0..3) to a level; -EINVAL else. */
int log_level_parse(const char *text, enum log_level *level);

#endif
