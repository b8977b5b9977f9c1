/* SPDX-License-Identifier: BSD-3-Clause */
/* The groups of an engine: what its cores and addresses want is let in and reported once and for as long as any of them wants it; what the port refuses; and that cores wait for nobody. The door (group_door.h) is one of this test's. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "addr_hosts.h"
#include "group_door.h"
#include "multicast.h"
#include "port.h"
#include "random.h"

#define DOOR_MAX 4096u

/* ---- a door ---- */

static struct group_door {
	struct gid in[DOOR_MAX];
	unsigned n, room;      /* room: the most it takes */
	unsigned tries;        /* to let one in */
	bool is_wide;          /* takes all, and costs nothing */
	void (*meanwhile)(void); /* what happens while it lets one in or shuts one out */
} door;

int group_door_open(struct group_door **out, const struct port *p, const struct device_string *d, const struct log *log)
{
	*out = &door;
	return 0;
}

void group_door_close(struct group_door *g)
{
}

static unsigned find_in_door(const struct gid *group)
{
	unsigned i = 0;
	while (i < door.n && !gid_is_equal(&door.in[i], group))
		i++;
	return i;
}

static void happen(void)
{
	void (*meanwhile)(void) = door.meanwhile;
	door.meanwhile = NULL;
	if (meanwhile)
		meanwhile();
}

int group_door_let_in(struct group_door *g, const struct gid *group)
{
	if (door.is_wide)
		return 0;
	assert_int_equal(find_in_door(group), door.n); /* once */
	door.tries++;
	happen();
	if (door.n == door.room)
		return -ENOSPC;
	door.in[door.n++] = *group;
	return 0;
}

void group_door_shut_out(struct group_door *g, const struct gid *group)
{
	unsigned i = find_in_door(group);
	assert_true(i < door.n);
	happen();
	door.in[i] = door.in[--door.n];
}

static bool is_in(const char *group)
{
	struct gid g = gid_of(group);
	return find_in_door(&g) < door.n;
}

/* ---- a table with its reporting core ---- */

#define EVERY_HOST 2u /* groups that are always in */

static struct multicast *m;
static struct host reporter;
static unsigned lines; /* of the log */
static char line[256];

static void keep_line(void *arg, enum log_level level, const char *text)
{
	lines++;
	snprintf(line, sizeof(line), "%s", text);
}

static void begin(bool is_shared, unsigned room)
{
	static const struct log log = { .sink = keep_line, .level = LOG_DEBUG };
	static const struct port port = { .text = "a port" };
	const struct device_string device = { .ip_from_kernel = is_shared };
	door = (struct group_door){ .room = room };
	lines = 0;
	host_init(&reporter, 1, (struct addr_config){ .max_groups = MULTICAST_ENTRIES_MAX });
	assert_int_equal(multicast_open(&m, &port, &device, &log), 0);
	multicast_settle(m);
	assert_int_equal(door.n, is_shared ? 0 : EVERY_HOST);
}

static void end(void)
{
	multicast_close(m);
	host_free(&reporter);
}

static void tell(void)
{
	for (unsigned i = 0; i < 20; i++)
		multicast_tell(m, reporter.a, now);
}

static bool is_told(const char *group)
{
	struct gid g = gid_of(group);
	int err = addr_group_join(reporter.a, &g, now);
	if (!err)
		addr_group_leave(reporter.a, &g, now);
	return err == -EEXIST;
}

static int change(const char *group, bool is_joined)
{
	struct gid g = gid_of(group);
	return multicast_on_group(m, &g, is_joined);
}

static void join(const char *group)
{
	assert_int_equal(change(group, true), 0);
}

static void leave(const char *group)
{
	assert_int_equal(change(group, false), 0);
}

static void own(const char *address, bool is_ours)
{
	struct gid g = gid_of(address);
	assert_int_equal(multicast_on_address(m, &g, is_ours), 0);
}

static void expect(const char *group, bool is_there, bool is_reported)
{
	multicast_settle(m);
	tell();
	assert_int_equal(is_in(group), is_there);
	assert_int_equal(is_told(group), is_reported);
}

static struct multicast_stats stats(void)
{
	struct multicast_stats s;
	multicast_stats(m, &s);
	return s;
}

/* ---- who wants it ---- */

