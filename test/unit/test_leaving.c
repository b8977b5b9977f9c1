/* SPDX-License-Identifier: BSD-3-Clause */
/* What leaves while work is under way: a client that dies and is taken apart in pieces between rounds, and memory that is deregistered and freed while WRs name it. Under the address sanitizer any touch of
 * what is gone ends the test. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "direct_hooks.h"
#include "machine.h"
#include "random.h"
#include "raw_client.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, n) ((void)(at), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(at, n) ((void)(at), (void)(n))
#endif

enum { PAIRS = 12, FRAMES = 8 };

static const struct abi_qp_cap cap = { 32, 32, 1, 1, 32 };

struct party {
	struct raw_client c;
	struct raw_memory m;
	struct raw_cq cq, small; /* the small one overruns */
	uint32_t channel;
	struct raw_qp qp[2 * PAIRS];
};

struct world {
	uint64_t now;
	struct core *core;
	struct party honest, victim;
	struct rng rng;
	uint8_t data[FRAMES][CORE_FRAME_MAX];
	struct core_frame frames[FRAMES];
};

static void join_party(struct world *w, struct party *p)
{
	raw_open(&p->c, w->core, &w->now);
	raw_memory_new(&p->c, 1 << 18, &p->m);
	assert_int_equal(raw_ask_handle(&p->c, ABI_CREATE_CHANNEL, 0), 0);
	p->channel = p->c.rep.handle;
	raw_cq_new(&p->c, 1024, p->channel, &p->cq);
	raw_cq_new(&p->c, 2, p->channel, &p->small);
	for (unsigned i = 0; i < 2 * PAIRS; i++)
		raw_qp_new(&p->c, i == 7 ? &p->small : &p->cq, &p->cq, &cap, &p->qp[i]);
}

/* QPs 0 to 3 of each party talk to those of the other, 4 to 5 to a host that does not answer, the others among themselves. */
static void open_world(struct world *w, uint64_t seed)
{
	w->now = 1000000;
	rng_seed(&w->rng, seed);
	w->core = raw_core_new(0, 1, w->now);
	for (unsigned i = 0; i < FRAMES; i++)
		w->frames[i] = (struct core_frame){ .data = w->data[i], .room = CORE_FRAME_MAX };
	struct party *const parties[] = { &w->honest, &w->victim };
	for (unsigned k = 0; k < 2; k++)
		join_party(w, parties[k]);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < 2 * PAIRS; i++) {
			struct raw_qp *q = &parties[k]->qp[i];
			raw_connect(&parties[k]->c, q, i == 4 || i == 5 ? "10.0.0.9" : "10.0.0.1", i < 4 ? parties[!k]->qp[i].qpn : i < 6 ? 0x777 : parties[k]->qp[i ^ 1].qpn);
		}
}

static void run(struct world *w, unsigned rounds)
{
	for (; rounds; rounds--, w->now += 1000) {
		core_run(w->core, w->now);
		core_scan(w->core);
		core_tx(w->core, w->now, w->frames, FRAMES); /* what leaves is lost */
	}
}

/* A message of some packets, of any kind. */
static void post(struct world *w, struct party *p, unsigned i, const struct raw_memory *to)
{
	static const uint8_t ops[] = { ABI_OP_SEND, ABI_OP_WRITE, ABI_OP_READ, ABI_OP_FETCH_ADD, ABI_OP_ATOMIC_WRITE, ABI_OP_FLUSH };
	struct abi_send_wqe s = { .opcode = ops[rng_below(&w->rng, 6)], .flags = ABI_SEND_SIGNALED, .num_sge = 1, .rkey = to->key };
	struct raw_qp *q = &p->qp[i];
	struct abi_sge sge = { 0, 1 + (uint32_t)rng_below(&w->rng, 60000), p->m.key };
	if (s.opcode == ABI_OP_FETCH_ADD) {
		sge.len = 8;
		s.atomic.sge = sge;
	} else if (s.opcode == ABI_OP_FLUSH) {
		s.num_sge = 0;
		s.flush = (struct abi_flush){ sge.len, ABI_FLUSH_GLOBAL, ABI_FLUSH_RANGE, 0 };
	} else {
		sge.len = s.opcode == ABI_OP_ATOMIC_WRITE ? 8 : sge.len;
		s.sge[0] = sge;
	}
	if (q->sq.tail - atomic_load(&q->sq.ring->engine_index) < q->sq.n) {
		raw_post(&q->sq, &s, sizeof(s));
		raw_ring_doorbell(&p->c, q, &q->sq);
	}
	if (q->rq.tail - atomic_load(&q->rq.ring->engine_index) < q->rq.n) {
		raw_post(&q->rq, &(struct abi_recv_wqe){ .num_sge = 1, .sge = { { 0, 65536, p->m.key } } }, sizeof(struct abi_recv_wqe));
		raw_ring_doorbell(&p->c, q, &q->rq);
	}
}

