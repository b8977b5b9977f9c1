/* SPDX-License-Identifier: BSD-3-Clause */
/* The timing wheel: against a model that only compares numbers, and the things that hooks may do to timers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "wheel.h"

#define HOUR_NS (3600ull * 1000000000u)
#define TICK WHEEL_TICK_NS

/* A timer that remembers. */
struct probe {
	struct timer timer;
	struct wheel *wheel;
	unsigned fired;
	uint64_t fired_ns;
	unsigned *counter;          /* of all firings, for their order */
	unsigned order;
	struct probe *victim;       /* cancelled by the hook */
	uint64_t again_ns, again;   /* armed again for fired_ns + again_ns, that many times */
};

static void on_expired(struct timer *t, uint64_t now_ns)
{
	struct probe *p = (struct probe *)((char *)t - offsetof(struct probe, timer));

	assert_false(timer_is_armed(t));
	p->fired++;
	p->fired_ns = now_ns;
	if (p->counter)
		p->order = ++*p->counter;
	if (p->victim)
		wheel_cancel(p->wheel, &p->victim->timer);
	if (p->again) {
		p->again--;
		wheel_arm(p->wheel, t, now_ns + p->again_ns);
	}
}

static void probe_init(struct probe *p, struct wheel *w)
{
	*p = (struct probe){ .wheel = w };
	timer_init(&p->timer, on_expired);
}

static struct wheel *new_wheel(uint64_t now_ns)
{
	struct wheel *w = wheel_new(now_ns);

	assert_non_null(w);
	return w;
}

static void test_empty(void **state)
{
	struct wheel *w = new_wheel(5);
	struct probe p;

	assert_true(wheel_next(w) == WHEEL_NEVER);
	assert_int_equal(wheel_run(w, 5), 0);
	assert_int_equal(wheel_run(w, 10 * HOUR_NS), 0);
	assert_int_equal(wheel_run(w, UINT64_MAX), 0);
	probe_init(&p, w);
	assert_false(timer_is_armed(&p.timer));
	wheel_cancel(w, &p.timer); /* not armed: nothing happens */
	assert_false(timer_is_armed(&p.timer));
	wheel_free(w);
	wheel_free(NULL);
}

/* One timer of the given distance: cancelled it leaves nothing behind, armed again it does not fire before its time, but then. */
static void check_distance(uint64_t start_ns, uint64_t distance_ns)
{
	uint64_t due_ns = start_ns + distance_ns, due_tick = (due_ns + TICK - 1) / TICK;
	struct wheel *w = new_wheel(start_ns);
	struct probe p;

	probe_init(&p, w);
	wheel_arm(w, &p.timer, due_ns);
	assert_true(timer_is_armed(&p.timer));
	wheel_cancel(w, &p.timer);
	assert_false(timer_is_armed(&p.timer));
	assert_true(wheel_next(w) == WHEEL_NEVER);
	wheel_arm(w, &p.timer, due_ns);
	assert_true(wheel_next(w) <= due_tick * TICK);
	if (distance_ns) {
		assert_int_equal(wheel_run(w, start_ns + (distance_ns - 1) / 2), 0);
		assert_int_equal(wheel_run(w, due_ns - 1), 0);
	}
	wheel_run(w, due_tick * TICK);
	assert_int_equal(p.fired, 1);
	assert_true(p.fired_ns >= due_ns);
	assert_false(timer_is_armed(&p.timer));
	assert_true(wheel_next(w) == WHEEL_NEVER);
	wheel_free(w);
}

/* Distances around every border of every level, from starting points around borders. */
static void test_every_level(void **state)
{
	static const uint64_t starts_ns[] = {
		0, 1, 1023, 255 * TICK, 256 * TICK + 7, 65535 * TICK, 65536 * TICK, 0xfffffeull * TICK, HOUR_NS, 1ull << 62,
	};

	for (size_t s = 0; s < sizeof(starts_ns) / sizeof(starts_ns[0]); s++)
		for (unsigned bit = 0; bit < 63; bit++) {
			check_distance(starts_ns[s], (1ull << bit) - 1);
			check_distance(starts_ns[s], 1ull << bit);
			check_distance(starts_ns[s], (1ull << bit) + 1);
		}
}

