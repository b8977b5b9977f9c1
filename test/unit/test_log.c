/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines reach their sink once, whole and clean; lines that a peer can cause are bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

#define SECOND_NS 1000000000ull

struct seen {
	unsigned lines;
	enum log_level level;
	char last[1024];
};

static void on_line(void *arg, enum log_level level, const char *line)
{
	struct seen *s = arg;

	s->lines++;
	s->level = level;
	assert_true(strlen(line) < sizeof(s->last));
	strcpy(s->last, line);
}

static void test_sink_and_level(void **state)
{
	struct seen s = { 0 };
	struct log log = { on_line, &s, LOG_WARN };

	log_write(&log, LOG_ERROR, "port %d of %s", 3, "eth0");
	assert_int_equal(s.lines, 1);
	assert_int_equal(s.level, LOG_ERROR);
	assert_string_equal(s.last, "port 3 of eth0");
	log_write(&log, LOG_WARN, "w");
	assert_int_equal(s.level, LOG_WARN);
	log_write(&log, LOG_INFO, "not wanted");
	log_write(&log, LOG_DEBUG, "not wanted");
	assert_int_equal(s.lines, 2);
	log.level = LOG_DEBUG;
	log_write(&log, LOG_DEBUG, "wanted");
	assert_int_equal(s.lines, 3);
	log_write(NULL, LOG_ERROR, "nowhere");
	assert_int_equal(s.lines, 3);
}

/* Two logs in one process do not know each other. */
static void test_two_logs(void **state)
{
	struct seen a = { 0 }, b = { 0 };
	struct log log_a = { on_line, &a, LOG_INFO }, log_b = { on_line, &b, LOG_INFO };

	log_write(&log_a, LOG_INFO, "a");
	log_write(&log_b, LOG_INFO, "b");
	assert_string_equal(a.last, "a");
	assert_string_equal(b.last, "b");
}

static void test_standard_error(void **state)
{
	struct log log = { .level = LOG_DEBUG };
	char text[256];
	int saved = dup(STDERR_FILENO);
	FILE *f = tmpfile();
	size_t n;

	assert_non_null(f);
	fflush(stderr);
	dup2(fileno(f), STDERR_FILENO);
	log_write(&log, LOG_ERROR, "one %u", 1u);
	log_write(&log, LOG_WARN, "two");
	log_write(&log, LOG_INFO, "three");
	log_write(&log, LOG_DEBUG, "four");
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	fclose(f);
	assert_string_equal(text, "uroce: error: one 1\nuroce: warn: two\nuroce: info: three\nuroce: debug: four\n");
}

static void test_one_clean_line(void **state)
{
	struct seen s = { 0 };
	struct log log = { on_line, &s, LOG_INFO };
	char name[2000];

	log_write(&log, LOG_INFO, "name %s", "a\nuroce: error: forged\x1b[2J\x7f\xc3\xa9");
	assert_string_equal(s.last, "name a?uroce: error: forged?[2J?\xc3\xa9");
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	log_write(&log, LOG_INFO, "%s", name);
	assert_int_equal(strlen(s.last), 511);
	assert_string_equal(s.last + 507, "x...");
	name[511] = 0;
	log_write(&log, LOG_INFO, "%s", name);
	assert_string_equal(s.last, name);
	log_write(&log, LOG_INFO, "%s", "");
	assert_string_equal(s.last, "");
}

static void test_limit(void **state)
{
	struct seen s = { 0 };
	struct log log = { on_line, &s, LOG_INFO };
	struct log_limit limit = { 0 };
	uint64_t now_ns = 17;

	for (int i = 0; i < 12; i++)
		log_limited(&log, &limit, now_ns + (uint64_t)i, LOG_INFO, "bad key %d", i);
	assert_int_equal(s.lines, 5);
	assert_string_equal(s.last, "bad key 4");
	/* Lines that the level leaves out count neither way. */
	log_limited(&log, &limit, now_ns, LOG_DEBUG, "not wanted");
	log_limited(NULL, &limit, now_ns, LOG_ERROR, "nowhere");
	now_ns += SECOND_NS;
	log_limited(&log, &limit, now_ns, LOG_INFO, "bad key %d", 12);
	assert_string_equal(s.last, "bad key 12 (7 more like this left out)");
	log_limited(&log, &limit, now_ns, LOG_INFO, "bad key %d", 13);
	assert_string_equal(s.last, "bad key 13");
	assert_int_equal(s.lines, 7);
}

static void test_limit_bounds(void **state)
{
	struct seen s = { 0 };
	struct log log = { on_line, &s, LOG_INFO };
	struct log_limit limit = { .burst = 2 }, other = { .burst = 1, .suppressed = UINT32_MAX, .in_second = 1 };
	char name[2000];

	/* A flood of ten seconds, a line per millisecond: 2 per second. */
	for (uint64_t ms = 0; ms < 10000; ms++)
		log_limited(&log, &limit, 5 * SECOND_NS + ms * 1000000, LOG_WARN, "x");
	assert_int_equal(s.lines, 20);
	/* The count saturates, and fits behind the longest line. */
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	log_limited(&log, &other, 0, LOG_WARN, "x");
	assert_int_equal(s.lines, 20);
	log_limited(&log, &other, SECOND_NS, LOG_WARN, "%s", name);
	assert_string_equal(s.last + 508, "... (4294967295 more like this left out)");
}

static void test_parse(void **state)
{
	static const char *const good[] = { "error", "warn", "info", "debug", "0", "1", "2", "3" };
	static const char *const bad[] = { "", "4", "-1", "Error", "warning", "00", "3 ", "debug ", " info" };
	enum log_level level;

	for (unsigned i = 0; i < 8; i++) {
		level = (enum log_level)99;
		assert_int_equal(log_level_parse(good[i], &level), 0);
		assert_int_equal(level, i % 4);
	}
	level = LOG_INFO;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(log_level_parse(bad[i], &level), -EINVAL);
	assert_int_equal(level, LOG_INFO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sink_and_level),
		cmocka_unit_test(test_two_logs),
		cmocka_unit_test(test_standard_error),
		cmocka_unit_test(test_one_clean_line),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_limit_bounds),
		cmocka_unit_test(test_parse),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
