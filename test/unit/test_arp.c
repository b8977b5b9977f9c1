/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "arp.h"
#include "bytes.h"

static const uint8_t mac_a[6] = { 0x52, 0x54, 0, 0, 0, 1 }, mac_b[6] = { 0x52, 0x54, 0, 0, 0, 2 };

/* Derived from the RFCs by hand, checksums by another program. */
static const uint8_t arp_request[] = {
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x52, 0x54, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x01, 0x08, 0x00, 0x06, 0x04,
	0x00, 0x01, 0x52, 0x54, 0x00, 0x00, 0x00, 0x01, 0x0a, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, 0x00,
	0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t solicitation[] = {
	0x33, 0x33, 0xff, 0x34, 0x56, 0x78, 0x52, 0x54, 0x00, 0x00, 0x00, 0x01, 0x86, 0xdd, 0x60, 0x00, 0x00, 0x00, 0x00, 0x20,
	0x3a, 0xff, 0xfd, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0xff, 0x02,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0xff, 0x34, 0x56, 0x78, 0x87, 0x00, 0x6d, 0xee, 0x00, 0x00,
	0x00, 0x00, 0xfd, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x12, 0x34, 0x56, 0x78, 0x01, 0x01,
	0x52, 0x54, 0x00, 0x00, 0x00, 0x01,
};
static const uint8_t advertisement_tagged[] = {
	0x52, 0x54, 0x00, 0x00, 0x00, 0x02, 0x52, 0x54, 0x00, 0x00, 0x00, 0x01, 0x81, 0x00, 0x00, 0x07, 0x86, 0xdd, 0x60, 0x00,
	0x00, 0x00, 0x00, 0x20, 0x3a, 0xff, 0xfd, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x01, 0xfd, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x88, 0x00,
	0xcc, 0x47, 0x60, 0x00, 0x00, 0x00, 0xfd, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x01, 0x02, 0x01, 0x52, 0x54, 0x00, 0x00, 0x00, 0x01,
};

static struct gid gid_of(const char *text)
{
	struct gid g;
	assert_int_equal(gid_parse(text, &g), 0);
	return g;
}

/* Parses a copy in a block that ends with the frame, packet and message both; m may be NULL. */
static enum drop parse(const uint8_t *frame, uint32_t len, struct neighbour_message *m)
{
	struct packet p;
	struct neighbour_message unused;
	uint8_t *copy = malloc(len + 1);
	memcpy(copy + 1, frame, len);
	enum drop d = packet_parse(&p, copy + 1, len, VLAN_NONE, NULL);
	if (d == DROP_NONE) {
		assert_true(p.kind == PACKET_ARP || p.kind == PACKET_ND);
		d = neighbour_parse(m ? m : &unused, &p);
	}
	free(copy);
	return d;
}

/* One's complement sum of RFC 1071, written for clarity. */
static uint32_t ones_sum(uint32_t sum, const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Makes an ICMPv6 checksum right after a change. The IP header is at ip. */
static void mend_icmp6(uint8_t *ip)
{
	uint32_t len = get_be16(ip + 4);
	put_be16(ip + 42, 0);
	put_be16(ip + 42, (uint16_t)~ones_sum(ones_sum(len + 58, ip + 8, 32), ip + 40, len));
}

static void test_bytes_of_requests(void **state)
{
	uint8_t frame[NEIGHBOUR_FRAME_MAX];
	struct gid src = gid_of("10.0.0.1"), target = gid_of("10.0.0.2");
	assert_int_equal(neighbour_write_ask(frame, mac_a, NULL, VLAN_NONE, &src, &target), sizeof(arp_request));
	assert_memory_equal(frame, arp_request, sizeof(arp_request));
	src = gid_of("fd00::1");
	target = gid_of("fd00::1234:5678");
	assert_int_equal(neighbour_write_ask(frame, mac_a, NULL, VLAN_NONE, &src, &target), sizeof(solicitation));
	assert_memory_equal(frame, solicitation, sizeof(solicitation));
	target = gid_of("fd00::2");
	assert_int_equal(neighbour_write_tell(frame, mac_a, mac_b, 7, &src, &target), sizeof(advertisement_tagged));
	assert_memory_equal(frame, advertisement_tagged, sizeof(advertisement_tagged));
}

static const struct pair {
	const char *a, *b;
	uint16_t vlan;
	bool is_unicast;
} pairs[] = {
	{ "10.0.0.1", "10.0.0.2", VLAN_NONE, false },
	{ "10.0.0.1", "10.0.0.2", 42, true },
	{ "192.168.255.254", "192.168.0.1", 4094, false },
	{ "fd00::1", "fd00::2", VLAN_NONE, false },
	{ "fd00::1", "fd00::2", 42, true },
	{ "fe80::1", "fe80::ff:fe00:1", 1, false },
};

static void test_ask_is_understood(void **state)
{
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		uint8_t frame[NEIGHBOUR_FRAME_MAX];
		struct neighbour_message m;
		struct gid a = gid_of(pairs[i].a), b = gid_of(pairs[i].b);
		uint32_t len = neighbour_write_ask(frame, mac_a, pairs[i].is_unicast ? mac_b : NULL, pairs[i].vlan, &a, &b);
		assert_in_range(len, 60, NEIGHBOUR_FRAME_MAX);
		assert_int_equal(parse(frame, len, &m), DROP_NONE);
		assert_int_equal(m.kind, NEIGHBOUR_ASK);
		assert_true(gid_is_equal(&m.sender, &a) && gid_is_equal(&m.target, &b));
		assert_true(m.has_mac && !m.is_probe && !m.solicited && !m.override);
		assert_memory_equal(m.mac, mac_a, 6);
		assert_int_equal(frame[0] & 1, !pairs[i].is_unicast);
	}
}

static void test_tell_is_understood(void **state)
{
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		uint8_t frame[NEIGHBOUR_FRAME_MAX];
		struct neighbour_message m;
		struct gid a = gid_of(pairs[i].a), b = gid_of(pairs[i].b);
		uint32_t len = neighbour_write_tell(frame, mac_a, mac_b, pairs[i].vlan, &a, &b);
		assert_in_range(len, 60, NEIGHBOUR_FRAME_MAX);
		assert_int_equal(parse(frame, len, &m), DROP_NONE);
		assert_int_equal(m.kind, NEIGHBOUR_TELL);
		assert_true(gid_is_equal(&m.sender, &a) && gid_is_equal(&m.target, &a));
		assert_true(m.has_mac && !m.is_probe && m.solicited && m.override);
		assert_memory_equal(m.mac, mac_a, 6);
		assert_memory_equal(frame, mac_b, 6);
	}
}

