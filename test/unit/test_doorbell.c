/* SPDX-License-Identifier: BSD-3-Clause */
/* Many clients on one core: a doorbell of any of them is answered soon, whoever rang last and however much others ring, and one that leaves is looked at no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "machine.h"
#include "raw_client.h"

enum { CLIENTS = 300, ROUND_NS = 100 };

struct user {
	struct raw_client client;
	struct raw_memory memory;
	struct raw_cq cq;
	struct raw_qp qp[2];
};

static struct core *core;
static uint64_t now = 1000000;
static struct user users[CLIENTS];

static void run_round(void)
{
	struct core_frame f;
	now += ROUND_NS;
	core_run(core, now);
	core_scan(core);
	core_tx(core, now, &f, 0);
}

static void open_user(struct user *u)
{
	static const struct abi_qp_cap cap = { 8, 8, 1, 1, 16 };
	raw_open(&u->client, core, &now);
	raw_memory_new(&u->client, 4096, &u->memory);
	raw_cq_new(&u->client, 16, 0, &u->cq);
	for (unsigned i = 0; i < 2; i++)
		raw_qp_new(&u->client, &u->cq, &u->cq, &cap, &u->qp[i]);
	for (unsigned i = 0; i < 2; i++)
		raw_connect(&u->client, &u->qp[i], "10.0.0.1", u->qp[!i].qpn);
}

/* How long it takes until a WRITE of this user has completed. */
static uint64_t write_once(struct user *u)
{
	struct abi_cqe e;
	uint64_t from = now;
	raw_write(&u->client, &u->qp[0], 1, &u->memory);
	while (!raw_poll(&u->cq, &e)) {
		run_round();
		assert_true(now - from < 1000000);
	}
	assert_int_equal(e.status, ABI_WC_SUCCESS);
	return now - from;
}

static void test_any_of_many(void **state)
{
	uint64_t longest = 0, again = 0;
	core = raw_core_new(0, 1, now);
	for (unsigned i = 0; i < CLIENTS; i++)
		open_user(&users[i]);
	for (unsigned i = 0; i < 3 * CLIENTS; i++) {
		struct user *u = &users[i * 77 % CLIENTS];
		for (unsigned r = 0; r < 200; r++) /* long enough for its QP to be looked at no more */
			run_round();
		uint64_t took = write_once(u);
		longest = took > longest ? took : longest;
		for (unsigned r = 0; r < 200; r++)
			run_round();
		took = write_once(u); /* it rang lately */
		again = took > again ? took : again;
	}
	assert_in_range(longest, 1, 40000); /* a sweep, and some rounds for the WRITE */
	assert_in_range(again, 1, 3000);
	for (unsigned i = 0; i < CLIENTS; i += 2)
		core_client_free(users[i].client.k);
	for (unsigned i = 1; i < CLIENTS; i += 2)
		assert_in_range(write_once(&users[i]), 1, 40000);
	core_free(core);
}

/* One of many rings while the core goes to sleep: the core's last look sees it, and the first round after waking serves it. */
static void test_rung_before_sleep_or_in_it(void **state)
{
	core = raw_core_new(0, 1, now);
	for (unsigned i = 0; i < 40; i++)
		open_user(&users[i]);
	for (unsigned i = 0; i < 40; i++) {
		struct user *u = &users[i];
		for (unsigned r = 0; r < 200; r++)
			run_round();
		assert_true(core_next(core) > now);
		raw_write(&u->client, &u->qp[0], 1, &u->memory);
		core_set_sleeping(core, true);
		assert_int_equal(atomic_load(&u->client.page->sleeping), 1);
		assert_true(core_next(core) <= now);
		core_set_sleeping(core, false);
		struct abi_cqe e;
		for (unsigned r = 0; r < 6; r++) /* without the time that a sweep takes */
			core_run(core, now), core_scan(core), core_tx(core, now, &(struct core_frame){ 0 }, 0);
		assert_true(raw_poll(&u->cq, &e));
	}
	core_free(core);
}

