/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "addr_hosts.h"
#include "random.h"
#include "route.h"

static struct route_table routes;
static struct gid_table gids;

static int set_up(void **state)
{
	uint32_t index;
	struct gid g4 = gid_of("10.0.0.1"), g6 = gid_of("fd00::1");
	routes = (struct route_table){ 0 };
	return gid_table_init(&gids, 8) || gid_table_add(&gids, &g4, VLAN_NONE, 24, &index) || gid_table_add(&gids, &g6, VLAN_NONE, 64, &index);
}

static int tear_down(void **state)
{
	route_table_free(&routes);
	gid_table_free(&gids);
	return 0;
}

static int add(const char *network, unsigned prefix_len, const char *gateway)
{
	struct gid n = gid_of(network), g = gid_of(gateway);
	return route_add(&routes, &n, prefix_len, &g);
}

static int del(const char *network, unsigned prefix_len)
{
	struct gid n = gid_of(network);
	return route_remove(&routes, &n, prefix_len);
}

/* next_hop NULL: nowhere. */
static void check(const char *dgid, const char *next_hop)
{
	struct gid d = gid_of(dgid), found;
	bool is_found = route_find(&routes, &gids, &d, VLAN_NONE, &found);
	assert_int_equal(is_found, next_hop != NULL);
	if (next_hop) {
		struct gid want = gid_of(next_hop);
		assert_true(gid_is_equal(&found, &want));
	}
}

static void test_without_routes_only_the_link(void **state)
{
	check("10.0.0.255", "10.0.0.255");
	check("10.0.1.0", NULL);
	check("fd00::ffff", "fd00::ffff");
	check("fd00:0:0:1::1", NULL);
	check("fe80::9", "fe80::9");
}

static void test_longest_prefix_wins(void **state)
{
	assert_int_equal(add("0.0.0.0", 0, "10.0.0.254"), 0);
	check("8.8.8.8", "10.0.0.254");
	check("10.0.0.77", "10.0.0.77"); /* on link is longer */
	check("2001:db8::1", NULL);
	assert_int_equal(add("8.0.0.0", 8, "10.0.0.253"), 0);
	assert_int_equal(add("8.8.8.0", 24, "10.0.0.252"), 0);
	assert_int_equal(add("8.8.0.0", 16, "0.0.0.0"), 0); /* on link by a route */
	assert_int_equal(add("10.0.0.128", 25, "10.0.0.251"), 0);
	check("8.8.8.8", "10.0.0.252");
	check("8.8.9.1", "8.8.9.1");
	check("8.9.9.1", "10.0.0.253");
	check("9.9.9.1", "10.0.0.254");
	check("10.0.0.127", "10.0.0.127");
	check("10.0.0.129", "10.0.0.251"); /* longer than the link's network */
	assert_int_equal(del("8.8.8.0", 24), 0);
	check("8.8.8.8", "8.8.8.8");
	assert_int_equal(del("8.8.0.0", 16), 0);
	check("8.8.8.8", "10.0.0.253");
	assert_int_equal(del("0.0.0.0", 0), 0);
	check("9.9.9.1", NULL);

	assert_int_equal(add("::", 0, "fe80::1"), 0);
	assert_int_equal(add("2001:db8::", 33, "fd00::fe"), 0);
	check("2001:db8:7fff::1", "fd00::fe");
	check("2001:db8:8000::1", "fe80::1");
	check("9.9.9.1", NULL); /* ::/0 holds no IPv4 */
	check("fe80::77", "fe80::77");
}

/* A route of the same length as the link's own network does not hide the link. */
static void test_the_link_wins_over_a_route_of_its_length(void **state)
{
	assert_int_equal(add("10.0.0.0", 24, "10.0.0.254"), 0);
	check("10.0.0.9", "10.0.0.9");
}

static void test_what_is_refused(void **state)
{
	assert_int_equal(add("10.0.0.0", 33, "0.0.0.0"), -EINVAL);
	assert_int_equal(add("fd00::", 129, "::"), -EINVAL);
	assert_int_equal(add("224.0.0.0", 4, "10.0.0.2"), -EINVAL);
	assert_int_equal(add("ff00::", 8, "fd00::2"), -EINVAL);
	assert_int_equal(add("9.0.0.0", 8, "fd00::2"), -EINVAL);
	assert_int_equal(add("fd01::", 64, "10.0.0.2"), -EINVAL);
	assert_int_equal(add("9.0.0.0", 8, "224.0.0.1"), -EINVAL);
	assert_int_equal(add("9.0.0.0", 8, "255.255.255.255"), -EINVAL);
	assert_int_equal(del("9.0.0.0", 8), -ENOENT);
	assert_int_equal(del("9.0.0.0", 33), -EINVAL);
	/* Bits behind the prefix do not count; :: and 0.0.0.0 as a gateway both mean none. */
	assert_int_equal(add("9.1.2.3", 8, "::"), 0);
	assert_int_equal(add("9.0.0.0", 8, "10.0.0.2"), -EEXIST);
	check("9.200.0.1", "9.200.0.1");
	assert_int_equal(del("9.9.9.9", 7), -ENOENT);
	assert_int_equal(del("9.9.9.9", 8), 0);
	assert_int_equal(routes.n, 0);
}

static void test_random_against_a_plain_search(void **state)
{
	struct rng r;
	rng_seed(&r, 5);
	struct { struct gid network, gateway; unsigned bits; bool is_there; } mine[64] = { 0 };
	for (unsigned step = 0; step < 3000; step++) {
		unsigned i = (unsigned)rng_below(&r, 64);
		if (mine[i].is_there) {
			assert_int_equal(route_remove(&routes, &mine[i].network, mine[i].bits), 0);
			mine[i].is_there = false;
		} else {
			uint8_t n[4] = { 20, (uint8_t)rng_below(&r, 4), (uint8_t)rng_below(&r, 4), (uint8_t)rng_below(&r, 256) }, g[4] = { 10, 0, 0, (uint8_t)(2 + i) };
			mine[i].network = gid_from_ip4(n);
			mine[i].gateway = gid_from_ip4(g);
			mine[i].bits = (unsigned)rng_below(&r, 33);
			int err = route_add(&routes, &mine[i].network, mine[i].bits, &mine[i].gateway);
			assert_true(err == 0 || err == -EEXIST);
			mine[i].is_there = err == 0;
		}
		uint8_t d[4] = { 20, (uint8_t)rng_below(&r, 4), (uint8_t)rng_below(&r, 4), (uint8_t)rng_below(&r, 256) };
		struct gid dgid = gid_from_ip4(d), found;
		int best = -1;
		for (int k = 0; k < 64; k++)
			if (mine[k].is_there && gid_is_within(&dgid, &mine[k].network, 96 + mine[k].bits) && (best < 0 || mine[k].bits > mine[best].bits))
				best = k;
		assert_int_equal(route_find(&routes, &gids, &dgid, VLAN_NONE, &found), best >= 0);
		if (best >= 0)
			assert_true(gid_is_equal(&found, &mine[best].gateway));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_without_routes_only_the_link, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_longest_prefix_wins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_link_wins_over_a_route_of_its_length, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_random_against_a_plain_search, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
