/* SPDX-License-Identifier: BSD-3-Clause */
/* Resizing a CQ of a core under traffic, and moderating its events in virtual time; what hostile requests and indices do; and that nothing of it is lost or left. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "machine.h"
#include "random.h"
#include "raw_client.h"

#define US 1000u

struct fixture {
	uint64_t now;
	struct core *core;
	struct raw_client c;
	struct raw_memory m;
	struct raw_cq cq, other;
	struct raw_qp from, to;
	uint32_t channel;
	uint64_t sent, polled; /* wr_ids */
};

static void open_fixture(struct fixture *x, uint32_t entries)
{
	static const struct abi_qp_cap cap = { 64, 64, 1, 1, 64 };
	*x = (struct fixture){ .now = 1000000 };
	x->core = raw_core_new(0, 1, x->now);
	raw_open(&x->c, x->core, &x->now);
	raw_memory_new(&x->c, 65536, &x->m);
	assert_int_equal(raw_ask(&x->c, &(struct abi_req){ .type = ABI_CREATE_CHANNEL }), 0);
	x->channel = x->c.rep.handle;
	raw_cq_new(&x->c, entries, x->channel, &x->cq);
	raw_cq_new(&x->c, 256, 0, &x->other);
	raw_qp_new(&x->c, &x->cq, &x->other, &cap, &x->from);
	raw_qp_new(&x->c, &x->other, &x->other, &cap, &x->to);
	raw_connect(&x->c, &x->from, "10.0.0.1", x->to.qpn);
	raw_connect(&x->c, &x->to, "10.0.0.1", x->from.qpn);
}

static void close_fixture(struct fixture *x)
{
	core_client_free(x->c.k);
	core_free(x->core);
}

static void run_for(struct fixture *x, uint64_t ns)
{
	struct core_frame none;
	for (uint64_t end = x->now + ns; x->now < end; x->now += 2 * US) {
		core_run(x->core, x->now);
		core_scan(x->core);
		core_tx(x->core, x->now, &none, 0);
	}
}

/* n completions, one after the other or in one burst. */
static void complete(struct fixture *x, unsigned n)
{
	while (n--)
		raw_write(&x->c, &x->from, x->sent++, &x->m);
	run_for(x, 20 * US);
}

static bool poll_one(struct fixture *x)
{
	struct abi_cqe e;
	if (!raw_poll(&x->cq, &e))
		return false;
	assert_int_equal(e.wr_id, x->polled++);
	assert_int_equal(e.status, ABI_WC_SUCCESS);
	return true;
}

static int modify(struct fixture *x, uint32_t mask, uint32_t entries)
{
	return raw_ask(&x->c, &(struct abi_req){ .type = ABI_MODIFY_CQ, .modify_cq = { .cq = x->cq.handle, .mask = mask, .entries = entries } });
}

/* ---- size ---- */

/* What a client has to do, by the contract: empty the slots before, move what it has not taken after. */
static struct abi_cqe *empty_slots(struct fixture *x, const struct abi_ring_place *p)
{
	void *base;
	uint64_t bytes;
	int fd;
	assert_int_equal(core_client_region(x->c.k, p->arena, &base, &bytes, &fd), 0);
	struct abi_cqe *slots = (struct abi_cqe *)(void *)((uint8_t *)base + p->slots_offset);
	for (uint32_t i = 0; i < p->slots; i++)
		slots[(x->cq.head + i) & (p->slots - 1)].phase = !!((x->cq.head + i) & p->slots);
	return slots;
}

static void move_over(struct fixture *x, struct abi_cqe *slots, uint32_t n)
{
	struct raw_cq *q = &x->cq;
	for (uint32_t i = q->head; q->slots[i & (q->n - 1)].phase == !(i & q->n) && i - q->head < q->n; i++) {
		struct abi_cqe *e = &slots[i & (n - 1)];
		*e = q->slots[i & (q->n - 1)];
		e->phase = !(i & n);
	}
	q->slots = slots;
	q->n = n;
}

