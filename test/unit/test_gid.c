/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "gid.h"

/* text in, its canonical text, and what it is. */
static const struct row {
	const char *in, *out;
	bool is_ip4, is_zero, is_multicast, is_link_local;
} rows[] = {
	{ "10.0.0.1", "10.0.0.1", true, false, false, false },
	{ "::ffff:10.0.0.1", "10.0.0.1", true, false, false, false },
	{ "0.0.0.0", "0.0.0.0", true, false, false, false },
	{ "223.255.255.255", "223.255.255.255", true, false, false, false },
	{ "224.0.0.1", "224.0.0.1", true, false, true, false },
	{ "239.255.255.255", "239.255.255.255", true, false, true, false },
	{ "240.0.0.0", "240.0.0.0", true, false, false, false },
	{ "169.254.1.1", "169.254.1.1", true, false, false, false },
	{ "::", "::", false, true, false, false },
	{ "::1", "::1", false, false, false, false },
	{ "fd00:0:0::1", "fd00::1", false, false, false, false },
	{ "FE80::1", "fe80::1", false, false, false, true },
	{ "febf::1", "febf::1", false, false, false, true },
	{ "fec0::1", "fec0::1", false, false, false, false },
	{ "ff02::1", "ff02::1", false, false, true, false },
	{ "::fffe:10.0.0.1", "::fffe:a00:1", false, false, false, false },
	{ "1111:2222:3333:4444:5555:6666:7777:8888", "1111:2222:3333:4444:5555:6666:7777:8888", false, false, false, false },
};
static const char *const bad[] = { "", "10.0.0", "10.0.0.256", "10.0.0.1 ", "fd00::1%eth0", "fd00:::1", "fd00::1/64", "g::", "host" };

static void test_rows(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct gid g, again;
		char text[GID_TEXT_MAX];
		assert_int_equal(gid_parse(r->in, &g), 0);
		assert_ptr_equal(gid_format(&g, text), text);
		assert_string_equal(text, r->out);
		assert_int_equal(gid_parse(text, &again), 0);
		assert_true(gid_is_equal(&g, &again));
		assert_int_equal(gid_is_ip4(&g), r->is_ip4);
		assert_int_equal(gid_is_zero(&g), r->is_zero);
		assert_int_equal(gid_is_multicast(&g), r->is_multicast);
		assert_int_equal(gid_is_link_local(&g), r->is_link_local);
	}
}

static void test_bad_text(void **state)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct gid g;
		assert_int_equal(gid_parse(bad[i], &g), -EINVAL);
	}
}

static void test_equal_looks_at_every_byte(void **state)
{
	struct gid a = { { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };
	for (unsigned bit = 0; bit < 128; bit++) {
		struct gid b = a;
		b.b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(gid_is_equal(&a, &b));
	}
	assert_true(gid_is_equal(&a, &a));
}

static void test_from_ip4(void **state)
{
	struct gid g = gid_from_ip4((const uint8_t[]){ 192, 168, 1, 2 });
	static const uint8_t want[16] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 168, 1, 2 };
	assert_memory_equal(g.b, want, 16);
}

static void test_link_local(void **state)
{
	struct gid g = gid_link_local((const uint8_t[]){ 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 });
	char text[GID_TEXT_MAX];
	assert_string_equal(gid_format(&g, text), "fe80::5054:ff:fe12:3456");
}

static void test_solicited_node(void **state)
{
	static const char *const from[][2] = { { "fd00::1", "ff02::1:ff00:1" }, { "fe80::5054:ff:fe12:3456", "ff02::1:ff12:3456" }, { "2001:db8::abcd:ef01:2345", "ff02::1:ff01:2345" } };
	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		struct gid address;
		char text[GID_TEXT_MAX];
		assert_int_equal(gid_parse(from[i][0], &address), 0);
		struct gid group = gid_solicited_node(&address);
		assert_string_equal(gid_format(&group, text), from[i][1]);
	}
}

/* Addresses and groups that follow each other, as they do, are spread over the low bits, which tables use. */
static void test_hash(void **state)
{
	static const char *const from[] = { "10.0.0.0", "239.1.2.0", "fd00::", "ff15::1:0" };
	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		bool is_used[1024] = { false };
		unsigned used = 0;
		struct gid g;
		assert_int_equal(gid_parse(from[i], &g), 0);
		for (unsigned n = 0; n < 256; n++) {
			g.b[15] = (uint8_t)n;
			used += !is_used[gid_hash(&g, 0) % 1024];
			is_used[gid_hash(&g, 0) % 1024] = true;
		}
		assert_true(used > 180); /* by chance: 226 */
		assert_int_not_equal(gid_hash(&g, 1), gid_hash(&g, 2));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_bad_text),
		cmocka_unit_test(test_equal_looks_at_every_byte),
		cmocka_unit_test(test_from_ip4),
		cmocka_unit_test(test_link_local),
		cmocka_unit_test(test_solicited_node),
		cmocka_unit_test(test_hash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
