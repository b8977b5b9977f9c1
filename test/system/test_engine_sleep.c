/* SPDX-License-Identifier: BSD-3-Clause */
/* What ends the sleep of an engine's core: the eventfd of a client, and a frame from another core. Machines are busy: of many tries, the quick ones count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <sys/eventfd.h>
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

#define TIMES 20

/* The time that a quarter of them stays below. */
static uint64_t quartile(uint64_t took[TIMES])
{
	qsort(took, TIMES, sizeof(took[0]), compare_times);
	return took[TIMES / 4];
}

/* From a write to the eventfd, early in a sleep, to the end of that sleep. */
static uint64_t measure_wake(const struct engine_core *ec, int fd)
{
	uint64_t took[TIMES];
	for (unsigned i = 0; i < TIMES; i++) {
		usleep(500);
		uint64_t start = now_us(), before = count_sleeps(ec);
		CHECK(!eventfd_write(fd, 1));
		while (count_sleeps(ec) == before)
			usleep(20);
		took[i] = now_us() - start;
	}
	return quartile(took);
}

static void watch(void *arg)
{
	struct side a;
	int fd = eventfd(0, EFD_CLOEXEC);
	side_open(&a, "embedded:" SIDE0 ",idle=sleep:10000");
	CHECK(fd >= 0);
	CHECK(measure_wake(a.core, fd) > 1500); /* nobody watches: the sleep lasts */
	CHECK(!engine_core_watch(a.core, fd));
	CHECK(measure_wake(a.core, fd) < 1500);
	/* What stays in it does not keep the core awake. */
	uint64_t before = count_sleeps(a.core), start = now_us();
	usleep(200000);
	CHECK(count_sleeps(a.core) - before < 10 + (now_us() - start) / 10000);
	/* Nobody but us reads it: the core would wait for ever. */
	eventfd_t rung;
	CHECK(!eventfd_read(fd, &rung) && rung == 2 * TIMES);
	CHECK(measure_wake(a.core, fd) < 1500);
	engine_core_unwatch(a.core, fd);
	CHECK(measure_wake(a.core, fd) > 1500);
	side_close(&a);
}

static void test_watched_eventfd_ends_sleep(void **state)
{
	assert_int_equal(side_child(watch, NULL), 0);
}

/* A frame from another core ends the sleep of the one that gets it. */
static void wake_by_frame(void *arg)
{
	struct side a, b;
	uint64_t least = UINT64_MAX;
	side_open(&a, "embedded:" SIDE0 ",cores=2,idle=sleep:10000");
	side_open(&b, "embedded:" SIDE0);
	CHECK(engine_core_index(a.core) == 0 && engine_core_index(b.core) == 1);
	struct side_card of_a = side_card(&a), of_b = side_card(&b);
	side_connect(&a, &of_b, 0);
	side_connect(&b, &of_a, 0);
	for (unsigned i = 0; i < TIMES; i++) {
		usleep(1000);
		uint64_t start = now_us();
		side_post_write(&a, i, 0, 100, &of_b, 0);
		side_wait(&a, NULL, i);
		uint64_t took = now_us() - start;
		least = took < least ? took : least;
	}
	CHECK(least < 4000); /* it would be a whole sleep of a's core, which learns of the ACK at its end */
	side_close(&a);
	side_close(&b);
}

static void test_frame_ends_sleep(void **state)
{
	assert_int_equal(side_child(wake_by_frame, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_watched_eventfd_ends_sleep),
		cmocka_unit_test(test_frame_ends_sleep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