/* between: completions that come after the first step. */
static int resize(struct fixture *x, uint32_t entries, unsigned between)
{
	int rc = modify(x, ABI_CQ_ENTRIES, entries);
	if (rc)
		return rc;
	uint32_t n = x->c.rep.cq.entries;
	assert_int_equal(n, x->c.rep.cq.ring.slots);
	struct abi_cqe *slots = empty_slots(x, &x->c.rep.cq.ring);
	if (between)
		complete(x, between);
	rc = modify(x, ABI_CQ_SWITCH, 0);
	if (!rc)
		move_over(x, slots, n);
	return rc;
}

/* known-bugs: 43 */
static void test_resized_under_traffic(void **state)
{
	unsigned grown = 0, shrunk = 0, refused = 0, late = 0;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct fixture x;
		struct rng r;
		rng_seed(&r, seed);
		open_fixture(&x, 32);
		for (unsigned step = 0; step < 400; step++) {
			uint32_t held = (uint32_t)(x.sent - x.polled), before = x.cq.n;
			uint32_t room = before - held < 32 ? before - held : 32;
			complete(&x, room ? (unsigned)rng_below(&r, room + 1) : 0);
			held = (uint32_t)(x.sent - x.polled);
			room = before - held < 8 ? before - held : 8;
			unsigned between = room ? (unsigned)rng_below(&r, room + 1) : 0;
			uint32_t entries = 1u << rng_below(&r, 7);
			int rc = resize(&x, entries, between);
			assert_int_equal(rc, held > entries || x.sent - x.polled > entries ? -EINVAL : 0);
			grown += !rc && entries > before;
			shrunk += !rc && entries < before;
			refused += held > entries;
			late += rc && held <= entries;
			for (unsigned n = (unsigned)rng_below(&r, 40); n && poll_one(&x); n--)
				;
		}
		while (poll_one(&x))
			;
		assert_int_equal(x.polled, x.sent);
		struct core_stats stats;
		core_stats(x.core, &stats);
		assert_int_equal(stats.cq_overruns, 0);
		close_fixture(&x);
	}
	print_message("%u times larger, %u times smaller, %u times too small, %u times too small by what came meanwhile\n", grown, shrunk, refused, late);
	assert_true(grown > 100 && shrunk > 100 && refused > 100 && late > 100);
}

/* known-bugs: 43 */
static void test_overrun_after_a_resize(void **state)
{
	struct fixture x;
	open_fixture(&x, 64);
	complete(&x, 3);
	assert_int_equal(resize(&x, 4, 0), 0);
	complete(&x, 1);
	struct core_stats stats;
	core_stats(x.core, &stats);
	assert_int_equal(stats.cq_overruns, 0); /* it is full, and no more */
	complete(&x, 1);
	core_stats(x.core, &stats);
	assert_int_equal(stats.cq_overruns, 1);
	assert_int_equal(stats.raised[ABI_EVENT_CQ_ERR], 1);
	for (unsigned i = 0; i < 4; i++)
		assert_true(poll_one(&x));
	assert_false(poll_one(&x));
	assert_int_equal(resize(&x, 64, 0), -EINVAL); /* what was lost does not come back */
	close_fixture(&x);
}