/* A caller whose time goes back breaks the contract, but not the wheel. */
static void test_time_goes_back(void **state)
{
	struct wheel *w = new_wheel(HOUR_NS);
	struct probe p;

	probe_init(&p, w);
	wheel_arm(w, &p.timer, HOUR_NS + 300 * TICK);
	assert_int_equal(wheel_run(w, HOUR_NS + 100 * TICK), 0);
	assert_int_equal(wheel_run(w, 0), 0);
	wheel_arm(w, &p.timer, HOUR_NS / 2);
	assert_int_equal(wheel_run(w, 0), 1);
	wheel_arm(w, &p.timer, HOUR_NS + 300 * TICK);
	assert_int_equal(wheel_run(w, 0), 0);
	assert_int_equal(wheel_run(w, HOUR_NS + 299 * TICK), 0);
	assert_int_equal(wheel_run(w, HOUR_NS + 301 * TICK), 1);
	wheel_free(w);
}

static void test_past(void **state)
{
	struct wheel *w = new_wheel(HOUR_NS);
	struct probe p;

	probe_init(&p, w);
	wheel_arm(w, &p.timer, 0);
	assert_true(wheel_next(w) <= HOUR_NS);
	assert_int_equal(wheel_run(w, HOUR_NS), 1);
	wheel_arm(w, &p.timer, HOUR_NS - 5 * TICK);
	wheel_cancel(w, &p.timer);
	assert_true(wheel_next(w) == WHEEL_NEVER);
	assert_int_equal(wheel_run(w, HOUR_NS), 0);
	/* Moved from the past to the future, and back. */
	wheel_arm(w, &p.timer, 1);
	wheel_arm(w, &p.timer, 2 * HOUR_NS);
	assert_int_equal(wheel_run(w, HOUR_NS + 1), 0);
	wheel_arm(w, &p.timer, 1);
	assert_int_equal(wheel_run(w, HOUR_NS + 1), 1);
	assert_int_equal(p.fired, 2);
	wheel_free(w);
}

static void test_far_future(void **state)
{
	struct wheel *w = new_wheel(0);
	struct probe end, never, soon;

	probe_init(&end, w);
	probe_init(&never, w);
	probe_init(&soon, w);
	wheel_arm(w, &end.timer, UINT64_MAX / TICK * TICK);
	wheel_arm(w, &never.timer, WHEEL_NEVER);
	wheel_arm(w, &soon.timer, 100 * HOUR_NS);
	assert_true(wheel_next(w) <= 100 * HOUR_NS);
	assert_int_equal(wheel_run(w, 200 * HOUR_NS), 1);
	assert_int_equal(soon.fired, 1);
	assert_int_equal(wheel_run(w, UINT64_MAX / TICK * TICK - 1), 0);
	assert_int_equal(wheel_run(w, UINT64_MAX), 1);
	assert_int_equal(end.fired, 1);
	/* The last tick ends beyond the last moment. */
	assert_true(timer_is_armed(&never.timer));
	assert_true(wheel_next(w) == WHEEL_NEVER);
	wheel_cancel(w, &never.timer);
	wheel_free(w);
}

/* In the order of ticks, and within one tick in the order of arming, whatever levels they waited at; also in one jump of hours. */
static void test_order(void **state)
{
	enum { N = 3000 };
	static struct probe p[N];
	struct wheel *w = new_wheel(12345);
	unsigned counter = 0;
	struct rng r;

	rng_seed(&r, 8);
	for (int i = 0; i < N; i++) {
		probe_init(&p[i], w);
		p[i].counter = &counter;
		wheel_arm(w, &p[i].timer, 12345 + rng_below(&r, i % 3 ? 300 * TICK : 1ull << rng_below(&r, 44)));
		if (i % 100 == 0)
			wheel_run(w, 12345 + (uint64_t)i / 100 * TICK);
	}
	wheel_run(w, 12345 + 10 * HOUR_NS);
	for (int a = 0; a < N; a++) {
		assert_int_equal(p[a].fired, 1);
		for (int b = 0; b < a; b++)
			if (p[a].timer.due_tick < p[b].timer.due_tick)
				assert_true(p[a].order < p[b].order);
			else
				assert_true(p[a].order > p[b].order);
	}
	wheel_free(w);
}

