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

/* Both families, all kinds of addresses, tagged and not: each resolves the other, once. */
static const struct { const char *x, *y; unsigned prefix_len; uint16_t vlan; } pairs[] = {
	{ "10.0.0.1", "10.0.0.2", 24, VLAN_NONE },
	{ "10.0.0.1", "10.0.0.2", 24, 7 },
	{ "10.0.0.1", "10.0.0.2", 24, 4094 },
	{ "fd00::1", "fd00::2", 64, VLAN_NONE },
	{ "fd00::1", "fd00::2", 64, 100 },
	{ "fe80::1", "fe80::2", 64, VLAN_NONE },
	{ "fe80::1", "fe80::ffff:ffff:ffff:2", 128, 3 },
};

static void test_each_resolves_the_other(void **state)
{
	for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct host x, y;
		struct ah to_y, to_x;
		host_init(&x, 1, (struct addr_config){ 0 });
		host_init(&y, 2, (struct addr_config){ 0 });
		uint32_t at_x = host_add(&x, pairs[i].x, pairs[i].vlan, pairs[i].prefix_len), at_y = host_add(&y, pairs[i].y, pairs[i].vlan, pairs[i].prefix_len);
		assert_int_equal(host_open(&x, &to_y, at_x, pairs[i].y, NULL), 0);
		assert_int_equal(to_y.state, AH_RESOLVING);
		assert_true(addr_has_tx(x.a));
		hosts_run(&x, &y, 0, 1);
		assert_int_equal(to_y.state, AH_READY);
		assert_memory_equal(to_y.template.b, y.mac, 6);
		assert_memory_equal(to_y.template.b + 6, x.mac, 6);
		assert_int_equal(x.sent, 1);
		assert_int_equal(y.sent, 1);
		/* The other one has learned from the question. */
		assert_int_equal(host_open(&y, &to_x, at_y, pairs[i].x, NULL), 0);
		assert_int_equal(to_x.state, AH_READY);
		assert_memory_equal(to_x.template.b, x.mac, 6);
		assert_int_equal(host_stats(&x).asked, 1);
		assert_int_equal(host_stats(&x).learned, 1);
		assert_int_equal(host_stats(&y).told, 1);
		ah_close(&to_y);
		ah_close(&to_x);
		host_free(&x);
		host_free(&y);
	}
}

static void test_both_ask_at_once(void **state)
{
	struct host x, y;
	static struct ah to_y, to_x;
	host_init(&x, 1, (struct addr_config){ 0 });
	host_init(&y, 2, (struct addr_config){ 0 });
	host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	host_add(&y, "10.0.0.2", VLAN_NONE, 24);
	host_open(&x, &to_y, 0, "10.0.0.2", NULL);
	host_open(&y, &to_x, 0, "10.0.0.1", NULL);
	hosts_run(&x, &y, SECOND, 10 * MS);
	assert_int_equal(to_y.state, AH_READY);
	assert_int_equal(to_x.state, AH_READY);
	assert_true(x.sent + y.sent <= 4);
	ah_close(&to_x);
	ah_close(&to_y);
	host_free(&x);
	host_free(&y);
}

/* Another VLAN is another link. */
static void test_vlans_do_not_mix(void **state)
{
	struct host x, y;
	static struct ah ah;
	host_init(&x, 1, (struct addr_config){ 0 });
	host_init(&y, 2, (struct addr_config){ 0 });
	host_add(&x, "10.0.0.1", 5, 24);
	host_add(&y, "10.0.0.2", 6, 24);
	assert_int_equal(host_open(&x, &ah, 0, "10.0.0.2", NULL), 0);
	hosts_run(&x, &y, 10 * SECOND, 10 * MS);
	assert_int_equal(ah.state, AH_UNREACHABLE);
	assert_int_equal(y.sent, 0);
	assert_int_equal(host_stats(&y).neighbours, 0);
	ah_close(&ah);
	host_free(&x);
	host_free(&y);
}