static void work(struct world *w, struct party *p, const struct party *other)
{
	for (unsigned i = 0; i < 2 * PAIRS; i++)
		if (rng_below(&w->rng, 2))
			post(w, p, i, i < 4 ? &other->m : &p->m);
	if (rng_below(&w->rng, 8) == 0)
		raw_set_state(&p->c, &p->qp[8 + rng_below(&w->rng, 4)], ABI_QP_ERR);
	atomic_store(&p->cq.ring->arm, ABI_ARM_ANY);
	atomic_store(&p->small.ring->arm, ABI_ARM_ANY);
}

/* The honest party goes on with its QPs 16 and 17 while the other one is taken apart. */
static void write_and_check(struct world *w, unsigned n)
{
	struct party *p = &w->honest;
	struct abi_cqe e;
	bool is_done = false;
	raw_write(&p->c, &p->qp[16], 0x1000 + n, &p->m);
	for (unsigned i = 0; i < 200 && !is_done; i++) {
		run(w, 1);
		while (raw_poll(&p->cq, &e)) {
			if (e.wr_id != 0x1000 + n)
				continue;
			assert_int_equal(e.status, ABI_WC_SUCCESS);
			is_done = true;
		}
	}
	assert_true(is_done);
}

/* Nobody reads its events any more. */
static void fill_channel(struct party *p)
{
	const struct channel *ch = handles_get(&p->c.k->channels, p->channel);
	const uint64_t event = 0;
	while (!direct_hooks.channel_write(NULL, ch->write_fd, &event, sizeof(event)))
		;
}

/* The last thing that happens to it is an overrun that its QPs have not been told of. */
static void overrun(struct world *w, struct party *p)
{
	struct completion_queue *q = handles_get(&p->c.k->cqs, p->cq.handle);
	q->cq.is_overrun = true;
	event_on_cq_overrun(&w->core->env, &q->cq);
}