static void test_probes(void **state)
{
	static const char *const targets[] = { "10.0.0.2", "fd00::2" };
	for (size_t i = 0; i < 2; i++) {
		uint8_t frame[NEIGHBOUR_FRAME_MAX];
		struct neighbour_message m;
		struct gid zero = { { 0 } }, target = gid_of(targets[i]);
		uint32_t len = neighbour_write_ask(frame, mac_a, NULL, VLAN_NONE, &zero, &target);
		assert_int_equal(parse(frame, len, &m), DROP_NONE);
		assert_true(m.is_probe && gid_is_zero(&m.sender) && gid_is_equal(&m.target, &target));
		assert_int_equal(m.has_mac, i == 0);
	}
}

/* The answer to a probe goes to all nodes, and then it is not solicited (RFC 4861, 7.2.4). */
static void test_tell_all_nodes(void **state)
{
	uint8_t frame[NEIGHBOUR_FRAME_MAX];
	struct neighbour_message m;
	struct gid a = gid_of("fd00::1"), all = gid_of("ff02::1");
	uint32_t len = neighbour_write_tell(frame, mac_a, (const uint8_t[]){ 0x33, 0x33, 0, 0, 0, 1 }, VLAN_NONE, &a, &all);
	assert_int_equal(parse(frame, len, &m), DROP_NONE);
	assert_true(!m.solicited && m.override);
}

