/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics on one word by several QPs, by two cores on threads of their own, and by the program's own instructions, all at once, in pool memory and in memory of the process: no step is lost and none comes twice (DESIGN section 6; IBA vol. 1, 9.4.5). */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "direct_session.h"
#include "gid.h"
#include "uroce.h"

enum { PAIRS = 3, CORES = 2, STEPS = 1500, DEPTH = 4 };
#define ALL ((uint32_t)UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC)

/* A core, its only client, and pairs of QPs; all of one thread. */
struct party {
	struct core *core;
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_qp *qp[2 * PAIRS];
	struct uroce_mr *results, *target;
	uint64_t result[PAIRS][DEPTH]; /* each by the WR of that number */
	uint64_t now_ns;
	_Atomic uint64_t *word;
	bool is_swapping; /* COMPARE_SWAP, until it hits */
	_Atomic bool is_broken;
};

static void connect_all(struct party *p)
{
	struct uroce_endpoint e[2 * PAIRS];
	for (unsigned i = 0; i < 2 * PAIRS; i++) {
		struct uroce_qp_init init = { .send_cq = p->cq, .recv_cq = p->cq, .cap = { DEPTH, 1, 1, 1, 0 }, .signal_all = true };
		assert_int_equal(uroce_qp_create(p->pd, &init, &p->qp[i]), 0);
		assert_int_equal(uroce_qp_endpoint(p->qp[i], 0, &e[i]), 0);
	}
	for (unsigned i = 0; i < 2 * PAIRS; i++)
		assert_int_equal(uroce_qp_connect(p->qp[i], &e[i], &e[i ^ 1], NULL, 0), 0);
}

static void open_party(struct party *p, unsigned index)
{
	static const struct log quiet = { .level = LOG_ERROR };
	static const struct uroce_open_attr attr = { .log_level = 1 };
	struct core_config config = { .name = "atomics", .max_frame = 4300, .addr = { .mac = { 2, 0, 0, 0, 0, 1 } }, .hooks = &direct_hooks, .log = &quiet };
	struct gid gid;
	uint32_t at;
	*p = (struct party){ .now_ns = 1000000, .is_swapping = index % 2 };
	assert_int_equal(core_new(&p->core, &config, p->now_ns), 0);
	assert_int_equal(gid_parse("10.0.0.1", &gid), 0);
	assert_int_equal(addr_gid_add(core_addr(p->core), &gid, 0xffff, 24, &at), 0);
	assert_int_equal(direct_session_open(p->core, &p->now_ns, &attr, &p->ctx), 0);
	assert_int_equal(uroce_pd_create(p->ctx, &p->pd), 0);
	assert_int_equal(uroce_cq_create(p->ctx, 64, NULL, NULL, &p->cq), 0);
	assert_int_equal(uroce_mr_register(p->pd, p->result, sizeof(p->result), UROCE_ACCESS_LOCAL_WRITE, &p->results), 0);
	connect_all(p);
}

static void aim(struct party *p, _Atomic uint64_t *word)
{
	p->word = word;
	assert_int_equal(uroce_mr_register(p->pd, (void *)(uintptr_t)word, 8, ALL, &p->target), 0);
}

static void close_party(struct party *p)
{
	uroce_close(p->ctx);
	core_free(p->core);
}

/* One step of pair `pair`, answered in its result `n`. A swap expects what that one brought last. */
static bool post(struct party *p, unsigned pair, unsigned n)
{
	struct uroce_sge sge = { (uintptr_t)&p->result[pair][n], 8, uroce_mr_lkey(p->results) };
	struct uroce_send_wr wr = { .wr_id = pair * DEPTH + n, .sg_list = &sge, .num_sge = 1, .opcode = p->is_swapping ? UROCE_OP_COMPARE_SWAP : UROCE_OP_FETCH_ADD, .remote_addr = (uintptr_t)p->word,
		.rkey = uroce_mr_rkey(p->target), .compare_add = p->is_swapping ? p->result[pair][n] : 1, .swap = p->result[pair][n] + 1 };
	return uroce_post_send(p->qp[2 * pair], &wr, 1) == 1;
}

