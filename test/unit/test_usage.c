/* SPDX-License-Identifier: BSD-3-Clause */
/* app/compare/usage.c: CPU time and context switches of this process, and of another one beside it. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "usage.h"

#define BUSY_S 0.1

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void be_busy(void)
{
	double start = cpu_seconds();
	while (cpu_seconds() - start < BUSY_S)
		;
}

static void own_time_is_counted(void **state)
{
	struct usage before = usage_read(0);
	be_busy();
	struct usage u = usage_between(before, usage_read(0));
	assert_true(u.cpu_s > BUSY_S * 0.9 && u.cpu_s < BUSY_S * 3);
}

static void a_sleep_is_a_switch(void **state)
{
	struct usage before = usage_read(0);
	for (int i = 0; i < 10; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	struct usage u = usage_between(before, usage_read(0));
	assert_true(u.switches >= 10);
	assert_true(u.cpu_s < BUSY_S);
}

/* A child that is busy, then sleeps until it is killed. */
static void a_daemon_is_counted(void **state)
{
	int ready[2];
	char c;
	assert_int_equal(pipe(ready), 0);
	struct usage before = usage_read(0);
	pid_t child = fork();
	if (!child) {
		be_busy();
		(void)!write(ready[1], "", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	double alone = usage_between(before, usage_read(0)).cpu_s, with = usage_between(before, usage_read(child)).cpu_s;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(alone < BUSY_S * 0.5);
	assert_true(with - alone > BUSY_S * 0.9);
}

static void who_serves_a_socket_is_found(void **state)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char device[64];
	snprintf(a.sun_path, sizeof(a.sun_path), "/tmp/uroce-usage-%d", (int)getpid());
	snprintf(device, sizeof(device), "unix:%.40s", a.sun_path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(usage_find_daemon(device), getpid());
	close(fd);
	unlink(a.sun_path);
	assert_int_equal(usage_find_daemon(device), 0);
	assert_int_equal(usage_find_daemon("inline:net_ring"), 0);
	assert_int_equal(usage_find_daemon(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_time_is_counted),
		cmocka_unit_test(a_sleep_is_a_switch),
		cmocka_unit_test(a_daemon_is_counted),
		cmocka_unit_test(who_serves_a_socket_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