static void test_a_client_is_taken_apart_between_rounds(void **state)
{
	static struct world w;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		open_world(&w, seed);
		struct core_stats s;
		if (seed % 2)
			fill_channel(&w.victim);
		for (unsigned r = 0; r < 4 + seed; r++) {
			work(&w, &w.victim, &w.honest);
			for (unsigned i = 0; i < 6; i++)
				post(&w, &w.honest, i, &w.victim.m);
			run(&w, (unsigned)rng_below(&w.rng, 4));
		}
		/* it is gone: its objects go one by one, a few or many at a time; packets for the rest still come, timers fire, its small CQ overruns */
		struct core_client *k = w.victim.c.k;
		if (seed % 3 == 0)
			overrun(&w, &w.victim);
		unsigned budget = seed % 7 == 0 ? UINT_MAX : seed % 5 == 0 ? 1 + (unsigned)rng_below(&w.rng, 20) : 1, n = 0;
		if (seed % 7 == 1) {
			assert_false(core_client_detach(k, 1));
			overrun(&w, &w.victim);
			budget = UINT_MAX;
		}
		while (!core_client_detach(k, budget)) {
			for (unsigned i = 0; i < 4; i++)
				post(&w, &w.honest, i, &w.victim.m);
			run(&w, 1 + (unsigned)rng_below(&w.rng, 3));
			if (n % 8 == 0)
				write_and_check(&w, n);
			if (rng_below(&w.rng, 10) == 0)
				w.now += 70000000; /* an ACK timeout */
			n++;
		}
		core_client_free(k);
		write_and_check(&w, n);
		core_stats(w.core, &s);
		assert_int_equal(s.clients, 1);
		assert_int_equal(s.qps, 2 * PAIRS);
		assert_int_equal(s.mrs, 1);
		assert_int_equal(w.core->qpns.count, 2 * PAIRS);
		assert_true(TAILQ_EMPTY(&w.core->late) && TAILQ_EMPTY(&w.core->overruns));
		for (unsigned i = 0; i < w.core->lingering; i++)
			assert_ptr_equal(client_qp(w.core->linger[i])->client, w.honest.c.k);
		for (const struct circle *g = w.core->env.groups.next; g != &w.core->env.groups; g = g->next)
			assert_ptr_equal(group_of_turn(g), &w.honest.c.k->group);
		for (unsigned i = 0; i < 40; i++, w.now += 70000000) /* those that talked to it learn by their own rules */
			run(&w, 3);
		for (unsigned i = 0; i < 4; i++) {
			const struct qp *q = qpn_find(&w.core->qpns, w.honest.qp[i].qpn);
			assert_true(q->state == ABI_QP_ERR || !q->flight.oldest);
		}
		core_client_free(w.honest.c.k);
		assert_int_equal(w.core->env.wr_small.in_use + w.core->env.wr_large.in_use, 0);
		core_free(w.core);
	}
}

/* ---- memory that goes while WRs name it ---- */

enum { BYTES = 1 << 18 };

struct memory_world {
	uint64_t now;
	struct core *core;
	struct raw_client c;
	struct raw_memory local, remote; /* of the requester, of the responder */
	struct raw_cq cq[2];
	struct raw_qp qp[2];
};

static void open_memory_world(struct memory_world *w)
{
	w->now = 1000000;
	w->core = raw_core_new(0, 1, w->now);
	raw_open(&w->c, w->core, &w->now);
	raw_memory_new(&w->c, BYTES, &w->local);
	raw_memory_new(&w->c, BYTES, &w->remote);
	for (unsigned i = 0; i < 2; i++) {
		raw_cq_new(&w->c, 64, 0, &w->cq[i]);
		raw_qp_new(&w->c, &w->cq[i], &w->cq[i], &cap, &w->qp[i]);
	}
	for (unsigned i = 0; i < 2; i++)
		raw_connect(&w->c, &w->qp[i], "10.0.0.1", w->qp[!i].qpn);
}

static void run_memory_world(struct memory_world *w, unsigned rounds)
{
	struct core_frame none;
	for (; rounds; rounds--, w->now += 1000) {
		core_run(w->core, w->now);
		core_scan(w->core);
		core_tx(w->core, w->now, &none, 0);
	}
}

static void post_three(struct memory_world *w, uint8_t opcode)
{
	for (unsigned i = 0; i < 3; i++) {
		struct abi_send_wqe s = { .wr_id = i, .opcode = opcode, .flags = ABI_SEND_SIGNALED, .num_sge = opcode != ABI_OP_FLUSH, .rkey = w->remote.key };
		struct abi_sge sge = { 0, opcode == ABI_OP_FETCH_ADD || opcode == ABI_OP_ATOMIC_WRITE ? 8 : BYTES, w->local.key };
		if (opcode == ABI_OP_FETCH_ADD)
			s.atomic.sge = sge;
		else if (opcode == ABI_OP_FLUSH)
			s.flush = (struct abi_flush){ BYTES, ABI_FLUSH_GLOBAL, ABI_FLUSH_RANGE, 0 };
		else
			s.sge[0] = sge;
		if (opcode == ABI_OP_SEND)
			raw_post(&w->qp[1].rq, &(struct abi_recv_wqe){ .num_sge = 1, .sge = { { 0, BYTES, w->remote.key } } }, sizeof(struct abi_recv_wqe));
		raw_post(&w->qp[0].sq, &s, sizeof(s));
	}
	raw_ring_doorbell(&w->c, &w->qp[0], &w->qp[0].sq);
}

