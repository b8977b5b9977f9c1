/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>

#include "addr_hosts.h"
#include "neigh.h"
#include "random.h"

static const uint8_t mac1[6] = { 2, 0, 0, 0, 0, 1 }, mac2[6] = { 2, 0, 0, 0, 0, 2 };
enum { MAX = 8, MAX_PENDING = 4, TRIES = 5 };
/* A hair less than 100 ms, so that rounding up to a tick does not cost a step of 10 ms. */
static const struct addr_config config = {
	.max_neighbours = MAX, .max_pending = MAX_PENDING, .ask_tries = TRIES, .ask_interval_ns = 97655 * WHEEL_TICK_NS, .fresh_ns = 30 * SECOND, .failed_ns = SECOND,
};
static struct addr_stats stats;
static struct wheel *wheel;
static struct neigh_table table;
static unsigned changes;

static void on_changed(struct neigh *n, uint64_t now_ns)
{
	assert_int_equal(now_ns, now);
	changes++;
}

static bool has_progress(struct neigh *n)
{
	return false;
}

static int set_up(void **state)
{
	memset(&stats, 0, sizeof(stats));
	changes = 0;
	now = 1000 * SECOND;
	wheel = wheel_new(now);
	neigh_table_init(&table, &config, &stats, wheel, on_changed, has_progress);
	return 0;
}

static int tear_down(void **state)
{
	neigh_table_free(&table);
	wheel_free(wheel);
	return 0;
}

static struct gid gid_number(unsigned i)
{
	uint8_t ip[4] = { 10, 0, (uint8_t)(i >> 8), (uint8_t)i };
	return gid_from_ip4(ip);
}

static int use(unsigned i, struct neigh **n)
{
	struct gid g = gid_number(i);
	return neigh_use(&table, &g, VLAN_NONE, now, n);
}

static int learn(unsigned i, const uint8_t mac[6], unsigned how)
{
	struct gid g = gid_number(i);
	return neigh_learn(&table, &g, VLAN_NONE, mac, how, now);
}

static struct neigh *find(unsigned i)
{
	struct gid g = gid_number(i);
	return neigh_find(&table, &g, VLAN_NONE);
}

/* Lets time pass in steps of 10 ms and counts the questions; those to one MAC alone in *alone. */
static unsigned pass(uint64_t ns, unsigned *alone)
{
	unsigned asked = 0;
	for (uint64_t end = now + ns; now < end; now += 10 * MS) {
		struct neigh *n;
		wheel_run(wheel, now);
		while ((n = neigh_next_question(&table, now))) {
			asked++;
			if (alone)
				*alone += neigh_is_asked_alone(n);
		}
	}
	return asked;
}

static void test_five_questions_then_failed_then_less_and_less(void **state)
{
	struct neigh *n;
	uint64_t began = now;
	assert_int_equal(use(1, &n), 0);
	assert_int_equal(n->state, NEIGH_ASKING);
	assert_int_equal(table.pending, 1);
	unsigned alone = 0;
	assert_int_equal(pass(490 * MS, &alone), 5);
	assert_int_equal(alone, 0);
	assert_int_equal(n->state, NEIGH_ASKING);
	assert_int_equal(pass(20 * MS, NULL), 0);
	assert_int_equal(n->state, NEIGH_FAILED);
	assert_true(now - began <= 520 * MS);
	assert_int_equal(table.pending, 0);
	assert_int_equal(changes, 1);
	assert_int_equal(stats.failed, 1);
	/* Rounds of 500 ms after pauses of 1, 2, 4, 8, 16, 32, 32 s ... */
	unsigned pause_s = 1;
	for (unsigned round = 0; round < 8; round++) {
		uint64_t failed_at = n->failed_ns;
		unsigned asked = 0;
		while (n->state == NEIGH_FAILED)
			asked += pass(10 * MS, NULL);
		assert_in_range(now - failed_at, pause_s * SECOND, pause_s * SECOND + 30 * MS);
		while (n->state == NEIGH_ASKING)
			asked += pass(10 * MS, NULL);
		assert_int_equal(asked, 5);
		pause_s = pause_s < 32 ? 2 * pause_s : 32;
	}
	assert_int_equal(stats.failed, 9);
	/* It comes back, and the next time all begins anew. */
	assert_int_equal(learn(1, mac1, LEARN_CREATE | LEARN_OVERRIDE), 0);
	assert_int_equal(n->state, NEIGH_KNOWN);
	assert_int_equal(n->failed_rounds, 0);
	neigh_drop(n);
}

