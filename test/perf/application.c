/* SPDX-License-Identifier: BSD-3-Clause */
/* A program on CPU 0 and an engine on another CPU, in this process or a daemon's: application DEVICE LOOP..., a line "NAME VALUE" of each loop. All QPs are connected to each other inside the engine (loopback), so that one engine core does
 * the work of both ends, and the two ways to reach it can be compared.
 *
 *   write_rate    one context, two QPs, 8-byte inline WRITEs, 16 a post   M messages/s
 *   write_stream  the same, 1 MiB WRITEs of pool memory, 8 outstanding    Gbit/s
 *   pingpong      two contexts, in two processes if DEVICE is a daemon, else in two threads; each gives up the CPU when it sees nothing   half round trip, ns
 *   fairness      eight contexts, one with 64 QPs of 64 KiB WRITEs, seven with one QP of 4 KiB: the least share of the bytes, times eight
 *
 * Each is the median of REPS runs. */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <pthread.h>

#include "common.h"

enum { REPS = 5, PINGPONGS = 20000, CONTEXTS = 8 };
static const double PERIOD = 0.5; /* seconds */
static const char *device;

/* One context with `pairs` pairs of QPs; the first of each pair sends. */
struct end {
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_mr *mr;
	struct uroce_qp *qp[128];
	struct uroce_endpoint endpoint[128];
	unsigned qps;
	uint8_t *memory;
	unsigned outstanding[128]; /* WRs of each QP */
	uint64_t done;
};

static void open_end(struct end *e, unsigned qps, unsigned depth, size_t bytes)
{
	void *memory;
	memset(e, 0, sizeof(*e));
	e->qps = qps;
	bench_check(uroce_open(device, NULL, &e->ctx), "open");
	bench_check(uroce_pd_create(e->ctx, &e->pd), "PD");
	bench_check(uroce_cq_create(e->ctx, qps * depth, NULL, NULL, &e->cq), "CQ");
	bench_check(uroce_alloc(e->ctx, bytes, &memory), "memory");
	e->memory = memory;
	bench_check(uroce_mr_register(e->pd, memory, bytes, UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE, &e->mr), "MR");
	for (unsigned i = 0; i < qps; i++) {
		struct uroce_qp_init init = { .send_cq = e->cq, .recv_cq = e->cq, .cap = { .max_send_wr = depth, .max_inline = 32 } };
		bench_check(uroce_qp_create(e->pd, &init, &e->qp[i]), "QP");
		bench_check(uroce_qp_endpoint(e->qp[i], 0, &e->endpoint[i]), "endpoint");
	}
}

static void connect_pairs(struct end *e)
{
	for (unsigned i = 0; i < e->qps; i++)
		bench_check(uroce_qp_connect(e->qp[i], &e->endpoint[i], &e->endpoint[i ^ 1], NULL, 0), "connect");
}

static void close_end(struct end *e)
{
	uroce_close(e->ctx);
}

static struct uroce_send_wr make_wr(const struct end *e, const struct uroce_sge *sge, size_t offset, uint32_t flags)
{
	return (struct uroce_send_wr){ .sg_list = sge, .num_sge = 1, .opcode = UROCE_OP_WRITE, .flags = flags, .remote_addr = (uintptr_t)e->memory + offset, .rkey = uroce_mr_rkey(e->mr) };
}

static double run_rate(void)
{
	struct end e;
	open_end(&e, 2, 1024, 4096);
	connect_pairs(&e);
	struct uroce_sge sge = { (uintptr_t)e.memory, 8, uroce_mr_lkey(e.mr) };
	struct uroce_send_wr wr[16];
	for (unsigned i = 0; i < 16; i++)
		wr[i] = make_wr(&e, &sge, 2048 + i * 8, UROCE_SEND_INLINE | (i == 15 ? UROCE_SEND_SIGNALED : 0));
	double from = bench_now(), now = from;
	while (now < from + PERIOD) {
		for (unsigned i = 0; i < 32; i++) {
			uroce_post_send(e.qp[0], wr, 16); /* a full queue takes none, and the next turn comes */
			e.done += bench_take(e.cq, e.qp, e.qps) * 16;
		}
		now = bench_now();
	}
	double rate = (double)e.done / (now - from) / 1e6;
	close_end(&e);
	return rate;
}

/* Keeps `depth` WRITEs of `bytes` outstanding on each sending QP. */
static void push(struct end *e, unsigned depth, uint32_t bytes, size_t target)
{
	struct uroce_sge sge = { (uintptr_t)e->memory, bytes, uroce_mr_lkey(e->mr) };
	struct uroce_send_wr wr = make_wr(e, &sge, target, UROCE_SEND_SIGNALED);
	struct uroce_wc wc[64];
	for (unsigned i = 0; i < e->qps; i += 2) {
		wr.wr_id = i;
		while (e->outstanding[i] < depth && uroce_post_send(e->qp[i], &wr, 1) == 1)
			e->outstanding[i]++;
	}
	int n = bench_check(uroce_cq_poll(e->cq, wc, 64), "poll");
	for (int i = 0; i < n; i++) {
		bench_check(wc[i].status == UROCE_WC_SUCCESS ? 0 : -EIO, uroce_wc_status_str(wc[i].status));
		e->outstanding[wc[i].wr_id]--;
	}
	e->done += (unsigned)n;
}

