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

static const uint8_t stranger[6] = { 0x02, 0, 0, 0, 0, 0x99 };
static struct host x, y;
static unsigned changed;

static void on_changed(struct ah *ah)
{
	changed++;
}

static int set_up(void **state)
{
	changed = 0;
	host_init(&x, 1, (struct addr_config){ 0 });
	host_init(&y, 2, (struct addr_config){ 0 });
	host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	host_add(&x, "fd00::1", 42, 64);
	host_add(&y, "10.0.0.2", VLAN_NONE, 24);
	host_add(&y, "fd00::2", 42, 64);
	return 0;
}

static int tear_down(void **state)
{
	host_free(&x);
	host_free(&y);
	return 0;
}

static void test_what_is_refused(void **state)
{
	static const struct { uint32_t sgid_index; const char *dgid; int err; } cases[] = {
		{ 2, "10.0.0.2", -EINVAL }, { UINT32_MAX, "10.0.0.2", -EINVAL }, { 0, "fd00::2", -EINVAL }, { 1, "10.0.0.2", -EINVAL }, { 0, "224.0.0.1", -EINVAL },
		{ 1, "ff02::1", -EINVAL }, { 0, "0.0.0.0", -EINVAL }, { 0, "::", -EINVAL }, { 0, "255.255.255.255", -EINVAL }, { 0, "10.0.1.1", -ENETUNREACH },
		{ 1, "fd00:0:0:1::1", -ENETUNREACH },
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ah ah;
		memset(&ah, 0xff, sizeof(ah));
		assert_int_equal(host_open(&x, &ah, cases[i].sgid_index, cases[i].dgid, NULL), cases[i].err);
		ah_close(&ah); /* harmless */
	}
	ah_close(NULL);
	assert_int_equal(host_stats(&x).neighbours, 0);
}

static void test_the_template(void **state)
{
	static struct ah ah;
	struct ah_fields f = { .sgid_index = 0, .dgid = gid_of("10.0.0.2"), .traffic_class = 0x68, .hop_limit = 3, .udp_src_port = 0xd123 };
	assert_int_equal(ah_open(&ah, x.a, &f, NULL, now), 0);
	hosts_run(&x, &y, 0, 1);
	const uint8_t *b = ah.template.b;
	assert_int_equal(ah.template.len, 14 + 20 + 8);
	assert_memory_equal(b, y.mac, 6);
	assert_memory_equal(b + 6, x.mac, 6);
	assert_int_equal(get_be16(b + 12), 0x0800);
	assert_int_equal(b[14 + 1], 0x68);
	assert_int_equal(b[14 + 8], 3);
	assert_int_equal(get_be32(b + 14 + 12), 0x0a000001);
	assert_int_equal(get_be32(b + 14 + 16), 0x0a000002);
	assert_int_equal(get_be16(b + 34), 0xd123);
	ah_close(&ah);

	f = (struct ah_fields){ .sgid_index = 1, .dgid = gid_of("fd00::2"), .traffic_class = 0x68, .flow_label = 0xfff12345, .priority = 5, .udp_src_port = 0xd123 };
	assert_int_equal(ah_open(&ah, x.a, &f, NULL, now), 0);
	hosts_run(&x, &y, 0, 1);
	assert_int_equal(ah.template.len, 14 + 4 + 40 + 8);
	assert_memory_equal(b, y.mac, 6);
	assert_int_equal(get_be16(b + 12), 0x8100);
	assert_int_equal(get_be16(b + 14), 5 << 13 | 42);
	assert_int_equal(get_be32(b + 18), 0x66812345);
	assert_int_equal(b[18 + 7], 64);
	assert_int_equal(ah.vlan, 42);
	ah_close(&ah);
}

