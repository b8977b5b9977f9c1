/* SPDX-License-Identifier: BSD-3-Clause */
/* Two sides on a ring link. Owns set-up and tear-down; the benchmarks own what is done in between. */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>

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

unsigned pair_take(struct side *s)
{
	return bench_take(s->cq, s->qp, s->pair->config.qps);
}

static void open_side(struct side *s)
{
	const struct pair_config *c = &s->pair->config;
	char device[128];
	void *memory;
	snprintf(device, sizeof(device), "inline:net_ring,link=bench,side=%u,ip=10.0.0.%u/24", s->index, s->index + 1);
	bench_check(uroce_open(device, NULL, &s->ctx), "open");
	bench_check(uroce_pd_create(s->ctx, &s->pd), "PD");
	bench_check(uroce_cq_create(s->ctx, c->qps * c->depth, NULL, NULL, &s->cq), "CQ");
	bench_check(uroce_alloc(s->ctx, PAIR_MEMORY, &memory), "memory");
	s->memory = memory;
	bench_check(uroce_mr_register(s->pd, memory, PAIR_MEMORY, UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ, &s->mr), "MR");
	s->lkey = uroce_mr_lkey(s->mr);
	s->rkey = uroce_mr_rkey(s->mr);
	s->qp = calloc(c->qps, sizeof(*s->qp));
	s->endpoint = calloc(c->qps, sizeof(*s->endpoint));
	for (unsigned i = 0; i < c->qps; i++) {
		struct uroce_qp_init init = { .send_cq = s->cq, .recv_cq = s->cq, .cap = { .max_send_wr = c->depth, .max_inline = 32 } };
		bench_check(uroce_qp_create(s->pd, &init, &s->qp[i]), "QP");
		bench_check(uroce_qp_endpoint(s->qp[i], 0, &s->endpoint[i]), "endpoint");
	}
}

static void close_side(struct side *s)
{
	for (unsigned i = 0; i < s->pair->config.qps; i++)
		uroce_qp_destroy(s->qp[i]);
	uroce_mr_deregister(s->mr);
	uroce_close(s->ctx);
	free(s->qp);
	free(s->endpoint);
}

static void *run_side(void *arg)
{
	struct side *s = arg;
	bench_pin(s->pair->config.cpu[s->index]);
	open_side(s);
	pair_meet(s);
	for (unsigned i = 0; i < s->pair->config.qps; i++)
		bench_check(uroce_qp_connect(s->qp[i], &s->endpoint[i], &pair_other(s)->endpoint[i], NULL, 0), "connect");
	pair_meet(s);
	s->pair->run(s, s->pair->arg);
	pair_meet(s);
	close_side(s);
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