static void run_core(struct party *p)
{
	struct core_frame none;
	p->now_ns += 1000;
	core_run(p->core, p->now_ns);
	core_scan(p->core);
	core_tx(p->core, p->now_ns, &none, 0);
}

/* STEPS steps that counted: a swap that finds another value than it expects is tried again. */
static void *take_steps(void *arg)
{
	struct party *p = arg;
	uint64_t expected[PAIRS][DEPTH] = { { 0 } };
	unsigned posted = 0, done = 0;
	bool is_right = true;
	memset(p->result, 0, sizeof(p->result));
	for (unsigned i = 0; i < PAIRS * DEPTH; i++, posted++)
		is_right &= post(p, i / DEPTH, i % DEPTH);
	while (is_right && done < STEPS) {
		struct uroce_wc wc;
		run_core(p);
		if (uroce_cq_poll(p->cq, &wc, 1) != 1)
			continue;
		unsigned pair = (unsigned)wc.wr_id / DEPTH, n = (unsigned)wc.wr_id % DEPTH;
		bool has_hit = !p->is_swapping || p->result[pair][n] == expected[pair][n];
		is_right = wc.status == UROCE_WC_SUCCESS;
		done += has_hit;
		posted -= !has_hit;
		if (posted == STEPS)
			continue;
		/* what a swap that hit will find is one more, if nobody else comes */
		p->result[pair][n] += has_hit && p->is_swapping;
		expected[pair][n] = p->result[pair][n];
		is_right &= post(p, pair, n);
		posted++;
	}
	p->is_broken = !is_right;
	return NULL;
}

#define OWN (UINT64_C(1) << 32)

static void compete(struct party *p, unsigned cores, _Atomic uint64_t *word)
{
	pthread_t thread[CORES];
	uint64_t own = 0;
	atomic_store(word, 0);
	for (unsigned i = 0; i < cores; i++) {
		aim(&p[i], word);
		assert_int_equal(pthread_create(&thread[i], NULL, take_steps, &p[i]), 0);
	}
	/* the program's own, of both kinds, as long as the cores are at it; with a rest, or no swap of theirs would ever hit */
	for (unsigned i = 0; (uint32_t)atomic_load(word) < cores * STEPS && !p[i % cores].is_broken; i++) {
		static const struct timespec rest = { .tv_nsec = 20000 };
		uint64_t seen = atomic_load(word);
		own += atomic_compare_exchange_strong(word, &seen, seen + OWN);
		atomic_fetch_add(word, OWN);
		own++;
		nanosleep(&rest, NULL);
	}
	for (unsigned i = 0; i < cores; i++) {
		pthread_join(thread[i], NULL);
		assert_false(p[i].is_broken);
		assert_int_equal(uroce_mr_deregister(p[i].target), 0);
	}
	assert_int_equal((uint32_t)atomic_load(word), cores * STEPS);
	assert_int_equal(atomic_load(word) >> 32, own);
}

static void test_memory_of_the_process(void **state)
{
	static _Atomic uint64_t word;
	struct party p[CORES];
	for (unsigned i = 0; i < CORES; i++)
		open_party(&p[i], i);
	compete(p, 1, &word);
	compete(p + 1, 1, &word);
	compete(p, CORES, &word);
	for (unsigned i = 0; i < CORES; i++)
		close_party(&p[i]);
}

/* Of one core's pool; the other core, in the same process, reaches it by its address. */
static void test_pool_memory(void **state)
{
	struct party p[CORES];
	void *pool;
	for (unsigned i = 0; i < CORES; i++)
		open_party(&p[i], i);
	assert_int_equal(uroce_alloc(p[0].ctx, 4096, &pool), 0);
	compete(p, 1, (_Atomic uint64_t *)pool + 3);
	compete(p, CORES, (_Atomic uint64_t *)pool + 3);
	for (unsigned i = CORES; i--;)
		close_party(&p[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_of_the_process),
		cmocka_unit_test(test_pool_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
