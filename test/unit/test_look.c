/* SPDX-License-Identifier: BSD-3-Clause */
/* What is shown of a core's objects: each once, in pieces that are never large, whatever comes and goes between two of them, and whatever clients write in their rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "look.h"
#include "machine.h"
#include "raw_client.h"

#define ROWS_MAX 1024u

static const uint64_t clock_ns = 1000;
static const struct abi_qp_cap cap = { 4, 4, 1, 1, 0 };

struct shown {
	struct look_row row[ROWS_MAX];
	unsigned n, pieces;
};

static struct shown shown;

static unsigned look_piece(const struct core *c, enum look_kind kind, struct look_place *at)
{
	unsigned n = core_look(c, kind, at, shown.row + shown.n);
	assert_true(n <= LOOK_OBJECTS && shown.n + n <= ROWS_MAX - LOOK_OBJECTS);
	shown.n += n;
	shown.pieces++;
	return n;
}

static void look_on(const struct core *c, enum look_kind kind, struct look_place *at)
{
	while (!at->is_over) {
		look_piece(c, kind, at);
		assert_true(shown.pieces < ROWS_MAX);
	}
}

static void look_all(const struct core *c, enum look_kind kind)
{
	struct look_place at = { 0 };
	shown.n = shown.pieces = 0;
	look_on(c, kind, &at);
}

static void make_qps(struct raw_client *c, struct raw_qp *q, unsigned n)
{
	struct raw_cq cq;
	raw_cq_new(c, 16, 0, &cq);
	for (unsigned i = 0; i < n; i++)
		raw_qp_new(c, &cq, &cq, &cap, &q[i]);
}

static unsigned count_qpn(uint32_t qpn)
{
	unsigned n = 0;
	for (unsigned i = 0; i < shown.n; i++)
		n += shown.row[i].qp.qpn == qpn;
	return n;
}

static struct qp *inside(const struct raw_client *c, const struct raw_qp *q)
{
	return ((struct queue_pair *)handles_get(&c->k->qps, q->handle))->qp;
}

/* Three clients with none, one and many QPs: each QP once, with its client. */
static void test_each_once(void **state)
{
	enum { MANY = 200 };
	static struct raw_qp q[MANY], one;
	struct raw_client none, many, few;
	struct core *core = raw_core_new(1, 2, 0);
	raw_open(&none, core, &clock_ns);
	raw_open(&many, core, &clock_ns);
	raw_open(&few, core, &clock_ns);
	make_qps(&many, q, MANY);
	make_qps(&few, &one, 1);
	look_all(core, LOOK_QP);
	assert_int_equal(shown.n, MANY + 1);
	assert_true(shown.pieces >= 4);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(count_qpn(q[i].qpn), 1);
	assert_int_equal(count_qpn(one.qpn), 1);
	/* the last to come first; on core 1 of 2 the ids are 3, 5, 7 */
	assert_int_equal(shown.row[0].client, 7);
	assert_int_equal(shown.row[1].client, 5);
	assert_int_equal(core_client_id(none.k), 3);
	look_all(core, LOOK_CQ);
	assert_int_equal(shown.n, 2);
	look_all(core, LOOK_MR);
	assert_int_equal(shown.n, 0);
	core_free(core);
}

/* Between two pieces, QPs and whole clients go: nothing comes twice, and what stays comes. */
static void test_going_meanwhile(void **state)
{
	enum { EACH = 100 };
	static struct raw_qp q[3][EACH];
	struct raw_client c[3];
	struct core *core = raw_core_new(0, 1, 0);
	struct look_place at = { 0 };
	for (unsigned i = 0; i < 3; i++) {
		raw_open(&c[i], core, &clock_ns);
		make_qps(&c[i], q[i], EACH);
	}
	shown.n = shown.pieces = 0;
	assert_true(look_piece(core, LOOK_QP, &at) > 0);
	for (unsigned i = 0; i < EACH; i += 2)
		assert_int_equal(raw_ask_handle(&c[2], ABI_DESTROY_QP, q[2][i].handle), 0);
	look_piece(core, LOOK_QP, &at);
	core_client_free(c[2].k); /* the one that is being looked at, */
	core_client_free(c[1].k); /* and the one after it */
	look_on(core, LOOK_QP, &at);
	for (unsigned k = 0; k < 3; k++)
		for (unsigned i = 0; i < EACH; i++)
			assert_true(count_qpn(q[k][i].qpn) <= 1);
	for (unsigned i = 0; i < EACH; i++)
		assert_int_equal(count_qpn(q[0][i].qpn), 1);
	core_free(core);
}

static uint64_t sum_parts(uint32_t client, enum qp_counter counter, unsigned *parts)
{
	uint64_t sum = 0;
	*parts = 0;
	for (unsigned i = 0; i < shown.n; i++) {
		if (shown.row[i].client != client)
			continue;
		sum += shown.row[i].of_client.counter[counter];
		++*parts;
	}
	return sum;
}

