/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a line while an engine is driven that has something to do in every round; and the addresses of a name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
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

/* ---- addresses ---- */

/* A listening socket at 127.0.0.1, and only there, as text ":PORT". */
static int listen4(char text[16])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_return_code(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_return_code(listen(fd, 1), 0);
	assert_return_code(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	snprintf(text, 16, ":%u", ntohs(a.sin_port));
	return fd;
}

/* Without a host a client means this one: ::1 first, where nobody is, then 127.0.0.1. */
static void test_every_address_is_tried(void **state)
{
	char to[16];
	struct exchange x = { .fd = -1 };
	int listener = listen4(to);
	assert_int_equal(exchange_connect(&x, to, "1"), 0);
	exchange_close(&x);
	close(listener);
}

static struct server {
	char at[16];
	int rc;
} server;

static void *serve_one(void *arg)
{
	struct exchange x = { .fd = -1, .is_interrupted = is_interrupted };
	server.rc = exchange_listen(&x, server.at, "1");
	exchange_close(&x);
	return NULL;
}

static void dial_server(const char *host)
{
	char to[32];
	pthread_t thread;
	struct exchange x = { .fd = -1 };
	server.rc = -1;
	pair.is_interrupted = false;
	assert_int_equal(pthread_create(&thread, NULL, serve_one, NULL), 0);
	snprintf(to, sizeof(to), "%s%s", host, server.at);
	int rc = exchange_connect(&x, to, "1");
	pair.is_interrupted = true; /* the server waits no longer */
	pthread_join(thread, NULL);
	exchange_close(&x);
	assert_int_equal(rc, 0);
	assert_int_equal(server.rc, 0);
}

static bool has_ipv6(void)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = bind(fd, (struct sockaddr *)&a, sizeof(a));
	if (fd >= 0)
		close(fd);
	return !rc;
}

static void test_a_server_takes_both_families(void **state)
{
	close(listen4(server.at));
	dial_server("127.0.0.1");
	if (has_ipv6())
		dial_server("[::1]");
	else
		print_message("[::1] is not tried: this machine has no IPv6\n");
}

static void say(const char *text)
{
	assert_int_equal(write(pair.peer, text, strlen(text)), strlen(text));
}

/* Nothing was read: the reason is told. */
static void test_the_reason_is_known(void **state)
{
	pair.x.pump = NULL;
	pair.x.patience_s = 1;
	assert_null(exchange_read(&pair.x));
	assert_string_equal(pair.x.why, "has said nothing for too long");
	pair.is_interrupted = true;
	assert_null(exchange_read(&pair.x));
	assert_string_equal(pair.x.why, "was not waited for any longer");
	pair.is_interrupted = false;
	say("GET / HTTP/1.1\r\n");
	assert_null(exchange_read(&pair.x));
	assert_string_equal(pair.x.why, "speaks another language: expected lines of JSON");
	say("{}\n");
	json_t *message = exchange_read(&pair.x);
	assert_true(json_is_object(message) && !pair.x.why);
	json_decref(message);
	shutdown(pair.peer, SHUT_RDWR);
	assert_null(exchange_read(&pair.x));
	assert_string_equal(pair.x.why, "is gone");
	char reason[64] = "";
	assert_null(exchange_hear(&pair.x, "the server", reason, sizeof(reason)));
	assert_string_equal(reason, "the server is gone");
	assert_int_equal(exchange_send(&pair.x, json_object()), -1);
	assert_non_null(pair.x.why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_line_is_seen, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(test_an_interrupt_is_seen, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(test_the_end_is_seen, open_pair, close_pair),
		cmocka_unit_test(test_every_address_is_tried),
		cmocka_unit_test(test_a_server_takes_both_families),
		cmocka_unit_test_setup_teardown(test_the_reason_is_known, open_pair, close_pair),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
