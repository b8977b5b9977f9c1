/* SPDX-License-Identifier: BSD-3-Clause */
/* A client with a second thread that rewrites its rings, WQEs, indices, flags, doorbells and page while the core runs, and an honest client of the same core beside it. The core survives (under the sanitizers: touches nothing that is not its own), and the honest one
 * sees nothing of it: every byte right, every completion a success. The scribbler races by design: no thread sanitizer. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "client.h"
#include "direct_session.h"
#include "gid.h"
#include "random.h"

enum { BYTES = 10000, QPS = 6, DEPTH = 16, SECONDS = 4 };

struct party {
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_mr *mr, *fast;
	struct uroce_mw *mw[QPS]; /* of types 1 and 2 in turn */
	struct uroce_srq *srq;
	struct uroce_ah *ah; /* to ourselves */
	struct uroce_qp *qp[QPS];
	uint8_t *memory;
};

/* Of its QPs; each is connected with its neighbour. The second one of a pair of UC and UD takes from the SRQ. */
static const enum uroce_service honest_services[QPS] = { UROCE_RC }, hostile_services[QPS] = { UROCE_RC, UROCE_RC, UROCE_UC, UROCE_UC, UROCE_UD, UROCE_UD };

struct scribbler {
	struct party *victim; /* whose memory is written */
	uint64_t seed, words;
	_Atomic bool is_done;
};

static struct core *core;
static uint64_t now_ns = 1000000;

static void run_core(void)
{
	now_ns += 1000;
	core_run(core, now_ns);
	core_scan(core);
	static uint8_t buffer[8][CORE_FRAME_MAX + 128];
	struct core_frame frames[8];
	for (unsigned i = 0; i < 8; i++)
		frames[i] = (struct core_frame){ .data = buffer[i], .room = sizeof(buffer[i]) };
	core_tx(core, now_ns, frames, 8); /* what leaves is lost: all peers are inside */
}

static void join(struct party *p)
{
	struct uroce_endpoint e[QPS];
	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(uroce_qp_endpoint(p->qp[i], 0, &e[i]), 0);
	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(uroce_qp_connect(p->qp[i], &e[i], &e[i ^ 1], NULL, 0), 0);
}

static void open_party(struct party *p, const enum uroce_service services[QPS])
{
	static const struct uroce_open_attr quiet = { .log_level = 1 };
	struct uroce_av av = { .sgid_index = 0 };
	void *memory;
	assert_int_equal(direct_session_open(core, &now_ns, &quiet, &p->ctx), 0);
	assert_int_equal(uroce_pd_create(p->ctx, &p->pd), 0);
	assert_int_equal(uroce_cq_create(p->ctx, 256, NULL, NULL, &p->cq), 0);
	assert_int_equal(uroce_alloc(p->ctx, 2 * BYTES, &memory), 0);
	p->memory = memory;
	assert_int_equal(uroce_mr_register(p->pd, memory, 2 * BYTES, UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC | UROCE_ACCESS_FLUSH_GLOBAL | UROCE_ACCESS_MW_BIND, &p->mr), 0);
	assert_int_equal(uroce_srq_create(p->pd, &(struct uroce_srq_init){ .attr = { DEPTH, 8, 0 } }, &p->srq), 0);
	assert_int_equal(uroce_query_gid(p->ctx, 0, &av.dgid, NULL), 0);
	assert_int_equal(uroce_ah_create(p->pd, &av, &p->ah), 0);
	assert_int_equal(uroce_mr_alloc(p->pd, &p->fast), 0);
	for (unsigned i = 0; i < QPS; i++) {
		struct uroce_qp_init init = { .service = services[i], .srq = services[i] != UROCE_RC && i % 2 ? p->srq : NULL, .send_cq = p->cq, .recv_cq = p->cq, .cap = { DEPTH, DEPTH, 8, 8, 128 } };
		assert_int_equal(uroce_qp_create(p->pd, &init, &p->qp[i]), 0);
		assert_int_equal(uroce_mw_create(p->pd, i % 2 ? UROCE_MW_TYPE_2 : UROCE_MW_TYPE_1, &p->mw[i]), 0);
	}
	join(p);
}

/* ---- the scribbler ---- */

/* Where it writes: the slots of a queue, whose WQEs are then taken half old, half new; seldom what ends a QP at once: indices, flags, the arm word; doorbells; anything of the arena. */
static _Atomic uint64_t *choose_place(struct rng *r, struct party *v, void *base, uint64_t bytes)
{
	struct uroce_qp *qp = v->qp[rng_below(r, QPS)];
	struct post_queue *q = rng_below(r, 3) ? &qp->sq : qp->srq ? &qp->srq->rq : &qp->rq;
	uint8_t *at = (uint8_t *)q->slots + 8 * rng_below(r, (uint64_t)q->count * q->slot_bytes / 8);
	uint64_t kind = rng_below(r, 4096);
	if (kind < 4)
		at = (uint8_t *)q->ring + 8 * rng_below(r, sizeof(struct abi_ring) / 8);
	else if (kind < 6)
		at = (uint8_t *)v->cq->ring + 8 * rng_below(r, sizeof(struct abi_ring) / 8);
	else if (kind < 64)
		at = (uint8_t *)v->ctx->doorbells + 8 * rng_below(r, sizeof(struct abi_doorbells) / 8);
	else if (kind < 128)
		at = (uint8_t *)base + 8 * rng_below(r, bytes / 8);
	if (at == base) /* it holds `dead`: then every request would be refused and nothing be tested */
		at += 8;
	return (_Atomic uint64_t *)(void *)at;
}

