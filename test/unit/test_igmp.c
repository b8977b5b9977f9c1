/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of multicast groups, and the messages of IGMP and MLD: reports byte by byte, queries of each version, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arp.h"
#include "igmp.h"
#include "protocol.h"
#include "queries.h"

static const uint8_t our_mac[6] = { 0x52, 0x54, 0, 0, 0, 1 };

/* RFC 1112, 6.4; RFC 2464, 7. */
static void test_group_macs(void **state)
{
	static const struct {
		const char *group;
		uint8_t mac[6];
	} rows[] = {
		{ "224.0.0.1", { 1, 0, 0x5e, 0, 0, 1 } }, { "239.255.255.255", { 1, 0, 0x5e, 0x7f, 0xff, 0xff } }, { "225.128.0.5", { 1, 0, 0x5e, 0, 0, 5 } },
		{ "ff02::1", { 0x33, 0x33, 0, 0, 0, 1 } }, { "ff1e::1:89ab:cdef", { 0x33, 0x33, 0x89, 0xab, 0xcd, 0xef } },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gid g = query_gid(rows[i].group);
		uint8_t mac[6];
		gid_group_mac(&g, mac);
		assert_memory_equal(mac, rows[i].mac, 6);
	}
}

/* ---- reports ---- */

static struct group_record record_of(const char *group, enum group_record_type type)
{
	return (struct group_record){ query_gid(group), (uint8_t)type };
}

/* RFC 3376, 4.2: one hop, internetwork control, router alert, 224.0.0.22. */
static void test_igmp3_report(void **state)
{
	static const uint8_t right[60] = {
		0x01, 0x00, 0x5e, 0x00, 0x00, 0x16, 0x52, 0x54, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00,
		0x46, 0xc0, 0x00, 0x28, 0x00, 0x00, 0x40, 0x00, 0x01, 0x02, 0xf9, 0xf8, 10, 0, 0, 1, 224, 0, 0, 22, 0x94, 0x04, 0x00, 0x00,
		0x22, 0x00, 0xe8, 0xf9, 0x00, 0x00, 0x00, 0x01, 0x04, 0x00, 0x00, 0x00, 239, 1, 2, 3,
	};
	struct group_record r = record_of("239.1.2.3", GROUP_TO_EXCLUDE);
	struct gid src = query_gid("10.0.0.1");
	uint8_t frame[GROUP_FRAME_MAX];
	assert_int_equal(group_report_write(frame, our_mac, VLAN_NONE, &src, &r, 1), sizeof(right));
	assert_memory_equal(frame, right, sizeof(right));
}

/* RFC 3810, 5.2: one hop, hop-by-hop router alert of value 0, ff02::16. */
static void test_mld2_report(void **state)
{
	static const uint8_t right[] = {
		0x33, 0x33, 0x00, 0x00, 0x00, 0x16, 0x52, 0x54, 0x00, 0x00, 0x00, 0x01, 0x81, 0x00, 0x00, 0x07, 0x86, 0xdd,
		0x60, 0x00, 0x00, 0x00, 0x00, 0x24, 0x00, 0x01, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x16,
		0x3a, 0x00, 0x05, 0x02, 0x00, 0x00, 0x01, 0x00,
		0x8f, 0x00, 0x5d, 0xc3, 0x00, 0x00, 0x00, 0x01, 0x04, 0x00, 0x00, 0x00, 0xff, 0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34,
	};
	struct group_record r = record_of("ff15::1234", GROUP_TO_EXCLUDE);
	struct gid src = query_gid("fe80::1");
	uint8_t frame[GROUP_FRAME_MAX];
	assert_int_equal(group_report_write(frame, our_mac, 7, &src, &r, 1), sizeof(right));
	assert_memory_equal(frame, right, sizeof(right));
}