static void test_states_and_hooks(void **state)
{
	static struct ah ah;
	y.is_deaf = true;
	assert_int_equal(host_open(&x, &ah, 0, "10.0.0.2", on_changed), 0);
	assert_int_equal(ah.state, AH_RESOLVING);
	assert_int_equal(changed, 0);
	hosts_run(&x, &y, 480 * MS, 10 * MS);
	assert_int_equal(ah.state, AH_RESOLVING);
	hosts_run(&x, &y, 80 * MS, 10 * MS);
	assert_int_equal(ah.state, AH_UNREACHABLE);
	assert_int_equal(changed, 1);
	/* Asked again in the background without a change of state, ready when it answers. */
	hosts_run(&x, &y, SECOND + 200 * MS, 10 * MS);
	assert_int_equal(ah.state, AH_UNREACHABLE);
	assert_int_equal(changed, 1);
	y.is_deaf = false;
	hosts_run(&x, &y, 200 * MS, 10 * MS);
	assert_int_equal(ah.state, AH_READY);
	assert_int_equal(changed, 2);
	assert_memory_equal(ah.template.b, y.mac, 6);
	ah_close(&ah);
	ah_close(&ah); /* once more: nothing */
	hosts_run(&x, &y, 100 * SECOND, SECOND);
	assert_int_equal(changed, 2);
}

/* It speaks to us while it counts as failed: no need to wait for our next round. */
static void test_an_unreachable_one_that_speaks_is_reachable(void **state)
{
	static struct ah ah, back;
	y.is_deaf = true;
	host_open(&x, &ah, 0, "10.0.0.2", on_changed);
	hosts_run(&x, &y, 600 * MS, 10 * MS);
	assert_int_equal(ah.state, AH_UNREACHABLE);
	y.is_deaf = false;
	host_open(&y, &back, 0, "10.0.0.1", NULL);
	hosts_run(&x, &y, 0, 1);
	assert_int_equal(ah.state, AH_READY);
	assert_int_equal(back.state, AH_READY);
	ah_close(&ah);
	ah_close(&back);
}

/* Its owner has something for it: no need to wait for our next round, which is the later the longer it was away. */
static void test_an_unreachable_one_is_asked_again(void **state)
{
	static struct ah ah, other;
	y.is_deaf = true;
	host_open(&x, &ah, 0, "10.0.0.2", on_changed);
	host_open(&x, &other, 0, "10.0.0.2", NULL);
	hosts_run(&x, &y, 20 * SECOND, 10 * MS);
	assert_int_equal(ah.state, AH_UNREACHABLE);
	while (host_stats(&x).failed < 6) /* now the next round is 32 s away */
		hosts_run(&x, &y, 10 * MS, 10 * MS);
	assert_false(ah_resolve_again(&ah, now)); /* it was asked just now */
	hosts_run(&x, &y, 2 * SECOND, 10 * MS);
	assert_int_equal(ah.state, AH_UNREACHABLE);
	changed = 0;
	assert_true(ah_ask_again(&ah, now));
	assert_int_equal(ah.state, AH_UNREACHABLE);
	assert_true(ah_resolve_again(&ah, now));
	assert_int_equal(ah.state, AH_RESOLVING);
	hosts_run(&x, &y, 600 * MS, 10 * MS);
	assert_int_equal(ah.state, AH_UNREACHABLE);
	assert_int_equal(changed, 1);
	assert_false(ah_resolve_again(&ah, now));
	hosts_run(&x, &y, SECOND, 10 * MS);
	y.is_deaf = false;
	assert_true(ah_resolve_again(&ah, now));
	hosts_run(&x, &y, 0, 1);
	assert_int_equal(ah.state, AH_READY);
	assert_int_equal(other.state, AH_READY);
	assert_false(ah_resolve_again(&ah, now));
	ah_close(&ah);
	ah_close(&other);
}

static uint32_t acknowledged;

static uint32_t progress(const struct ah *ah)
{
	return acknowledged;
}

/* RFC 4861, 7.3.1: as long as its acknowledgements come it is there, whatever it says to ARP. */
static void test_one_that_acknowledges_is_not_asked(void **state)
{
	static struct ah ah;
	host_open(&x, &ah, 0, "10.0.0.2", on_changed);
	ah_watch_progress(&ah, progress);
	hosts_run(&x, &y, 0, 1);
	assert_int_equal(ah.state, AH_READY);
	y.is_deaf = true;
	uint64_t asked = host_stats(&x).asked;
	for (unsigned i = 0; i < 10; i++) {
		acknowledged++;
		hosts_run(&x, &y, 29 * SECOND, SECOND);
	}
	assert_int_equal(host_stats(&x).asked, asked);
	assert_int_equal(ah.state, AH_READY);
	hosts_run(&x, &y, 35 * SECOND, SECOND / 10);
	assert_true(host_stats(&x).asked > asked);
	assert_int_equal(ah.state, AH_READY);
	acknowledged++;
	hosts_run(&x, &y, 20 * SECOND, SECOND / 10); /* in the middle of being asked */
	asked = host_stats(&x).asked;
	hosts_run(&x, &y, 9 * SECOND, SECOND / 10);
	assert_int_equal(host_stats(&x).asked, asked);
	hosts_run(&x, &y, 70 * SECOND, SECOND / 10);
	assert_int_equal(ah.state, AH_UNREACHABLE);
	ah_close(&ah);
}