struct change {
	const char *name;
	uint8_t at, value;
	enum drop want;
};

/* at: in the ARP body of a request. */
static const struct change arp_changes[] = {
	{ "hardware type", 1, 6, DROP_ARP_MALFORMED },
	{ "protocol type", 2, 0x86, DROP_ARP_MALFORMED },
	{ "hardware length", 4, 8, DROP_ARP_MALFORMED },
	{ "protocol length", 5, 16, DROP_ARP_MALFORMED },
	{ "operation 0", 7, 0, DROP_ARP_MALFORMED },
	{ "operation 3", 7, 3, DROP_ARP_MALFORMED },
	{ "operation 257", 6, 1, DROP_ARP_MALFORMED },
	{ "sender MAC a group", 8, 0x53, DROP_ARP_MALFORMED },
	{ "sender 224.0.0.1", 14, 224, DROP_ARP_MALFORMED },
	{ "sender 0.0.0.1", 14, 0, DROP_ARP_MALFORMED },
	{ "target MAC is not looked at", 18, 0xff, DROP_NONE },
	{ "a reply", 7, 2, DROP_NONE },
};

static void test_arp_fields(void **state)
{
	uint8_t frame[sizeof(arp_request)];
	for (size_t i = 0; i < sizeof(arp_changes) / sizeof(arp_changes[0]); i++) {
		memcpy(frame, arp_request, sizeof(frame));
		frame[14 + arp_changes[i].at] = arp_changes[i].value;
		assert_int_equal(parse(frame, sizeof(frame), NULL), arp_changes[i].want);
	}
	memcpy(frame, arp_request, sizeof(frame));
	memset(frame + 14 + 8, 0, 6);
	assert_int_equal(parse(frame, sizeof(frame), NULL), DROP_ARP_MALFORMED);
	memcpy(frame, arp_request, sizeof(frame));
	memset(frame + 14 + 14, 0xff, 4);
	assert_int_equal(parse(frame, sizeof(frame), NULL), DROP_ARP_MALFORMED);
	/* A reply must come from somebody; a request from nobody is a probe. */
	memcpy(frame, arp_request, sizeof(frame));
	memset(frame + 14 + 14, 0, 4);
	assert_int_equal(parse(frame, sizeof(frame), NULL), DROP_NONE);
	frame[14 + 7] = 2;
	assert_int_equal(parse(frame, sizeof(frame), NULL), DROP_ARP_MALFORMED);
}

static void test_truncated(void **state)
{
	for (uint32_t len = 0; len < 14 + 28; len++)
		assert_int_not_equal(parse(arp_request, len, NULL), DROP_NONE);
	assert_int_equal(parse(arp_request, 14 + 28, NULL), DROP_NONE);
	for (uint32_t len = 0; len < sizeof(solicitation); len++)
		assert_int_not_equal(parse(solicitation, len, NULL), DROP_NONE);
	for (uint32_t len = 0; len < sizeof(advertisement_tagged); len++)
		assert_int_not_equal(parse(advertisement_tagged, len, NULL), DROP_NONE);
}