/* Of the message at the end of a frame: right checksum; its first byte. */
static uint8_t check_sums(const uint8_t *frame, uint32_t len, bool is_ip4, const uint8_t **message, uint32_t *message_len)
{
	const uint8_t *ip = frame + ETHERNET_LEN;
	uint32_t header = is_ip4 ? 24 : 48;
	uint32_t whole = is_ip4 ? get_be16(ip + 2) : IP6_LEN + get_be16(ip + 4);
	assert_true(ETHERNET_LEN + whole == len || len == ETHERNET_MIN);
	*message = ip + header;
	*message_len = whole - header;
	if (is_ip4)
		assert_int_equal(checksum_fold(checksum_add(0, ip, 24)), 0xffff);
	assert_int_equal(checksum_fold(checksum_add(is_ip4 ? 0 : checksum_pseudo(ip + 8, 32, PROTOCOL_ICMP6, *message_len), *message, *message_len)), 0xffff);
	assert_int_equal(ip[is_ip4 ? 8 : 7], 1);
	return (*message)[0];
}

static void test_many_records(void **state)
{
	for (int is_ip4 = 0; is_ip4 < 2; is_ip4++) {
		struct group_record r[GROUP_RECORDS_MAX];
		struct gid src = { { 0 } };
		uint8_t frame[GROUP_FRAME_MAX];
		const uint8_t *m;
		uint32_t len, n = group_report_holds(sizeof(frame), is_ip4);
		assert_int_equal(n, is_ip4 ? 36 : 13);
		assert_int_equal(group_report_holds(1u << 20, is_ip4), n);
		assert_true(group_report_holds(NEIGHBOUR_FRAME_MAX, is_ip4) >= 1);
		for (uint32_t i = 0; i < n; i++) {
			r[i] = record_of(is_ip4 ? "239.0.0.0" : "ff05::", i & 1 ? GROUP_IS_EXCLUDE : GROUP_TO_INCLUDE);
			r[i].group.b[15] = (uint8_t)i;
		}
		uint32_t frame_len = group_report_write(frame, our_mac, VLAN_NONE, &src, r, n);
		assert_true(frame_len <= sizeof(frame));
		assert_int_equal(check_sums(frame, frame_len, is_ip4, &m, &len), is_ip4 ? 0x22 : 143);
		assert_int_equal(get_be16(m + 6), n);
		for (uint32_t i = 0; i < n; i++) {
			const uint8_t *record = m + 8 + i * (is_ip4 ? 8u : 20u);
			assert_int_equal(record[0], i & 1 ? 2 : 3);
			assert_int_equal(get_be16(record + 2), 0);
			assert_memory_equal(record + 4, r[i].group.b + (is_ip4 ? 12 : 0), is_ip4 ? 4 : 16);
		}
	}
}

/* RFC 2236, 9 and RFC 2710, 3.7: to the group itself, or to all routers. */
static void test_older_reports(void **state)
{
	static const struct {
		const char *group, *to;
		uint8_t type, record;
	} rows[] = {
		{ "239.1.2.3", "239.1.2.3", 0x16, GROUP_TO_EXCLUDE }, { "239.1.2.3", "239.1.2.3", 0x16, GROUP_IS_EXCLUDE }, { "239.1.2.3", "224.0.0.2", 0x17, GROUP_TO_INCLUDE },
		{ "ff05::9", "ff05::9", 131, GROUP_TO_EXCLUDE }, { "ff05::9", "ff02::2", 132, GROUP_TO_INCLUDE },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct group_record r = record_of(rows[i].group, rows[i].record);
		struct gid to = query_gid(rows[i].to), src = { { 0 } };
		bool is_ip4 = gid_is_ip4(&to);
		uint8_t frame[GROUP_FRAME_MAX], mac[6];
		const uint8_t *m;
		uint32_t len, frame_len = group_report_write_older(frame, our_mac, VLAN_NONE, &src, &r);
		assert_int_equal(check_sums(frame, frame_len, is_ip4, &m, &len), rows[i].type);
		assert_int_equal(len, is_ip4 ? 8 : 24);
		assert_memory_equal(m + (is_ip4 ? 4 : 8), r.group.b + (is_ip4 ? 12 : 0), is_ip4 ? 4 : 16);
		assert_memory_equal(frame + ETHERNET_LEN + (is_ip4 ? 16 : 24), to.b + (is_ip4 ? 12 : 0), is_ip4 ? 4 : 16);
		gid_group_mac(&to, mac);
		assert_memory_equal(frame, mac, 6);
	}
}

