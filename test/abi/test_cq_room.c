/* SPDX-License-Identifier: BSD-3-Clause */
/* The room of a CQ, between a client and a core: completions of QPs that are gone take none, neither when others complete nor when the CQ becomes smaller; those of the others stay, in order. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "direct_session.h"
#include "gid.h"
#include "random.h"

enum { SLOTS = 64, QPS = 4 };

struct world {
	uint64_t now_ns;
	struct core *core;
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	uint64_t next_id;
	/* what is to be polled, in order */
	uint64_t id[SLOTS];
	unsigned of[SLOTS], held;
	struct uroce_qp *qp[QPS];
};

static void open_world(struct world *w)
{
	static const struct log quiet = { .level = LOG_ERROR };
	static const struct uroce_open_attr attr = { .log_level = 1 };
	struct core_config config = { .name = "room", .max_frame = 4300, .addr = { .mac = { 2, 0, 0, 0, 0, 1 } }, .hooks = &direct_hooks, .log = &quiet };
	struct gid gid;
	uint32_t index;
	*w = (struct world){ .now_ns = 1000000 };
	assert_int_equal(core_new(&w->core, &config, w->now_ns), 0);
	assert_int_equal(gid_parse("10.0.0.1", &gid), 0);
	assert_int_equal(addr_gid_add(core_addr(w->core), &gid, 0xffff, 24, &index), 0);
	assert_int_equal(direct_session_open(w->core, &w->now_ns, &attr, &w->ctx), 0);
	assert_int_equal(uroce_pd_create(w->ctx, &w->pd), 0);
	assert_int_equal(uroce_cq_create(w->ctx, SLOTS, NULL, NULL, &w->cq), 0);
}

static void close_world(struct world *w)
{
	struct core_stats s;
	core_stats(w->core, &s);
	assert_int_equal(s.cq_overruns, 0);
	uroce_close(w->ctx);
	core_free(w->core);
}

/* A QP in ERR, whose receives complete as flushed when they are posted. */
static void open_qp(struct world *w, unsigned i)
{
	struct uroce_qp_init init = { .send_cq = w->cq, .recv_cq = w->cq, .cap = { 1, SLOTS, 1, 1, 0 } };
	struct uroce_qp_attr err = { .state = UROCE_QP_ERR };
	struct uroce_endpoint e;
	assert_int_equal(uroce_qp_create(w->pd, &init, &w->qp[i]), 0);
	assert_int_equal(uroce_qp_endpoint(w->qp[i], 0, &e), 0);
	assert_int_equal(uroce_qp_connect(w->qp[i], &e, &e, NULL, 0), 0);
	assert_int_equal(uroce_qp_modify(w->qp[i], &err, UROCE_QP_STATE), 0);
}

static void complete(struct world *w, unsigned i, unsigned n)
{
	struct core_frame none;
	for (unsigned k = 0; k < n; k++) {
		struct uroce_recv_wr wr = { .wr_id = w->next_id };
		assert_int_equal(uroce_post_recv(w->qp[i], &wr, 1), 1);
		w->of[w->held] = i;
		w->id[w->held++] = w->next_id++;
	}
	for (unsigned k = 0; k < 20; k++, w->now_ns += 1000) {
		core_run(w->core, w->now_ns);
		core_scan(w->core);
		core_tx(w->core, w->now_ns, &none, 0);
	}
}

static void forget(struct world *w, unsigned i)
{
	unsigned left = 0;
	for (unsigned k = 0; k < w->held; k++) {
		if (w->of[k] == i)
			continue;
		w->of[left] = w->of[k];
		w->id[left++] = w->id[k];
	}
	w->held = left;
}

static void close_qp(struct world *w, unsigned i)
{
	assert_int_equal(uroce_qp_destroy(w->qp[i]), 0);
	w->qp[i] = NULL;
	forget(w, i);
}

