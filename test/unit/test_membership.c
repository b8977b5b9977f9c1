/* SPDX-License-Identifier: BSD-3-Clause */
/* What a host tells of the multicast groups that it is in: changes, told again; answers to queries, in time and no more than needed; older routers; and that no flood of queries or of changes makes more of it than there should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "addr_hosts.h"
#include "igmp.h"
#include "queries.h"

#define ALL4 "10.0.0.9", "224.0.0.1"
#define ALL6 "fe80::9", "ff02::1"

static const struct {
	const char *us, *group, *other, *router, *all;
	unsigned prefix_len;
	uint32_t general_len;
	uint16_t second; /* the code for it */
} families[] = {
	{ "10.0.0.1", "239.1.2.3", "239.1.2.4", "10.0.0.9", "224.0.0.1", 24, 12, 10 },
	{ "fe80::1", "ff05::1:3", "ff05::1:4", "fe80::9", "ff02::1", 64, 28, 1000 },
};

static unsigned family; /* of the test that runs */

static void begin(struct host *h, struct addr_config c)
{
	host_init(h, 1, c);
	host_add(h, families[family].us, VLAN_NONE, families[family].prefix_len);
}

static void join(struct host *h, const char *group)
{
	struct gid g = gid_of(group);
	assert_int_equal(addr_group_join(h->a, &g, now), 0);
}

static void leave(struct host *h, const char *group)
{
	struct gid g = gid_of(group);
	assert_int_equal(addr_group_leave(h->a, &g, now), 0);
}

/* The records of the last frame: "4 239.1.2.3", each followed by a space. */
static const char *read_report(const struct host *h)
{
	static char text[2048];
	const uint8_t *ip = h->last + 14;
	bool is_ip4 = ip[0] >> 4 == 4;
	const uint8_t *m = ip + (is_ip4 ? 24 : 48);
	text[0] = 0;
	assert_int_equal(m[0], is_ip4 ? 0x22 : 143);
	for (unsigned i = 0; i < get_be16(m + 6); i++) {
		const uint8_t *record = m + 8 + i * (is_ip4 ? 8u : 20u);
		char gid[GID_TEXT_MAX];
		struct gid g = gid_from_ip4(record + 4);
		if (!is_ip4)
			memcpy(g.b, record + 4, 16);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%u %s ", record[0], gid_format(&g, gid));
	}
	return text;
}

/* Runs until it has sent a frame, at most so long; how long it took. UINT64_MAX: none came. */
static uint64_t await_report(struct host *h, uint64_t ns)
{
	uint64_t start = now;
	unsigned sent = h->sent;
	for (; now <= start + ns; now += MS) {
		wheel_run(h->wheel, now);
		uint32_t len = addr_tx(h->a, now, h->last, sizeof(h->last));
		h->sent += len != 0;
		h->last_len = len;
		if (h->sent != sent)
			return now - start;
	}
	return UINT64_MAX;
}

static void expect_report(struct host *h, uint64_t within_ns, unsigned type, const char *group)
{
	char right[GID_TEXT_MAX + 8];
	snprintf(right, sizeof(right), "%u %s ", type, group);
	assert_true(await_report(h, within_ns) != UINT64_MAX);
	assert_string_equal(read_report(h), right);
}

static void expect_silence(struct host *h, uint64_t ns)
{
	assert_true(await_report(h, ns) == UINT64_MAX);
}

static enum drop ask(struct host *h, const char *group, uint16_t code, unsigned robustness)
{
	struct query q = { group, families[family].general_len, code, (uint8_t)robustness, 1, true, families[family].router, group ? group : families[family].all };
	uint8_t frame[256];
	return host_take(h, frame, query_write(frame, &q, family == 0));
}