/* A client's counters are those of all QPs that it has and had, however many pieces they come in. */
static void test_client_sums(void **state)
{
	enum { MANY = 150 };
	static struct raw_qp q[MANY];
	struct raw_client c, other;
	struct core *core = raw_core_new(0, 1, 0);
	unsigned parts;
	raw_open(&c, core, &clock_ns);
	raw_open(&other, core, &clock_ns);
	make_qps(&c, q, MANY);
	for (unsigned i = 0; i < MANY; i++)
		inside(&c, &q[i])->counter[QP_PACKET_SEQ_ERR] = i + 1;
	core_client_introduce(c.k, &(struct core_who){ .pid = 42, .uid = 7, .program = "p" });
	for (unsigned gone = 0; gone <= MANY; gone += 75) {
		look_all(core, LOOK_CLIENT);
		assert_int_equal(sum_parts(core_client_id(c.k), QP_PACKET_SEQ_ERR, &parts), MANY * (MANY + 1) / 2);
		assert_int_equal(parts, gone == 0 ? 3 : gone == 75 ? 2 : 1);
		assert_int_equal(sum_parts(core_client_id(other.k), QP_PACKET_SEQ_ERR, &parts), 0);
		assert_int_equal(parts, 1);
		for (unsigned i = 0; i < shown.n; i++)
			if (shown.row[i].client == core_client_id(c.k))
				assert_true(shown.row[i].of_client.qps_gone == gone && shown.row[i].of_client.who.pid == 42 && shown.row[i].of_client.used.qps == MANY - gone);
		for (unsigned i = gone; i < gone + 75 && i < MANY; i++)
			assert_int_equal(raw_ask_handle(&c, ABI_DESTROY_QP, q[i].handle), 0);
	}
	core_free(core);
}

/* What went is counted once, wherever in a piece the client is begun. */
static void test_begun_anywhere(void **state)
{
	struct raw_client c, other;
	struct raw_qp q[2];
	struct core *core = raw_core_new(0, 1, 0);
	unsigned parts;
	raw_open(&c, core, &clock_ns);
	make_qps(&c, q, 2);
	inside(&c, &q[1])->counter[QP_NAKS_SENT] = 1000;
	assert_int_equal(raw_ask_handle(&c, ABI_DESTROY_QP, q[1].handle), 0);
	inside(&c, &q[0])->counter[QP_NAKS_SENT] = 1;
	for (unsigned i = 0; i < LOOK_OBJECTS + 2; i++) {
		look_all(core, LOOK_CLIENT);
		assert_int_equal(sum_parts(core_client_id(c.k), QP_NAKS_SENT, &parts), 1001);
		raw_open(&other, core, &clock_ns);
	}
	core_free(core);
}

/* A piece looks at so many empty places at most, too. */
static void test_empty_places(void **state)
{
	static void *places[3 * LOOK_SLOTS];
	struct raw_client c;
	struct core *core = raw_core_new(0, 1, 0);
	raw_open(&c, core, &clock_ns);
	struct handles saved = c.k->qps;
	c.k->qps = (struct handles){ .object = places, .room = 3 * LOOK_SLOTS };
	look_all(core, LOOK_QP);
	assert_int_equal(shown.n, 0);
	assert_int_equal(shown.pieces, 3);
	c.k->qps = saved;
	core_free(core);
}

/* What clients write in rings is bounded before it is shown. */
static void test_hostile_indices(void **state)
{
	static const uint32_t lies[] = { UINT32_MAX, 1u << 31, 5, 4, 0 };
	struct raw_client c;
	struct raw_cq cq;
	struct raw_qp q;
	struct core *core = raw_core_new(0, 1, 0);
	raw_open(&c, core, &clock_ns);
	raw_cq_new(&c, 16, 0, &cq);
	raw_qp_new(&c, &cq, &cq, &cap, &q);
	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		uint32_t bounded = lies[i] < 4 ? lies[i] : 4;
		atomic_store(&q.sq.ring->client_index, lies[i]);
		atomic_store(&q.rq.ring->client_index, lies[i]);
		atomic_store(&cq.ring->client_index, 0u - lies[i]);
		atomic_store(&cq.ring->arm, lies[i]);
		look_all(core, LOOK_QP);
		assert_int_equal(shown.row[0].qp.sq_size, 4);
		assert_int_equal(shown.row[0].qp.sq_used, bounded);
		assert_int_equal(shown.row[0].qp.rq_used, bounded);
		look_all(core, LOOK_CQ);
		assert_int_equal(shown.row[0].cq.entries, 16);
		assert_int_equal(shown.row[0].cq.used, lies[i] < 16 ? lies[i] : 16);
	}
	core_free(core);
}

/* Keys are shown without the bits that make them secret. */
static void test_keys(void **state)
{
	struct raw_client c;
	struct raw_memory m;
	struct core *core = raw_core_new(0, 1, 0);
	raw_open(&c, core, &clock_ns);
	raw_memory_new(&c, 8192, &m);
	struct abi_req mw = { .type = ABI_CREATE_MW, .create_mw = { .pd = c.pd, .type = ABI_MW_TYPE_1 } };
	assert_int_equal(raw_ask(&c, &mw), 0);
	look_all(core, LOOK_MR);
	assert_int_equal(shown.n, 2);
	assert_int_equal(shown.row[0].mr.key, m.key >> 8);
	assert_int_equal(shown.row[0].mr.len, 8192);
	assert_int_equal(shown.row[0].mr.kind, MR_POOL);
	assert_int_equal(shown.row[1].mr.key, 0); /* bound to nothing */
	assert_int_equal(shown.row[1].mr.kind, MW_TYPE_1);
	core_free(core);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_once), cmocka_unit_test(test_going_meanwhile), cmocka_unit_test(test_client_sums), cmocka_unit_test(test_begun_anywhere), cmocka_unit_test(test_empty_places),
		cmocka_unit_test(test_hostile_indices), cmocka_unit_test(test_keys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
