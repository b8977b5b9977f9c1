/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses that come and go while an engine runs: who uses one that is removed goes on, and all cores have the same table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "engine_change.h"
#include "talker.h"

#define SIDE0 "embedded:net_ring,link=g,side=0,ip=10.1.0.1/24,ip=fd01::1/64"
#define SIDE1 "embedded:net_ring,link=g,side=1,ip=10.1.0.2/24,ip=fd01::2/64"

static int add(const struct talker *t, const char *text, uint32_t *index)
{
	struct gid gid;
	CHECK(!gid_parse(text, &gid));
	return engine_gid_add(t->engine, &gid, VLAN_NONE, gid_is_ip4(&gid) ? 24 : 64, index);
}

static bool has(const struct talker *t, uint32_t index, const char *text)
{
	struct uroce_gid had, wanted = talker_gid(text);
	return !uroce_query_gid(t->ctx, index, &had, NULL) && !memcmp(&had, &wanted, sizeof(had));
}

static int try_ah(const struct talker *t, uint32_t index, const char *to, struct uroce_ah **ah)
{
	struct uroce_av av = { .sgid_index = index, .dgid = talker_gid(to) };
	return uroce_ah_create(t->pd, &av, ah);
}

static void say(struct talker *from, const struct uroce_ah *ah, struct talker *to, const char *text)
{
	talker_send(from, ah, to->qpn, text);
	CHECK(talker_hear(to, text) == from->qpn);
}

/* Both ways, from and to an address that is there no more, in a network that nothing else leads to. */
static void use_removed(void *arg)
{
	static const char *const addresses[2][2] = { { "10.9.0.1", "10.9.0.2" }, { "fd09::1", "fd09::2" } };
	static struct talker here, there;
	struct uroce_ah *to, *back, *none;
	uint32_t index, peer;
	talker_open(&here, SIDE0, false);
	talker_open(&there, SIDE1, false);
	for (unsigned k = 0; k < 2; k++) {
		const char *ours = addresses[k][0], *theirs = addresses[k][1];
		CHECK(!add(&here, ours, &index) && !add(&there, theirs, &peer));
		CHECK(!try_ah(&here, index, theirs, &to));
		say(&here, to, &there, "before");
		CHECK(!engine_gid_remove(here.engine, index));
		CHECK(engine_gid_remove(here.engine, index) == -ENOENT);
		CHECK(!has(&here, index, ours));
		CHECK(try_ah(&here, index, theirs, &none) == -EINVAL);
		say(&here, to, &there, "after");
		CHECK(!try_ah(&there, peer, ours, &back));
		say(&there, back, &here, "and back");
		CHECK(!uroce_ah_destroy(to));
		/* nobody here has it any more: what comes for it is somebody else's */
		talker_send(&there, back, here.qpn, "too late");
		CHECK(!talker_listen(&here, "too late", 50));
		CHECK(!uroce_ah_destroy(back));
		CHECK(!engine_gid_remove(there.engine, peer));
	}
	talker_close(&there);
	talker_close(&here);
}

static void test_who_uses_a_removed_address_goes_on(void **state)
{
	assert_int_equal(side_child(use_removed, NULL), 0);
}

/* A connection outlives the addresses that it was made with, on both sides, until it is destroyed. */
static void write_from_removed(void *arg)
{
	static struct side a, b;
	const uint32_t bytes = 256u << 10;
	side_open(&a, SIDE0);
	side_open(&b, SIDE1);
	struct side_card of_a = side_card(&a), of_b = side_card(&b);
	side_connect(&a, &of_b, 1024);
	side_connect(&b, &of_a, 1024);
	for (uint32_t round = 1; round < 4; round++) {
		side_fill(&a, 0, bytes, round);
		side_post_write(&a, round, 0, bytes, &of_b, 0);
		side_wait(&a, &b, round);
		side_check(&b, 0, bytes, round);
		side_fill(&b, 0, bytes, 10 + round);
		side_post_write(&b, round, 0, bytes, &of_a, 0);
		side_wait(&b, &a, round);
		side_check(&a, 0, bytes, 10 + round);
		if (round == 1)
			CHECK(!engine_gid_remove(a.engine, 0));
		else if (round == 2)
			CHECK(!engine_gid_remove(b.engine, 0));
	}
	side_close(&a);
	side_close(&b);
}

static void test_a_connection_outlives_its_addresses(void **state)
{
	assert_int_equal(side_child(write_from_removed, NULL), 0);
}

/* One core holds a removed address, the other does not: what is added gets one slot that is free on both, and comes back to its own. */
static void change_two_cores(void *arg)
{
	static struct talker t[2];
	struct uroce_ah *held, *other;
	uint32_t a, b, c, d;
	for (unsigned i = 0; i < 2; i++) {
		talker_open(&t[i], SIDE0 ",cores=2", false);
		CHECK((t[i].qpn & 15) == i);
	}
	for (unsigned holder = 0; holder < 2; holder++) {
		CHECK(!add(&t[0], "10.9.0.1", &a));
		CHECK(!try_ah(&t[holder], a, "10.9.0.2", &held));
		CHECK(!engine_gid_remove(t[0].engine, a));
		CHECK(!add(&t[0], "10.9.1.1", &b) && b != a);
		for (unsigned i = 0; i < 2; i++)
			CHECK(has(&t[i], b, "10.9.1.1") && !has(&t[i], a, "10.9.0.1"));
		CHECK(!add(&t[0], "10.9.0.1", &c) && c == a);
		for (unsigned i = 0; i < 2; i++)
			CHECK(has(&t[i], a, "10.9.0.1"));
		CHECK(add(&t[0], "10.9.0.1", &d) == -EEXIST);
		/* both may be used on both */
		for (unsigned i = 0; i < 2; i++) {
			CHECK(!try_ah(&t[i], a, "10.9.1.1", &other));
			say(&t[i], other, &t[!i], "between cores");
			CHECK(!uroce_ah_destroy(other));
		}
		CHECK(!uroce_ah_destroy(held));
		CHECK(!engine_gid_remove(t[0].engine, a) && !engine_gid_remove(t[0].engine, b));
		for (unsigned i = 0; i < 2; i++)
			CHECK(!has(&t[i], a, "10.9.0.1") && !has(&t[i], b, "10.9.1.1"));
	}
	for (unsigned i = 0; i < 2; i++)
		talker_close(&t[i]);
}

static void test_all_cores_have_the_same_table(void **state)
{
	assert_int_equal(side_child(change_two_cores, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_uses_a_removed_address_goes_on),
		cmocka_unit_test(test_a_connection_outlives_its_addresses),
		cmocka_unit_test(test_all_cores_have_the_same_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
