/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine that shares an interface with the kernel learns what the kernel does with addresses and routes while it runs, also when the news of it was lost. Needs root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "addr.h"
#include "engine_core.h"
#include "netns.h"
#include "talker.h"

#define PATIENCE 5 /* seconds */

static int try_ah(const struct talker *t, uint32_t index, const char *to, struct uroce_ah **ah)
{
	struct uroce_av av = { .sgid_index = index, .dgid = talker_gid(to) };
	return uroce_ah_create(t->pd, &av, ah);
}

/* AHs whose way leads there. The engine is inline, so its state may be looked at. */
static uint32_t users_of(const struct talker *t, const char *next_hop)
{
	static struct addr_neighbour list[256];
	struct uroce_gid gid = talker_gid(next_hop);
	uint32_t n = addr_neighbours(core_addr(engine_core_stack(talker_core(t))), 0, list, 256);
	for (uint32_t i = 0; i < n && i < 256; i++)
		if (!memcmp(list[i].gid.b, gid.raw, sizeof(gid.raw)))
			return list[i].users;
	return 0;
}

#define NONE UINT32_MAX

static uint32_t index_of(const struct talker *t, const char *text)
{
	struct uroce_device_attr attr;
	struct uroce_gid had, wanted = talker_gid(text);
	CHECK(!uroce_query_device(t->ctx, &attr));
	for (uint32_t i = 0; i < attr.gid_slots; i++)
		if (!uroce_query_gid(t->ctx, i, &had, NULL) && !memcmp(&had, &wanted, sizeof(had)))
			return i;
	return NONE;
}

static bool has_address(const struct talker *t, const char *text)
{
	return index_of(t, text) != NONE;
}

#define AWAIT(t, condition)                                                                        \
	do {                                                                                       \
		time_t end = time(NULL) + PATIENCE;                                                \
		while (!(condition) && time(NULL) < end) {                                         \
			uroce_engine_poll((t)->ctx);                                               \
			usleep(1000);                                                              \
		}                                                                                  \
		CHECK(condition);                                                                  \
	} while (0)

static bool is_routed(const struct talker *t, uint32_t index, const char *to)
{
	struct uroce_ah *ah;
	int err = try_ah(t, index, to, &ah);
	CHECK(!err || err == -ENETUNREACH);
	if (!err)
		CHECK(!uroce_ah_destroy(ah));
	return !err;
}

static void open_talker(struct talker *t)
{
	netns_enter(0);
	CHECK(!netns_run("ip link set u0 addrgenmode none && ip -6 addr flush dev u0 scope link"));
	talker_open(t, "inline:net_af_packet0,iface=u0", false);
}

/* An AH goes with its route, wherever that leads. */
static void change_routes(void *arg)
{
	static const struct {
		uint32_t index;
		const char *network, *host, *gateway[2];
	} rows[] = { { 0, "10.7.0.0/24", "10.7.0.2", { "10.2.0.2", "10.2.0.3" } }, { 1, "fd07::/64", "fd07::2", { "fd02::2", "fd02::3" } }, { 0, "default", "10.8.0.1", { "10.2.0.2", "10.2.0.3" } } };
	static struct talker t;
	struct uroce_ah *ah;
	open_talker(&t);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *network = rows[i].network, *host = rows[i].host, *const *gateway = rows[i].gateway;
		CHECK(!is_routed(&t, rows[i].index, host));
		CHECK(!netns_run("ip route add %s via %s dev u0", network, gateway[0]));
		AWAIT(&t, is_routed(&t, rows[i].index, host));
		CHECK(!try_ah(&t, rows[i].index, host, &ah) && users_of(&t, gateway[0]) == 1);
		CHECK(!netns_run("ip route replace %s via %s dev u0", network, gateway[1]));
		AWAIT(&t, users_of(&t, gateway[1]) == 1 && !users_of(&t, gateway[0]));
		CHECK(!netns_run("ip route del %s", network));
		AWAIT(&t, !is_routed(&t, rows[i].index, host));
		CHECK(!users_of(&t, gateway[1]));
		CHECK(!netns_run("ip route add %s via %s dev u0", network, gateway[0]));
		AWAIT(&t, users_of(&t, gateway[0]) == 1);
		CHECK(!netns_run("ip route replace %s dev lo", network)); /* out of another interface: there is no word of ours */
		AWAIT(&t, !users_of(&t, gateway[0]));
		CHECK(!netns_run("ip route del %s dev lo", network));
		CHECK(!uroce_ah_destroy(ah));
	}
	talker_close(&t);
}

static void test_routes_come_change_and_go(void **state)
{
	netns_make_pair(1500);
	assert_int_equal(side_child(change_routes, NULL), 0);
}

/* Of several to one network the kernel's choice, and the next one when that is gone. */
static void prefer_routes(void *arg)
{
	static struct talker t;
	struct uroce_ah *ah;
	open_talker(&t);
	CHECK(!netns_run("ip route add 10.7.0.0/24 via 10.2.0.3 dev u0 metric 20"));
	AWAIT(&t, is_routed(&t, 0, "10.7.0.2"));
	CHECK(!try_ah(&t, 0, "10.7.0.2", &ah) && users_of(&t, "10.2.0.3") == 1);
	CHECK(!netns_run("ip route add 10.7.0.0/24 via 10.2.0.2 dev u0 metric 10"));
	AWAIT(&t, users_of(&t, "10.2.0.2") == 1);
	CHECK(!netns_run("ip route del 10.7.0.0/24 metric 10"));
	AWAIT(&t, users_of(&t, "10.2.0.3") == 1);
	CHECK(!netns_run("ip link set u0 down")); /* takes it along, without a word of it */
	AWAIT(&t, !users_of(&t, "10.2.0.3"));
	CHECK(!netns_run("ip link set u0 up"));
	CHECK(!is_routed(&t, 0, "10.7.0.2"));
	CHECK(!uroce_ah_destroy(ah));
	talker_close(&t);
}