static void test_requests_that_cannot_be(void **state)
{
	struct fixture x;
	struct core_stats before, after;
	open_fixture(&x, 8);
	core_stats(x.core, &before);
	const struct {
		uint32_t cq, mask, entries, count, period_us;
		int rc;
	} rows[] = {
		{ 0xdead, ABI_CQ_ENTRIES, 16, 0, 0, -ENOENT }, { x.other.handle + 0x10000000, ABI_CQ_SWITCH, 0, 0, 0, -ENOENT },
		{ x.cq.handle, 0, 16, 0, 0, -EINVAL }, { x.cq.handle, ABI_CQ_ENTRIES | ABI_CQ_SWITCH, 16, 0, 0, -EINVAL }, { x.cq.handle, 8, 16, 0, 0, -EINVAL }, { x.cq.handle, UINT32_MAX, 16, 0, 0, -EINVAL },
		{ x.cq.handle, ABI_CQ_ENTRIES, 0, 0, 0, -EINVAL }, { x.cq.handle, ABI_CQ_ENTRIES, CORE_MAX_CQE + 1, 0, 0, -EINVAL }, { x.cq.handle, ABI_CQ_ENTRIES, UINT32_MAX, 0, 0, -EINVAL },
		{ x.cq.handle, ABI_CQ_SWITCH, 0, 0, 0, -EINVAL }, { x.other.handle, ABI_CQ_SWITCH, 0, 0, 0, -EINVAL },
		{ x.cq.handle, ABI_CQ_MODERATION, 0, 2, 0, -EINVAL }, { x.cq.handle, ABI_CQ_MODERATION, 0, ABI_CQ_COUNT_MAX + 1, 1, -EINVAL },
		{ x.cq.handle, ABI_CQ_MODERATION, 0, 2, ABI_CQ_PERIOD_MAX_US + 1, -EINVAL }, { x.other.handle, ABI_CQ_MODERATION, 0, 2, 2, -EINVAL },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct abi_req req = { .type = ABI_MODIFY_CQ, .modify_cq = { rows[i].cq, rows[i].mask, rows[i].entries, rows[i].count, rows[i].period_us, 0 } };
		assert_int_equal(raw_ask(&x.c, &req), rows[i].rc);
		assert_true(x.c.rep.text[0]);
	}
	core_stats(x.core, &after);
	assert_int_equal(after.refused_requests - before.refused_requests, sizeof(rows) / sizeof(rows[0]));
	/* a switch is good for once */
	assert_int_equal(resize(&x, 16, 0), 0);
	assert_int_equal(modify(&x, ABI_CQ_SWITCH, 0), -EINVAL);
	complete(&x, 16);
	while (poll_one(&x))
		;
	assert_int_equal(x.polled, x.sent);
	close_fixture(&x);
}

/* A head from the future or the far past: refused in either step, and no slot outside of the ring is written. */
static void test_hostile_head(void **state)
{
	static const uint32_t lies[] = { 0x40000000, 0xfffffff0, 11 };
	for (unsigned i = 0; i < 3; i++) {
		struct fixture x;
		open_fixture(&x, 16);
		complete(&x, 10);
		struct abi_ring *ring = x.cq.ring;
		atomic_store(&ring->client_index, lies[i]);
		assert_int_equal(modify(&x, ABI_CQ_ENTRIES, 4096), -EINVAL);
		atomic_store(&ring->client_index, 0);
		assert_int_equal(modify(&x, ABI_CQ_ENTRIES, 4096), 0);
		atomic_store(&ring->client_index, lies[i]);
		assert_int_equal(modify(&x, ABI_CQ_SWITCH, 0), -EINVAL);
		atomic_store(&ring->client_index, 0);
		complete(&x, 6);
		while (poll_one(&x))
			;
		assert_int_equal(x.polled, 16);
		close_fixture(&x);
	}
}

static uint64_t ring_bytes(const struct fixture *x)
{
	struct core_usage u;
	core_client_usage(x->c.k, &u);
	return u.ring_bytes;
}