static void take(struct world *w, unsigned n)
{
	struct uroce_wc wc[SLOTS];
	unsigned expected = n < w->held ? n : w->held;
	assert_int_equal(uroce_cq_poll(w->cq, wc, n), expected);
	for (unsigned k = 0; k < expected; k++) {
		assert_int_equal(wc[k].wr_id, w->id[k]);
		assert_int_equal(wc[k].status, UROCE_WC_WR_FLUSH_ERR);
	}
	w->held -= expected;
	memmove(w->id, w->id + expected, w->held * sizeof(w->id[0]));
	memmove(w->of, w->of + expected, w->held * sizeof(w->of[0]));
}

static void test_smaller(void **state)
{
	struct world w;
	open_world(&w);
	open_qp(&w, 0);
	open_qp(&w, 1);
	complete(&w, 0, 20);
	complete(&w, 1, 3);
	complete(&w, 0, 20);
	assert_int_equal(uroce_cq_resize(w.cq, 4), -EINVAL); /* 43 are held */
	close_qp(&w, 0);
	assert_int_equal(uroce_cq_resize(w.cq, 2), -EINVAL); /* 3 */
	assert_int_equal(uroce_cq_resize(w.cq, 4), 0);
	assert_int_equal(uroce_cq_entries(w.cq), 4);
	complete(&w, 1, 1);
	take(&w, SLOTS);
	complete(&w, 1, 4);
	take(&w, SLOTS);
	close_world(&w);
}

/* A program that polls late counts what its QPs can complete, not what those could that it had. */
static void test_as_much_as_it_has(void **state)
{
	struct world w;
	open_world(&w);
	open_qp(&w, 1);
	complete(&w, 1, 2);
	for (unsigned round = 0; round < 5; round++) {
		open_qp(&w, 0);
		complete(&w, 0, SLOTS - 2);
		close_qp(&w, 0);
	}
	complete(&w, 1, SLOTS - 2);
	take(&w, SLOTS);
	close_world(&w);
}

static void test_reset(void **state)
{
	struct world w;
	struct uroce_qp_attr reset = { .state = UROCE_QP_RESET };
	open_world(&w);
	open_qp(&w, 0);
	open_qp(&w, 1);
	complete(&w, 1, 1);
	complete(&w, 0, SLOTS - 2);
	complete(&w, 1, 1);
	assert_int_equal(uroce_qp_modify(w.qp[0], &reset, UROCE_QP_STATE), 0);
	forget(&w, 0);
	assert_int_equal(uroce_cq_resize(w.cq, 2), 0);
	take(&w, SLOTS);
	close_world(&w);
}

static uint32_t round_up(uint32_t n)
{
	uint32_t slots = 1;
	while (slots < n)
		slots *= 2;
	return slots;
}

/* Anything, in any order; what the CQ holds is always known. */
static void play(uint64_t seed)
{
	struct rng rng;
	struct world w;
	uint32_t slots = SLOTS;
	rng_seed(&rng, seed);
	open_world(&w);
	for (unsigned step = 0; step < 200; step++) {
		unsigned i = (unsigned)rng_below(&rng, QPS);
		if (!w.qp[i])
			open_qp(&w, i);
		switch (rng_below(&rng, 5)) {
		case 0:
			close_qp(&w, i);
			break;
		case 1:
			slots = round_up((w.held ? w.held : 1) + (uint32_t)rng_below(&rng, SLOTS + 1 - (w.held ? w.held : 1)));
			assert_int_equal(uroce_cq_resize(w.cq, slots), 0);
			break;
		case 2:
			take(&w, (unsigned)rng_below(&rng, SLOTS));
			break;
		default:
			complete(&w, i, (unsigned)rng_below(&rng, slots - w.held + 1));
		}
	}
	take(&w, SLOTS);
	assert_int_equal(w.held, 0);
	close_world(&w);
}

static void test_anything(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++)
		play(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_smaller),
		cmocka_unit_test(test_as_much_as_it_has),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_anything),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
