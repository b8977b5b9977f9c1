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
#include "gid_table.h"
#include "random.h"

static int add(struct gid_table *t, const char *gid, uint16_t vlan, unsigned prefix_len, uint32_t *index)
{
	struct gid g = gid_of(gid);
	return gid_table_add(t, &g, vlan, prefix_len, index);
}

static bool has(const struct gid_table *t, const char *gid, uint16_t vlan)
{
	struct gid g = gid_of(gid);
	return gid_table_has(t, &g, vlan);
}

static int on_link(const struct gid_table *t, const char *gid, uint16_t vlan)
{
	struct gid g = gid_of(gid);
	return gid_table_on_link(t, &g, vlan);
}

static void test_what_can_be_added(void **state)
{
	static const struct { const char *gid; uint16_t vlan; unsigned prefix_len; int err; } cases[] = {
		{ "10.0.0.1", VLAN_NONE, 0, 0 }, { "10.0.0.2", VLAN_NONE, 32, 0 }, { "10.0.0.3", VLAN_NONE, 33, -EINVAL },
		{ "fd00::1", VLAN_NONE, 0, 0 }, { "fd00::2", VLAN_NONE, 128, 0 }, { "fd00::3", VLAN_NONE, 129, -EINVAL },
		{ "fe80::1", VLAN_NONE, 64, 0 }, { "127.0.0.1", VLAN_NONE, 8, 0 }, { "::1", VLAN_NONE, 128, 0 },
		{ "0.0.0.0", VLAN_NONE, 24, -EINVAL }, { "0.1.2.3", VLAN_NONE, 24, -EINVAL }, { "::", VLAN_NONE, 64, -EINVAL },
		{ "224.0.0.1", VLAN_NONE, 24, -EINVAL }, { "239.255.255.255", VLAN_NONE, 24, -EINVAL }, { "255.255.255.255", VLAN_NONE, 24, -EINVAL },
		{ "ff02::1", VLAN_NONE, 64, -EINVAL },
		{ "10.0.0.4", 0, 24, -EINVAL }, { "10.0.0.4", 1, 24, 0 }, { "10.0.0.4", 4094, 24, 0 }, { "10.0.0.4", 4095, 24, -EINVAL },
		{ "10.0.0.4", 1, 16, -EEXIST }, { "::ffff:10.0.0.4", 1, 24, -EEXIST }, { "10.0.0.4", VLAN_NONE, 24, 0 },
	};
	struct gid_table t;
	uint32_t index, n = 0;
	assert_int_equal(gid_table_init(&t, 64), 0);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(add(&t, cases[i].gid, cases[i].vlan, cases[i].prefix_len, &index), cases[i].err);
		if (cases[i].err == 0)
			assert_int_equal(index, n++);
		if (cases[i].err != -EEXIST)
			assert_int_equal(has(&t, cases[i].gid, cases[i].vlan), cases[i].err == 0);
	}
	assert_int_equal(t.slots, n);
	gid_table_free(&t);
}

static void test_full(void **state)
{
	for (uint32_t max = 1; max <= 70; max += 23) {
		struct gid_table t;
		uint32_t index;
		char text[32];
		assert_int_equal(gid_table_init(&t, max), 0);
		for (uint32_t i = 0; i < max; i++) {
			snprintf(text, sizeof(text), "10.0.1.%u", i);
			assert_int_equal(add(&t, text, VLAN_NONE, 24, &index), 0);
		}
		assert_int_equal(add(&t, "10.0.0.1", VLAN_NONE, 24, &index), -ENOSPC);
		assert_false(has(&t, "10.0.0.1", VLAN_NONE));
		assert_int_equal(gid_table_remove(&t, max / 2), 0);
		assert_int_equal(add(&t, "10.0.0.1", VLAN_NONE, 24, &index), 0);
		assert_int_equal(index, max / 2);
		gid_table_free(&t);
	}
}