static void test_only_what_is_ours_is_answered(void **state)
{
	struct host x;
	host_init(&x, 1, (struct addr_config){ 0 });
	uint32_t index = host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	host_add(&x, "fd00::1", 9, 64);
	assert_int_equal(host_hear_arp(&x, stranger, VLAN_NONE, "10.0.0.9", "10.0.0.1"), DROP_NONE);
	assert_int_equal(host_hear_arp(&x, stranger, VLAN_NONE, "10.0.0.7", "10.0.0.2"), DROP_ARP_NOT_OURS);
	assert_int_equal(host_hear_arp(&x, stranger, 9, "10.0.0.7", "10.0.0.1"), DROP_ARP_NOT_OURS);
	assert_int_equal(host_hear_arp(&x, stranger, 9, "fd00::7", "fd00::1"), DROP_NONE);
	assert_int_equal(host_hear_arp(&x, stranger, 9, "fd00::8", "fd00::1:0:0:1"), DROP_ND_IGNORED);
	assert_int_equal(host_hear_arp(&x, stranger, VLAN_NONE, "fd00::8", "fd00::1"), DROP_ND_IGNORED);
	assert_int_equal(host_send(&x, NULL), 2);
	assert_int_equal(host_stats(&x).neighbours, 2);
	addr_gid_remove(x.a, index);
	assert_int_equal(host_hear_arp(&x, stranger, VLAN_NONE, "10.0.0.6", "10.0.0.1"), DROP_ARP_NOT_OURS);
	assert_int_equal(host_send(&x, NULL), 0);
	host_free(&x);
}

/* What came to another core is answered there, but for an address that only this one has still. */
static void test_copies_are_answered_where_the_address_is_left(void **state)
{
	struct host x;
	static struct ah ah;
	host_init(&x, 1, (struct addr_config){ 0 });
	uint32_t index = host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	assert_int_equal(host_open(&x, &ah, index, "10.0.0.9", NULL), 0);
	host_send(&x, NULL);
	x.gets_copies = true;
	assert_int_equal(host_hear_arp(&x, stranger, VLAN_NONE, "10.0.0.9", "10.0.0.1"), DROP_NONE);
	assert_int_equal(ah.state, AH_READY); /* learned from all the same */
	assert_int_equal(host_send(&x, NULL), 0);
	assert_int_equal(addr_gid_remove(x.a, index), 0);
	assert_int_equal(host_hear_arp(&x, stranger, VLAN_NONE, "10.0.0.9", "10.0.0.1"), DROP_NONE);
	assert_int_equal(host_send(&x, NULL), 1);
	ah_close(&ah);
	host_hear_arp(&x, stranger, VLAN_NONE, "10.0.0.9", "10.0.0.1");
	assert_int_equal(host_send(&x, NULL), 0);
	host_free(&x);
}