static void test_rearm_in_hook(void **state)
{
	struct wheel *w = new_wheel(0);
	struct probe p, q;

	/* For a time that has come already: the next run, not this one, so a run ends. */
	probe_init(&p, w);
	p.again = 5;
	wheel_arm(w, &p.timer, 10 * TICK);
	for (unsigned i = 1; i <= 6; i++) {
		assert_int_equal(wheel_run(w, HOUR_NS), 1);
		assert_int_equal(p.fired, i);
	}
	assert_int_equal(wheel_run(w, HOUR_NS), 0);
	/* Even when the run jumps far over the time it armed for. */
	probe_init(&q, w);
	q.again = 3;
	q.again_ns = 7 * TICK;
	wheel_arm(w, &q.timer, HOUR_NS + TICK);
	assert_int_equal(wheel_run(w, 3 * HOUR_NS), 1);
	assert_true(wheel_next(w) == (3 * HOUR_NS + TICK - 1) / TICK * TICK + 7 * TICK);
	assert_int_equal(wheel_run(w, 3 * HOUR_NS + 6 * TICK), 0);
	assert_int_equal(wheel_run(w, 3 * HOUR_NS + 8 * TICK), 1);
	assert_int_equal(wheel_run(w, 9 * HOUR_NS), 1);
	wheel_cancel(w, &q.timer);
	assert_false(timer_is_armed(&q.timer));
	wheel_free(w);
}

/* A hook cancels another timer: due later, due in the same run (next, and last), fired already, itself. */
/* known-bugs: 47 */
static void test_cancel_in_hook(void **state)
{
	enum { N = 5 };
	struct wheel *w = new_wheel(0);
	struct probe p[N];

	for (int victim = 0; victim < N; victim++)
		for (int by = 0; by < N; by++)
			for (unsigned same_tick = 0; same_tick < 2; same_tick++) {
				uint64_t base = (uint64_t)(victim * 50 + by * 10 + 1) * HOUR_NS + same_tick * HOUR_NS / 2;
				unsigned expected = victim > by ? N - 1 : N;
				for (int i = 0; i < N; i++) {
					probe_init(&p[i], w);
					wheel_arm(w, &p[i].timer, base + (same_tick ? 0 : (uint64_t)i * 300 * TICK));
				}
				p[by].victim = &p[victim];
				assert_int_equal(wheel_run(w, base + HOUR_NS / 4), expected);
				for (int i = 0; i < N; i++) {
					assert_int_equal(p[i].fired, i == victim && victim > by ? 0 : 1);
					assert_false(timer_is_armed(&p[i].timer));
				}
				assert_true(wheel_next(w) == WHEEL_NEVER);
			}
	wheel_free(w);
}

struct mover {
	struct timer timer;
	struct wheel *wheel;
	struct probe *other;
	uint64_t other_due_ns;
};

static void on_moved(struct timer *t, uint64_t now_ns)
{
	struct mover *m = (struct mover *)t;

	wheel_arm(m->wheel, &m->other->timer, m->other_due_ns);
}

/* A hook moves another timer that is due in the same run: it fires once, at its new time. */
static void test_move_in_hook(void **state)
{
	struct wheel *w = new_wheel(0);
	struct mover m = { .wheel = w };
	struct probe p[3];

	timer_init(&m.timer, on_moved);
	m.other = &p[1];
	for (int i = 0; i < 3; i++) {
		probe_init(&p[i], w);
		wheel_arm(w, &p[i].timer, 10 * TICK);
	}
	wheel_arm(w, &m.timer, 9 * TICK);
	m.other_due_ns = HOUR_NS;
	assert_int_equal(wheel_run(w, 20 * TICK), 3);
	assert_int_equal(p[1].fired, 0);
	assert_int_equal(wheel_run(w, HOUR_NS + TICK), 1);
	assert_int_equal(p[1].fired, 1);
	/* Moved into the past: at the next run. */
	wheel_arm(w, &p[1].timer, HOUR_NS + 5 * TICK);
	wheel_arm(w, &m.timer, HOUR_NS + 5 * TICK - 2 * TICK);
	m.other_due_ns = 0;
	assert_int_equal(wheel_run(w, 2 * HOUR_NS), 1);
	assert_int_equal(p[1].fired, 1);
	assert_int_equal(wheel_run(w, 2 * HOUR_NS), 1);
	assert_int_equal(p[1].fired, 2);
	wheel_free(w);
}