static uint64_t choose_word(struct rng *r, uint64_t old, struct party *v)
{
	switch (rng_below(r, 8)) {
	case 0: return rng_below(r, 8);
	case 1: return UINT64_MAX - rng_below(r, 4);
	case 2: return (uintptr_t)v->memory + rng_below(r, 2 * BYTES);
	case 3: return (uint64_t)uroce_mr_rkey(v->mr) << 32 | rng_below(r, 64);
	case 4: return rng_below(r, 64) << 32 | uroce_mr_lkey(v->mr);
	case 5: return rng_next(r);
	case 6: return (uint64_t)uroce_mw_rkey(v->mw[rng_below(r, QPS)]) << 32 | rng_below(r, 256); /* that of a bind */
	default: return old ^ rng_below(r, 256) << 8 * rng_below(r, 8); /* one byte */
	}
}

static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	struct rng r;
	uint64_t bytes;
	void *base;
	rng_seed(&r, s->seed);
	if (s->victim->ctx->ops->region(s->victim->ctx->session, 0, &base, &bytes))
		return NULL;
	for (; !atomic_load_explicit(&s->is_done, memory_order_relaxed); s->words++) {
		_Atomic uint64_t *at = choose_place(&r, s->victim, base, bytes);
		atomic_store_explicit(at, choose_word(&r, atomic_load_explicit(at, memory_order_relaxed), s->victim), memory_order_relaxed);
	}
	return NULL;
}

/* A bind, registration or invalidation. */
static void post_local(struct party *p, unsigned q, struct rng *r)
{
	struct uroce_bind to = { .addr = (uintptr_t)p->memory + rng_below(r, BYTES), .len = rng_below(r, 1000), .lkey = uroce_mr_lkey(p->mr), .access = 6 };
	uint32_t key = (rng_below(r, 2) ? uroce_mw_rkey(p->mw[rng_below(r, QPS)]) : uroce_mr_rkey(p->fast)) & 0xffffff00;
	struct uroce_send_wr wr = { .opcode = (enum uroce_opcode)(UROCE_OP_SEND_WITH_INV + rng_below(r, 4)), .flags = UROCE_SEND_SIGNALED, .rkey = key | (uint32_t)rng_below(r, 4) };
	if (wr.opcode == UROCE_OP_SEND_WITH_INV || wr.opcode == UROCE_OP_LOCAL_INV)
		wr.invalidate_rkey = wr.rkey;
	else
		wr.bind = &to;
	uroce_post_send(p->qp[q], &wr, 1);
}

/* Work for the scribbler to spoil; whether it is taken and how it ends does not matter. */
static void post_anything(struct party *p, struct rng *r)
{
	struct uroce_sge sge[8];
	struct uroce_wc wc[16];
	for (unsigned i = 0; i < 8; i++)
		sge[i] = (struct uroce_sge){ (uintptr_t)p->memory + rng_below(r, BYTES), (uint32_t)rng_below(r, 1000), uroce_mr_lkey(p->mr) };
	static const unsigned opcodes[] = { [UROCE_RC] = UROCE_OP_FLUSH + 1, [UROCE_UC] = UROCE_OP_READ, [UROCE_UD] = UROCE_OP_WRITE }; /* below these */
	unsigned q = (unsigned)rng_below(r, QPS);
	struct uroce_qp *to = p->qp[q ^ 1];
	struct uroce_send_wr wr = { .sg_list = sge, .num_sge = 1 + (uint32_t)rng_below(r, hostile_services[q] == UROCE_UD ? 4 : 8), .opcode = (enum uroce_opcode)rng_below(r, opcodes[hostile_services[q]]),
		.flags = UROCE_SEND_SIGNALED, .remote_addr = (uintptr_t)p->memory + rng_below(r, BYTES), .rkey = uroce_mr_rkey(p->mr), .ah = p->ah, .remote_qpn = uroce_qp_num(to) };
	struct uroce_recv_wr recv = { .sg_list = sge, .num_sge = 8 };
	if (wr.opcode == UROCE_OP_FLUSH) {
		wr.num_sge = 0;
		wr.flush = (struct uroce_flush){ (uint32_t)rng_below(r, BYTES), UROCE_FLUSH_GLOBAL, (enum uroce_flush_level)rng_below(r, 2) };
	} else if (wr.opcode > UROCE_OP_READ) { /* 8 bytes, at a multiple of 8 */
		wr.num_sge = 1;
		sge[0].len = 8;
		wr.remote_addr &= ~UINT64_C(7);
	}
	if (to->srq)
		uroce_post_srq_recv(to->srq, &recv, 1);
	else
		uroce_post_recv(to, &recv, 1);
	if (rng_below(r, 2))
		post_local(p, q, r);
	uroce_post_send(p->qp[q], &wr, 1);
	uroce_cq_poll(p->cq, wc, 16);
}