static void test_one_group_of_many_cores(void **state)
{
	static const char *const groups[] = { "239.1.2.3", "ff15::1" };
	for (unsigned is_shared = 0; is_shared < 2; is_shared++) {
		begin(is_shared, DOOR_MAX);
		for (unsigned k = 0; k < 2; k++) {
			join(groups[k]);
			expect(groups[k], true, !is_shared);
			join(groups[k]); /* another core */
			leave(groups[k]);
			expect(groups[k], true, !is_shared);
			assert_int_equal(stats().groups, 1);
			leave(groups[k]);
			assert_int_equal(stats().groups, 0);
			expect(groups[k], false, false);
			leave(groups[k]); /* it is not there */
			join(groups[k]);
			leave(groups[k]); /* before anybody looked */
			expect(groups[k], false, false);
		}
		assert_int_equal(door.tries, 2 + (is_shared ? 0 : EVERY_HOST));
		end();
	}
}

/* RFC 4861, 7.2.1; RFC 3810, 5: neighbours look for us in the group of the last 24 bits. */
static void test_groups_of_addresses(void **state)
{
	begin(false, DOOR_MAX);
	assert_true(is_in("224.0.0.1") && is_in("ff02::1"));
	own("fd00::12:3456", true);
	own("fd00::12:3456", true); /* on another core */
	own("fe80::ab12:3456", true); /* which has the same group */
	own("10.0.0.1", true);
	expect("ff02::1:ff12:3456", true, true);
	assert_int_equal(door.n, EVERY_HOST + 1);
	assert_int_equal(stats().groups, 0);
	own("fd00::12:3456", false);
	own("fd00::12:3456", false);
	expect("ff02::1:ff12:3456", true, true);
	join("ff02::1:ff12:3456"); /* a QP may, too */
	own("fe80::ab12:3456", false);
	own("10.0.0.1", false);
	expect("ff02::1:ff12:3456", true, true);
	leave("ff02::1:ff12:3456");
	expect("ff02::1:ff12:3456", false, false);
	join("ff02::1"); /* every host is in it, and hears datagrams there too */
	leave("ff02::1");
	expect("ff02::1", true, true); /* addr knows that of this one nobody is told */
	end();
	begin(true, DOOR_MAX);
	own("fd00::12:3456", true); /* the kernel's business */
	expect("ff02::1:ff12:3456", false, false);
	own("fd00::12:3456", false);
	end();
}

static void test_limits(void **state)
{
	char text[32];
	begin(false, DOOR_MAX);
	for (unsigned i = 0; i < MULTICAST_GROUPS_MAX; i++) {
		snprintf(text, sizeof(text), "239.0.%u.%u", i >> 8, i & 255);
		join(text);
	}
	assert_int_equal(change("239.9.9.9", true), -ENOSPC);
	join("239.0.0.1"); /* which is there */
	own("fd00::1", true);
	leave("239.0.0.2");
	join("239.9.9.9");
	expect("239.9.9.9", true, true);
	assert_int_equal(door.n, EVERY_HOST + MULTICAST_GROUPS_MAX + 1);
	assert_int_equal(stats().groups, MULTICAST_GROUPS_MAX);
	/* of what has been left nothing stays */
	leave("239.9.9.9");
	for (unsigned i = 0; i < 2 * MULTICAST_ENTRIES_MAX; i++) {
		snprintf(text, sizeof(text), "239.1.%u.%u", i >> 8, i & 255);
		join(text);
		multicast_settle(m);
		multicast_tell(m, reporter.a, now);
		leave(text);
	}
	end();
}

/* ---- what the port refuses ---- */

static void test_refused(void **state)
{
	begin(false, EVERY_HOST + 2);
	join("239.0.0.1");
	join("239.0.0.2");
	join("239.0.0.3");
	expect("239.0.0.3", false, true);
	assert_int_equal(lines, 1);
	assert_non_null(strstr(line, "239.0.0.3"));
	assert_int_equal(stats().refused, 1);
	/* a change that frees nothing is no reason to try again, nor to say it again */
	for (unsigned i = 0; i < 5; i++) {
		join("239.0.0.1");
		own("10.0.0.1", true);
		join("ff02::1");
		leave("ff02::1");
		multicast_settle(m);
	}
	assert_int_equal(stats().refused, 1);
	join("239.0.0.4");
	expect("239.0.0.4", false, true);
	assert_int_equal(lines, 2);
	assert_int_equal(stats().refused, 2);
	/* one place becomes free: each is tried once, one gets it */
	leave("239.0.0.2");
	expect("239.0.0.3", true, true);
	expect("239.0.0.4", false, true);
	assert_int_equal(stats().refused, 3);
	assert_int_equal(lines, 2);
	/* it was left while it was outside */
	leave("239.0.0.4");
	expect("239.0.0.4", false, false);
	leave("239.0.0.3");
	expect("239.0.0.3", false, false);
	assert_int_equal(stats().refused, 3);
	/* one that is let in at last and refused again later is told again */
	join("239.0.0.4");
	expect("239.0.0.4", true, true);
	assert_int_equal(lines, 2);
	join("239.0.0.5");
	expect("239.0.0.5", false, true);
	assert_int_equal(lines, 3);
	/* whoever leaves and comes back all the time does not fill the log */
	for (unsigned i = 0; i < 1000; i++) {
		leave("239.0.0.5");
		join("239.0.0.5");
		multicast_settle(m);
	}
	assert_true(lines < 30);
	end();
}

