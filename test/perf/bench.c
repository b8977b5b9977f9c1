/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of limits.c with uroce in between: bench [-q QPS] [-b BATCH] [-r] [LOOP...], a line "NAME VALUE" of each; without LOOPs, of each that standard input names (turns.h).
 *
 *   write_rate                 8-byte inline WRITEs, BATCH WRs a post, the last one signaled; -r: QPs in random order   M messages/s
 *   send_rq, send_srq          the same with SENDs: each QP with receives of its own, all QPs with one SRQ
 *   ud_send                    64-byte inline SENDs of UD QPs; those that arrive
 *   write_stream, read_stream  1 MiB messages at path MTU 4096                                                          Gbit/s of payload
 *   write_stream_cpu           what the same costs: the time of both CPUs, which spin all the time                      s/GiB
 *   write_pingpong             8-byte WRITEs, answered by the program when it sees them                                 half round trip, ns
 *
 * Side 1 sleeps before each, as in limits.c: where a virtual machine's two CPUs are placed depends on when they last slept, and a yardstick that runs in
 * another rhythm measures another machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"
#include "turns.h"

enum { STREAM_BYTES = 1 << 20, STREAM_DEPTH = 8, PINGPONGS = 200000 };
static const double PERIOD = 0.5; /* seconds */

struct job;

struct loop {
	const char *name;
	double (*run)(struct side *s, const struct job *j); /* what side 0 measured; side 1's value is not used */
	enum uroce_opcode opcode;
	enum kind kind;
	uint32_t bytes;
};

/* What is run now, and how. */
struct job {
	struct turns turns;
	const struct loop *loop; /* NULL after the last one */
	unsigned batch;
	bool is_random;
};

/* The passive side: drives its engine until the other has done. */
static double serve(struct side *s)
{
	while (!s->pair->stop)
		for (unsigned i = 0; i < 64; i++)
			uroce_engine_poll(s->ctx);
	return 0;
}

static double serve_receives(struct side *s, struct set *t)
{
	while (!s->pair->stop) {
		uroce_engine_poll(s->ctx);
		s->arrived += pair_receive(s, t);
	}
	return 0;
}