/* What arrived by the old MAC says nothing of a new one that nobody asked for. */
static void test_progress_before_a_change_of_mac(void **state)
{
	static struct ah ah;
	host_open(&x, &ah, 0, "10.0.0.2", on_changed);
	ah_watch_progress(&ah, progress);
	hosts_run(&x, &y, 10 * SECOND, SECOND);
	uint64_t asked = host_stats(&x).asked;
	acknowledged++;
	host_hear_arp(&x, stranger, VLAN_NONE, "10.0.0.2", "10.0.0.1");
	assert_memory_equal(ah.template.b, stranger, 6);
	hosts_run(&x, &y, SECOND, 10 * MS); /* first that MAC, then all */
	assert_true(host_stats(&x).asked > asked);
	assert_memory_equal(ah.template.b, y.mac, 6);
	ah_close(&ah);
}

/* Many that were away are wanted at once, more than may be asked at once. */
static void test_more_asked_again_than_may_be_asked_at_once(void **state)
{
	enum { N = 6 };
	struct host z;
	static struct ah ah[N];
	char text[32];
	host_init(&z, 3, (struct addr_config){ .max_pending = 2 });
	host_add(&z, "10.0.0.1", VLAN_NONE, 24);
	for (unsigned i = 0; i < N; i++) {
		snprintf(text, sizeof(text), "10.0.0.%u", 2 + i);
		assert_int_equal(host_open(&z, &ah[i], 0, text, NULL), 0);
		hosts_run(&z, NULL, 600 * MS, 10 * MS);
		assert_int_equal(ah[i].state, AH_UNREACHABLE);
	}
	hosts_run(&z, NULL, 60 * SECOND, 10 * MS); /* the next rounds are many seconds away */
	uint64_t refused = host_stats(&z).pending_refused;
	for (unsigned i = 0; i < N; i++)
		while (!ah_resolve_again(&ah[i], now))
			hosts_run(&z, NULL, 10 * MS, 10 * MS);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(ah[i].state, AH_RESOLVING);
	hosts_run(&z, NULL, 2 * SECOND, 10 * MS);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(ah[i].state, AH_UNREACHABLE);
	assert_int_equal(host_stats(&z).pending_refused, refused);
	for (unsigned i = 0; i < N; i++)
		ah_close(&ah[i]);
	host_free(&z);
}

/* A new address makes many hosts neighbours that were behind a router, more than may be asked at once. */
static void test_more_new_neighbours_than_may_be_asked_at_once(void **state)
{
	enum { N = 9 };
	struct host z;
	static struct ah ah[N];
	char text[32];
	struct gid any = gid_of("0.0.0.0"), router = gid_of("10.0.0.254");
	host_init(&z, 3, (struct addr_config){ .max_pending = 2 });
	host_add(&z, "10.0.0.1", VLAN_NONE, 24);
	assert_int_equal(addr_route_add(z.a, &any, 0, &router), 0);
	for (unsigned i = 0; i < N; i++) {
		snprintf(text, sizeof(text), "10.0.1.%u", 2 + i);
		assert_int_equal(host_open(&z, &ah[i], 0, text, NULL), 0);
	}
	host_hear_arp(&z, stranger, VLAN_NONE, "10.0.0.254", "10.0.0.1");
	host_add(&z, "10.0.1.1", VLAN_NONE, 24);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(ah[i].state, AH_RESOLVING);
	/* the first of them are not there, and make room after half a second; the last ones answer */
	for (unsigned round = 0; round < 50; round++) {
		hosts_run(&z, NULL, 100 * MS, 10 * MS);
		for (unsigned i = N / 2; i < N; i++) {
			snprintf(text, sizeof(text), "10.0.1.%u", 2 + i);
			if (ah[i].neigh && ah[i].state == AH_RESOLVING)
				host_hear_arp(&z, stranger, VLAN_NONE, text, "10.0.1.1");
		}
	}
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(ah[i].state, i < N / 2 ? AH_UNREACHABLE : AH_READY);
	for (unsigned i = 0; i < N; i++)
		ah_close(&ah[i]);
	host_free(&z);
}

