/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a line while an engine is driven that has something to do in every round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exchange.h"

enum { ROUNDS_MAX = 100000 };

static struct pair {
	struct exchange x;
	int peer;
	unsigned rounds;
	bool is_interrupted;
} pair;

static int always_busy(void *arg)
{
	if (++pair.rounds == ROUNDS_MAX)
		fail_msg("nobody looks at the socket");
	return 1;
}

static bool is_interrupted(void)
{
	return pair.is_interrupted;
}

static int open_pair(void **state)
{
	int fd[2];
	pair = (struct pair){ .x = { .fd = -1 } };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return -1;
	exchange_init(&pair.x, fd[0]);
	pair.x.pump = always_busy;
	pair.x.is_interrupted = is_interrupted;
	pair.peer = fd[1];
	return 0;
}

static int close_pair(void **state)
{
	exchange_close(&pair.x);
	close(pair.peer);
	return 0;
}

static int speak_late(void *arg)
{
	static const char line[] = "{\"a\": 1}\n";
	if (pair.rounds == 5000)
		assert_int_equal(write(pair.peer, line, strlen(line)), strlen(line));
	return always_busy(arg);
}

static void test_a_line_is_seen(void **state)
{
	pair.x.pump = speak_late;
	json_t *m = exchange_read(&pair.x);
	assert_int_equal(json_integer_value(json_object_get(m, "a")), 1);
	json_decref(m);
}

static int interrupt_late(void *arg)
{
	pair.is_interrupted = pair.rounds >= 5000;
	return always_busy(arg);
}

static void test_an_interrupt_is_seen(void **state)
{
	pair.x.pump = interrupt_late;
	assert_null(exchange_read(&pair.x));
	assert_false(pair.x.is_closed);
}

static void test_the_end_is_seen(void **state)
{
	close(pair.peer);
	pair.peer = -1;
	assert_null(exchange_read(&pair.x));
	assert_true(pair.x.is_closed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_line_is_seen, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(test_an_interrupt_is_seen, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(test_the_end_is_seen, open_pair, close_pair),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