static void test_an_answer_at_every_question(void **state)
{
	for (unsigned answered = 1; answered <= TRIES; answered++) {
		struct neigh *n;
		assert_int_equal(use(answered, &n), 0);
		for (unsigned i = 0; i < answered; i++)
			assert_int_equal(pass(100 * MS, NULL), 1);
		assert_int_equal(learn(answered, mac1, LEARN_OVERRIDE | LEARN_ANSWER), 0);
		assert_int_equal(n->state, NEIGH_KNOWN);
		assert_int_equal(pass(29 * SECOND, NULL), 0);
		neigh_drop(n);
	}
	assert_int_equal(table.count, TRIES);
	assert_int_equal(table.pending, 0);
}

static void test_known_before_it_was_asked_for(void **state)
{
	struct neigh *n;
	use(1, &n);
	assert_int_equal(learn(1, mac1, LEARN_CREATE | LEARN_OVERRIDE), 0);
	assert_int_equal(pass(29 * SECOND, NULL), 0);
	neigh_drop(n);
}

/* In use: asked after 30 s, alone first, then all. A lost round is not the end: that comes 30 s later. */
static void test_refresh_and_expiry_in_use(void **state)
{
	struct neigh *n;
	unsigned alone = 0;
	learn(1, mac1, LEARN_CREATE | LEARN_OVERRIDE);
	use(1, &n);
	assert_int_equal(pass(30 * SECOND, NULL), 0);
	assert_int_equal(pass(100 * MS, &alone), 1);
	assert_int_equal(alone, 1);
	assert_int_equal(learn(1, mac1, LEARN_OVERRIDE | LEARN_ANSWER), 0);
	assert_int_equal(changes, 1); /* the first learning; a confirmation is none */
	assert_int_equal(pass(29 * SECOND, NULL), 0);
	pass(1100 * MS, NULL);
	/* No answer from now on. */
	alone = 0;
	assert_int_equal(pass(900 * MS, &alone), 4);
	assert_int_equal(alone, 1); /* the second; then all are asked */
	assert_int_equal(n->state, NEIGH_KNOWN);
	unsigned asked = pass(28 * SECOND, NULL);
	assert_in_range(asked, 5 * 18, 5 * 20); /* rounds of half a second and pauses of one */
	assert_int_equal(n->state, NEIGH_KNOWN);
	pass(2 * SECOND, NULL);
	assert_int_equal(n->state, NEIGH_FAILED);
	assert_int_equal(changes, 2);
	neigh_drop(n);
}

/* Nobody uses it: never asked. When somebody does, what is old is asked at once but used, and what is very old is not used. */
static void test_expiry_without_users(void **state)
{
	struct neigh *n;
	learn(1, mac1, LEARN_CREATE | LEARN_OVERRIDE);
	assert_int_equal(pass(40 * SECOND, NULL), 0);
	use(1, &n);
	assert_int_equal(n->state, NEIGH_KNOWN);
	assert_int_equal(pass(20 * MS, NULL), 1);
	neigh_drop(n);
	assert_int_equal(pass(30 * SECOND, NULL), 0);
	use(1, &n);
	assert_int_equal(n->state, NEIGH_ASKING);
	assert_int_equal(pass(20 * MS, NULL), 1);
	neigh_drop(n);
}