/* Both rings count while there are two, one when it is over, none when the CQ has gone, or its client in the middle. */
static void test_what_it_costs(void **state)
{
	struct fixture x;
	struct core_usage most = { .pds = 9, .qps = 9, .cqs = 9, .mrs = 9, .channels = 9, .registered_bytes = 1 << 20, .pool_bytes = 1 << 20 };
	open_fixture(&x, 16);
	uint64_t before = ring_bytes(&x);
	most.ring_bytes = before + 64 * sizeof(struct abi_cqe);
	core_client_set_quota(x.c.k, &most);
	assert_int_equal(modify(&x, ABI_CQ_ENTRIES, 65), -EDQUOT);
	assert_int_equal(modify(&x, ABI_CQ_ENTRIES, 64), 0);
	assert_int_equal(ring_bytes(&x), most.ring_bytes);
	assert_int_equal(modify(&x, ABI_CQ_ENTRIES, 32), 0); /* in place of the other one */
	assert_int_equal(ring_bytes(&x), before + 32 * sizeof(struct abi_cqe));
	for (unsigned i = 0; i < 1000; i++) /* nothing is left of them */
		assert_int_equal(resize(&x, i % 2 ? 16 : 64, 0), 0);
	assert_int_equal(ring_bytes(&x), before);
	assert_int_equal(x.c.k->arenas.n, 1);
	struct raw_cq q;
	raw_cq_new(&x.c, 16, 0, &q);
	assert_int_equal(raw_ask(&x.c, &(struct abi_req){ .type = ABI_MODIFY_CQ, .modify_cq = { .cq = q.handle, .mask = ABI_CQ_ENTRIES, .entries = 32 } }), 0);
	assert_int_equal(raw_ask_handle(&x.c, ABI_DESTROY_CQ, q.handle), 0); /* in the middle */
	assert_int_equal(ring_bytes(&x), before);
	assert_int_equal(modify(&x, ABI_CQ_ENTRIES, 64), 0);
	while (!core_client_detach(x.c.k, 1))
		;
	assert_int_equal(ring_bytes(&x), 0);
	close_fixture(&x);
}

/* ---- moderation ---- */

static void moderate(struct fixture *x, uint32_t count, uint32_t period_us)
{
	assert_int_equal(raw_ask(&x->c, &(struct abi_req){ .type = ABI_MODIFY_CQ, .modify_cq = { .cq = x->cq.handle, .mask = ABI_CQ_MODERATION, .count = count, .period_us = period_us } }), 0);
}

static void arm(struct fixture *x, uint32_t how)
{
	atomic_store(&x->cq.ring->arm, how);
}

static unsigned take_events(struct fixture *x)
{
	uint64_t cookie;
	unsigned n = 0;
	while (read(core_client_channel_fd(x->c.k, x->channel), &cookie, sizeof(cookie)) == sizeof(cookie))
		n++;
	return n;
}

static void open_moderated(struct fixture *x, uint32_t count, uint32_t period_us)
{
	open_fixture(x, 64);
	assert_int_equal(fcntl(core_client_channel_fd(x->c.k, x->channel), F_SETFL, O_NONBLOCK), 0);
	moderate(x, count, period_us);
}

/* known-bugs: 44 */
static void test_so_many_or_so_long(void **state)
{
	struct fixture x;
	open_moderated(&x, 4, 1000);
	complete(&x, 3); /* nobody has armed: they count for nothing */
	arm(&x, ABI_ARM_ANY);
	run_for(&x, 3000 * US);
	assert_int_equal(take_events(&x), 0);
	for (unsigned i = 0; i < 3; i++) {
		complete(&x, 1);
		assert_int_equal(take_events(&x), 0);
	}
	assert_int_equal(x.cq.ring->arm, ABI_ARM_ANY);
	complete(&x, 1);
	assert_int_equal(take_events(&x), 1);
	assert_int_equal(x.cq.ring->arm, ABI_ARM_NONE);
	run_for(&x, 3000 * US); /* one each */
	assert_int_equal(take_events(&x), 0);
	/* a burst */
	arm(&x, ABI_ARM_ANY);
	complete(&x, 6);
	assert_int_equal(take_events(&x), 1);
	/* fewer: never lost, after the period at the latest, and not before */
	arm(&x, ABI_ARM_ANY);
	uint64_t start = x.now;
	complete(&x, 1);
	run_for(&x, start + 990 * US - x.now);
	assert_int_equal(take_events(&x), 0);
	assert_true(core_next(x.core) <= start + 1100 * US);
	run_for(&x, 60 * US);
	assert_int_equal(take_events(&x), 1);
	close_fixture(&x);
}

/* Whoever arms again while one is held back is woken by it, and by a later one if it arms after it. */
/* known-bugs: 44 */
static void test_arming_while_one_is_held_back(void **state)
{
	struct fixture x;
	open_moderated(&x, 8, 500);
	arm(&x, ABI_ARM_ANY);
	complete(&x, 2);
	while (poll_one(&x))
		;
	arm(&x, ABI_ARM_ANY); /* and polls, and finds nothing, and blocks */
	assert_false(poll_one(&x));
	run_for(&x, 600 * US);
	assert_int_equal(take_events(&x), 1);
	assert_int_equal(x.cq.ring->arm, ABI_ARM_NONE);
	arm(&x, ABI_ARM_ANY);
	complete(&x, 1);
	run_for(&x, 600 * US);
	assert_int_equal(take_events(&x), 1);
	close_fixture(&x);
}

