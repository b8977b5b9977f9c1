/* SPDX-License-Identifier: BSD-3-Clause */
/* What a round of a core costs that has nothing to do: with 10 QPs of one client (round_cost_few, ns), and with 10,000 QPs that each sent once and 256 idle clients (round_cost_many, ns). Medians of REPS interleaved runs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "raw_client.h"

enum { REPS = 15, ROUNDS = 200000, CLIENTS = 256 };

struct set {
	struct core *core;
	uint64_t now;
	unsigned clients, qps;
	struct raw_client client[CLIENTS + 1];
	struct raw_memory memory;
	struct raw_cq cq;
	struct raw_qp *qp;
};

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint8_t buffer[32][CORE_FRAME_MAX];
static struct core_frame frames[32];

static void run_round(struct set *s)
{
	core_run(s->core, s->now);
	core_scan(s->core);
	core_tx(s->core, s->now, frames, 32);
}

/* Pairs of QPs; each sends one WRITE to its partner. */
static void make(struct set *s, unsigned clients, unsigned qps)
{
	static const struct abi_qp_cap cap = { 4, 4, 1, 1, 16 };
	struct abi_cqe e;
	s->now = 1000000;
	s->core = raw_core_new(0, 1, s->now);
	s->clients = clients;
	s->qps = qps;
	for (unsigned i = 0; i < clients; i++)
		raw_open(&s->client[i], s->core, &s->now);
	raw_memory_new(&s->client[0], 4096, &s->memory);
	raw_cq_new(&s->client[0], 64, 0, &s->cq);
	s->qp = calloc(qps, sizeof(*s->qp));
	for (unsigned i = 0; i < qps; i++)
		raw_qp_new(&s->client[0], &s->cq, &s->cq, &cap, &s->qp[i]);
	for (unsigned i = 0; i < qps; i++)
		raw_connect(&s->client[0], &s->qp[i], "10.0.0.1", s->qp[i ^ 1].qpn);
	for (unsigned i = 0; i < qps; i++) {
		raw_write(&s->client[0], &s->qp[i], i, &s->memory);
		for (unsigned n = 0; !raw_poll(&s->cq, &e); n++) {
			s->now += 1000;
			run_round(s);
			if (n == 100000) {
				fprintf(stderr, "QP %u of %u does not complete\n", i, qps);
				exit(1);
			}
		}
	}
	for (unsigned i = 0; i < 10000; i++) { /* all timers have run out, nothing lingers */
		s->now += 1000000;
		run_round(s);
	}
}

static double measure(struct set *s)
{
	double from = seconds();
	for (unsigned i = 0; i < ROUNDS; i++) {
		s->now += 40; /* as long as a round takes */
		run_round(s);
	}
	return (seconds() - from) * 1e9 / ROUNDS;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(void)
{
	static struct set few, many;
	double ns[2][REPS];
	for (unsigned i = 0; i < 32; i++)
		frames[i] = (struct core_frame){ .data = buffer[i], .room = sizeof(buffer[i]) };
	make(&few, 1, 10);
	make(&many, 1 + CLIENTS, 10000);
	for (unsigned i = 0; i < REPS; i++) {
		ns[0][i] = measure(&few);
		ns[1][i] = measure(&many);
	}
	for (unsigned i = 0; i < 2; i++)
		qsort(ns[i], REPS, sizeof(double), compare);
	printf("round_cost_few %.2f\nround_cost_many %.2f\n", ns[0][REPS / 2], ns[1][REPS / 2]);
	return 0;
}