static void test_a_failed_one_is_asked_again_after_a_second(void **state)
{
	struct neigh *n, *again;
	use(1, &n);
	pass(600 * MS, NULL);
	assert_int_equal(n->state, NEIGH_FAILED);
	neigh_drop(n);
	assert_ptr_equal(find(1), n);
	use(1, &again);
	assert_int_equal(again->state, NEIGH_FAILED); /* remembered */
	neigh_drop(again);
	pass(SECOND, NULL);
	use(1, &again);
	assert_int_equal(again->state, NEIGH_ASKING);
	/* Also when another waits for it in a longer pause. */
	pass(600 * MS, NULL);
	assert_int_equal(again->state, NEIGH_FAILED);
	assert_int_equal(again->failed_rounds, 2);
	pass(1100 * MS, NULL);
	assert_int_equal(again->state, NEIGH_FAILED);
	use(1, &n);
	assert_int_equal(n->state, NEIGH_ASKING);
	assert_int_equal(pass(20 * MS, NULL), 1);
	neigh_drop(n);
	neigh_drop(n);
}

static void test_nobody_waits_any_more(void **state)
{
	struct neigh *n, *m;
	use(1, &n);
	use(1, &m);
	assert_ptr_equal(n, m);
	assert_int_equal(n->users, 2);
	neigh_drop(n);
	assert_int_equal(table.pending, 1);
	neigh_drop(m);
	assert_int_equal(table.count, 0);
	assert_int_equal(table.pending, 0);
	assert_int_equal(pass(SECOND, NULL), 0);
	assert_int_equal(wheel_next(wheel), WHEEL_NEVER);
}

static void test_pending_is_bounded(void **state)
{
	struct neigh *n[MAX_PENDING + 1];
	for (unsigned i = 0; i < MAX_PENDING; i++)
		assert_int_equal(use(i + 1, &n[i]), 0);
	assert_int_equal(use(100, &n[MAX_PENDING]), -ENOBUFS);
	assert_int_equal(stats.pending_refused, 1);
	assert_int_equal(table.count, MAX_PENDING);
	/* One that is pending already takes more users, one that is known needs no question. */
	assert_int_equal(use(1, &n[MAX_PENDING]), 0);
	neigh_drop(n[MAX_PENDING]);
	learn(101, mac1, LEARN_CREATE | LEARN_OVERRIDE);
	assert_int_equal(use(101, &n[MAX_PENDING]), 0);
	neigh_drop(n[MAX_PENDING]);
	/* An answer makes room. */
	learn(1, mac1, LEARN_OVERRIDE | LEARN_ANSWER);
	assert_int_equal(use(100, &n[MAX_PENDING]), 0);
	for (unsigned i = 0; i <= MAX_PENDING; i++)
		neigh_drop(n[i]);
	assert_int_equal(table.pending, 0);
}

/* Those that failed and are in use wait until there is room to ask again. */
static void test_failed_ones_share_the_pending_places(void **state)
{
	struct neigh *n[MAX];
	for (unsigned i = 0; i < MAX; i++) {
		learn(i + 1, mac1, LEARN_CREATE | LEARN_OVERRIDE);
		assert_int_equal(use(i + 1, &n[i]), 0);
		neigh_fail(n[i], now);
	}
	unsigned most = 0;
	uint64_t end = now + 300 * SECOND;
	while (now < end) {
		pass(10 * MS, NULL);
		most = table.pending > most ? table.pending : most;
	}
	assert_int_equal(most, MAX_PENDING);
	for (unsigned i = 0; i < MAX; i++) {
		assert_true(n[i]->failed_rounds > 1); /* each had its turn */
		neigh_drop(n[i]);
	}
}

/* It waits for a place, is heard of, and then the kernel says that it is gone: it was not asked just now, and need not be. */
static void test_one_that_waits_for_a_place_and_is_known_before(void **state)
{
	struct neigh *n, *others;
	assert_int_equal(use(0, &n), 0);
	neigh_fail(n, now);
	now += 2 * SECOND - 10;
	for (unsigned i = 1; i <= MAX_PENDING; i++)
		assert_int_equal(use(i, &others), 0);
	assert_true(neigh_ask_again(n, now));
	assert_int_equal(n->state, NEIGH_FAILED); /* no place yet */
	assert_int_equal(learn(0, mac1, LEARN_TRUSTED), 0);
	assert_int_equal(n->state, NEIGH_KNOWN);
	neigh_fail(n, now);
	assert_false(neigh_ask_again(n, now));
}

