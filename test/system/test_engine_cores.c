/* SPDX-License-Identifier: BSD-3-Clause */
/* The cores of an engine: what ends their sleep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "side.h"

#define SIDE0 "net_ring,link=t,side=0,ip=10.1.0.1/24"

static uint64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static uint64_t count_sleeps(const struct engine_core *ec)
{
	struct engine_stats stats;
	engine_core_stats(ec, &stats);
	return stats.sleeps;
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* The median time from a byte in the pipe to the end of the core's sleep. */
static uint64_t measure_wake(const struct engine_core *ec, int fd)
{
	uint64_t took[21];
	for (unsigned i = 0; i < 21; i++) {
		usleep(1000);
		uint64_t start = now_us(), before = count_sleeps(ec);
		CHECK(write(fd, "", 1) == 1);
		while (count_sleeps(ec) == before)
			usleep(20);
		took[i] = now_us() - start;
	}
	qsort(took, 21, sizeof(took[0]), compare_times);
	return took[10];
}

static void watch(void *arg)
{
	struct side a;
	int fd[2];
	static char much[1 << 20];
	side_open(&a, "embedded:" SIDE0 ",idle=sleep:10000");
	CHECK(!pipe2(fd, O_NONBLOCK | O_CLOEXEC));
	CHECK(measure_wake(a.core, fd[1]) > 2500); /* nobody watches: the sleep lasts */
	CHECK(!engine_core_watch(a.core, fd[0]));
	CHECK(measure_wake(a.core, fd[1]) < 2500);
	/* What is not read away at once does not keep the core awake. */
	CHECK(fcntl(fd[1], F_SETPIPE_SZ, sizeof(much)) >= 0);
	uint64_t before = count_sleeps(a.core);
	while (write(fd[1], much, sizeof(much)) > 0)
		;
	usleep(200000);
	CHECK(count_sleeps(a.core) - before < 60);
	while (read(fd[0], much, sizeof(much)) > 0)
		;
	CHECK(measure_wake(a.core, fd[1]) < 2500);
	engine_core_unwatch(a.core, fd[0]);
	CHECK(measure_wake(a.core, fd[1]) > 2500);
	side_close(&a);
}

static void test_watched_pipe_ends_sleep(void **state)
{
	assert_int_equal(side_child(watch, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_watched_pipe_ends_sleep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