static void test_the_kernels_choice(void **state)
{
	netns_make_pair(1500);
	assert_int_equal(side_child(prefer_routes, NULL), 0);
}

#define ROUTES "for i in $(seq 0 599); do echo route %s 10.$((20 + i / 256)).$((i %% 256)).0/24 via 10.2.0.2 dev u0; done | ip -batch -"

/* More than are used: the first ones are, and the others when there is room. */
static void add_many_routes(void *arg)
{
	static struct talker t;
	open_talker(&t);
	CHECK(!netns_run(ROUTES, "add"));
	AWAIT(&t, is_routed(&t, 0, "10.20.0.2") && is_routed(&t, 0, "10.21.200.2"));
	CHECK(!is_routed(&t, 0, "10.22.87.2"));
	CHECK(!netns_run("for i in $(seq 0 99); do echo route del 10.20.$i.0/24; done | ip -batch -"));
	AWAIT(&t, is_routed(&t, 0, "10.22.87.2") && !is_routed(&t, 0, "10.20.99.2"));
	talker_close(&t);
}

static void test_more_routes_than_are_used(void **state)
{
	netns_make_pair(1500);
	assert_int_equal(side_child(add_many_routes, NULL), 0);
}

/* While nobody listens more happens than the socket holds; what was last is lost. */
static void lose_news(void *arg)
{
	static struct talker t;
	open_talker(&t);
	CHECK(!netns_run("ip addr add 10.9.0.1/24 dev u0 && ip route add 10.7.0.0/24 via 10.2.0.2 dev u0"));
	AWAIT(&t, has_address(&t, "10.9.0.1") && is_routed(&t, 0, "10.7.0.2"));
	CHECK(!netns_run("for i in $(seq 1000); do echo neigh replace 10.2.0.200 lladdr 02:00:00:00:00:0$((i %% 8)) nud permanent dev u0; done | ip -batch -"));
	CHECK(!netns_run("ip route del 10.7.0.0/24 && ip addr del 10.9.0.1/24 dev u0 && ip addr add 10.9.1.1/24 dev u0 && ip route add 10.7.1.0/24 via 10.2.0.3 dev u0"));
	AWAIT(&t, has_address(&t, "10.9.1.1") && !has_address(&t, "10.9.0.1"));
	AWAIT(&t, is_routed(&t, 0, "10.7.1.2") && !is_routed(&t, 0, "10.7.0.2"));
	CHECK(has_address(&t, "10.2.0.1") && has_address(&t, "fd02::1"));
	talker_close(&t);
}

static void test_lost_news(void **state)
{
	netns_make_pair(1500);
	assert_int_equal(side_child(lose_news, NULL), 0);
}

/* On both cores, in one place. */
static uint32_t await_address(struct talker *t, const char *text)
{
	AWAIT(&t[0], index_of(&t[0], text) != NONE && index_of(&t[1], text) != NONE);
	CHECK(index_of(&t[0], text) == index_of(&t[1], text));
	return index_of(&t[0], text);
}

/* One core holds an address that went, the other does not: what comes gets a slot that is free on both, and what comes back its own. */
static void change_two_cores(void *arg)
{
	static struct talker t[2];
	struct uroce_ah *held;
	netns_enter(0);
	CHECK(!netns_run("ip link set u0 addrgenmode none && ip -6 addr flush dev u0 scope link"));
	for (unsigned i = 0; i < 2; i++) {
		talker_open(&t[i], "embedded:net_af_packet0,iface=u0,cores=2", false);
		CHECK((t[i].qpn & 15) == i);
	}
	for (unsigned holder = 0; holder < 2; holder++) {
		CHECK(!netns_run("ip addr add 10.9.0.1/24 dev u0"));
		uint32_t first = await_address(t, "10.9.0.1");
		CHECK(!try_ah(&t[holder], first, "10.9.0.2", &held));
		CHECK(!netns_run("ip addr del 10.9.0.1/24 dev u0 && ip addr add 10.9.1.1/24 dev u0"));
		CHECK(await_address(t, "10.9.1.1") != first);
		CHECK(!netns_run("ip addr add 10.9.0.1/24 dev u0"));
		CHECK(await_address(t, "10.9.0.1") == first);
		CHECK(!netns_run("ip addr del 10.9.0.1/24 dev u0"));
		AWAIT(&t[0], index_of(&t[0], "10.9.0.1") == NONE && index_of(&t[1], "10.9.0.1") == NONE);
		CHECK(!uroce_ah_destroy(held));
		CHECK(!netns_run("ip addr del 10.9.1.1/24 dev u0 && ip addr add 10.9.2.1/24 dev u0")); /* the slot is free on both */
		CHECK(await_address(t, "10.9.2.1") == first);
		CHECK(!netns_run("ip addr del 10.9.2.1/24 dev u0"));
		AWAIT(&t[0], index_of(&t[0], "10.9.2.1") == NONE && index_of(&t[1], "10.9.2.1") == NONE);
	}
	for (unsigned i = 0; i < 2; i++)
		talker_close(&t[i]);
}

static void test_all_cores_have_the_same_table(void **state)
{
	netns_make_pair(1500);
	assert_int_equal(side_child(change_two_cores, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_routes_come_change_and_go),
		cmocka_unit_test(test_the_kernels_choice),
		cmocka_unit_test(test_more_routes_than_are_used),
		cmocka_unit_test(test_lost_news),
		cmocka_unit_test(test_all_cores_have_the_same_table),
	};
	return cmocka_run_group_tests(tests, netns_make, netns_drop);
}