static void test_an_index_never_shifts(void **state)
{
	struct gid_table t;
	uint32_t a, b, c, d;
	assert_int_equal(gid_table_init(&t, 8), 0);
	add(&t, "10.0.0.1", VLAN_NONE, 24, &a);
	add(&t, "10.0.0.2", VLAN_NONE, 24, &b);
	add(&t, "10.0.0.3", VLAN_NONE, 24, &c);
	gid_table_hold(&t, b);
	assert_int_equal(gid_table_remove(&t, b), 0);
	assert_int_equal(gid_table_remove(&t, b), -ENOENT);
	assert_null(gid_table_get(&t, b));
	assert_true(has(&t, "10.0.0.2", VLAN_NONE)); /* held: packets to it are still ours */
	assert_int_equal(gid_table_remove(&t, a), 0);
	assert_false(has(&t, "10.0.0.1", VLAN_NONE)); /* not held */
	assert_int_equal(gid_table_get(&t, c)->gid.b[15], 3);
	/* The free slot, not the held one. */
	add(&t, "10.0.0.4", VLAN_NONE, 24, &d);
	assert_int_equal(d, a);
	add(&t, "10.0.0.5", VLAN_NONE, 24, &d);
	assert_int_equal(d, 3);
	gid_table_hold(&t, b);
	gid_table_release(&t, b);
	assert_true(has(&t, "10.0.0.2", VLAN_NONE));
	gid_table_release(&t, b);
	assert_false(has(&t, "10.0.0.2", VLAN_NONE));
	add(&t, "10.0.0.6", VLAN_NONE, 24, &d);
	assert_int_equal(d, b);
	assert_int_equal(gid_table_remove(&t, 8), -ENOENT);
	assert_int_equal(gid_table_remove(&t, UINT32_MAX), -ENOENT);
	gid_table_free(&t);
}

/* Comes back while it is held: the same slot, so that its AHs and new ones agree. */
static void test_a_removed_gid_that_is_held_comes_back_in_its_place(void **state)
{
	struct gid_table t;
	uint32_t a, b, again;
	assert_int_equal(gid_table_init(&t, 2), 0);
	add(&t, "10.0.0.1", VLAN_NONE, 24, &a);
	add(&t, "10.0.0.2", VLAN_NONE, 24, &b);
	gid_table_hold(&t, b);
	gid_table_remove(&t, b);
	assert_int_equal(add(&t, "10.0.0.9", VLAN_NONE, 24, &again), -ENOSPC);
	assert_int_equal(add(&t, "10.0.0.2", VLAN_NONE, 16, &again), 0);
	assert_int_equal(again, b);
	assert_int_equal(gid_table_get(&t, b)->bits, 96 + 16);
	gid_table_release(&t, b);
	assert_true(has(&t, "10.0.0.2", VLAN_NONE));
	gid_table_free(&t);
}