static void test_many_share_one_neighbour(void **state)
{
	enum { N = 500 };
	static struct ah ah[N];
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(host_open(&x, &ah[i], 0, "10.0.0.2", on_changed), 0);
	assert_int_equal(host_stats(&x).pending, 1);
	hosts_run(&x, &y, 0, 1);
	assert_int_equal(x.sent, 1);
	assert_int_equal(changed, N);
	/* A new MAC reaches the templates of all; the state is the same. */
	assert_int_equal(host_hear_arp(&x, stranger, VLAN_NONE, "10.0.0.2", "10.0.0.1"), DROP_NONE);
	assert_int_equal(changed, N);
	for (unsigned i = 0; i < N; i++)
		assert_memory_equal(ah[i].template.b, stranger, 6);
	for (unsigned i = 0; i < N; i++)
		ah_close(&ah[i * 7 % N]);
	assert_int_equal(host_stats(&x).neighbours, 1);
}

static void test_gateway(void **state)
{
	static struct ah far, farther, near;
	struct gid all = gid_of("0.0.0.0"), gateway = gid_of("10.0.0.2");
	assert_int_equal(addr_route_add(x.a, &all, 0, &gateway), 0);
	assert_int_equal(host_open(&x, &far, 0, "192.168.1.1", NULL), 0);
	assert_int_equal(host_open(&x, &farther, 0, "192.168.7.7", NULL), 0);
	assert_int_equal(host_open(&x, &near, 0, "10.0.0.2", NULL), 0);
	hosts_run(&x, &y, 0, 1);
	assert_int_equal(x.sent, 1); /* one neighbour for all three */
	assert_int_equal(far.state, AH_READY);
	assert_memory_equal(far.template.b, y.mac, 6);
	assert_int_equal(get_be32(far.template.b + 14 + 16), 0xc0a80101);
	ah_close(&far);
	ah_close(&farther);
	ah_close(&near);
	/* A route to ourselves leads nowhere. */
	struct gid self = gid_of("10.0.0.1");
	assert_int_equal(addr_route_remove(x.a, &all, 0), 0);
	assert_int_equal(addr_route_add(x.a, &all, 0, &self), 0);
	assert_int_equal(host_open(&x, &far, 0, "192.168.1.1", NULL), -ENETUNREACH);
}

static void test_open_ahs_follow_routes(void **state)
{
	static struct ah ah, other;
	struct gid all = gid_of("0.0.0.0"), via_y = gid_of("10.0.0.2"), half = gid_of("192.0.0.0"), via_z = gid_of("10.0.0.9");
	addr_route_add(x.a, &all, 0, &via_y);
	host_open(&x, &ah, 0, "192.168.1.1", on_changed);
	host_open(&x, &other, 0, "172.16.1.1", on_changed);
	hosts_run(&x, &y, 0, 1);
	changed = 0;
	/* A longer route for one of them. */
	assert_int_equal(addr_route_add(x.a, &half, 2, &via_z), 0);
	assert_int_equal(ah.state, AH_RESOLVING);
	assert_int_equal(other.state, AH_READY);
	assert_int_equal(changed, 1);
	assert_int_equal(addr_learn(x.a, &via_z, VLAN_NONE, stranger, true, now), 0);
	assert_int_equal(ah.state, AH_READY);
	assert_memory_equal(ah.template.b, stranger, 6);
	/* All routes go; the first comes back. */
	addr_route_remove(x.a, &half, 2);
	assert_memory_equal(ah.template.b, y.mac, 6);
	assert_int_equal(ah.state, AH_READY);
	addr_route_remove(x.a, &all, 0);
	assert_int_equal(ah.state, AH_NO_ROUTE);
	assert_int_equal(other.state, AH_NO_ROUTE);
	addr_route_add(x.a, &all, 0, &via_y);
	assert_int_equal(ah.state, AH_READY);
	assert_memory_equal(ah.template.b, y.mac, 6);
	addr_route_remove(x.a, &all, 0);
	ah_close(&ah);
	ah_close(&other);
}

