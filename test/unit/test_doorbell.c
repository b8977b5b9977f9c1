/* SPDX-License-Identifier: BSD-3-Clause */
/* Many clients on one core: a doorbell of any of them is answered soon, whoever rang last, and one that leaves is looked at no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_any_of_many) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
