/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of limits.c with uroce in between. One figure a run, the median of REPS, as one line "NAME VALUE".
 *
 *   bench write_rate [QPS [BATCH [random]]]   8-byte inline WRITEs, BATCH WRs a post, the last one signaled   M messages/s
 *   bench write_stream | read_stream          1 MiB messages at path MTU 4096                                 Gbit/s of payload
 *   bench write_pingpong                      8-byte WRITEs, answered by the program when it sees them        half round trip, ns */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pair.h"

enum { REPS = 5, STREAM_BYTES = 1 << 20, STREAM_DEPTH = 8, PINGPONGS = 200000 };
static const double PERIOD = 0.5; /* seconds */

struct job {
	const char *name;
	unsigned batch;
	bool is_random;
	enum uroce_opcode opcode;
	double result[REPS];
	double cpu_per_gib; /* streams: CPU seconds of both sides for each GiB */
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The passive side: drives its engine until the other has done. */
static void serve(struct side *s)
{
	while (!s->pair->stop)
		for (unsigned i = 0; i < 64; i++)
			uroce_engine_poll(s->ctx);
}

static struct uroce_send_wr make_wr(const struct side *s, const struct uroce_sge *sge, enum uroce_opcode opcode, uint32_t flags)
{
	return (struct uroce_send_wr){ .sg_list = sge, .num_sge = 1, .opcode = opcode, .flags = flags, .remote_addr = (uintptr_t)pair_other(s)->memory, .rkey = pair_other(s)->rkey };
}

/* Which QP is next: round and round, or at random (xorshift). */
static unsigned choose(const struct side *s, const struct job *j, unsigned last)
{
	static uint32_t x = 2463534242u;
	unsigned n = s->pair->config.qps;
	if (!j->is_random)
		return last + 1 == n ? 0 : last + 1;
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return (unsigned)((uint64_t)x * n >> 32);
}

static double measure_rate(struct side *s, const struct job *j)
{
	struct uroce_sge sge = { (uintptr_t)s->memory, 8, s->lkey };
	struct uroce_send_wr wr[64];
	uint64_t done = 0;
	unsigned q = 0;
	for (unsigned i = 0; i < j->batch; i++) {
		wr[i] = make_wr(s, &sge, UROCE_OP_WRITE, UROCE_SEND_INLINE);
		wr[i].remote_addr += i * 8;
	}
	wr[j->batch - 1].flags |= UROCE_SEND_SIGNALED;
	double from = pair_now(), now = from;
	while (now < from + PERIOD) {
		for (unsigned i = 0; i < 32; i++) {
			uroce_post_send(s->qp[q], wr, j->batch); /* a full queue takes none, and the next turn comes */
			q = choose(s, j, q);
			uroce_engine_poll(s->ctx);
			done += pair_take(s) * j->batch;
		}
		now = pair_now();
	}
	return (double)done / (now - from) / 1e6;
}

static void run_rate(struct side *s, void *arg)
{
	struct job *j = arg;
	if (s->index) {
		serve(s);
		return;
	}
	for (unsigned i = 0; i < REPS; i++)
		j->result[i] = measure_rate(s, j);
	s->pair->stop = true;
}

static double measure_stream(struct side *s, const struct job *j)
{
	struct uroce_sge sge = { (uintptr_t)s->memory, STREAM_BYTES, s->lkey };
	struct uroce_send_wr wr = make_wr(s, &sge, j->opcode, UROCE_SEND_SIGNALED);
	uint64_t done = 0;
	unsigned under_way = 0;
	double from = pair_now(), now = from;
	while (now < from + PERIOD || under_way) {
		while (now < from + PERIOD && under_way < STREAM_DEPTH && uroce_post_send(s->qp[0], &wr, 1) == 1)
			under_way++;
		for (unsigned i = 0; i < 16; i++)
			uroce_engine_poll(s->ctx);
		unsigned n = pair_take(s);
		under_way -= n;
		done += n;
		now = pair_now();
	}
	return (double)done * STREAM_BYTES * 8 / (now - from) / 1e9;
}

static void run_stream(struct side *s, void *arg)
{
	struct job *j = arg;
	if (s->index) {
		serve(s);
		return;
	}
	memset(s->memory, 1, STREAM_BYTES);
	double gbits = 0;
	struct timespec from, to;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	for (unsigned i = 0; i < REPS; i++)
		gbits += (j->result[i] = measure_stream(s, j)) * PERIOD;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	j->cpu_per_gib = ((double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9) / (gbits * 1e9 / 8 / (1 << 30));
	s->pair->stop = true;
}

static void run_pingpong(struct side *s, void *arg)
{
	struct job *j = arg;
	volatile uint64_t *in = (volatile uint64_t *)(void *)s->memory;
	uint64_t out = 0;
	struct uroce_sge sge = { (uintptr_t)&out, 8, 0 };
	for (unsigned rep = 0; rep < REPS; rep++) {
		double from = pair_now();
		for (unsigned i = 0; i < PINGPONGS; i++) {
			struct uroce_send_wr wr = make_wr(s, &sge, UROCE_OP_WRITE, UROCE_SEND_INLINE);
			out++;
			for (unsigned turn = 0; turn < 2; turn++) /* side 0 sends first, side 1 sees first */
				if (turn == s->index) {
					while (uroce_post_send(s->qp[0], &wr, 1) != 1)
						uroce_engine_poll(s->ctx);
				} else {
					while (*in != out)
						uroce_engine_poll(s->ctx);
				}
		}
		j->result[rep] = (pair_now() - from) * 5e8 / PINGPONGS;
	}
}

static const struct {
	const char *name;
	void (*run)(struct side *s, void *arg);
	enum uroce_opcode opcode;
} modes[] = {
	{ "write_rate", run_rate, UROCE_OP_WRITE },
	{ "write_stream", run_stream, UROCE_OP_WRITE },
	{ "read_stream", run_stream, UROCE_OP_READ },
	{ "write_pingpong", run_pingpong, UROCE_OP_WRITE },
};

int main(int argc, char **argv)
{
	for (unsigned i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i].name))
			continue;
		unsigned qps = argc > 2 ? (unsigned)atoi(argv[2]) : 1, batch = argc > 3 ? (unsigned)atoi(argv[3]) : 16;
		if (!qps || !batch || batch > 64)
			break;
		struct pair_config config = { .qps = qps, .depth = qps > 1 ? batch * 4 : 1024, .cpu = { 0, 1 } };
		struct job job = { .name = argv[1], .batch = batch, .is_random = argc > 4, .opcode = modes[i].opcode };
		pair_run(&config, modes[i].run, &job);
		qsort(job.result, REPS, sizeof(double), compare);
		printf("%s %.3f\n", job.name, job.result[REPS / 2]);
		if (modes[i].run == run_stream)
			printf("cpu_per_gib %.3f\n", job.cpu_per_gib);
		return 0;
	}
	fprintf(stderr, "usage: bench write_rate [QPS [BATCH [random]]] | write_stream | read_stream | write_pingpong\n");
	return 2;
}