static void test_to_ourselves(void **state)
{
	static struct ah to_self, to_other, to_vlan, same;
	host_add(&x, "10.0.0.3", VLAN_NONE, 24);
	host_add(&x, "10.0.0.4", 9, 24);
	assert_int_equal(host_open(&x, &to_self, 0, "10.0.0.1", NULL), 0);
	assert_int_equal(host_open(&x, &to_other, 0, "10.0.0.3", NULL), 0);
	assert_true(to_self.is_local && to_other.is_local);
	assert_int_equal(to_self.state, AH_READY);
	assert_memory_equal(to_self.template.b, x.mac, 6);
	assert_memory_equal(to_self.template.b + 6, x.mac, 6);
	assert_false(addr_has_tx(x.a));
	/* An address of ours on another VLAN is somebody else's on this one. */
	assert_int_equal(host_open(&x, &to_vlan, 0, "10.0.0.4", NULL), 0);
	assert_false(to_vlan.is_local);
	/* Becomes ours, and is so no more. */
	assert_int_equal(host_open(&x, &same, 0, "10.0.0.2", on_changed), 0);
	hosts_run(&x, &y, 0, 1);
	assert_false(same.is_local);
	uint32_t index = host_add(&x, "10.0.0.2", VLAN_NONE, 24);
	assert_true(same.is_local);
	assert_memory_equal(same.template.b, x.mac, 6);
	assert_int_equal(same.state, AH_READY);
	addr_gid_remove(x.a, index);
	assert_false(same.is_local);
	hosts_run(&x, &y, 0, 1);
	assert_int_equal(same.state, AH_READY);
	assert_memory_equal(same.template.b, y.mac, 6);
	ah_close(&to_self);
	ah_close(&to_other);
	ah_close(&to_vlan);
	ah_close(&same);
}

static void test_a_removed_gid_lives_while_an_ah_holds_it(void **state)
{
	static struct ah ah, no;
	struct gid us = gid_of("10.0.0.1"), got;
	uint16_t vlan;
	host_open(&x, &ah, 0, "10.0.0.2", on_changed);
	hosts_run(&x, &y, 0, 1);
	host_add(&x, "10.0.0.8", VLAN_NONE, 24); /* so that the link has still a network */
	assert_int_equal(addr_gid_remove(x.a, 0), 0);
	assert_true(addr_is_ours(x.a, &us, VLAN_NONE));
	assert_false(addr_gid_get(x.a, 0, &got, &vlan));
	assert_int_equal(ah.state, AH_READY);
	assert_int_equal(host_open(&x, &no, 0, "10.0.0.2", NULL), -EINVAL);
	/* Its peer can still find it. */
	assert_int_equal(host_hear_arp(&x, y.mac, VLAN_NONE, "10.0.0.2", "10.0.0.1"), DROP_NONE);
	assert_int_equal(host_send(&x, NULL), 1);
	ah_close(&ah);
	assert_false(addr_is_ours(x.a, &us, VLAN_NONE));
	assert_int_equal(host_hear_arp(&x, y.mac, VLAN_NONE, "10.0.0.2", "10.0.0.1"), DROP_NONE); /* teaches, is not answered */
	assert_int_equal(host_send(&x, NULL), 0);
}

/* Who uses a removed address goes on, for as long as it likes: it is asked for, asks and is answered as before. Its network goes with the last of them, and takes those along that came there from another address. */
static void test_the_network_goes_with_the_last_that_holds_its_gid(void **state)
{
	static struct ah ah, back, other;
	host_open(&x, &ah, 0, "10.0.0.2", on_changed);
	hosts_run(&x, &y, 0, 1);
	assert_int_equal(addr_gid_remove(x.a, 0), 0);
	uint32_t index = host_add(&x, "10.1.0.1", VLAN_NONE, 24);
	assert_int_equal(host_open(&x, &other, index, "10.0.0.2", on_changed), 0);
	assert_int_equal(host_open(&y, &back, 0, "10.0.0.1", NULL), 0);
	changed = 0;
	uint64_t asked = host_stats(&x).asked;
	for (unsigned i = 0; i < 180; i++) {
		hosts_run(&x, &y, SECOND, 10 * MS);
		assert_int_equal(ah.state, AH_READY);
		assert_int_equal(back.state, AH_READY);
	}
	assert_true(host_stats(&x).asked >= asked + 4); /* it was looked after */
	assert_int_equal(changed, 0);
	ah_close(&ah);
	assert_int_equal(other.state, AH_NO_ROUTE);
	assert_int_equal(changed, 1);
	index = host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	assert_int_equal(index, 0);
	assert_int_equal(other.state, AH_READY);
	ah_close(&other);
	ah_close(&back);
}