/* RFC 3376, 5.1: told at once, and once more within a second. */
static void test_changes(void **state)
{
	for (family = 0; family < 2; family++) {
		struct host h;
		const char *group = families[family].group;
		begin(&h, (struct addr_config){ 0 });
		expect_silence(&h, SECOND);
		join(&h, group);
		assert_true(addr_has_tx(h.a));
		expect_report(&h, 0, 4, group);
		expect_report(&h, SECOND + MS, 4, group);
		expect_silence(&h, 10 * SECOND);
		leave(&h, group);
		expect_report(&h, 0, 3, group);
		expect_report(&h, SECOND + MS, 3, group);
		expect_silence(&h, 10 * SECOND);
		struct gid g = gid_of(group);
		assert_int_equal(addr_group_leave(h.a, &g, now), -ENOENT);
		assert_int_equal(host_stats(&h).group_reports, 4);
		host_free(&h);
	}
}

/* What was to be told again of the old state is not, when it changes meanwhile. */
static void test_changes_of_mind(void **state)
{
	for (family = 0; family < 2; family++) {
		struct host h;
		const char *group = families[family].group;
		struct gid g = gid_of(group);
		begin(&h, (struct addr_config){ 0 });
		join(&h, group);
		assert_int_equal(addr_group_join(h.a, &g, now), -EEXIST);
		expect_report(&h, 0, 4, group);
		leave(&h, group);
		expect_report(&h, 0, 3, group);
		join(&h, group);
		leave(&h, group); /* before anything was sent */
		expect_report(&h, 0, 3, group);
		expect_report(&h, SECOND + MS, 3, group);
		join(&h, group);
		expect_report(&h, 0, 4, group);
		expect_report(&h, SECOND + MS, 4, group);
		expect_silence(&h, 3 * SECOND);
		host_free(&h);
	}
}

/* RFC 3376, 5.2: one answer with all groups, at a random time. */
static void test_general_query(void **state)
{
	for (family = 0; family < 2; family++) {
		struct host h;
		uint64_t least = UINT64_MAX, most = 0;
		char right[2][128];
		const char *a = families[family].group, *b = families[family].other;
		begin(&h, (struct addr_config){ 0 });
		assert_int_equal(ask(&h, NULL, families[family].second, 2), DROP_NONE);
		expect_silence(&h, 3 * SECOND); /* of no group */
		join(&h, a);
		join(&h, b);
		hosts_run(&h, NULL, 3 * SECOND, MS);
		snprintf(right[0], sizeof(right[0]), "2 %s 2 %s ", a, b);
		snprintf(right[1], sizeof(right[1]), "2 %s 2 %s ", b, a);
		for (unsigned i = 0; i < 50; i++) {
			assert_int_equal(ask(&h, NULL, families[family].second, 2), DROP_NONE);
			uint64_t took = await_report(&h, 2 * SECOND);
			const char *said = read_report(&h);
			assert_true(!strcmp(said, right[0]) || !strcmp(said, right[1]));
			least = took < least ? took : least;
			most = took > most ? took : most;
			expect_silence(&h, 2 * SECOND);
		}
		assert_true(least < SECOND / 4 && most > SECOND / 2 && most <= SECOND + MS);
		host_free(&h);
	}
}

static void test_group_query(void **state)
{
	for (family = 0; family < 2; family++) {
		struct host h;
		const char *group = families[family].group;
		begin(&h, (struct addr_config){ 0 });
		join(&h, group);
		hosts_run(&h, NULL, 3 * SECOND, MS);
		assert_int_equal(ask(&h, families[family].other, families[family].second, 2), DROP_GROUP_IGNORED);
		expect_silence(&h, 2 * SECOND);
		assert_int_equal(ask(&h, group, families[family].second, 2), DROP_NONE);
		expect_report(&h, SECOND + MS, 2, group);
		expect_silence(&h, 2 * SECOND);
		/* rule 1: an answer of all groups that comes sooner is one of this group too */
		assert_int_equal(ask(&h, NULL, 0, 2), DROP_NONE);
		assert_int_equal(ask(&h, group, families[family].second, 2), DROP_NONE);
		expect_report(&h, SECOND, 2, group);
		expect_silence(&h, 2 * SECOND);
		leave(&h, group);
		hosts_run(&h, NULL, 3 * SECOND, MS);
		assert_int_equal(ask(&h, group, families[family].second, 2), DROP_GROUP_IGNORED);
		host_free(&h);
	}
}