static double run_stream(void)
{
	enum { BYTES = 1 << 20 };
	struct end e;
	open_end(&e, 2, 8, 2 * BYTES);
	connect_pairs(&e);
	memset(e.memory, 1, 2 * BYTES);
	double from = bench_now(), now = from;
	while (now < from + PERIOD) {
		push(&e, 8, BYTES, BYTES);
		now = bench_now();
	}
	double gbits = (double)e.done * BYTES * 8 / (now - from) / 1e9;
	close_end(&e);
	return gbits;
}

/* ---- ping-pong: what the two sides tell each other lies in memory that both have ---- */

struct table {
	_Atomic unsigned arrived;
	struct uroce_endpoint endpoint[2];
	uint64_t address[2];
	uint32_t rkey[2];
	double ns;
};

static void meet(struct table *t, unsigned n)
{
	t->arrived++;
	while (t->arrived < n)
		sched_yield();
}

static void play(struct table *t, unsigned index)
{
	struct end e;
	open_end(&e, 1, 16, 4096);
	t->endpoint[index] = e.endpoint[0];
	t->address[index] = (uintptr_t)e.memory;
	t->rkey[index] = uroce_mr_rkey(e.mr);
	meet(t, 2);
	bench_check(uroce_qp_connect(e.qp[0], &e.endpoint[0], &t->endpoint[!index], NULL, 0), "connect");
	meet(t, 4);
	volatile uint64_t *in = (volatile uint64_t *)(void *)e.memory;
	uint64_t out = 0;
	struct uroce_sge sge = { (uintptr_t)&out, 8, 0 };
	struct uroce_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_WRITE, .flags = UROCE_SEND_INLINE, .remote_addr = t->address[!index], .rkey = t->rkey[!index] };
	double from = bench_now();
	for (unsigned i = 0; i < PINGPONGS; i++) {
		out++;
		for (unsigned turn = 0; turn < 2; turn++) {
			if (turn == index)
				while (uroce_post_send(e.qp[0], &wr, 1) != 1)
					bench_take(e.cq, e.qp, 1);
			else
				while (*in != out)
					sched_yield();
		}
	}
	if (!index)
		t->ns = (bench_now() - from) * 5e8 / PINGPONGS;
	meet(t, 6);
	close_end(&e);
}

static void *play_second(void *arg)
{
	play(arg, 1);
	return NULL;
}

static double run_pingpong(void)
{
	struct table *t = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;
	int status = 0;
	if (!strncmp(device, "unix:", 5)) {
		pid_t child = fork();
		if (!child) {
			play(t, 1);
			_exit(0);
		}
		play(t, 0);
		waitpid(child, &status, 0);
	} else {
		bench_check(-pthread_create(&thread, NULL, play_second, t), "thread");
		play(t, 0);
		pthread_join(thread, NULL);
	}
	double ns = t->ns;
	munmap(t, 4096);
	return ns;
}

static double run_fairness(void)
{
	static struct end e[CONTEXTS];
	uint64_t start[CONTEXTS] = { 0 }, all = 0, least = UINT64_MAX;
	for (unsigned i = 0; i < CONTEXTS; i++) {
		open_end(&e[i], i ? 2 : 128, 64, 128 << 10);
		connect_pairs(&e[i]);
	}
	double from = bench_now();
	bool is_counting = false;
	for (double now = from; now < from + 2 * PERIOD; now = bench_now()) {
		for (unsigned i = 0; i < CONTEXTS; i++)
			push(&e[i], i ? 32 : 2, i ? 4096 : 65536, 64 << 10);
		if (is_counting || now < from + PERIOD) /* the first half is for coming into step */
			continue;
		is_counting = true;
		for (unsigned i = 0; i < CONTEXTS; i++)
			start[i] = e[i].done;
	}
	for (unsigned i = 0; i < CONTEXTS; i++) {
		uint64_t bytes = (e[i].done - start[i]) * (i ? 4096 : 65536);
		all += bytes;
		least = bytes < least ? bytes : least;
		close_end(&e[i]);
	}
	return (double)least * CONTEXTS / (double)all;
}

static const struct {
	const char *name;
	double (*run)(void);
} loops[] = { { "write_rate", run_rate }, { "write_stream", run_stream }, { "pingpong", run_pingpong }, { "fairness", run_fairness } };
#define LOOPS (sizeof(loops) / sizeof(loops[0]))

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static bool run_loop(const char *name)
{
	double result[REPS];
	size_t l = 0;
	while (l < LOOPS && strcmp(loops[l].name, name))
		l++;
	if (l == LOOPS)
		return false;
	for (unsigned i = 0; i < REPS; i++)
		result[i] = loops[l].run();
	qsort(result, REPS, sizeof(double), compare);
	printf("%s %.3f   (%.3f .. %.3f)\n", name, result[REPS / 2], result[0], result[REPS - 1]);
	return true;
}

int main(int argc, char **argv)
{
	bool is_known = argc > 2;
	if (is_known) {
		struct uroce_context *hold; /* an embedded engine stays as long as there is a context */
		device = argv[1];
		bool is_embedded = strncmp(device, "unix:", 5);
		bench_pin(0);
		if (is_embedded)
			bench_check(uroce_open(device, NULL, &hold), "open");
		for (int i = 2; i < argc; i++)
			is_known &= run_loop(argv[i]);
		if (is_embedded)
			uroce_close(hold);
	}
	if (is_known)
		return 0;
	fprintf(stderr, "usage: application DEVICE LOOP...\nloops:");
	for (size_t i = 0; i < LOOPS; i++)
		fprintf(stderr, " %s", loops[i].name);
	fprintf(stderr, "\n");
	return 2;
}