/* ---- queries ---- */

static enum drop hear(struct group_query *g, const uint8_t *frame, uint32_t len)
{
	struct packet p;
	enum drop d = packet_parse(&p, frame, len, VLAN_NONE, NULL);
	if (d != DROP_NONE)
		return d;
	assert_int_equal(p.kind, PACKET_QUERY);
	return group_query_parse(g, &p);
}

#define ALL4 "10.0.0.9", "224.0.0.1"
#define ALL6 "fe80::9", "ff02::1"

static void test_queries(void **state)
{
	static const struct {
		struct query q;
		uint32_t delay_ms;
		uint8_t version, robustness;
		bool is_older;
	} rows[] = {
		{ { NULL, 12, 100, 2, 1, true, ALL4 }, 10000, 3, 2, false },
		{ { NULL, 12, 0x80, 7, 1, true, ALL4 }, 100 * 128, 3, 7, false },
		{ { NULL, 12, 0xff, 0, 1, true, ALL4 }, 100 * 31744, 3, 0, false },
		{ { "239.1.2.3", 12, 10, 2, 1, true, "10.0.0.9", "239.1.2.3" }, 1000, 3, 2, false },
		{ { "239.1.2.3", 20, 10, 2, 1, true, "0.0.0.0", "239.1.2.3" }, 1000, 3, 2, false },
		{ { NULL, 8, 50, 0, 1, false, ALL4 }, 5000, 2, 0, true },
		{ { NULL, 8, 0, 0, 1, true, ALL4 }, 10000, 2, 0, true }, /* IGMPv1 */
		{ { NULL, 28, 10000, 2, 1, true, ALL6 }, 10000, 2, 2, false },
		{ { NULL, 28, 0x8000, 2, 1, true, ALL6 }, 32768, 2, 2, false },
		{ { NULL, 28, 0xffff, 2, 1, true, ALL6 }, 8387584, 2, 2, false },
		{ { "ff05::9", 28, 1000, 2, 1, true, "fe80::9", "ff05::9" }, 1000, 2, 2, false },
		{ { NULL, 24, 0xffff, 0, 1, true, ALL6 }, 65535, 1, 0, true },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gid group = rows[i].q.group ? query_gid(rows[i].q.group) : (struct gid){ { 0 } };
		struct gid src = query_gid(rows[i].q.src);
		struct group_query g;
		uint8_t frame[256];
		char text[256];
		uint32_t len = query_write(frame, &rows[i].q, gid_is_ip4(&src));
		assert_int_equal(hear(&g, frame, len), DROP_NONE);
		assert_true(gid_is_equal(&g.group, &group));
		assert_int_equal(g.max_delay_ms, rows[i].delay_ms);
		assert_int_equal(g.version, rows[i].version);
		assert_int_equal(g.robustness, rows[i].robustness);
		assert_int_equal(g.is_older, rows[i].is_older);
		packet_print(text, sizeof(text), frame, len, VLAN_NONE);
		assert_non_null(strstr(text, "membership query"));
		assert_null(strstr(text, "dropped"));
	}
}