static void test_the_least_recently_used_goes(void **state)
{
	struct neigh *n[3], *m;
	for (unsigned i = 1; i <= MAX; i++)
		assert_int_equal(learn(i, mac1, LEARN_CREATE | LEARN_OVERRIDE), 0);
	/* 1 is in use, 2 was just used, so 3 goes first, then 4. */
	use(1, &n[0]);
	use(2, &n[1]);
	neigh_drop(n[1]);
	assert_int_equal(learn(20, mac2, LEARN_CREATE | LEARN_OVERRIDE), 0);
	assert_null(find(3));
	assert_int_equal(use(21, &n[2]), 0);
	assert_null(find(4));
	assert_non_null(find(1));
	assert_non_null(find(2));
	assert_int_equal(table.count, MAX);
	neigh_drop(n[2]);
	/* All in use: nobody new, and nobody goes. */
	struct neigh *all[MAX];
	unsigned used = 0;
	for (unsigned i = 1; i <= 20; i++)
		if (find(i))
			use(i, &all[used++]);
	learn(22, mac1, LEARN_CREATE | LEARN_OVERRIDE); /* takes the place that was left */
	use(22, &all[used++]);
	assert_int_equal(used, MAX);
	assert_int_equal(use(30, &m), -ENOBUFS);
	assert_int_equal(learn(30, mac1, LEARN_CREATE | LEARN_OVERRIDE), -ENOBUFS);
	assert_int_equal(table.count, MAX);
	for (unsigned i = 0; i < used; i++)
		neigh_drop(all[i]);
	neigh_drop(n[0]);
}

/* known-bugs: 29 */
static void test_static_ones_stay(void **state)
{
	assert_int_equal(learn(1, mac1, LEARN_CREATE | LEARN_OVERRIDE | LEARN_TRUSTED | LEARN_STATIC), 0);
	for (unsigned i = 2; i < 1000; i++)
		assert_int_equal(learn(i, mac2, LEARN_CREATE | LEARN_OVERRIDE), 0);
	assert_int_equal(table.count, MAX);
	assert_true(table.slab.total <= MAX);
	assert_non_null(find(1));
	assert_int_equal(learn(1, mac2, LEARN_OVERRIDE | LEARN_ANSWER), -EAGAIN);
	assert_memory_equal(find(1)->mac, mac1, 6);
	struct neigh *n;
	pass(1000 * SECOND, NULL);
	use(1, &n);
	assert_int_equal(n->state, NEIGH_KNOWN);
	assert_int_equal(pass(100 * SECOND, NULL), 0);
	neigh_drop(n);
}