/* ---- cores do not wait ---- */

static void change_meanwhile(void)
{
	leave("239.0.0.1"); /* the one that is being let in */
	own("fd00::1", true);
	for (unsigned i = 0; i < 5; i++)
		multicast_tell(m, reporter.a, now);
	join("239.0.0.2");
	assert_int_equal(stats().groups, 1);
}

static void come_back_meanwhile(void)
{
	join("239.0.0.2"); /* the one that is being shut out */
}

static void test_changes_while_the_port_is_busy(void **state)
{
	begin(false, DOOR_MAX);
	join("239.0.0.1");
	door.meanwhile = change_meanwhile;
	multicast_settle(m);
	assert_null(door.meanwhile);
	expect("239.0.0.1", false, false);
	expect("239.0.0.2", true, true);
	expect("ff02::1:ff00:1", true, true);
	leave("239.0.0.2");
	door.meanwhile = come_back_meanwhile;
	multicast_settle(m);
	assert_null(door.meanwhile);
	expect("239.0.0.2", true, true);
	/* and when it is refused */
	door.room = door.n;
	join("239.0.0.1");
	door.meanwhile = change_meanwhile;
	multicast_settle(m);
	assert_null(door.meanwhile);
	expect("239.0.0.1", false, false);
	end();
}

static uint64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The least that letting `n` more groups in, each as soon as it is there, has cost for one. */
static double cost_of(unsigned there, unsigned n)
{
	double least = 1e9;
	for (unsigned round = 0; round < 20; round++) {
		struct gid g = gid_of("ff15::");
		begin(true, 0);
		door.is_wide = true;
		for (unsigned i = 0; i < there + n; i++) {
			memcpy(g.b + 12, &i, 4);
			if (i == there)
				multicast_settle(m);
			assert_int_equal(multicast_on_group(m, &g, true), 0);
		}
		uint64_t start = cpu_ns();
		multicast_settle(m);
		double cost = (double)(cpu_ns() - start) / n;
		least = cost < least ? cost : least;
		end();
	}
	return least;
}

/* What a thread does under the lock does not grow with the table: settling one costs the same beside a thousand. */
static void test_cost_is_that_of_what_changed(void **state)
{
	double alone = cost_of(0, 16), beside = cost_of(1000, 16);
	print_message("settling a group: %.0f ns alone, %.0f ns beside 1000 others\n", alone, beside);
	assert_true(beside < 3 * alone);
}

/* ---- all at once ---- */

#define THREADS 4u
#define POOL 24u

static struct gid pool_group(unsigned i)
{
	struct gid g = gid_of("ff15::5:0");
	g.b[15] = (uint8_t)i;
	return g;
}

/* A core: comes to groups and leaves them, at last all. */
static void *be_core(void *arg)
{
	struct rng r;
	bool is_member[POOL] = { false };
	rng_seed(&r, (uintptr_t)arg);
	for (unsigned i = 0; i < 20000 + POOL; i++) {
		unsigned k = i < 20000 ? (unsigned)rng_below(&r, POOL) : i - 20000;
		struct gid g = pool_group(k);
		if (i < 20000 || is_member[k]) {
			assert_int_equal(multicast_on_group(m, &g, !is_member[k]), 0);
			is_member[k] = !is_member[k];
		}
		if (!rng_below(&r, 4))
			multicast_settle(m);
	}
	multicast_settle(m);
	return NULL;
}

static void test_many_threads(void **state)
{
	pthread_t thread[THREADS];
	begin(false, EVERY_HOST + POOL / 2);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, be_core, (void *)(uintptr_t)(i + 1)), 0);
	for (unsigned i = 0; i < 2000; i++)
		multicast_tell(m, reporter.a, now);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	tell();
	assert_int_equal(stats().groups, 0);
	assert_int_equal(door.n, EVERY_HOST);
	for (unsigned i = 0; i < POOL; i++) {
		char text[GID_TEXT_MAX];
		struct gid g = pool_group(i);
		assert_false(is_told(gid_format(&g, text)));
	}
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_group_of_many_cores),
		cmocka_unit_test(test_groups_of_addresses),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_changes_while_the_port_is_busy),
		cmocka_unit_test(test_cost_is_that_of_what_changed),
		cmocka_unit_test(test_many_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
