/* SPDX-License-Identifier: BSD-3-Clause */
/* Two sides on a ring link. Owns set-up and tear-down, and the receives; the benchmarks own what is sent in between.
 * Invariant: a receive's wr_id is the number of the queue that it belongs to; all of one queue are alike. */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>

#define BATCH 16u          /* receives of one post */
#define SRQ_RECVS 32768u
#define RECV_BYTES 256u    /* of one receive */
#define RECV_OFFSET (32u << 20) /* where in memory they are */

static const struct {
	enum uroce_service service;
	bool has_recv, has_srq;
} kinds[KINDS] = {
	[KIND_PLAIN] = { UROCE_RC },
	[KIND_RQ] = { UROCE_RC, true },
	[KIND_SRQ] = { UROCE_RC, true, true },
	[KIND_UD] = { UROCE_UD, true },
};

void pair_meet(struct side *s)
{
	struct pair *p = s->pair;
	unsigned n = ++p->arrived[s->index];
	while (p->arrived[!s->index] < n)
		uroce_engine_poll(s->ctx);
}

void pair_sleep(struct side *s)
{
	if (!s->index)
		s->pair->stop = false;
	pthread_barrier_wait(&s->pair->wake);
}

unsigned pair_take(struct set *t)
{
	return bench_take(t->cq, t->qp, t->qps);
}

/* ---- receives ---- */

static void post_receives(struct side *s, struct set *t, unsigned queue, unsigned n)
{
	struct uroce_sge sge[BATCH];
	struct uroce_recv_wr wr[BATCH];
	for (unsigned i = 0; i < BATCH; i++) {
		sge[i] = (struct uroce_sge){ (uintptr_t)s->memory + RECV_OFFSET + i * RECV_BYTES, RECV_BYTES, s->lkey };
		wr[i] = (struct uroce_recv_wr){ .wr_id = queue, .sg_list = &sge[i], .num_sge = 1 };
	}
	for (; n >= BATCH; n -= BATCH)
		bench_check((t->srq ? uroce_post_srq_recv(t->srq, wr, BATCH) : uroce_post_recv(t->qp[queue], wr, BATCH)) == (int)BATCH ? 0 : -1, "post receives");
	t->used[queue] = n;
}

unsigned pair_receive(struct side *s, struct set *t)
{
	struct uroce_wc wc[64];
	unsigned n = bench_poll(t->cq, wc, t->qp, t->qps);
	for (unsigned i = 0; i < n; i++) {
		unsigned queue = (unsigned)wc[i].wr_id;
		if (++t->used[queue] >= BATCH)
			post_receives(s, t, queue, t->used[queue]);
	}
	return n;
}

/* ---- set-up ---- */

static void open_set(struct side *s, enum kind kind)
{
	const struct pair_config *c = &s->pair->config;
	struct set *t = &s->set[kind];
	unsigned recvs = kinds[kind].has_recv ? 2 * c->depth : 0; /* more than the peer has outstanding */
	t->qps = c->qps;
	t->recvs = recvs;
	bench_check(uroce_cq_create(s->ctx, c->qps * (recvs ? recvs : c->depth), NULL, NULL, &t->cq), "CQ"); /* a side sends or receives */
	if (kinds[kind].has_srq) {
		struct uroce_srq_init init = { .attr.max_wr = SRQ_RECVS };
		bench_check(uroce_srq_create(s->pd, &init, &t->srq), "SRQ");
		t->recvs = SRQ_RECVS;
	}
	t->qp = calloc(c->qps, sizeof(*t->qp));
	t->endpoint = calloc(c->qps, sizeof(*t->endpoint));
	t->used = calloc(c->qps, sizeof(*t->used));
	for (unsigned i = 0; i < c->qps; i++) {
		struct uroce_qp_init init = { .service = kinds[kind].service, .send_cq = t->cq, .recv_cq = t->cq, .srq = t->srq,
			.cap = { .max_send_wr = c->depth, .max_recv_wr = recvs, .max_inline = kind == KIND_UD ? 64 : 32 } };
		bench_check(uroce_qp_create(s->pd, &init, &t->qp[i]), "QP");
		bench_check(uroce_qp_endpoint(t->qp[i], 0, &t->endpoint[i]), "endpoint");
	}
}

static void connect_set(struct side *s, enum kind kind)
{
	struct set *t = &s->set[kind];
	const struct set *other = &pair_other(s)->set[kind];
	bool is_ud = kinds[kind].service == UROCE_UD;
	struct uroce_qp_attr attr = { .qkey = PAIR_QKEY };
	struct uroce_av av = { .dgid = other->endpoint[0].gid };
	for (unsigned i = 0; i < t->qps; i++)
		bench_check(uroce_qp_connect(t->qp[i], &t->endpoint[i], &other->endpoint[i], &attr, is_ud ? UROCE_QP_QKEY : 0), "connect");
	if (is_ud)
		bench_check(uroce_ah_create(s->pd, &av, &t->ah), "AH");
	for (unsigned i = 0; i < (t->srq ? 1 : t->qps) && s->index; i++) /* side 1 receives */
		post_receives(s, t, i, t->recvs);
}

static void close_set(struct side *s, enum kind kind)
{
	struct set *t = &s->set[kind];
	for (unsigned i = 0; i < t->qps; i++)
		uroce_qp_destroy(t->qp[i]);
	free(t->qp);
	free(t->endpoint);
	free(t->used);
}

static void open_side(struct side *s)
{
	char device[128];
	void *memory;
	snprintf(device, sizeof(device), "inline:net_ring,link=bench,side=%u,ip=10.0.0.%u/24", s->index, s->index + 1);
	bench_check(uroce_open(device, NULL, &s->ctx), "open");
	bench_check(uroce_pd_create(s->ctx, &s->pd), "PD");
	bench_check(uroce_alloc(s->ctx, PAIR_MEMORY, &memory), "memory");
	s->memory = memory;
	bench_check(uroce_mr_register(s->pd, memory, PAIR_MEMORY, UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ, &s->mr), "MR");
	s->lkey = uroce_mr_lkey(s->mr);
	s->rkey = uroce_mr_rkey(s->mr);
}

bool pair_open(struct side *s, enum kind kind)
{
	if (s->set[kind].qp)
		return false;
	open_set(s, kind);
	pair_meet(s);
	connect_set(s, kind);
	pair_meet(s);
	return true;
}

static void *run_side(void *arg)
{
	struct side *s = arg;
	bench_pin(s->pair->config.cpu[s->index]);
	open_side(s);
	pair_meet(s);
	s->pair->run(s, s->pair->arg);
	pair_meet(s);
	for (unsigned kind = 0; kind < KINDS; kind++)
		close_set(s, (enum kind)kind); /* nothing of one that was not opened */
	uroce_mr_deregister(s->mr);
	uroce_close(s->ctx);
	return NULL;
}

void pair_run(const struct pair_config *config, void (*run)(struct side *s, void *arg), void *arg)
{
	static struct pair p;
	pthread_t thread[2];
	p = (struct pair){ .config = *config, .run = run, .arg = arg };
	pthread_barrier_init(&p.wake, NULL, 2);
	for (unsigned i = 0; i < 2; i++) {
		p.side[i] = (struct side){ .pair = &p, .index = i };
		bench_check(-pthread_create(&thread[i], NULL, run_side, &p.side[i]), "thread");
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}