/* Freed only when nothing names it; from then on it is not touched. */
static void take_away(struct memory_world *w, struct raw_memory *m)
{
	assert_int_equal(raw_ask_handle(&w->c, ABI_FREE_MEMORY, m->handle), -EBUSY);
	assert_int_equal(raw_ask_handle(&w->c, ABI_DEREG_MR, m->mr), 0);
	assert_int_equal(raw_ask_handle(&w->c, ABI_FREE_MEMORY, m->handle), 0);
	memset(m->host, 0x5a, m->bytes);
	ASAN_POISON_MEMORY_REGION(m->host, m->bytes);
}

static void check_untouched(struct raw_memory *m)
{
	ASAN_UNPOISON_MEMORY_REGION(m->host, m->bytes);
	for (uint64_t i = 0; i < m->bytes; i++)
		if (m->host[i] != 0x5a)
			fail_msg("byte %llu of memory that was freed has been written", (unsigned long long)i);
}

/* Every WR of `who` has one completion: done before, or with one of these errors, or flushed behind it. */
static void check_completions(struct memory_world *w, unsigned who, unsigned n, uint8_t local_error, uint8_t remote_error, bool *has_failed)
{
	struct abi_cqe e;
	*has_failed = false;
	for (unsigned i = 0; i < n; i++) {
		assert_true(raw_poll(&w->cq[who], &e));
		assert_int_equal(e.wr_id, i);
		if (*has_failed)
			assert_int_equal(e.status, ABI_WC_WR_FLUSH_ERR);
		else if (e.status != ABI_WC_SUCCESS)
			assert_true(e.status == local_error || e.status == remote_error);
		*has_failed |= e.status != ABI_WC_SUCCESS;
	}
	assert_false(raw_poll(&w->cq[who], &e));
}

static void test_memory_goes_while_wrs_name_it(void **state)
{
	static const struct {
		uint8_t opcode;
		bool is_remote;
		uint8_t error; /* of the requester's WR */
	} rows[] = {
		{ ABI_OP_SEND, false, ABI_WC_LOC_PROT_ERR }, { ABI_OP_SEND, true, ABI_WC_REM_OP_ERR }, { ABI_OP_WRITE, false, ABI_WC_LOC_PROT_ERR }, { ABI_OP_WRITE, true, ABI_WC_REM_ACCESS_ERR },
		{ ABI_OP_READ, false, ABI_WC_LOC_PROT_ERR }, { ABI_OP_READ, true, ABI_WC_REM_ACCESS_ERR }, { ABI_OP_FETCH_ADD, false, ABI_WC_LOC_PROT_ERR }, { ABI_OP_FETCH_ADD, true, ABI_WC_REM_ACCESS_ERR },
		{ ABI_OP_ATOMIC_WRITE, false, ABI_WC_LOC_PROT_ERR }, { ABI_OP_ATOMIC_WRITE, true, ABI_WC_REM_ACCESS_ERR }, { ABI_OP_FLUSH, true, ABI_WC_REM_ACCESS_ERR },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned done = 0, failed = 0;
		for (unsigned when = 0; when < 40; when++) {
			static struct memory_world w;
			bool has_failed;
			open_memory_world(&w);
			post_three(&w, rows[i].opcode);
			run_memory_world(&w, when);
			struct raw_memory *m = rows[i].is_remote ? &w.remote : &w.local;
			take_away(&w, m);
			run_memory_world(&w, 200);
			check_untouched(m);
			check_completions(&w, 0, 3, rows[i].error, rows[i].error, &has_failed);
			*(has_failed ? &failed : &done) += 1;
			core_free(w.core);
		}
		assert_true(done && failed); /* both were met */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_client_is_taken_apart_between_rounds),
		cmocka_unit_test(test_memory_goes_while_wrs_name_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