static void test_too_many_pending(void **state)
{
	struct host z;
	static struct ah ah[4];
	host_init(&z, 3, (struct addr_config){ .max_pending = 2, .max_neighbours = 3 });
	host_add(&z, "10.0.0.1", VLAN_NONE, 24);
	assert_int_equal(host_open(&z, &ah[0], 0, "10.0.0.2", NULL), 0);
	assert_int_equal(host_open(&z, &ah[1], 0, "10.0.0.3", NULL), 0);
	assert_int_equal(host_open(&z, &ah[2], 0, "10.0.0.4", NULL), -ENOBUFS);
	assert_int_equal(host_stats(&z).pending_refused, 1);
	assert_int_equal(host_open(&z, &ah[2], 0, "10.0.0.3", NULL), 0);
	host_hear_arp(&z, stranger, VLAN_NONE, "10.0.0.2", "10.0.0.1");
	assert_int_equal(host_open(&z, &ah[3], 0, "10.0.0.4", NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		ah_close(&ah[i]);
	host_free(&z);
}

/* Hooks that close and open AHs, themselves among them. */
static struct ah pool[40];
static bool is_open[40];
static unsigned hooks_called;

static void on_changed_wildly(struct ah *ah);

static void toggle(unsigned i)
{
	if (is_open[i])
		ah_close(&pool[i]);
	char text[32];
	snprintf(text, sizeof(text), "10.0.0.%u", 2 + i % 3);
	is_open[i] = !is_open[i] && host_open(&x, &pool[i], 0, text, on_changed_wildly) == 0;
}

static void on_changed_wildly(struct ah *ah)
{
	unsigned self = (unsigned)(ah - pool);
	hooks_called++;
	assert_true(is_open[self]);
	toggle((self * 7 + hooks_called) % 40);
	toggle((self + hooks_called) % 40);
	if (hooks_called % 3 == 0 && is_open[self])
		toggle(self);
}

static void test_hooks_may_close_and_open_anything(void **state)
{
	struct gid peer = gid_of("10.0.0.2"), all = gid_of("0.0.0.0");
	for (unsigned round = 0; round < 300; round++) {
		for (unsigned i = 0; i < 40; i++)
			if (!is_open[i])
				toggle(i);
		peer.b[15] = (uint8_t)(2 + round % 3);
		addr_learn(x.a, &peer, VLAN_NONE, round % 2 ? stranger : NULL, false, now);
		if (round % 4 == 0)
			addr_gid_remove(x.a, 0);
		if (round % 4 == 0)
			host_add(&x, "10.0.0.1", VLAN_NONE, 24);
		addr_route_add(x.a, &all, 0, &peer);
		addr_route_remove(x.a, &all, 0);
		hosts_run(&x, &y, 700 * MS, 50 * MS);
	}
	assert_true(hooks_called > 100);
	for (unsigned i = 0; i < 40; i++)
		if (is_open[i])
			toggle(i);
	assert_int_equal(host_stats(&x).pending, 0);
}

static void test_addr_goes_before_its_ahs(void **state)
{
	struct host z;
	static struct ah ah, local;
	host_init(&z, 3, (struct addr_config){ 0 });
	host_add(&z, "10.0.0.1", VLAN_NONE, 24);
	host_open(&z, &ah, 0, "10.0.0.2", NULL);
	host_open(&z, &local, 0, "10.0.0.1", NULL);
	host_free(&z);
	ah_close(&ah);
	ah_close(&local);
	addr_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_template, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_states_and_hooks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_unreachable_one_that_speaks_is_reachable, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_unreachable_one_is_asked_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_that_acknowledges_is_not_asked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_progress_before_a_change_of_mac, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_more_asked_again_than_may_be_asked_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_more_new_neighbours_than_may_be_asked_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_share_one_neighbour, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_gateway, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_open_ahs_follow_routes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_to_ourselves, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_removed_gid_lives_while_an_ah_holds_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_network_goes_with_the_last_that_holds_its_gid, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_many_pending, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hooks_may_close_and_open_anything, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_addr_goes_before_its_ahs, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