/* at: in the IPv6 packet; the checksum is mended. */
static const struct change solicitation_changes[] = {
	{ "no change", 6, 58, DROP_NONE },
	{ "hop limit", 7, 254, DROP_ND_MALFORMED },
	{ "code", 41, 1, DROP_ND_MALFORMED },
	{ "router solicitation", 40, 133, DROP_ND_IGNORED },
	{ "router advertisement", 40, 134, DROP_ND_IGNORED },
	{ "redirect", 40, 137, DROP_ND_IGNORED },
	{ "flags mean nothing", 44, 0xff, DROP_NONE },
	{ "target a group", 48, 0xff, DROP_ND_MALFORMED },
	{ "option length 0", 65, 0, DROP_ND_MALFORMED },
	{ "option length 2", 65, 2, DROP_ND_MALFORMED },
	{ "unknown option", 64, 99, DROP_NONE },
	{ "option with a group's MAC", 66, 0x53, DROP_ND_MALFORMED },
	{ "too short for a target", 5, 16, DROP_ND_MALFORMED },
	{ "half an option", 5, 28, DROP_ND_MALFORMED },
	{ "no option", 5, 24, DROP_NONE },
};

static void test_solicitation_fields(void **state)
{
	for (size_t i = 0; i < sizeof(solicitation_changes) / sizeof(solicitation_changes[0]); i++) {
		uint8_t frame[sizeof(solicitation)];
		memcpy(frame, solicitation, sizeof(frame));
		frame[14 + solicitation_changes[i].at] = solicitation_changes[i].value;
		mend_icmp6(frame + 14);
		enum drop got = parse(frame, sizeof(frame), NULL);
		if (got != solicitation_changes[i].want)
			print_message("%s\n", solicitation_changes[i].name);
		assert_int_equal(got, solicitation_changes[i].want);
	}
}

/* A probe has no option and goes to the solicited-node group of its target (RFC 4861, 7.1.1). */
static void test_unsound_probes(void **state)
{
	uint8_t frame[sizeof(solicitation)];
	memcpy(frame, solicitation, sizeof(frame));
	memset(frame + 14 + 8, 0, 16);
	mend_icmp6(frame + 14);
	assert_int_equal(parse(frame, sizeof(frame), NULL), DROP_ND_MALFORMED);
	frame[14 + 5] = 24;
	mend_icmp6(frame + 14);
	assert_int_equal(parse(frame, sizeof(frame), NULL), DROP_NONE);
	frame[14 + 39] ^= 1;
	mend_icmp6(frame + 14);
	assert_int_equal(parse(frame, sizeof(frame), NULL), DROP_ND_MALFORMED);
}

static void test_unsound_advertisements(void **state)
{
	uint8_t frame[sizeof(advertisement_tagged)], *ip = frame + 18;
	memcpy(frame, advertisement_tagged, sizeof(frame));
	memset(ip + 8, 0, 16);
	mend_icmp6(ip);
	assert_int_equal(parse(frame, sizeof(frame), NULL), DROP_ND_MALFORMED);
	memcpy(frame, advertisement_tagged, sizeof(frame));
	ip[24] = 0xff;
	mend_icmp6(ip);
	assert_int_equal(parse(frame, sizeof(frame), NULL), DROP_ND_MALFORMED);
	ip[44] &= (uint8_t)~0x40;
	mend_icmp6(ip);
	assert_int_equal(parse(frame, sizeof(frame), NULL), DROP_NONE);
}