/* What each kind of message may do to an entry in each state. */
static void test_what_a_message_is_worth(void **state)
{
	enum { ABSENT = 100 };
	static const struct { int state; unsigned how; const uint8_t *mac; int err; bool is_taken; uint64_t next_check_s; } cases[] = {
		{ ABSENT, LEARN_OVERRIDE, mac2, -ENOENT, false, 0 },
		{ ABSENT, LEARN_OVERRIDE | LEARN_ANSWER, mac2, -ENOENT, false, 0 },
		{ ABSENT, LEARN_CREATE | LEARN_OVERRIDE, mac2, 0, true, 30 },
		{ NEIGH_ASKING, LEARN_ANSWER, mac2, 0, true, 30 },
		{ NEIGH_ASKING, LEARN_CREATE | LEARN_OVERRIDE, mac2, 0, true, 30 },
		{ NEIGH_ASKING, LEARN_OVERRIDE, mac2, 0, true, 0 },
		{ NEIGH_KNOWN, LEARN_OVERRIDE, mac1, 0, true, 30 },
		{ NEIGH_KNOWN, LEARN_OVERRIDE, mac2, 0, true, 0 },
		{ NEIGH_KNOWN, LEARN_CREATE | LEARN_OVERRIDE, mac2, 0, true, 0 },
		{ NEIGH_KNOWN, LEARN_OVERRIDE | LEARN_ANSWER, mac2, 0, true, 0 }, /* an answer that nobody waits for */
		{ NEIGH_KNOWN, LEARN_ANSWER, mac2, -EAGAIN, false, 0 },
		{ NEIGH_KNOWN, 0, mac1, 0, true, 30 },
		{ NEIGH_KNOWN, LEARN_OVERRIDE | LEARN_TRUSTED, mac2, 0, true, 30 },
		{ NEIGH_FAILED, LEARN_OVERRIDE, mac2, 0, true, 0 },
		{ NEIGH_FAILED, LEARN_CREATE | LEARN_OVERRIDE, mac2, 0, true, 30 },
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct neigh *n = NULL;
		if (cases[i].state == NEIGH_KNOWN)
			learn(1, mac1, LEARN_CREATE | LEARN_OVERRIDE | LEARN_TRUSTED);
		if (cases[i].state != ABSENT)
			assert_int_equal(use(1, &n), 0);
		if (cases[i].state == NEIGH_FAILED)
			neigh_fail(n, now);
		assert_int_equal(learn(1, cases[i].mac, cases[i].how), cases[i].err);
		if (cases[i].is_taken) {
			assert_int_equal(find(1)->state, NEIGH_KNOWN);
			assert_memory_equal(find(1)->mac, cases[i].mac, 6);
			assert_int_equal(find(1)->check_ns - now, cases[i].next_check_s * SECOND);
		}
		tear_down(NULL);
		set_up(NULL);
	}
}

/* Everything at random, while the invariants are checked from outside. */
static void test_random_history(void **state)
{
	enum { N = 24 };
	unsigned users[N] = { 0 };
	struct rng r;
	rng_seed(&r, 77);
	for (unsigned step = 0; step < 60000; step++) {
		unsigned i = (unsigned)rng_below(&r, N);
		struct neigh *n;
		switch (rng_below(&r, 6)) {
		case 0:
		case 1:
			if (use(i, &n) == 0)
				users[i]++;
			break;
		case 2:
			if (users[i]) {
				neigh_drop(find(i));
				users[i]--;
			}
			break;
		case 3:
			learn(i, rng_below(&r, 2) ? mac1 : mac2, (unsigned)rng_below(&r, 8));
			break;
		case 4:
			if ((n = find(i)) && n->state != NEIGH_FAILED && rng_below(&r, 4) == 0)
				neigh_fail(n, now);
			break;
		default:
			pass(rng_below(&r, 30) == 0 ? 5 * SECOND : 20 * MS, NULL);
		}
		unsigned pending = 0, count = 0;
		for (unsigned k = 0; k < N; k++) {
			n = find(k);
			count += n != NULL;
			assert_true(n || !users[k]); /* never evicted while in use */
			if (!n)
				continue;
			pending += n->state == NEIGH_ASKING;
			assert_int_equal(n->users, users[k]);
			assert_int_equal(n->queue == NEIGH_ON_IDLE, users[k] == 0);
			assert_true(users[k] || !timer_is_armed(&n->timer));
			/* In use, it waits for something: its turn to be asked or its timer. */
			assert_true(!users[k] || n->is_static || n->queue == NEIGH_ON_QUESTIONS || timer_is_armed(&n->timer));
		}
		assert_int_equal(count, table.count);
		assert_int_equal(pending, table.pending);
		assert_true(count <= MAX && pending <= MAX_PENDING);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_five_questions_then_failed_then_less_and_less, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_answer_at_every_question, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_known_before_it_was_asked_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refresh_and_expiry_in_use, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_expiry_without_users, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_failed_one_is_asked_again_after_a_second, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nobody_waits_any_more, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pending_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_failed_ones_share_the_pending_places, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_that_waits_for_a_place_and_is_known_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_least_recently_used_goes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_static_ones_stay, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_a_message_is_worth, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_random_history, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