/* A client that rings all of its doorbells all the time has a bounded number of them answered in a round, and all of them in time; another one's WRITE takes no longer. */
static void test_a_flood_of_doorbells(void **state)
{
	enum { QPS = 2000 };
	static const struct abi_qp_cap cap = { 1, 1, 1, 1, 16 };
	static struct raw_qp qp[QPS];
	static struct raw_cq cq;
	static struct raw_client greedy;
	struct core_stats before, after;
	core = raw_core_new(0, 1, now);
	open_user(&users[0]);
	raw_open(&greedy, core, &now);
	raw_cq_new(&greedy, QPS, 0, &cq);
	for (unsigned i = 0; i < QPS; i++) {
		raw_qp_new(&greedy, &cq, &cq, &cap, &qp[i]);
		raw_connect(&greedy, &qp[i], "10.0.0.1", qp[i].qpn);
	}
	for (unsigned r = 0; r < 1000; r++)
		run_round();
	for (unsigned r = 0; r < 300; r++) {
		for (unsigned w = 0; w < ABI_DOORBELL_TOP * 64; w++)
			atomic_store(&greedy.doorbells->word[w], UINT64_MAX);
		for (unsigned t = 0; t < ABI_DOORBELL_TOP; t++)
			atomic_store(&greedy.doorbells->top[t], UINT64_MAX);
		core_stats(core, &before);
		run_round();
		core_stats(core, &after);
		assert_in_range(after.doorbells - before.doorbells, 1, 128);
	}
	uint64_t took = write_once(&users[0]);
	assert_in_range(took, 1, 1000);
	for (unsigned r = 0; r < 1000; r++)
		run_round();
	/* everybody rings once, with something to say */
	struct abi_send_wqe w = { .opcode = ABI_OP_COUNT };
	struct abi_cqe e;
	unsigned heard = 0;
	for (unsigned i = 0; i < QPS; i++) {
		raw_post(&qp[i].sq, &w, sizeof(w));
		assert_true(raw_ring_doorbell(&greedy, &qp[i], &qp[i].sq));
	}
	for (unsigned r = 0; r < 100; r++)
		for (run_round(); raw_poll(&cq, &e); heard++)
			assert_int_equal(e.status, ABI_WC_LOC_QP_OP_ERR);
	assert_int_equal(heard, QPS);
	core_free(core);
}

/* The places of queues that are looked at without a doorbell: a client with many QPs leaves those of others where they are. */
static void test_places_are_shared_between_clients(void **state)
{
	enum { QPS = 64 };
	static const struct abi_qp_cap cap = { 8, 8, 1, 1, 16 };
	static struct raw_qp qp[QPS];
	static struct raw_cq cq;
	static struct raw_client greedy;
	static struct raw_memory m;
	struct abi_cqe e;
	core = raw_core_new(0, 1, now);
	open_user(&users[0]);
	raw_open(&greedy, core, &now);
	raw_memory_new(&greedy, 4096, &m);
	raw_cq_new(&greedy, 1024, 0, &cq);
	for (unsigned i = 0; i < QPS; i++) {
		raw_qp_new(&greedy, &cq, &cq, &cap, &qp[i]);
		raw_connect(&greedy, &qp[i], "10.0.0.1", qp[i].qpn);
	}
	write_once(&users[0]);
	for (unsigned r = 0; r < 1000; r++) {
		raw_write(&greedy, &qp[r % QPS], r, &m);
		if (r % 20 == 0) { /* it lingers, whatever the other one does */
			assert_int_equal(atomic_load(&users[0].qp[0].sq.ring->looking), 1);
			write_once(&users[0]);
		}
		run_round();
		while (raw_poll(&cq, &e))
			assert_int_equal(e.status, ABI_WC_SUCCESS);
	}
	core_free(core);
}

/* Of one client, the queue that has been quiet for the longest makes room. */
static void test_the_quietest_makes_room(void **state)
{
	enum { QPS = 20 };
	static const struct abi_qp_cap cap = { 8, 8, 1, 1, 16 };
	static struct raw_qp qp[QPS];
	struct abi_cqe e;
	core = raw_core_new(0, 1, now);
	open_user(&users[0]);
	for (unsigned i = 0; i < QPS; i++) {
		raw_qp_new(&users[0].client, &users[0].cq, &users[0].cq, &cap, &qp[i]);
		raw_connect(&users[0].client, &qp[i], "10.0.0.1", qp[i].qpn);
	}
	for (unsigned r = 0; r < 200; r++)
		run_round();
	for (unsigned i = 0; i < QPS; i++) {
		raw_write(&users[0].client, &qp[(i * 7 + 3) % QPS], i, &users[0].memory);
		for (unsigned r = 0; r < 3; r++) /* its ACK has come, and the first is not quiet for too long when the last has written */
			run_round();
		raw_poll(&users[0].cq, &e);
	}
	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(atomic_load(&qp[(i * 7 + 3) % QPS].sq.ring->looking), i >= QPS - LINGER_MAX);
	core_free(core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_of_many),
		cmocka_unit_test(test_rung_before_sleep_or_in_it),
		cmocka_unit_test(test_a_flood_of_doorbells),
		cmocka_unit_test(test_the_quietest_makes_room),
		cmocka_unit_test(test_places_are_shared_between_clients),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
