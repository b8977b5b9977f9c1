/* SPDX-License-Identifier: BSD-3-Clause */
/* app/common/tracer.c: each call is counted, once, by its number, with the bytes that it copied; of one thread or of all. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "tracer.h"

static struct tracer *start(enum tracer_scope scope)
{
	struct tracer *t = NULL;
	if (tracer_start(scope, &t))
		skip(); /* a container that does not allow it */
	return t;
}

static void calls_and_bytes_are_counted(void **state)
{
	char text[200] = "0123456789";
	int fd[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	struct tracer *t = start(TRACER_THREAD);
	uint64_t calls = tracer_calls(t), bytes = tracer_bytes(t), sends = tracer_calls_of(t, SYS_sendto);
	assert_int_equal(send(fd[0], text, 10, 0), 10);
	assert_int_equal(send(fd[0], text, 5, 0), 5);
	assert_int_equal(recv(fd[1], text, sizeof(text), 0), 15);
	assert_int_equal(recv(fd[1], text, sizeof(text), MSG_DONTWAIT), -1); /* copies nothing */
	uint64_t after = tracer_calls(t);
	assert_int_equal(after - calls, 4);
	assert_int_equal(tracer_bytes(t) - bytes, 30);
	assert_int_equal(tracer_calls_of(t, SYS_sendto) - sends, 2);
	tracer_name(t, calls, text, sizeof(text));
	assert_string_equal(text, "sendto, sendto, recvfrom, recvfrom");
	tracer_stop(t);
	close(fd[0]);
	close(fd[1]);
}

static void no_call_is_no_call(void **state)
{
	struct tracer *t = start(TRACER_PROCESS);
	uint64_t calls = tracer_calls(t);
	for (volatile int i = 0; i < 1000000; i++)
		;
	assert_int_equal(tracer_calls(t), calls);
	tracer_stop(t);
}

static _Atomic int step;

/* Makes 100 calls when it is told to. */
static void *call(void *arg)
{
	while (atomic_load(&step) != 1)
		;
	for (int i = 0; i < 100; i++)
		syscall(SYS_getppid);
	atomic_store(&step, 2);
	while (atomic_load(&step) != 3)
		;
	return NULL;
}

static uint64_t calls_of_another_thread(enum tracer_scope scope)
{
	pthread_t thread;
	atomic_store(&step, 0);
	assert_int_equal(pthread_create(&thread, NULL, call, NULL), 0);
	struct tracer *t = start(scope);
	uint64_t before = tracer_calls_of(t, SYS_getppid);
	atomic_store(&step, 1);
	while (atomic_load(&step) != 2)
		;
	uint64_t calls = tracer_calls_of(t, SYS_getppid) - before;
	atomic_store(&step, 3);
	tracer_stop(t);
	pthread_join(thread, NULL);
	return calls;
}

static void the_scope_is_kept(void **state)
{
	assert_int_equal(calls_of_another_thread(TRACER_PROCESS), 100);
	assert_int_equal(calls_of_another_thread(TRACER_THREAD), 0);
}

static void calls_have_names(void **state)
{
	assert_string_equal(tracer_call_name(SYS_sendto), "sendto");
	assert_null(tracer_call_name(TRACER_NUMBERS - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_and_bytes_are_counted),
		cmocka_unit_test(no_call_is_no_call),
		cmocka_unit_test(the_scope_is_kept),
		cmocka_unit_test(calls_have_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