/* RFC 3376, 8.1: how often a change is told, the querier says. */
static void test_robustness(void **state)
{
	for (family = 0; family < 2; family++) {
		struct host h;
		begin(&h, (struct addr_config){ 0 });
		ask(&h, NULL, 0, 5);
		expect_silence(&h, SECOND);
		join(&h, families[family].group);
		for (unsigned i = 0; i < 5; i++)
			expect_report(&h, i ? SECOND + MS : 0, 4, families[family].group);
		expect_silence(&h, 3 * SECOND);
		host_free(&h);
	}
}

/* More than a frame holds: all of them, in as many frames as needed. */
static void test_many_groups(void **state)
{
	for (family = 0; family < 2; family++) {
		enum { GROUPS = 200 };
		struct host h;
		unsigned seen = 0, per_frame = group_report_holds(2048, family == 0);
		struct gid g = gid_of(families[family].group);
		begin(&h, (struct addr_config){ .max_groups = GROUPS });
		for (unsigned i = 0; i < GROUPS; i++) {
			g.b[15] = (uint8_t)i;
			assert_int_equal(addr_group_join(h.a, &g, now), 0);
		}
		g.b[14]++;
		assert_int_equal(addr_group_join(h.a, &g, now), -ENOSPC);
		hosts_run(&h, NULL, 3 * SECOND, MS);
		unsigned before = h.sent;
		assert_int_equal(host_stats(&h).group_records, 2 * GROUPS);
		ask(&h, NULL, 0, 2);
		hosts_run(&h, NULL, SECOND, MS);
		seen = (unsigned)host_stats(&h).group_records - 2 * GROUPS;
		assert_int_equal(seen, GROUPS);
		assert_int_equal(h.sent - before, (GROUPS + per_frame - 1) / per_frame);
		/* left all at once: no more is remembered than there may be members */
		for (unsigned round = 0; round < 3; round++)
			for (unsigned i = 0; i < GROUPS; i++) {
				g = gid_of(families[family].group);
				g.b[15] = (uint8_t)i;
				g.b[14] = (uint8_t)(g.b[14] + round);
				if (round)
					assert_int_equal(addr_group_join(h.a, &g, now), 0);
				assert_int_equal(addr_group_leave(h.a, &g, now), 0);
			}
		unsigned reported = (unsigned)host_stats(&h).group_records;
		hosts_run(&h, NULL, 5 * SECOND, MS);
		assert_true(host_stats(&h).group_records - reported <= 2 * GROUPS);
		expect_silence(&h, 2 * SECOND);
		host_free(&h);
	}
}

/* known-bugs: 29 */
static void test_flood_of_queries(void **state)
{
	for (family = 0; family < 2; family++) {
		struct host h;
		begin(&h, (struct addr_config){ 0 });
		join(&h, families[family].group);
		hosts_run(&h, NULL, 3 * SECOND, MS);
		unsigned before = h.sent;
		for (unsigned i = 0; i < 20000; i++) { /* a second */
			ask(&h, i & 1 ? NULL : families[family].group, 0, 7);
			now += SECOND / 20000;
			wheel_run(h.wheel, now);
			host_send(&h, NULL);
		}
		assert_in_range(h.sent - before, 5, 25);
		assert_int_equal(host_stats(&h).group_queries, 20000);
		host_free(&h);
	}
}

/* RFC 3376, 5; RFC 3810, 6. */
static void test_groups_that_are_not_reported(void **state)
{
	static const char *const groups[2][3] = { { "224.0.0.1", NULL, NULL }, { "ff02::1", "ff01::5", "ff10::5" } };
	for (family = 0; family < 2; family++) {
		struct host h;
		begin(&h, (struct addr_config){ 0 });
		for (unsigned i = 0; i < 3 && groups[family][i]; i++) {
			join(&h, groups[family][i]);
			ask(&h, NULL, 0, 2);
			expect_silence(&h, 2 * SECOND);
			leave(&h, groups[family][i]);
			expect_silence(&h, 2 * SECOND);
		}
		host_free(&h);
	}
}