/* ---- the honest client ---- */

static void fill(uint8_t *p, uint32_t n, uint8_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		p[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

static bool await(struct party *p, unsigned n)
{
	struct uroce_wc wc;
	for (unsigned turn = 0; n && turn < 1000000; turn++) {
		run_core();
		int got = uroce_cq_poll(p->cq, &wc, 1);
		if (got == 1 && wc.status != UROCE_WC_SUCCESS)
			return false;
		n -= got == 1;
	}
	return !n;
}

static bool transfer(struct party *p, unsigned round)
{
	static const enum uroce_opcode opcodes[] = { UROCE_OP_SEND, UROCE_OP_WRITE, UROCE_OP_READ };
	enum uroce_opcode op = opcodes[round % 3];
	unsigned q = round / 3 % QPS;
	uint32_t len = 1 + round * 37 % BYTES;
	uint8_t *from = p->memory + (op == UROCE_OP_READ ? BYTES : 0), *to = p->memory + (op == UROCE_OP_READ ? 0 : BYTES);
	struct uroce_sge here = { (uintptr_t)p->memory, len, uroce_mr_lkey(p->mr) }, there = { (uintptr_t)p->memory + BYTES, BYTES, uroce_mr_lkey(p->mr) };
	struct uroce_send_wr wr = { .sg_list = &here, .num_sge = 1, .opcode = op, .flags = UROCE_SEND_SIGNALED, .remote_addr = (uintptr_t)p->memory + BYTES, .rkey = uroce_mr_rkey(p->mr) };
	struct uroce_recv_wr recv = { .sg_list = &there, .num_sge = 1 };
	fill(from, len, (uint8_t)round);
	memset(to, 0, len);
	if (op == UROCE_OP_SEND && uroce_post_recv(p->qp[q ^ 1], &recv, 1) != 1)
		return false;
	return uroce_post_send(p->qp[q], &wr, 1) == 1 && await(p, op == UROCE_OP_SEND ? 2 : 1) && !memcmp(from, to, len);
}

/* ---- the test ---- */

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Back to life after the scribbler has driven them into ERR: its own calls may fail, they must not hang or crash. */
static void revive(struct party *p)
{
	struct uroce_qp_attr reset = { .state = UROCE_QP_RESET };
	struct uroce_endpoint e[QPS];
	for (unsigned i = 0; i < QPS; i++)
		if (uroce_qp_modify(p->qp[i], &reset, UROCE_QP_STATE) || uroce_qp_endpoint(p->qp[i], 0, &e[i]))
			return;
	for (unsigned i = 0; i < QPS; i++)
		uroce_qp_connect(p->qp[i], &e[i], &e[i ^ 1], NULL, 0);
}

/* known-bugs: 50 */
static void test_scribbler(void **state)
{
	struct core_config config = { .name = "hostile", .max_frame = 4300, .addr = { .mac = { 2, 0, 0, 0, 0, 1 } }, .hooks = &direct_hooks };
	struct party honest, hostile;
	struct gid gid;
	uint32_t index;
	pthread_t thread;
	struct core_stats before, after;
	static const struct log quiet = { .level = LOG_ERROR };
	config.log = &quiet;
	assert_int_equal(core_new(&core, &config, now_ns), 0);
	assert_true(gid_parse("10.0.0.1", &gid) == 0);
	assert_int_equal(addr_gid_add(core_addr(core), &gid, 0xffff, 24, &index), 0);
	open_party(&honest, honest_services);
	open_party(&hostile, hostile_services);
	struct scribbler s = { .victim = &hostile, .seed = (uint64_t)time(NULL) };
	printf("# seed %llu\n", (unsigned long long)s.seed);
	core_stats(core, &before);
	assert_int_equal(pthread_create(&thread, NULL, scribble, &s), 0);
	unsigned rounds = 0;
	bool is_right = true;
	struct rng r;
	rng_seed(&r, s.seed + 1);
	for (double end = seconds() + SECONDS; is_right && seconds() < end; rounds++) {
		is_right = transfer(&honest, rounds);
		for (unsigned i = 0; i < 4; i++)
			post_anything(&hostile, &r);
		if (rounds % 4 == 3)
			revive(&hostile);
	}
	atomic_store(&s.is_done, true);
	pthread_join(thread, NULL);
	core_stats(core, &after);
	printf("# %u transfers verified beside %llu words rewritten; %llu WQEs taken in all\n", rounds, (unsigned long long)s.words, (unsigned long long)(after.wqes - before.wqes));
	assert_true(is_right);
	assert_true(rounds > 100);
	assert_true(after.wqes - before.wqes > rounds + 1000); /* the hostile queues were worked on too */
	uroce_close(hostile.ctx);
	assert_true(transfer(&honest, rounds));
	uroce_close(honest.ctx);
	core_free(core);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scribbler) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