static void test_on_link(void **state)
{
	struct gid_table t;
	uint32_t index;
	assert_int_equal(gid_table_init(&t, 16), 0);
	assert_int_equal(on_link(&t, "fe80::5", VLAN_NONE), -1);
	add(&t, "10.1.2.3", VLAN_NONE, 16, &index);
	assert_int_equal(on_link(&t, "fe80::5", VLAN_NONE), -1); /* no IPv6 here */
	add(&t, "10.1.9.3", VLAN_NONE, 23, &index);
	add(&t, "192.168.1.1", 5, 32, &index);
	add(&t, "fd00:0:0:8::1", VLAN_NONE, 61, &index);
	static const struct { const char *gid; uint16_t vlan; int bits; } cases[] = {
		{ "10.1.255.255", VLAN_NONE, 96 + 16 }, { "10.1.8.0", VLAN_NONE, 96 + 23 }, { "10.1.9.255", VLAN_NONE, 96 + 23 }, { "10.1.10.0", VLAN_NONE, 96 + 16 },
		{ "10.1.7.255", VLAN_NONE, 96 + 16 }, { "10.2.0.0", VLAN_NONE, -1 }, { "10.1.8.0", 5, -1 }, { "192.168.1.1", 5, 128 }, { "192.168.1.2", 5, -1 },
		{ "fd00:0:0:f::", VLAN_NONE, 61 }, { "fd00:0:0:10::", VLAN_NONE, -1 }, { "fd00:0:0:7::", VLAN_NONE, -1 }, { "fe80::5", VLAN_NONE, 0 }, { "fe80::5", 5, -1 },
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(on_link(&t, cases[i].gid, cases[i].vlan), cases[i].bits);
	/* IPv6 with no bits at all holds every IPv6 address and no IPv4 one. */
	add(&t, "fd00::1", 6, 0, &index);
	assert_int_equal(on_link(&t, "2001:db8::1", 6), 0);
	assert_int_equal(on_link(&t, "10.0.0.1", 6), -1);
	gid_table_free(&t);
}

/* The hash against a plain search, through many comings and goings. */
static void test_random_history(void **state)
{
	enum { MAX = 100, STEPS = 20000 };
	struct gid_table t;
	struct rng r;
	uint32_t held[MAX] = { 0 };
	rng_seed(&r, 11);
	assert_int_equal(gid_table_init(&t, MAX), 0);
	for (unsigned step = 0; step < STEPS; step++) {
		uint32_t index, i = (uint32_t)rng_below(&r, MAX);
		struct gid g = gid_of(rng_below(&r, 2) ? "10.0.0.1" : "fd00::1");
		uint16_t vlan = rng_below(&r, 2) ? VLAN_NONE : 5;
		g.b[15] = (uint8_t)(1 + rng_below(&r, 60));
		bool expected = false;
		for (uint32_t k = 0; k < t.slots; k++)
			expected |= t.v[k].state != GID_EMPTY && gid_is_equal(&t.v[k].gid, &g) && t.v[k].vlan == vlan;
		assert_int_equal(gid_table_has(&t, &g, vlan), expected);
		switch (rng_below(&r, 4)) {
		case 0:
			gid_table_add(&t, &g, vlan, 24, &index);
			break;
		case 1:
			gid_table_remove(&t, i);
			break;
		case 2:
			if (gid_table_get(&t, i)) {
				gid_table_hold(&t, i);
				held[i]++;
			}
			break;
		default:
			if (held[i]) {
				gid_table_release(&t, i);
				held[i]--;
			}
		}
		assert_true(held[i] == 0 || t.v[i].state != GID_EMPTY);
	}
	gid_table_free(&t);
}

/* Two tables, of which one holds what the other has forgotten, are to be alike. */
static void test_a_slot_that_two_tables_have(void **state)
{
	struct gid_table t[2];
	struct gid g = gid_of("10.0.0.2"), other = gid_of("10.0.0.9");
	uint32_t index;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(gid_table_init(&t[i], 4), 0);
		add(&t[i], "10.0.0.1", VLAN_NONE, 24, &index);
		add(&t[i], "10.0.0.2", VLAN_NONE, 24, &index);
	}
	gid_table_hold(&t[0], 1);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(gid_table_remove(&t[i], 1), 0);
	/* another one: the first is the one that both can give */
	index = 0;
	assert_int_equal(gid_table_choose(&t[1], &other, VLAN_NONE, &index), 0);
	assert_int_equal(index, 1);
	assert_int_equal(gid_table_add_at(&t[0], 1, &other, VLAN_NONE, 24), -EBUSY);
	assert_int_equal(gid_table_choose(&t[0], &other, VLAN_NONE, &index), 0);
	assert_int_equal(index, 2);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(gid_table_add_at(&t[i], 2, &other, VLAN_NONE, 24), 0);
	/* the same one again: where it is held */
	index = 0;
	assert_int_equal(gid_table_choose(&t[0], &g, VLAN_NONE, &index), 0);
	assert_int_equal(index, 1);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(gid_table_add_at(&t[i], 1, &g, VLAN_NONE, 24), 0);
	/* what cannot be */
	assert_int_equal(gid_table_choose(&t[0], &g, VLAN_NONE, &index), -EEXIST);
	assert_int_equal(gid_table_remove(&t[0], 1), 0);
	index = 2;
	assert_int_equal(gid_table_choose(&t[0], &g, VLAN_NONE, &index), -EBUSY);
	assert_int_equal(gid_table_add_at(&t[0], 2, &g, VLAN_NONE, 24), -EBUSY);
	index = 4;
	assert_int_equal(gid_table_choose(&t[1], &g, 7, &index), -ENOSPC);
	assert_int_equal(gid_table_add_at(&t[1], UINT32_MAX, &g, 7, 24), -ENOSPC);
	gid_table_free(&t[0]);
	gid_table_free(&t[1]);
}

