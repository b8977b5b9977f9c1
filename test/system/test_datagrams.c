/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams in engines with several cores: to one QP, whichever core it is on and on whichever queue the frame comes, and to groups with members on several cores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "multicast.h"
#include "mesh.h"
#include "talker.h"

#define SIDE0 "embedded:net_ring,link=t,side=0,ip=10.1.0.1/24,ip=fd01::1/64"
#define SIDE1 "embedded:net_ring,link=t,side=1,ip=10.1.0.2/24,ip=fd01::2/64"
#define CORES 3u

static const char *const groups[] = { "239.1.2.3", "ff15::1:2:3" };

static void open_all(struct talker *t, unsigned n, const char *device)
{
	for (unsigned i = 0; i < n; i++) {
		talker_open(&t[i], device, false);
		CHECK((t[i].qpn & 15) == i % CORES);
	}
}

static void close_all(struct talker *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		talker_close(&t[i]);
}

static uint64_t sum_drops(const struct talker *t, enum drop d)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < CORES; i++)
		sum += core_drops(engine_core_stack(engine_core_at(t->engine, i)))->count[d];
	return sum;
}

static void expect_quiet(struct talker *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		CHECK(!talker_listen(&t[i], "", i ? 0 : 50));
}

/* From each core to each, in one engine: nothing goes to the wire. */
static void talk_within(void *arg)
{
	static struct talker t[2 * CORES];
	char text[32];
	open_all(t, 2 * CORES, SIDE0 ",cores=3");
	for (unsigned round = 0; round < 2; round++)
		for (unsigned from = 0; from < CORES; from++)
			for (unsigned k = 0; k < 2; k++) {
				struct uroce_ah *ah = talker_ah(&t[from], k ? "fd01::1" : "10.1.0.1");
				for (unsigned to = CORES; to < 2 * CORES; to++) {
					snprintf(text, sizeof(text), "%u from %u to %u", round, from, to);
					talker_send(&t[from], ah, t[to].qpn, text);
					CHECK(talker_hear(&t[to], text) == t[from].qpn);
				}
				CHECK(!uroce_ah_destroy(ah));
			}
	mesh_check_handed_over(t[0].engine);
	for (unsigned i = 0; i < CORES; i++) {
		struct core_stats s;
		core_stats(engine_core_stack(engine_core_at(t[0].engine, i)), &s);
		CHECK(s.loopback_packets > 0 && s.tx_packets == s.group_reports);
	}
	expect_quiet(t, 2 * CORES);
	close_all(t, 2 * CORES);
}

static void test_loopback_between_cores(void **state)
{
	assert_int_equal(side_child(talk_within, NULL), 0);
}

/* The ring link puts what queue i sends on queue i of the other end, whichever core the QP is on. */
static void talk_across(void *arg)
{
	static struct talker a[CORES], b[CORES];
	char text[32];
	open_all(a, CORES, SIDE0 ",cores=3");
	open_all(b, CORES, SIDE1 ",cores=3");
	for (unsigned from = 0; from < CORES; from++) {
		struct uroce_ah *ah = talker_ah(&a[from], "10.1.0.2");
		for (unsigned to = 0; to < CORES; to++) {
			snprintf(text, sizeof(text), "from %u to %u", from, to);
			talker_send(&a[from], ah, b[to].qpn, text);
			CHECK(talker_hear(&b[to], text) == a[from].qpn);
		}
	}
	mesh_check_handed_over(b[0].engine);
	CHECK(!sum_drops(b, DROP_QP_UNKNOWN) && !sum_drops(b, DROP_ICRC));
	expect_quiet(b, CORES);
	close_all(a, CORES);
	close_all(b, CORES);
}

static void test_on_the_queue_of_another_core(void **state)
{
	assert_int_equal(side_child(talk_across, NULL), 0);
}