/* RFC 5227, RFC 4862: who looks for a duplicate has no address yet: answered, not learned. */
static void test_probes_are_answered_and_not_learned(void **state)
{
	static const uint8_t all_nodes[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	struct host x;
	host_init(&x, 1, (struct addr_config){ 0 });
	host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	host_add(&x, "fd00::1", VLAN_NONE, 64);
	assert_int_equal(host_hear_arp(&x, stranger, VLAN_NONE, "0.0.0.0", "10.0.0.1"), DROP_NONE);
	assert_int_equal(host_send(&x, NULL), 1);
	assert_memory_equal(x.last, stranger, 6);
	assert_int_equal(get_be16(x.last + 20), 2);
	assert_int_equal(host_hear_arp(&x, stranger, VLAN_NONE, "::", "fd00::1"), DROP_NONE);
	assert_int_equal(host_send(&x, NULL), 1);
	assert_memory_equal(x.last, all_nodes, 6);
	assert_int_equal(x.last[14 + 40 + 4], 0x20); /* override, not solicited */
	assert_int_equal(host_stats(&x).neighbours, 0);
	host_free(&x);
}

/* A message in our own name teaches nothing and is not answered. */
static void test_a_second_host_with_our_address(void **state)
{
	struct host x;
	host_init(&x, 1, (struct addr_config){ 0 });
	host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	host_add(&x, "10.0.0.3", VLAN_NONE, 24);
	host_add(&x, "fd00::1", VLAN_NONE, 64);
	assert_int_equal(host_hear_arp(&x, stranger, VLAN_NONE, "10.0.0.1", "10.0.0.1"), DROP_ARP_NOT_OURS);
	assert_int_equal(host_hear_arp(&x, stranger, VLAN_NONE, "10.0.0.1", "10.0.0.3"), DROP_ARP_NOT_OURS);
	assert_int_equal(host_hear_arp(&x, stranger, VLAN_NONE, "fd00::1", "fd00::1"), DROP_ND_IGNORED);
	assert_int_equal(host_send(&x, NULL), 0);
	assert_int_equal(host_stats(&x).neighbours, 0);
	host_free(&x);
}

static uint32_t write_gratuitous(uint8_t *frame, const uint8_t mac[6], const char *who, bool is_reply)
{
	static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, all_nodes_mac[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	struct gid g = gid_of(who), all_nodes = gid_of("ff02::1");
	if (!gid_is_ip4(&g))
		return neighbour_write_tell(frame, mac, all_nodes_mac, VLAN_NONE, &g, &all_nodes);
	return is_reply ? neighbour_write_tell(frame, mac, broadcast, VLAN_NONE, &g, &g) : neighbour_write_ask(frame, mac, NULL, VLAN_NONE, &g, &g);
}

static void test_an_announcement_never_creates_but_updates(void **state)
{
	static const struct { const char *us, *peer; bool is_reply; enum drop ignored; } cases[] = {
		{ "10.0.0.1", "10.0.0.2", false, DROP_ARP_NOT_OURS },
		{ "10.0.0.1", "10.0.0.2", true, DROP_ARP_NOT_OURS },
		{ "fd00::1", "fd00::2", true, DROP_ND_IGNORED },
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct host x, y;
		struct ah ah;
		uint8_t frame[NEIGHBOUR_FRAME_MAX];
		host_init(&x, 1, (struct addr_config){ 0 });
		host_init(&y, 2, (struct addr_config){ 0 });
		host_add(&x, cases[i].us, VLAN_NONE, 24);
		host_add(&y, cases[i].peer, VLAN_NONE, 24);
		uint32_t len = write_gratuitous(frame, stranger, cases[i].peer, cases[i].is_reply);
		assert_int_equal(host_take(&x, frame, len), cases[i].ignored);
		assert_int_equal(host_stats(&x).neighbours, 0);
		host_open(&x, &ah, 0, cases[i].peer, NULL);
		hosts_run(&x, &y, 0, 1);
		assert_memory_equal(ah.template.b, y.mac, 6);
		/* Used at once, and asked after, since nobody had asked. */
		assert_int_equal(host_take(&x, frame, len), DROP_NONE);
		assert_int_equal(ah.state, AH_READY);
		assert_memory_equal(ah.template.b, stranger, 6);
		y.is_deaf = true;
		unsigned asked = x.sent;
		hosts_run(&x, &y, 10 * MS, 1 * MS);
		assert_int_equal(x.sent, asked + 1);
		assert_memory_equal(x.last, stranger, 6); /* unicast */
		/* The true owner answers when all are asked. */
		y.is_deaf = false;
		hosts_run(&x, &y, SECOND, 1 * MS);
		assert_memory_equal(ah.template.b, y.mac, 6);
		ah_close(&ah);
		host_free(&x);
		host_free(&y);
	}
}

/* RFC 4861, 7.2.5: without the override flag a known MAC stays; an answer without a MAC confirms the one that is known. */
static void test_advertisements_without_override_or_mac(void **state)
{
	struct host x, y;
	static struct ah ah;
	uint8_t frame[NEIGHBOUR_FRAME_MAX];
	struct gid peer = gid_of("fd00::2"), us = gid_of("fd00::1");
	host_init(&x, 1, (struct addr_config){ .fresh_ns = SECOND });
	host_init(&y, 2, (struct addr_config){ 0 });
	host_add(&x, "fd00::1", VLAN_NONE, 64);
	host_add(&y, "fd00::2", VLAN_NONE, 64);
	host_open(&x, &ah, 0, "fd00::2", NULL);
	hosts_run(&x, &y, 0, 1);

	uint32_t len = neighbour_write_tell(frame, stranger, x.mac, VLAN_NONE, &peer, &us);
	uint8_t *icmp = frame + 14 + 40;
	icmp[4] &= (uint8_t)~0x20;
	uint16_t sum = get_be16(icmp + 2);
	put_be16(icmp + 2, (uint16_t)(sum + 0x2000 + (sum > 0xdfff))); /* the checksum grows by what the sum loses */
	assert_int_equal(host_take(&x, frame, len), DROP_ND_IGNORED);
	assert_memory_equal(ah.template.b, y.mac, 6);

	/* The question for the refresh, then an answer without its option. */
	y.is_deaf = true;
	hosts_run(&x, &y, SECOND + 10 * MS, 10 * MS);
	assert_int_equal(host_stats(&x).asked, 2);
	len = neighbour_write_tell(frame, y.mac, x.mac, VLAN_NONE, &peer, &us);
	put_be16(frame + 14 + 4, 24);
	uint8_t no_option[14 + 64];
	memcpy(no_option, frame, sizeof(no_option));
	uint32_t s = 0;
	put_be16(no_option + 14 + 40 + 2, 0);
	for (unsigned i = 0; i < 32 + 24; i += 2)
		s += get_be16(no_option + 14 + 8 + i);
	s += 24 + 58;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	put_be16(no_option + 14 + 40 + 2, (uint16_t)~s);
	assert_int_equal(host_take(&x, no_option, sizeof(no_option)), DROP_NONE);
	hosts_run(&x, &y, 900 * MS, 10 * MS);
	assert_int_equal(host_stats(&x).asked, 2);
	assert_int_equal(ah.state, AH_READY);
	ah_close(&ah);
	/* Of one that is not known it says nothing. */
	addr_learn(x.a, &peer, VLAN_NONE, NULL, false, now);
	assert_int_equal(host_take(&x, no_option, sizeof(no_option)), DROP_ND_IGNORED);
	host_free(&x);
	host_free(&y);
}

static void test_a_question_from_beyond_the_link_is_answered_and_not_remembered(void **state)
{
	struct host x;
	host_init(&x, 1, (struct addr_config){ 0 });
	host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	assert_int_equal(host_hear_arp(&x, stranger, VLAN_NONE, "10.0.1.9", "10.0.0.1"), DROP_NONE);
	assert_int_equal(host_send(&x, NULL), 1);
	assert_int_equal(host_stats(&x).neighbours, 0);
	host_free(&x);
}

/* known-bugs: 29 */
static void test_a_flood_of_questions_takes_nothing_from_neighbours_in_use(void **state)
{
	enum { MAX = 64, IN_USE = 40, FLOOD = 20000 };
	static struct ah ah[IN_USE], more;
	struct host x;
	struct rng r;
	host_init(&x, 1, (struct addr_config){ .max_neighbours = MAX, .max_replies = 16, .fresh_ns = 1000 * SECOND });
	host_add(&x, "10.0.0.1", VLAN_NONE, 8);
	host_add(&x, "fd00::1", VLAN_NONE, 64);
	rng_seed(&r, 29);
	for (unsigned i = 0; i < IN_USE; i++) {
		char text[32];
		uint8_t mac[6] = { 0x02, 1, 0, 0, 0, (uint8_t)i };
		snprintf(text, sizeof(text), "10.0.1.%u", i);
		assert_int_equal(host_open(&x, &ah[i], 0, text, NULL), 0);
		if (i % 2) /* half of them still pending */
			assert_int_equal(host_hear_arp(&x, mac, VLAN_NONE, text, "10.0.0.1"), DROP_NONE);
		host_send(&x, NULL);
	}
	unsigned full = 0;
	for (unsigned i = 0; i < FLOOD; i++) {
		char sender[64], target[64];
		uint8_t mac[6] = { 0x02, 2, (uint8_t)rng_next(&r), 1, 2, 3 };
		bool is_ip4 = i % 2;
		snprintf(sender, sizeof(sender), is_ip4 ? "10.%u.%u.%u" : "fd00::%x:%x:%x", 3 + (unsigned)rng_below(&r, 200), (unsigned)rng_below(&r, 256), (unsigned)rng_below(&r, 256));
		snprintf(target, sizeof(target), rng_below(&r, 2) ? is_ip4 ? "10.0.0.1" : "fd00::1" : is_ip4 ? "10.0.0.77" : "fd00::77");
		enum drop d = host_hear_arp(&x, mac, VLAN_NONE, sender, target);
		full += d == DROP_REPLY_FULL;
		assert_true(d == DROP_NONE || d == DROP_REPLY_FULL || d == DROP_ARP_NOT_OURS || d == DROP_ND_IGNORED);
		assert_true(host_stats(&x).neighbours <= MAX);
		if (i % 100 == 99)
			assert_int_equal(host_send(&x, NULL), 16);
	}
	assert_int_equal(host_stats(&x).reply_full, full);
	assert_true(full > 0);
	for (unsigned i = 0; i < IN_USE; i++) {
		uint8_t mac[6] = { 0x02, 1, 0, 0, 0, (uint8_t)i };
		assert_int_equal(ah[i].state, i % 2 ? AH_READY : AH_RESOLVING);
		if (i % 2)
			assert_memory_equal(ah[i].template.b, mac, 6);
	}
	/* And one more of ours finds room. */
	assert_int_equal(host_open(&x, &more, 0, "10.0.2.1", NULL), 0);
	ah_close(&more);
	for (unsigned i = 0; i < IN_USE; i++)
		ah_close(&ah[i]);
	host_free(&x);
}

/* known-bugs: 29 */
static void test_answers_that_nobody_asked_for_are_worth_nothing(void **state)
{
	struct host x;
	uint8_t frame[NEIGHBOUR_FRAME_MAX];
	struct gid us4 = gid_of("10.0.0.1"), us6 = gid_of("fd00::1");
	host_init(&x, 1, (struct addr_config){ 0 });
	host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	host_add(&x, "fd00::1", VLAN_NONE, 64);
	for (unsigned i = 2; i < 250; i++) {
		char text[32];
		snprintf(text, sizeof(text), i % 2 ? "10.0.0.%u" : "fd00::%u", i);
		struct gid g = gid_of(text);
		uint32_t len = neighbour_write_tell(frame, stranger, x.mac, VLAN_NONE, &g, i % 2 ? &us4 : &us6);
		assert_int_equal(host_take(&x, frame, len), i % 2 ? DROP_ARP_NOT_OURS : DROP_ND_IGNORED);
	}
	assert_int_equal(host_stats(&x).neighbours, 0);
	assert_int_equal(host_stats(&x).learned, 0);
	host_free(&x);
}

/* known-bugs: 29 */
static void test_replies_do_not_starve_questions(void **state)
{
	struct host x;
	static struct ah ah[4];
	uint8_t frame[2048];
	host_init(&x, 1, (struct addr_config){ .max_replies = 8 });
	host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	static const char *const peers[4] = { "10.0.0.11", "10.0.0.12", "10.0.0.13", "10.0.0.14" };
	for (unsigned i = 0; i < 4; i++)
		host_open(&x, &ah[i], 0, peers[i], NULL);
	/* The queue of replies is full before each frame that goes. */
	for (unsigned sent = 0; sent < 8; sent++) {
		while (host_hear_arp(&x, stranger, VLAN_NONE, "10.0.0.9", "10.0.0.1") != DROP_REPLY_FULL)
			;
		assert_true(addr_tx(x.a, now, frame, sizeof(frame)) > 0);
	}
	assert_int_equal(host_stats(&x).asked, 4);
	for (unsigned i = 0; i < 4; i++)
		ah_close(&ah[i]);
	host_free(&x);
}

static uint32_t write_echo4(uint8_t *f, const struct host *to, uint16_t vlan, const char *src, const char *dst, uint32_t payload)
{
	struct gid s = gid_of(src), d = gid_of(dst);
	uint8_t *at = f + 12;
	memcpy(f, to->mac, 6);
	memcpy(f + 6, stranger, 6);
	if (vlan != VLAN_NONE) {
		put_be16(at, 0x8100);
		put_be16(at + 2, vlan);
		at += 4;
	}
	put_be16(at, 0x0800);
	uint8_t *ip = at + 2, *icmp = ip + 20;
	memset(ip, 0, 28);
	ip[0] = 0x45;
	put_be16(ip + 2, (uint16_t)(28 + payload));
	ip[8] = 64;
	ip[9] = 1;
	memcpy(ip + 12, s.b + 12, 4);
	memcpy(ip + 16, d.b + 12, 4);
	icmp[0] = 8;
	for (uint32_t i = 0; i < payload; i++)
		icmp[8 + i] = (uint8_t)i;
	for (unsigned part = 0; part < 2; part++) {
		uint8_t *p = part ? icmp : ip;
		uint32_t len = part ? 8 + payload : 20, sum = 0;
		for (uint32_t i = 0; i < len; i++)
			sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		put_be16(part ? icmp + 2 : ip + 10, (uint16_t)~sum);
	}
	return (uint32_t)(icmp - f) + 8 + payload;
}

static void test_echo(void **state)
{
	struct host x;
	uint8_t f[4096], out[4096];
	host_init(&x, 1, (struct addr_config){ .max_replies = 2 });
	host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	uint32_t len = write_echo4(f, &x, VLAN_NONE, "10.0.0.2", "10.0.0.1", 1472);
	assert_int_equal(len, 1514);
	assert_int_equal(host_take(&x, f, len), DROP_NONE);
	assert_int_equal(addr_tx(x.a, now, out, 2048), len);
	assert_memory_equal(out, stranger, 6);
	assert_memory_equal(out + 14 + 28, f + 14 + 28, 1472);
	/* Not ours: another address, another VLAN. */
	assert_int_equal(host_take(&x, f, write_echo4(f, &x, VLAN_NONE, "10.0.0.2", "10.0.0.3", 8)), DROP_IP_NOT_OURS);
	assert_int_equal(host_take(&x, f, write_echo4(f, &x, 5, "10.0.0.2", "10.0.0.1", 8)), DROP_IP_NOT_OURS);
	/* Longer than a place of the queue. */
	assert_int_equal(host_take(&x, f, write_echo4(f, &x, VLAN_NONE, "10.0.0.2", "10.0.0.1", 2044 - 42 + 1)), DROP_ICMP_IGNORED);
	assert_false(addr_has_tx(x.a));
	assert_int_equal(host_take(&x, f, write_echo4(f, &x, VLAN_NONE, "10.0.0.2", "10.0.0.1", 2044 - 42)), DROP_NONE);
	/* Longer than the port takes: given up, and what is behind it goes. */
	assert_int_equal(host_take(&x, f, len = write_echo4(f, &x, VLAN_NONE, "10.0.0.2", "10.0.0.1", 40)), DROP_NONE);
	assert_int_equal(host_take(&x, f, len), DROP_REPLY_FULL);
	assert_int_equal(addr_tx(x.a, now, out, 1514), len);
	assert_false(addr_has_tx(x.a));
	/* An echo teaches nothing. */
	assert_int_equal(host_stats(&x).neighbours, 0);
	host_free(&x);
}

/* Frames cut off anywhere, and with any byte changed, are dropped by name or mean what they say; no more is asked than that nothing breaks. */
static void test_rubbish(void **state)
{
	struct host x;
	static struct ah ah;
	uint8_t frame[NEIGHBOUR_FRAME_MAX], bad[NEIGHBOUR_FRAME_MAX];
	host_init(&x, 1, (struct addr_config){ .max_neighbours = 16 });
	host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	host_add(&x, "fd00::1", VLAN_NONE, 64);
	host_open(&x, &ah, 0, "10.0.0.2", NULL);
	for (unsigned v = 0; v < 2; v++) {
		struct gid s = gid_of(v ? "fd00::9" : "10.0.0.9"), t = gid_of(v ? "fd00::1" : "10.0.0.1");
		uint32_t len = neighbour_write_ask(frame, stranger, NULL, VLAN_NONE, &s, &t);
		for (uint32_t cut = 1; cut < len; cut++)
			host_take(&x, frame, cut);
		for (uint32_t i = 0; i < len; i++)
			for (unsigned b = 0; b < 8; b++) {
				memcpy(bad, frame, len);
				bad[i] ^= (uint8_t)(1 << b);
				host_take(&x, bad, len);
			}
		host_send(&x, NULL);
	}
	assert_true(host_stats(&x).neighbours <= 16);
	ah_close(&ah);
	host_free(&x);
}

static void test_shared_mode_asks_the_kernel(void **state)
{
	struct host x;
	static struct ah ah, other;
	struct gid next_hop, source, want = gid_of("10.0.0.2"), us = gid_of("10.0.0.1");
	uint8_t frame[2048];
	host_init(&x, 1, (struct addr_config){ .mode = ADDR_SHARED });
	host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	assert_false(addr_next_question(x.a, &next_hop, &source));
	/* Speaks to nobody. */
	assert_int_equal(host_hear_arp(&x, stranger, VLAN_NONE, "10.0.0.9", "10.0.0.1"), DROP_NONE);
	assert_int_equal(host_take(&x, frame, write_echo4(frame, &x, VLAN_NONE, "10.0.0.2", "10.0.0.1", 8)), DROP_NONE);
	assert_int_equal(host_open(&x, &ah, 0, "10.0.0.2", NULL), 0);
	assert_false(addr_has_tx(x.a));
	assert_int_equal(addr_tx(x.a, now, frame, sizeof(frame)), 0);
	assert_int_equal(host_stats(&x).neighbours, 1);

	assert_true(addr_next_question(x.a, &next_hop, &source));
	assert_true(gid_is_equal(&next_hop, &want));
	assert_true(gid_is_equal(&source, &us));
	assert_false(addr_next_question(x.a, &next_hop, &source));
	assert_int_equal(addr_learn(x.a, &want, VLAN_NONE, stranger, false, now), 0);
	assert_int_equal(ah.state, AH_READY);
	assert_memory_equal(ah.template.b, stranger, 6);
	/* The kernel's word about others is kept too, and asked for when it matters. */
	struct gid third = gid_of("10.0.0.3");
	assert_int_equal(addr_learn(x.a, &third, VLAN_NONE, x.mac, false, now), 0);
	assert_int_equal(host_open(&x, &other, 0, "10.0.0.3", NULL), 0);
	assert_int_equal(other.state, AH_READY);
	assert_int_equal(addr_learn(x.a, &third, VLAN_NONE, NULL, false, now), 0);
	assert_int_equal(other.state, AH_UNREACHABLE);
	assert_int_equal(host_stats(&x).failed, 1);
	ah_close(&ah);
	ah_close(&other);
	host_free(&x);
}

/* Questions of one round keep their distance although the time comes with other calls; then the neighbour has failed. */
static void test_shared_mode_without_an_answer(void **state)
{
	struct host x;
	static struct ah ah;
	struct gid next_hop, source;
	uint64_t asked_at = 0;
	unsigned asked = 0;
	host_init(&x, 1, (struct addr_config){ .mode = ADDR_SHARED });
	host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	host_open(&x, &ah, 0, "10.0.0.2", NULL);
	for (; ah.state == AH_RESOLVING; now += 10 * MS) {
		wheel_run(x.wheel, now);
		while (addr_next_question(x.a, &next_hop, &source)) {
			assert_true(!asked || now - asked_at >= SECOND);
			asked_at = now;
			asked++;
		}
	}
	assert_int_equal(ah.state, AH_UNREACHABLE);
	assert_int_equal(asked, 5);
	ah_close(&ah);
	host_free(&x);
}

static void test_learning_by_hand(void **state)
{
	static const uint8_t group[6] = { 1, 0, 0, 0, 0, 1 }, none[6];
	struct host x, y;
	static struct ah ah;
	host_init(&x, 1, (struct addr_config){ .fresh_ns = SECOND });
	host_init(&y, 2, (struct addr_config){ 0 });
	host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	host_add(&y, "10.0.0.2", VLAN_NONE, 24);
	struct gid us = gid_of("10.0.0.1"), peer = gid_of("10.0.0.2"), multicast = gid_of("224.0.0.1"), zero = { { 0 } };
	assert_int_equal(addr_learn(x.a, &us, VLAN_NONE, stranger, true, now), -EINVAL);
	assert_int_equal(addr_learn(x.a, &multicast, VLAN_NONE, stranger, true, now), -EINVAL);
	assert_int_equal(addr_learn(x.a, &zero, VLAN_NONE, stranger, true, now), -EINVAL);
	assert_int_equal(addr_learn(x.a, &peer, VLAN_NONE, group, true, now), -EINVAL);
	assert_int_equal(addr_learn(x.a, &peer, VLAN_NONE, none, true, now), -EINVAL);
	assert_int_equal(addr_learn(x.a, &peer, VLAN_NONE, NULL, false, now), 0);
	assert_int_equal(host_stats(&x).neighbours, 0);

	/* Static: never asked, never changed by what comes from the net. */
	assert_int_equal(addr_learn(x.a, &peer, VLAN_NONE, stranger, true, now), 0);
	host_open(&x, &ah, 0, "10.0.0.2", NULL);
	hosts_run(&x, &y, 100 * SECOND, SECOND);
	assert_int_equal(x.sent, 0);
	assert_int_equal(host_hear_arp(&x, y.mac, VLAN_NONE, "10.0.0.2", "10.0.0.1"), DROP_NONE);
	assert_memory_equal(ah.template.b, stranger, 6);
	/* Given back to the net. */
	assert_int_equal(addr_learn(x.a, &peer, VLAN_NONE, stranger, false, now), 0);
	hosts_run(&x, &y, 100 * SECOND, 10 * MS);
	assert_memory_equal(ah.template.b, y.mac, 6);
	/* Static once more, and taken back: what was set by hand does not keep it from coming back by itself. */
	assert_int_equal(addr_learn(x.a, &peer, VLAN_NONE, stranger, true, now), 0);
	assert_memory_equal(ah.template.b, stranger, 6);
	assert_int_equal(addr_learn(x.a, &peer, VLAN_NONE, NULL, false, now), 0);
	assert_int_equal(ah.state, AH_UNREACHABLE);
	assert_int_equal(host_hear_arp(&x, y.mac, VLAN_NONE, "10.0.0.2", "10.0.0.1"), DROP_NONE);
	assert_int_equal(ah.state, AH_READY);
	assert_memory_equal(ah.template.b, y.mac, 6);
	ah_close(&ah);
	host_free(&x);
	host_free(&y);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_resolves_the_other),
		cmocka_unit_test(test_both_ask_at_once),
		cmocka_unit_test(test_vlans_do_not_mix),
		cmocka_unit_test(test_only_what_is_ours_is_answered),
		cmocka_unit_test(test_copies_are_answered_where_the_address_is_left),
		cmocka_unit_test(test_probes_are_answered_and_not_learned),
		cmocka_unit_test(test_a_second_host_with_our_address),
		cmocka_unit_test(test_an_announcement_never_creates_but_updates),
		cmocka_unit_test(test_advertisements_without_override_or_mac),
		cmocka_unit_test(test_a_question_from_beyond_the_link_is_answered_and_not_remembered),
		cmocka_unit_test(test_a_flood_of_questions_takes_nothing_from_neighbours_in_use),
		cmocka_unit_test(test_answers_that_nobody_asked_for_are_worth_nothing),
		cmocka_unit_test(test_replies_do_not_starve_questions),
		cmocka_unit_test(test_echo),
		cmocka_unit_test(test_rubbish),
		cmocka_unit_test(test_shared_mode_asks_the_kernel),
		cmocka_unit_test(test_shared_mode_without_an_answer),
		cmocka_unit_test(test_learning_by_hand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