struct owner {
	struct timer timer;
	unsigned *freed;
};

static void on_last_gasp(struct timer *t, uint64_t now_ns)
{
	struct owner *o = (struct owner *)t;

	++*o->freed;
	memset(o, 0xdb, sizeof(*o)); /* seen without a sanitizer, too */
	free(o);
}

/* known-bugs: 47 */
static void test_free_in_hook(void **state)
{
	struct wheel *w = new_wheel(0);
	unsigned freed = 0;

	for (unsigned i = 0; i < 1000; i++) {
		struct owner *o = malloc(sizeof(*o));
		assert_non_null(o);
		o->freed = &freed;
		timer_init(&o->timer, on_last_gasp);
		/* many of one tick, some in the past, some levels up */
		wheel_arm(w, &o->timer, i % 3 * i * 100 * TICK);
	}
	assert_int_equal(wheel_run(w, HOUR_NS), 1000);
	assert_int_equal(freed, 1000);
	wheel_free(w);
}

/* A retransmission timer that every ACK pushes on: however long that goes on it never fires, and then once. */
/* known-bugs: 7 */
static void test_pushed_on(void **state)
{
	struct wheel *w = new_wheel(0);
	struct probe p;
	uint64_t now_ns = 0, rto_ns = 4000000;

	probe_init(&p, w);
	for (int i = 0; i < 200000; i++) {
		now_ns += 1500;
		wheel_arm(w, &p.timer, now_ns + rto_ns);
		assert_int_equal(wheel_run(w, now_ns), 0);
	}
	assert_int_equal(wheel_run(w, now_ns + rto_ns - 1), 0);
	assert_int_equal(wheel_run(w, now_ns + rto_ns + TICK), 1);
	assert_int_equal(p.fired, 1);
	wheel_free(w);
}

/* Waiting by wheel_next alone, as an idle poll core does: it gets there in a step per level, never early, never late by a tick. */
static void test_sleep_by_next(void **state)
{
	struct rng r;

	rng_seed(&r, 6);
	for (int i = 0; i < 2000; i++) {
		uint64_t now_ns = rng_next(&r) >> (2 + rng_below(&r, 40));
		uint64_t due_ns = now_ns + (rng_next(&r) >> (3 + rng_below(&r, 50)));
		struct wheel *w = new_wheel(now_ns);
		struct probe p;
		int steps = 0;

		probe_init(&p, w);
		wheel_arm(w, &p.timer, due_ns);
		while (!p.fired) {
			uint64_t next_ns = wheel_next(w);
			assert_true(next_ns != WHEEL_NEVER);
			now_ns = next_ns > now_ns ? next_ns : now_ns;
			wheel_run(w, now_ns);
			assert_true(++steps <= 7);
		}
		assert_true(p.fired_ns >= due_ns && p.fired_ns - due_ns < TICK);
		wheel_free(w);
	}
}

/* Beside the wheel, a model: what is armed, and for when. */
#define MODEL_TIMERS 200

struct model {
	struct wheel *wheel;
	struct rng rng;
	struct probe probes[MODEL_TIMERS];
	bool armed[MODEL_TIMERS], is_new[MODEL_TIMERS]; /* new: armed by a hook of the run under way */
	uint64_t due_ns[MODEL_TIMERS];
	uint64_t now_ns, last_tick;
	unsigned timers, fired;
};
static struct model *model; /* hooks get a timer and a time */

static uint64_t draw_due(struct model *m)
{
	uint64_t r = rng_below(&m->rng, 20), distance = rng_next(&m->rng) >> (20 + rng_below(&m->rng, 43));

	return r == 0 ? m->now_ns - (distance < m->now_ns ? distance : 0) : r == 1 ? m->now_ns : m->now_ns + distance;
}

static void arm_both(struct model *m, unsigned i, bool is_new)
{
	m->due_ns[i] = draw_due(m);
	m->armed[i] = true;
	m->is_new[i] = is_new;
	wheel_arm(m->wheel, &m->probes[i].timer, m->due_ns[i]);
}