static void test_queries_of_strangers(void **state)
{
	static const struct {
		struct query q;
		enum drop drop;
	} rows[] = {
		{ { NULL, 12, 100, 2, 2, true, ALL4 }, DROP_GROUP_IGNORED }, /* from beyond a router */
		{ { NULL, 28, 100, 2, 2, true, ALL6 }, DROP_GROUP_IGNORED },
		{ { NULL, 28, 100, 2, 1, true, "fd00::9", "ff02::1" }, DROP_GROUP_IGNORED }, /* RFC 3810, 5.1.14 */
		{ { NULL, 12, 100, 2, 1, true, "224.0.0.9", "224.0.0.1" }, DROP_IP_SOURCE },
		{ { "10.0.0.5", 12, 100, 2, 1, true, ALL4 }, DROP_GROUP_MALFORMED },
		{ { "fd00::5", 28, 100, 2, 1, true, ALL6 }, DROP_GROUP_MALFORMED },
		{ { "239.0.0.1", 28, 100, 2, 1, true, ALL6 }, DROP_GROUP_MALFORMED },
		{ { NULL, 20, 100, 2, 1, true, ALL6 }, DROP_GROUP_MALFORMED }, /* too short for any */
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gid src = query_gid(rows[i].q.src);
		struct group_query g;
		uint8_t frame[256];
		uint32_t len = query_write(frame, &rows[i].q, gid_is_ip4(&src));
		assert_int_equal(hear(&g, frame, len), rows[i].drop);
	}
}

/* Every byte changed, and every length cut: a checksum finds it, or it is another message; nothing is read beyond the end. */
static void test_damage(void **state)
{
	static const struct query both[] = { { NULL, 12, 100, 2, 1, true, ALL4 }, { NULL, 28, 1000, 2, 1, true, ALL6 } };
	for (unsigned k = 0; k < 2; k++) {
		struct group_query g;
		uint8_t frame[256], *copy;
		uint32_t len = query_write(frame, &both[k], k == 0);
		for (uint32_t cut = 0; cut < len; cut++) {
			copy = malloc(cut + 1);
			memcpy(copy, frame, cut);
			assert_int_not_equal(hear(&g, copy, cut), DROP_NONE);
			free(copy);
		}
		for (uint32_t i = ETHERNET_LEN + (k ? IP6_LEN + 8 : 0); i < len; i++) {
			frame[i] ^= 0x5a;
			assert_int_not_equal(hear(&g, frame, len), DROP_NONE);
			frame[i] ^= 0x5a;
		}
		assert_int_equal(hear(&g, frame, len), DROP_NONE);
	}
}

/* Reports of others, and hop-by-hop options without the alert or before something else. */
static void test_what_is_no_query(void **state)
{
	struct group_record r = record_of("239.1.2.3", GROUP_TO_EXCLUDE), r6 = record_of("ff05::1", GROUP_TO_EXCLUDE);
	struct gid src = query_gid("10.0.0.1"), src6 = query_gid("fe80::1");
	struct query q = { NULL, 28, 1000, 2, 1, true, ALL6 };
	struct group_query g;
	uint8_t frame[GROUP_FRAME_MAX];
	assert_int_equal(hear(&g, frame, group_report_write(frame, our_mac, VLAN_NONE, &src, &r, 1)), DROP_GROUP_IGNORED);
	assert_int_equal(hear(&g, frame, group_report_write(frame, our_mac, VLAN_NONE, &src6, &r6, 1)), DROP_GROUP_IGNORED);
	uint32_t len = query_write(frame, &q, false);
	uint8_t *options = frame + ETHERNET_LEN + IP6_LEN;
	for (unsigned way = 0; way < 5; way++) {
		query_write(frame, &q, false);
		if (way == 0)
			options[0] = PROTOCOL_UDP;
		if (way == 1)
			options[4] = 1; /* padding only */
		if (way == 2)
			options[1] = 200; /* beyond the packet */
		if (way == 3)
			options[3] = 77;
		if (way == 4)
			options[6] = 1; /* an alert for something else */
		assert_int_equal(hear(&g, frame, len), DROP_IP_OPTIONS);
	}
	query_write(frame, &(struct query){ NULL, 12, 100, 2, 1, true, ALL4 }, true);
	frame[ETHERNET_LEN + 9] = PROTOCOL_UDP; /* options are IGMP's alone */
	assert_int_equal(hear(&g, frame, 50), DROP_IP_OPTIONS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_group_macs),
		cmocka_unit_test(test_igmp3_report),
		cmocka_unit_test(test_mld2_report),
		cmocka_unit_test(test_many_records),
		cmocka_unit_test(test_older_reports),
		cmocka_unit_test(test_queries),
		cmocka_unit_test(test_queries_of_strangers),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_what_is_no_query),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