/* Members on every core, and the sender on each in turn; each member gets one copy, others none; so do those of the other end. */
static void talk_to_groups(void *arg)
{
	static struct talker a[2 * CORES], b[2 * CORES];
	char text[32];
	open_all(a, 2 * CORES, SIDE0 ",cores=3");
	open_all(b, 2 * CORES, SIDE1 ",cores=3");
	for (unsigned k = 0; k < 2; k++) {
		for (unsigned i = 0; i < CORES; i++)
			CHECK(!talker_attach(&a[i], groups[k]) && !talker_attach(&b[i], groups[k]));
		for (unsigned from = 0; from < 2 * CORES; from++) {
			struct uroce_ah *ah = talker_ah(&a[from], groups[k]);
			snprintf(text, sizeof(text), "to all from %u", from);
			talker_send(&a[from], ah, UROCE_QPN_MULTICAST, text);
			for (unsigned i = 0; i < CORES; i++)
				CHECK(talker_hear(&a[i], text) == a[from].qpn && talker_hear(&b[i], text) == a[from].qpn);
			CHECK(!uroce_ah_destroy(ah));
		}
		expect_quiet(a, 2 * CORES);
		expect_quiet(b, 2 * CORES);
		CHECK(!sum_drops(a, DROP_GROUP_UNKNOWN) && sum_drops(b, DROP_GROUP_UNKNOWN) == k); /* what is sent to nobody at last */
		/* on one core only, not the one where the frame comes */
		for (unsigned i = 0; i < CORES; i++)
			CHECK(!talker_detach(&a[i], groups[k]) && (i == 2 || !talker_detach(&b[i], groups[k])));
		struct uroce_ah *ah = talker_ah(&a[0], groups[k]);
		talker_send(&a[0], ah, UROCE_QPN_MULTICAST, "to one");
		CHECK(talker_hear(&b[2], "to one") == a[0].qpn);
		expect_quiet(a, 2 * CORES);
		expect_quiet(b, 2 * CORES);
		CHECK(!talker_detach(&b[2], groups[k]));
		talker_send(&a[0], ah, UROCE_QPN_MULTICAST, "to none");
		for (unsigned ms = 0; sum_drops(b, DROP_GROUP_UNKNOWN) != k + 1; ms++, usleep(1000))
			CHECK(ms < 20000);
		expect_quiet(b, 2 * CORES);
	}
	CHECK(!mesh_sum_stats(a[0].engine).handed_over_dropped && !mesh_sum_stats(b[0].engine).handed_over_dropped);
	close_all(a, 2 * CORES);
	close_all(b, 2 * CORES);
}

/* known-bugs: 30 */
static void test_groups_over_cores(void **state)
{
	assert_int_equal(side_child(talk_to_groups, NULL), 0);
}

/* The engine's groups are the union of its cores'. */
static void count_groups(void *arg)
{
	static struct talker t[CORES];
	struct multicast_stats s;
	open_all(t, CORES, SIDE0 ",cores=3");
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < CORES; i++)
			CHECK(!talker_attach(&t[i], groups[0]) && !talker_attach(&t[i], groups[1]));
		multicast_stats(engine_multicast(t[0].engine), &s);
		CHECK(s.groups == 2 && !s.refused);
		for (unsigned i = 0; i < CORES; i++) {
			multicast_stats(engine_multicast(t[0].engine), &s);
			CHECK(s.groups == 2);
			CHECK(!talker_detach(&t[i], groups[0]) && !talker_detach(&t[i], groups[1]));
		}
		multicast_stats(engine_multicast(t[0].engine), &s);
		CHECK(s.groups == 0);
	}
	CHECK(!talker_attach(&t[1], groups[0]));
	struct uroce_context *ctx = t[1].ctx;
	uroce_close(ctx); /* without detaching */
	multicast_stats(engine_multicast(t[0].engine), &s);
	CHECK(s.groups == 0);
	talker_close(&t[0]);
	talker_close(&t[2]);
}

static void test_groups_of_an_engine(void **state)
{
	assert_int_equal(side_child(count_groups, NULL), 0);
}

/* One thread drives both ends. */
static void talk_inline(void *arg)
{
	static struct talker a, b;
	talker_open(&a, "inline:net_ring,link=t,side=0,ip=10.1.0.1/24", true);
	talker_open(&b, "inline:net_ring,link=t,side=1,ip=10.1.0.2/24", false);
	CHECK(!talker_attach(&a, groups[0]) && !talker_attach(&b, groups[0]));
	talker_send(&a, talker_ah(&a, groups[0]), UROCE_QPN_MULTICAST, "from a");
	talker_send(&b, talker_ah(&b, groups[0]), UROCE_QPN_MULTICAST, "from b");
	CHECK(talker_hear(&a, "from b") == b.qpn); /* not what it sent itself */
	CHECK(talker_hear(&b, "from a") == a.qpn);
	CHECK(talker_hear(&b, "from b") == b.qpn);
	talker_close(&a);
	talker_close(&b);
}

static void test_inline(void **state)
{
	assert_int_equal(side_child(talk_inline, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loopback_between_cores),
		cmocka_unit_test(test_on_the_queue_of_another_core),
		cmocka_unit_test(test_groups_over_cores),
		cmocka_unit_test(test_groups_of_an_engine),
		cmocka_unit_test(test_inline),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