static struct uroce_send_wr make_wr(const struct side *s, const struct job *j, const struct uroce_sge *sge, uint32_t flags)
{
	return (struct uroce_send_wr){ .sg_list = sge, .num_sge = 1, .opcode = j->loop->opcode, .flags = flags, .remote_addr = (uintptr_t)pair_other(s)->memory, .rkey = pair_other(s)->rkey,
		.ah = s->set[j->loop->kind].ah, .remote_qkey = PAIR_QKEY };
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

/* A batch for QP q; only datagrams name the QP that they are for. */
static unsigned post_batch(struct side *s, const struct job *j, struct uroce_send_wr *wr, unsigned q)
{
	const struct set *t = &s->set[j->loop->kind];
	if (t->ah)
		for (unsigned i = 0; i < j->batch; i++)
			wr[i].remote_qpn = pair_other(s)->set[j->loop->kind].endpoint[q].qpn;
	return uroce_post_send(t->qp[q], wr, j->batch) == (int)j->batch ? j->batch : 0; /* a full queue takes none, and the next turn comes */
}

static double run_rate(struct side *s, const struct job *j)
{
	struct set *t = &s->set[j->loop->kind];
	if (s->index)
		return t->recvs ? serve_receives(s, t) : serve(s);
	struct uroce_sge sge = { (uintptr_t)s->memory, j->loop->bytes, s->lkey };
	struct uroce_send_wr wr[64];
	uint64_t done = 0, posted = 0, arrived = pair_other(s)->arrived;
	unsigned q = 0;
	for (unsigned i = 0; i < j->batch; i++) {
		wr[i] = make_wr(s, j, &sge, UROCE_SEND_INLINE);
		wr[i].remote_addr += i * 8;
	}
	wr[j->batch - 1].flags |= UROCE_SEND_SIGNALED;
	double from = bench_now(), now = from;
	while (now < from + PERIOD) {
		for (unsigned i = 0; i < 32; i++) {
			posted += post_batch(s, j, wr, q);
			q = choose(s, j, q);
			uroce_engine_poll(s->ctx);
			done += pair_take(t) * j->batch;
		}
		now = bench_now();
	}
	double rate = (double)(t->recvs ? pair_other(s)->arrived - arrived : done) / (now - from) / 1e6;
	for (; done < posted; done += pair_take(t) * j->batch)
		uroce_engine_poll(s->ctx);
	s->pair->stop = true;
	return rate;
}

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Messages of 1 MiB for PERIOD, STREAM_DEPTH outstanding; how long it took. */
static double stream(struct side *s, const struct job *j, uint64_t *done)
{
	struct uroce_sge sge = { (uintptr_t)s->memory, j->loop->bytes, s->lkey };
	struct set *t = &s->set[j->loop->kind];
	struct uroce_send_wr wr = make_wr(s, j, &sge, UROCE_SEND_SIGNALED);
	unsigned under_way = 0;
	double from = bench_now(), now = from;
	*done = 0;
	while (now < from + PERIOD || under_way) {
		while (now < from + PERIOD && under_way < STREAM_DEPTH && uroce_post_send(t->qp[0], &wr, 1) == 1)
			under_way++;
		for (unsigned i = 0; i < 16; i++)
			uroce_engine_poll(s->ctx);
		unsigned n = pair_take(t);
		under_way -= n;
		*done += n;
		now = bench_now();
	}
	s->pair->stop = true;
	return now - from;
}

static double run_stream(struct side *s, const struct job *j)
{
	uint64_t done;
	if (s->index)
		return serve(s);
	double seconds = stream(s, j, &done);
	return (double)done * STREAM_BYTES * 8 / seconds / 1e9;
}

static double run_stream_cpu(struct side *s, const struct job *j)
{
	uint64_t done;
	if (s->index)
		return serve(s);
	double from = cpu_seconds();
	stream(s, j, &done);
	return (cpu_seconds() - from) / ((double)done * STREAM_BYTES / (1 << 30));
}

static double run_pingpong(struct side *s, const struct job *j)
{
	const size_t cell = PAIR_MEMORY - 64; /* no other loop writes there */
	volatile uint64_t *in = (volatile uint64_t *)(void *)(s->memory + cell);
	uint64_t out = *in;
	struct uroce_sge sge = { (uintptr_t)&out, 8, 0 };
	double from = bench_now();
	for (unsigned i = 0; i < PINGPONGS; i++) {
		struct uroce_send_wr wr = make_wr(s, j, &sge, UROCE_SEND_INLINE);
		wr.remote_addr += cell;
		out++;
		for (unsigned turn = 0; turn < 2; turn++) /* side 0 sends first, side 1 sees first */
			if (turn == s->index) {
				while (uroce_post_send(s->set[KIND_PLAIN].qp[0], &wr, 1) != 1)
					uroce_engine_poll(s->ctx);
			} else {
				while (*in != out)
					uroce_engine_poll(s->ctx);
			}
	}
	return (bench_now() - from) * 5e8 / PINGPONGS;
}

static const struct loop loops[] = {
	{ "write_rate", run_rate, UROCE_OP_WRITE, KIND_PLAIN, 8 },
	{ "send_rq", run_rate, UROCE_OP_SEND, KIND_RQ, 8 },
	{ "send_srq", run_rate, UROCE_OP_SEND, KIND_SRQ, 8 },
	{ "ud_send", run_rate, UROCE_OP_SEND, KIND_UD, 64 },
	{ "write_stream", run_stream, UROCE_OP_WRITE, KIND_PLAIN, STREAM_BYTES },
	{ "write_stream_cpu", run_stream_cpu, UROCE_OP_WRITE, KIND_PLAIN, STREAM_BYTES },
	{ "read_stream", run_stream, UROCE_OP_READ, KIND_PLAIN, STREAM_BYTES },
	{ "write_pingpong", run_pingpong, UROCE_OP_WRITE, KIND_PLAIN, 8 },
};

static const struct loop *find_loop(const char *name)
{
	for (unsigned i = 0; i < sizeof(loops) / sizeof(loops[0]); i++)
		if (!strcmp(name, loops[i].name))
			return &loops[i];
	return NULL;
}

static const struct loop *next_loop(struct turns *t)
{
	const char *name = turns_next(t);
	const struct loop *l = name ? find_loop(name) : NULL;
	if (name && !l) {
		fprintf(stderr, "no loop %s\n", name);
		exit(2);
	}
	return l;
}

static void run_turns(struct side *s, void *arg)
{
	struct job *j = arg;
	for (;;) {
		if (!s->index)
			j->loop = next_loop(&j->turns);
		pair_sleep(s);
		if (!j->loop)
			return;
		if (pair_open(s, j->loop->kind))
			pair_sleep(s);
		double value = j->loop->run(s, j);
		if (!s->index)
			turns_say(j->loop->name, value);
		pair_meet(s);
	}
}

static int usage(void)
{
	fprintf(stderr, "usage: bench [-q QPS] [-b BATCH, 1 to 64] [-r] [LOOP...]\nloops:");
	for (unsigned i = 0; i < sizeof(loops) / sizeof(loops[0]); i++)
		fprintf(stderr, " %s", loops[i].name);
	fprintf(stderr, "\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct job job = { .batch = 16 };
	unsigned qps = 1;
	for (int o; (o = getopt(argc, argv, "q:b:r")) != -1;)
		switch (o) {
		case 'q': qps = (unsigned)atoi(optarg); break;
		case 'b': job.batch = (unsigned)atoi(optarg); break;
		case 'r': job.is_random = true; break;
		default: return usage();
		}
	if (!qps || !job.batch || job.batch > 64)
		return usage();
	if (optind < argc)
		job.turns.name = argv + optind;
	struct pair_config config = { .qps = qps, .depth = qps > 1 ? job.batch * 4 : 1024, .cpu = { 0, 1 } };
	pair_run(&config, run_turns, &job);
	return 0;
}