struct told {
	unsigned begun, ended;
	int err;
};

static int on_address(void *arg, const struct gid *gid, bool is_ours)
{
	struct told *t = arg;
	assert_int_equal(gid->b[12], 10);
	if (is_ours && t->err)
		return t->err;
	*(is_ours ? &t->begun : &t->ended) += 1;
	return 0;
}

/* Each address is told when it begins to be ours and when it ends, which is when nobody holds it any more. */
static void test_who_is_told(void **state)
{
	struct told told = { 0 };
	struct gid_table t;
	uint32_t a, b;
	assert_int_equal(gid_table_init(&t, 4), 0);
	t.on_address = on_address;
	t.on_address_arg = &told;
	assert_int_equal(add(&t, "10.0.0.1", VLAN_NONE, 24, &a), 0);
	assert_int_equal(add(&t, "10.0.0.1", VLAN_NONE, 24, &a), -EEXIST);
	assert_int_equal(add(&t, "10.0.0.1", 7, 24, &b), 0);
	assert_int_equal(told.begun, 2);
	gid_table_hold(&t, a);
	gid_table_remove(&t, a);
	gid_table_remove(&t, b);
	assert_int_equal(told.ended, 1);
	assert_int_equal(add(&t, "10.0.0.1", VLAN_NONE, 24, &a), 0); /* it has been ours all the time */
	assert_int_equal(told.begun, 2);
	gid_table_remove(&t, a);
	assert_int_equal(told.ended, 1);
	assert_true(gid_table_release(&t, a));
	assert_int_equal(told.ended, 2);
	/* a refusal leaves nothing behind */
	told.err = -ENOMEM;
	assert_int_equal(add(&t, "10.0.0.5", VLAN_NONE, 24, &a), -ENOMEM);
	assert_false(has(&t, "10.0.0.5", VLAN_NONE));
	told.err = 0;
	assert_int_equal(add(&t, "10.0.0.6", VLAN_NONE, 24, &a), 0);
	assert_int_equal(a, 0);
	gid_table_free(&t);
}

static void test_through_addr(void **state)
{
	struct host x;
	struct gid g, want = gid_of("10.0.0.2");
	uint16_t vlan;
	host_init(&x, 1, (struct addr_config){ .max_gids = 3 });
	assert_int_equal(addr_gid_slots(x.a), 0);
	assert_false(addr_gid_get(x.a, 0, &g, &vlan));
	host_add(&x, "10.0.0.1", VLAN_NONE, 24);
	host_add(&x, "10.0.0.2", 17, 24);
	assert_int_equal(addr_gid_slots(x.a), 2);
	assert_true(addr_gid_get(x.a, 1, &g, &vlan));
	assert_true(gid_is_equal(&g, &want));
	assert_int_equal(vlan, 17);
	assert_true(addr_is_ours(x.a, &want, 17));
	assert_false(addr_is_ours(x.a, &want, VLAN_NONE));
	assert_int_equal(addr_gid_remove(x.a, 0), 0);
	assert_int_equal(addr_gid_remove(x.a, 0), -ENOENT);
	assert_false(addr_gid_get(x.a, 0, &g, &vlan));
	assert_true(addr_gid_get(x.a, 1, &g, &vlan));
	assert_int_equal(addr_gid_slots(x.a), 2);
	host_free(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_can_be_added),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_an_index_never_shifts),
		cmocka_unit_test(test_a_removed_gid_that_is_held_comes_back_in_its_place),
		cmocka_unit_test(test_on_link),
		cmocka_unit_test(test_random_history),
		cmocka_unit_test(test_a_slot_that_two_tables_have),
		cmocka_unit_test(test_who_is_told),
		cmocka_unit_test(test_through_addr),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