/* RFC 3376, 7.2.1; RFC 3810, 8.2.1: a router of before is answered in its words, until it has not been heard for long. */
static void test_older_router(void **state)
{
	for (family = 0; family < 2; family++) {
		static const uint8_t types[2][2] = { { 0x16, 0x17 }, { 131, 132 } };
		struct query q = { NULL, family ? 24 : 8, 0, 0, 1, true, families[family].router, families[family].all };
		struct host h;
		uint8_t frame[256];
		const uint8_t *m = h.last + 14 + (family ? 48 : 24);
		begin(&h, (struct addr_config){ 0 });
		q.code = 10;
		join(&h, families[family].group);
		join(&h, families[family].other);
		hosts_run(&h, NULL, 3 * SECOND, MS);
		assert_int_equal(host_take(&h, frame, query_write(frame, &q, family == 0)), DROP_NONE);
		for (unsigned i = 0; i < 2; i++) { /* a frame for each */
			assert_true(await_report(&h, SECOND + MS) != UINT64_MAX);
			assert_int_equal(m[0], types[family][0]);
		}
		leave(&h, families[family].group);
		assert_int_equal(await_report(&h, 0), 0);
		assert_int_equal(m[0], types[family][1]);
		hosts_run(&h, NULL, 3 * SECOND, MS);
		now += 261 * SECOND;
		join(&h, families[family].group);
		expect_report(&h, 0, 4, families[family].group);
		host_free(&h);
	}
}

/* From where and on which VLAN: the family's. Queries of other VLANs are not ours to answer. */
static void test_source_and_vlan(void **state)
{
	struct host h;
	struct gid src = gid_of("fe80::7");
	struct query q = { NULL, 12, 0, 2, 1, true, ALL4 };
	uint8_t frame[256];
	family = 0;
	host_init(&h, 1, (struct addr_config){ 0 });
	join(&h, "239.1.2.3");
	join(&h, "ff05::1:3");
	expect_report(&h, 0, 4, "239.1.2.3"); /* without an address */
	assert_int_equal(get_be32(h.last + 14 + 12), 0);
	expect_report(&h, 0, 4, "ff05::1:3");
	hosts_run(&h, NULL, 3 * SECOND, MS);
	host_add(&h, "10.0.0.1", 7, 24);
	host_add(&h, "fd00::1", 7, 64); /* MLD is spoken by link-local addresses */
	host_add(&h, "fe80::7", 7, 64);
	leave(&h, "ff05::1:3");
	assert_int_equal(await_report(&h, 0), 0);
	assert_int_equal(get_be16(h.last + 12), 0x8100);
	assert_int_equal(get_be16(h.last + 14), 7);
	assert_memory_equal(h.last + 18 + 8, src.b, 16);
	hosts_run(&h, NULL, 3 * SECOND, MS);
	assert_int_equal(host_take(&h, frame, query_write(frame, &q, true)), DROP_GROUP_IGNORED);
	expect_silence(&h, 2 * SECOND);
	host_free(&h);
}

/* The kernel reports what it joins for us, and answers. */
static void test_shared(void **state)
{
	struct host h;
	family = 0;
	begin(&h, (struct addr_config){ .mode = ADDR_SHARED });
	join(&h, "239.1.2.3");
	assert_int_equal(ask(&h, NULL, 0, 2), DROP_NONE);
	expect_silence(&h, 2 * SECOND);
	leave(&h, "239.1.2.3");
	struct gid host = gid_of("10.0.0.7");
	assert_int_equal(addr_group_join(h.a, &host, now), -EINVAL);
	host_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_changes_of_mind),
		cmocka_unit_test(test_general_query),
		cmocka_unit_test(test_group_query),
		cmocka_unit_test(test_robustness),
		cmocka_unit_test(test_many_groups),
		cmocka_unit_test(test_flood_of_queries),
		cmocka_unit_test(test_groups_that_are_not_reported),
		cmocka_unit_test(test_older_router),
		cmocka_unit_test(test_source_and_vlan),
		cmocka_unit_test(test_shared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