static void test_nd_checksum(void **state)
{
	for (uint32_t bit = 0; bit < 16; bit++) {
		uint8_t frame[sizeof(solicitation)];
		memcpy(frame, solicitation, sizeof(frame));
		frame[14 + 42 + bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(parse(frame, sizeof(frame), NULL), DROP_ND_MALFORMED);
	}
}

/* An echo request of either version, with n bytes behind identifier and sequence number. Returns its length. */
static uint32_t make_echo(uint8_t *frame, unsigned version, uint16_t vlan, uint32_t n)
{
	uint8_t *ip = frame + (vlan == VLAN_NONE ? 14 : 18), *icmp = ip + (version == 4 ? 20 : 40);
	uint32_t len = 8 + n;
	memcpy(frame, mac_a, 6);
	memcpy(frame + 6, mac_b, 6);
	put_be16(frame + 12, 0x8100);
	put_be16(frame + 14, vlan);
	put_be16(ip - 2, version == 4 ? 0x0800 : 0x86dd);
	memset(ip, 0, version == 4 ? 20 : 40);
	memset(icmp, 0, 8);
	put_be32(icmp + 4, 0x12345678);
	for (uint32_t i = 0; i < n; i++)
		icmp[8 + i] = (uint8_t)(i + 1);
	if (version == 4) {
		memcpy(ip, (const uint8_t[]){ 0x45, 0x10, 0, 0, 0, 0, 0, 0, 9, 1, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1 }, 20);
		put_be16(ip + 2, (uint16_t)(20 + len));
		put_be16(ip + 10, (uint16_t)~ones_sum(0, ip, 20));
		icmp[0] = 8;
		put_be16(icmp + 2, (uint16_t)~ones_sum(0, icmp, len));
	} else {
		struct gid src = gid_of("fd00::2"), dst = gid_of("fd00::1");
		put_be32(ip, 0x61000000);
		put_be16(ip + 4, (uint16_t)len);
		ip[6] = 58;
		ip[7] = 9;
		memcpy(ip + 8, src.b, 16);
		memcpy(ip + 24, dst.b, 16);
		icmp[0] = 128;
		mend_icmp6(ip);
	}
	return (uint32_t)(icmp + len - frame);
}

static void check_echo(unsigned version, uint16_t vlan, uint32_t n)
{
	uint8_t request[2048], reply[2048];
	struct packet p;
	uint32_t len = make_echo(request, version, vlan, n), l3 = vlan == VLAN_NONE ? 14 : 18, ip_len = version == 4 ? 20 : 40;
	uint8_t *ip = reply + l3, *icmp = ip + ip_len;
	assert_int_equal(packet_parse(&p, request, len, VLAN_NONE, NULL), DROP_NONE);
	assert_int_equal(p.kind, version == 4 ? PACKET_ECHO4 : PACKET_ECHO6);
	assert_int_equal(p.payload_len, n);
	memset(reply, 0xee, sizeof(reply));
	assert_int_equal(echo_write_reply(reply, len - 1, mac_a, &p), 0);
	assert_int_equal(reply[0], 0xee);
	assert_int_equal(echo_write_reply(reply, len, mac_a, &p), len);
	assert_int_equal(reply[len], 0xee);
	assert_memory_equal(reply, mac_b, 6);
	assert_memory_equal(reply + 6, mac_a, 6);
	if (l3 == 18)
		assert_int_equal(get_be16(reply + 14), vlan);
	assert_memory_equal(icmp + 4, request + l3 + ip_len + 4, 4 + n);
	assert_int_equal(icmp[0], version == 4 ? 0 : 129);
	if (version == 4) {
		assert_int_equal(ones_sum(0, ip, 20), 0xffff);
		assert_int_equal(ones_sum(0, icmp, 8 + n), 0xffff);
		assert_memory_equal(ip + 12, request + l3 + 16, 4);
		assert_memory_equal(ip + 16, request + l3 + 12, 4);
	} else {
		assert_int_equal(ones_sum(ones_sum(8 + n + 58, ip + 8, 32), icmp, 8 + n), 0xffff);
		assert_memory_equal(ip + 8, request + l3 + 24, 16);
		assert_memory_equal(ip + 24, request + l3 + 8, 16);
	}
	/* A reply is never answered. */
	assert_int_equal(packet_parse(&p, reply, len, VLAN_NONE, NULL), DROP_ICMP_IGNORED);
}

static void test_echo(void **state)
{
	static const uint32_t lens[] = { 0, 1, 2, 55, 56, 1472 };
	for (unsigned i = 0; i < 24; i++)
		check_echo(i & 1 ? 6 : 4, i & 2 ? 100 : VLAN_NONE, lens[i / 4]);
}

static void test_echo_to_a_group_is_not_answered(void **state)
{
	uint8_t request[256], reply[256];
	struct packet p;
	uint32_t len = make_echo(request, 6, VLAN_NONE, 8);
	request[14 + 24] = 0xff;
	mend_icmp6(request + 14);
	assert_int_equal(packet_parse(&p, request, len, VLAN_NONE, NULL), DROP_NONE);
	assert_true(p.is_multicast);
	assert_int_equal(echo_write_reply(reply, sizeof(reply), mac_a, &p), 0);
}

/* Version, type, code, change of the checksum, and what comes of it. */
static const struct icmp_row {
	uint8_t version, type, code;
	uint16_t spoil;
	enum drop want;
} icmp_rows[] = {
	{ 4, 8, 0, 0, DROP_NONE },           { 4, 8, 1, 0, DROP_ICMP_MALFORMED }, { 4, 8, 0, 1, DROP_ICMP_MALFORMED },
	{ 4, 0, 0, 0, DROP_ICMP_IGNORED },   { 4, 3, 3, 0, DROP_ICMP_IGNORED },   { 4, 3, 3, 1, DROP_ICMP_MALFORMED },
	{ 6, 128, 0, 0, DROP_NONE },         { 6, 128, 1, 0, DROP_ICMP_MALFORMED }, { 6, 128, 0, 1, DROP_ICMP_MALFORMED },
	{ 6, 129, 0, 0, DROP_ICMP_IGNORED }, { 6, 1, 4, 0, DROP_ICMP_IGNORED },   { 6, 143, 0, 0, DROP_ICMP_IGNORED },
};

static void test_icmp_rows(void **state)
{
	for (size_t i = 0; i < sizeof(icmp_rows) / sizeof(icmp_rows[0]); i++) {
		const struct icmp_row *r = &icmp_rows[i];
		uint8_t frame[256], *ip = frame + 14, *icmp = ip + (r->version == 4 ? 20 : 40);
		struct packet p;
		uint32_t len = make_echo(frame, r->version, VLAN_NONE, 8);
		icmp[0] = r->type;
		icmp[1] = r->code;
		put_be16(icmp + 2, 0);
		if (r->version == 4)
			put_be16(icmp + 2, (uint16_t)~ones_sum(0, icmp, 16));
		else
			mend_icmp6(ip);
		put_be16(icmp + 2, get_be16(icmp + 2) ^ r->spoil);
		assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, NULL), r->want);
	}
}