/* What makes an event due is as without moderation; then all completions count. */
/* known-bugs: 44 */
static void test_solicited_only(void **state)
{
	struct fixture x;
	open_moderated(&x, 3, 500);
	arm(&x, ABI_ARM_SOLICITED);
	complete(&x, 5);
	run_for(&x, 2000 * US);
	assert_int_equal(take_events(&x), 0);
	struct abi_send_wqe bad = { .wr_id = x.sent++, .opcode = ABI_OP_SEND, .num_sge = 1, .sge = { { 0, 8, 0x123 } } };
	raw_post(&x.from.sq, &bad, sizeof(bad));
	raw_ring_doorbell(&x.c, &x.from, &x.from.sq);
	uint64_t start = x.now;
	run_for(&x, 400 * US);
	assert_int_equal(take_events(&x), 0); /* an error is one completion of three */
	run_for(&x, start + 600 * US - x.now);
	assert_int_equal(take_events(&x), 1);
	close_fixture(&x);
}

static void test_changed_while_one_is_held_back(void **state)
{
	struct fixture x;
	open_moderated(&x, 8, 60000);
	arm(&x, ABI_ARM_ANY);
	complete(&x, 2);
	assert_int_equal(take_events(&x), 0);
	moderate(&x, 0, 0);
	assert_int_equal(take_events(&x), 1);
	arm(&x, ABI_ARM_ANY);
	complete(&x, 1);
	assert_int_equal(take_events(&x), 1);
	/* a resize, the CQ's end and the client's are no reason to wait, or to touch what is gone */
	moderate(&x, 8, 300);
	arm(&x, ABI_ARM_ANY);
	complete(&x, 1);
	assert_int_equal(resize(&x, 256, 3), 0);
	run_for(&x, 400 * US);
	assert_int_equal(take_events(&x), 1);
	arm(&x, ABI_ARM_ANY);
	complete(&x, 1);
	assert_int_equal(raw_ask_handle(&x.c, ABI_DESTROY_QP, x.from.handle), 0);
	assert_int_equal(raw_ask_handle(&x.c, ABI_DESTROY_CQ, x.cq.handle), 0);
	run_for(&x, 1000 * US);
	assert_int_equal(take_events(&x), 0);
	close_fixture(&x);
}

/* A channel that nobody reads: the event is late, and comes when there is room. */
static void test_full_channel(void **state)
{
	struct fixture x;
	open_moderated(&x, 2, 100);
	unsigned written = 0, got = 0;
	for (unsigned i = 0; i < 20000 && TAILQ_EMPTY(&x.core->late); i++, written++) {
		arm(&x, ABI_ARM_ANY);
		complete(&x, 2);
		while (poll_one(&x))
			;
	}
	assert_false(TAILQ_EMPTY(&x.core->late));
	arm(&x, ABI_ARM_ANY);
	complete(&x, 2); /* served by the late one */
	for (unsigned i = 0; i < 10; i++) {
		got += take_events(&x);
		run_for(&x, 2000 * US);
	}
	assert_int_equal(got + take_events(&x), written);
	assert_true(TAILQ_EMPTY(&x.core->late));
	close_fixture(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resized_under_traffic),
		cmocka_unit_test(test_overrun_after_a_resize),
		cmocka_unit_test(test_requests_that_cannot_be),
		cmocka_unit_test(test_hostile_head),
		cmocka_unit_test(test_what_it_costs),
		cmocka_unit_test(test_so_many_or_so_long),
		cmocka_unit_test(test_arming_while_one_is_held_back),
		cmocka_unit_test(test_solicited_only),
		cmocka_unit_test(test_changed_while_one_is_held_back),
		cmocka_unit_test(test_full_channel),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