static void cancel_both(struct model *m, unsigned i)
{
	m->armed[i] = false;
	wheel_cancel(m->wheel, &m->probes[i].timer);
}

static void on_model_expired(struct timer *t, uint64_t now_ns)
{
	struct model *m = model;
	unsigned i = (unsigned)((struct probe *)t - m->probes);

	assert_true(now_ns == m->now_ns);
	assert_true(m->armed[i]);
	assert_false(m->is_new[i]);
	assert_true(m->due_ns[i] <= now_ns);
	assert_true(t->due_tick >= m->last_tick);
	m->last_tick = t->due_tick;
	m->armed[i] = false;
	m->fired++;
	for (uint64_t n = rng_below(&m->rng, 4); n; n--) {
		unsigned other = n == 1 ? i : (unsigned)rng_below(&m->rng, m->timers);
		if (rng_below(&m->rng, 2))
			arm_both(m, other, true);
		else
			cancel_both(m, other);
	}
}

static void compare_with_model(struct model *m)
{
	uint64_t earliest_ns = WHEEL_NEVER, next_ns = wheel_next(m->wheel);
	bool is_any = false;

	for (unsigned i = 0; i < m->timers; i++) {
		assert_int_equal(timer_is_armed(&m->probes[i].timer), m->armed[i]);
		if (!m->armed[i])
			continue;
		is_any = true;
		if (m->due_ns[i] < earliest_ns)
			earliest_ns = m->due_ns[i];
		/* What is due by a full tick and was there before the run has fired. */
		if (!m->is_new[i])
			assert_true((m->due_ns[i] + TICK - 1) / TICK > m->now_ns / TICK);
	}
	assert_int_equal(is_any, next_ns != WHEEL_NEVER);
	if (is_any)
		assert_true(next_ns <= (earliest_ns + TICK - 1) / TICK * TICK || next_ns <= m->now_ns);
}

static void jump_and_run(struct model *m)
{
	uint64_t r = rng_below(&m->rng, 10);
	unsigned fired;

	if (r < 4)
		m->now_ns += rng_below(&m->rng, 3 * TICK);
	else if (r < 9)
		m->now_ns += rng_next(&m->rng) >> (24 + rng_below(&m->rng, 40));
	else if (wheel_next(m->wheel) != WHEEL_NEVER && wheel_next(m->wheel) > m->now_ns)
		m->now_ns = wheel_next(m->wheel);
	memset(m->is_new, 0, sizeof(m->is_new));
	m->fired = 0;
	m->last_tick = 0;
	fired = wheel_run(m->wheel, m->now_ns);
	assert_int_equal(fired, m->fired);
	compare_with_model(m);
}

static void play_model(uint64_t seed)
{
	struct model *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	model = m;
	rng_seed(&m->rng, seed);
	m->timers = 1 + seed * seed % MODEL_TIMERS; /* few: often none is armed; many: slots are shared */
	m->now_ns = rng_next(&m->rng) >> (5 + rng_below(&m->rng, 59));
	m->wheel = new_wheel(m->now_ns);
	for (unsigned i = 0; i < m->timers; i++)
		timer_init(&m->probes[i].timer, on_model_expired);
	for (int step = 0; step < 3000; step++) {
		unsigned i = (unsigned)rng_below(&m->rng, m->timers);
		switch (rng_below(&m->rng, 4)) {
		case 0:
		case 1:
			arm_both(m, i, false);
			break;
		case 2:
			cancel_both(m, i);
			break;
		default:
			jump_and_run(m);
		}
	}
	wheel_free(m->wheel);
	free(m);
}

static void test_against_model(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++)
		play_model(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_every_level),
		cmocka_unit_test(test_time_goes_back),
		cmocka_unit_test(test_past),
		cmocka_unit_test(test_far_future),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_rearm_in_hook),
		cmocka_unit_test(test_cancel_in_hook),
		cmocka_unit_test(test_move_in_hook),
		cmocka_unit_test(test_free_in_hook),
		cmocka_unit_test(test_pushed_on),
		cmocka_unit_test(test_sleep_by_next),
		cmocka_unit_test(test_against_model),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