static void test_icmp_runts_and_unspecified_source(void **state)
{
	uint8_t frame[256];
	struct packet p;
	uint32_t len = make_echo(frame, 6, VLAN_NONE, 0);
	memset(frame + 14 + 8, 0, 16);
	mend_icmp6(frame + 14);
	assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, NULL), DROP_IP_SOURCE);
	len = make_echo(frame, 6, VLAN_NONE, 0);
	frame[14 + 5] = 7;
	assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, NULL), DROP_ICMP_MALFORMED);
	len = make_echo(frame, 4, VLAN_NONE, 0);
	put_be16(frame + 14 + 2, 27);
	put_be16(frame + 14 + 10, 0);
	put_be16(frame + 14 + 10, (uint16_t)~ones_sum(0, frame + 14, 20));
	assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, NULL), DROP_ICMP_MALFORMED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_of_requests),
		cmocka_unit_test(test_ask_is_understood),
		cmocka_unit_test(test_tell_is_understood),
		cmocka_unit_test(test_probes),
		cmocka_unit_test(test_tell_all_nodes),
		cmocka_unit_test(test_arp_fields),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_solicitation_fields),
		cmocka_unit_test(test_unsound_probes),
		cmocka_unit_test(test_unsound_advertisements),
		cmocka_unit_test(test_nd_checksum),
		cmocka_unit_test(test_echo),
		cmocka_unit_test(test_echo_to_a_group_is_not_answered),
		cmocka_unit_test(test_icmp_rows),
		cmocka_unit_test(test_icmp_runts_and_unspecified_source),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
