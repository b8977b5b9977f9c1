/* SPDX-License-Identifier: BSD-3-Clause */
/* A client process with work, for tests of a daemon: worker MODE ROUNDS [SEED] on the device of UROCE_DEVICE.
 *
 *   alone  two QPs of one context connected to each other
 *   pair   this process and a child, each a client of its own, connected to each other
 *
 * A round is one random operation (SEND, WRITE or READ) of random length, checked byte by byte where it landed. ROUNDS 0: until it is killed. Prints "ready" when connected and "done ROUNDS" at the end. Exit code 0 only if all was right;
 * 3: the engine went away. */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uroce.h"

enum { LONGEST = 20000, AREA = 65536, DEPTH = 16 };
enum operation { SEND, WRITE, READ, OPERATIONS };

/* Half of the memory is where this end's operations begin and READs land, half is where the peer's land. */
struct end {
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_mr *mr;
	struct uroce_qp *qp[2];
	unsigned qps;
	uint8_t *memory;
	uint64_t remote_addr;
	uint32_t rkey;
	struct uroce_wc seen[2]; /* polled before it was asked for: a send, a receive (the answer may come before the ACK) */
	bool has_seen[2];
};

struct hello {
	struct uroce_endpoint endpoint;
	uint64_t addr;
	uint32_t rkey;
};

static void fail(const char *what, int rc)
{
	fprintf(stderr, "worker: %s: %s\n", what, strerror(rc < 0 ? -rc : rc));
	exit(rc == -ENODEV ? 3 : 1);
}

static void check(int rc, const char *what)
{
	if (rc < 0)
		fail(what, rc);
}

static void open_end(struct end *e, unsigned qps)
{
	void *memory;
	e->qps = qps;
	check(uroce_open(NULL, NULL, &e->ctx), "open");
	check(uroce_pd_create(e->ctx, &e->pd), "PD");
	check(uroce_cq_create(e->ctx, 64, NULL, NULL, &e->cq), "CQ");
	check(uroce_alloc(e->ctx, 2 * AREA, &memory), "memory");
	e->memory = memory;
	check(uroce_mr_register(e->pd, memory, 2 * AREA, UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ, &e->mr), "MR");
	for (unsigned i = 0; i < qps; i++) {
		struct uroce_qp_init init = { .send_cq = e->cq, .recv_cq = e->cq, .cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH }, .signal_all = true };
		check(uroce_qp_create(e->pd, &init, &e->qp[i]), "QP");
	}
}

static void close_end(struct end *e)
{
	for (unsigned i = 0; i < e->qps; i++)
		check(uroce_qp_destroy(e->qp[i]), "destroy");
	check(uroce_mr_deregister(e->mr), "deregister");
	check(uroce_free(e->ctx, e->memory), "free");
	check(uroce_cq_destroy(e->cq), "CQ destroy");
	check(uroce_pd_destroy(e->pd), "PD destroy");
	uroce_close(e->ctx);
}

static void post_recv(struct end *e, unsigned q)
{
	struct uroce_sge sge = { (uintptr_t)e->memory + AREA, AREA, uroce_mr_lkey(e->mr) };
	struct uroce_recv_wr wr = { .wr_id = 1000, .sg_list = &sge, .num_sge = 1 };
	int n = uroce_post_recv(e->qp[q], &wr, 1);
	check(n == 1 ? 0 : n ? n : -EIO, "post_recv");
}

/* Any completion; while there is none others run. */
static struct uroce_wc poll_wc(struct end *e)
{
	struct uroce_wc wc;
	int n;
	while (!(n = uroce_cq_poll(e->cq, &wc, 1)))
		sched_yield();
	check(n, "poll");
	if (wc.status != UROCE_WC_SUCCESS) {
		char text[256] = "";
		for (unsigned i = 0; i < e->qps; i++)
			if (uroce_qp_num(e->qp[i]) == wc.qpn)
				uroce_qp_error_text(e->qp[i], text, sizeof(text));
		fprintf(stderr, "worker: %s: %s\n", uroce_wc_status_str(wc.status), text);
		while ((n = uroce_cq_poll(e->cq, &wc, 1)) > 0) /* what else is flushed */
			;
		exit(n == -ENODEV ? 3 : 2);
	}
	return wc;
}

/* The next completion of a send or of a receive. */
static struct uroce_wc next_wc(struct end *e, bool is_receive)
{
	while (!e->has_seen[is_receive]) {
		struct uroce_wc wc = poll_wc(e);
		e->seen[wc.opcode >= UROCE_WC_RECV] = wc;
		e->has_seen[wc.opcode >= UROCE_WC_RECV] = true;
	}
	e->has_seen[is_receive] = false;
	return e->seen[is_receive];
}

static uint32_t rng(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	return *x ^= *x << 5;
}

static void fill(uint8_t *p, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)(seed + i * 31 + (i >> 8));
}

static bool is_filled(const uint8_t *p, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		if (p[i] != (uint8_t)(seed + i * 31 + (i >> 8)))
			return false;
	return true;
}

static void post_send(struct end *e, enum operation op, uint32_t len)
{
	static const enum uroce_opcode opcode[OPERATIONS] = { UROCE_OP_SEND, UROCE_OP_WRITE, UROCE_OP_READ };
	struct uroce_sge sge = { (uintptr_t)e->memory, len, uroce_mr_lkey(e->mr) };
	struct uroce_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode[op], .remote_addr = e->remote_addr, .rkey = e->rkey };
	int n = uroce_post_send(e->qp[0], &wr, 1);
	check(n == 1 ? 0 : n ? n : -EIO, "post_send");
}

/* ---- alone ---- */

static void run_alone(uint64_t rounds, uint32_t seed)
{
	struct end e;
	struct uroce_endpoint endpoint[2];
	open_end(&e, 2);
	for (unsigned i = 0; i < 2; i++)
		check(uroce_qp_endpoint(e.qp[i], 0, &endpoint[i]), "endpoint");
	for (unsigned i = 0; i < 2; i++)
		check(uroce_qp_connect(e.qp[i], &endpoint[i], &endpoint[!i], NULL, 0), "connect");
	e.remote_addr = (uintptr_t)e.memory + AREA;
	e.rkey = uroce_mr_rkey(e.mr);
	printf("ready\n");
	fflush(stdout);
	for (uint64_t i = 0; !rounds || i < rounds; i++) {
		enum operation op = rng(&seed) % OPERATIONS;
		uint32_t len = 1 + rng(&seed) % LONGEST, pattern = rng(&seed);
		uint8_t *from = e.memory + (op == READ ? AREA : 0), *to = e.memory + (op == READ ? 0 : AREA);
		fill(from, len, pattern);
		memset(to, 0xee, len + 1);
		if (op == SEND)
			post_recv(&e, 1);
		post_send(&e, op, len);
		next_wc(&e, false);
		if (op == SEND)
			next_wc(&e, true);
		if (!is_filled(to, len, pattern) || to[len] != 0xee)
			fail("data is wrong", EIO);
	}
	close_end(&e);
}

/* ---- pair: each end SENDs to the other in turn ---- */

static void exchange(int fd, struct end *e)
{
	struct hello mine = { .addr = (uintptr_t)e->memory + AREA, .rkey = uroce_mr_rkey(e->mr) }, theirs;
	check(uroce_qp_endpoint(e->qp[0], 0, &mine.endpoint), "endpoint");
	struct uroce_qp_attr init = { .state = UROCE_QP_INIT, .port_num = 1, .access = UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ };
	check(uroce_qp_modify(e->qp[0], &init, UROCE_QP_STATE | UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | UROCE_QP_ACCESS_FLAGS), "INIT");
	post_recv(e, 0);
	if (write(fd, &mine, sizeof(mine)) != sizeof(mine) || read(fd, &theirs, sizeof(theirs)) != sizeof(theirs))
		fail("exchange", EPIPE);
	check(uroce_qp_connect(e->qp[0], &mine.endpoint, &theirs.endpoint, NULL, 0), "connect");
	e->remote_addr = theirs.addr;
	e->rkey = theirs.rkey;
}

static void wait_for_peer(int fd)
{
	char c = 0;
	if (write(fd, &c, 1) != 1 || read(fd, &c, 1) != 1)
		fail("peer is gone", EPIPE);
}

static void run_side(int fd, unsigned side, uint64_t rounds, uint32_t seed)
{
	struct end e;
	open_end(&e, 1);
	exchange(fd, &e);
	wait_for_peer(fd);
	if (!side) {
		printf("ready\n");
		fflush(stdout);
	}
	for (uint64_t i = 0; !rounds || i < rounds; i++) {
		uint32_t len = 1 + rng(&seed) % LONGEST, pattern = rng(&seed); /* the same on both sides */
		if (i % 2 == side) {
			fill(e.memory, len, pattern);
			post_send(&e, SEND, len);
			next_wc(&e, false);
			continue;
		}
		struct uroce_wc wc = next_wc(&e, true);
		if (wc.byte_len != len || !is_filled(e.memory + AREA, len, pattern))
			fail("data is wrong", EIO);
		post_recv(&e, 0);
	}
	wait_for_peer(fd);
	close_end(&e);
}

static void run_pair(uint64_t rounds, uint32_t seed)
{
	int fd[2], status;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		fail("socketpair", errno);
	pid_t child = fork();
	if (child < 0)
		fail("fork", errno);
	close(fd[!!child]);
	run_side(fd[!child], !child, rounds, seed);
	if (!child)
		_exit(0);
	if (waitpid(child, &status, 0) != child || status)
		fail("the child failed", EIO);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: worker alone|pair ROUNDS [SEED]\n");
		return 2;
	}
	uint64_t rounds = strtoull(argv[2], NULL, 10);
	uint32_t seed = argc > 3 && atoi(argv[3]) ? (uint32_t)atoi(argv[3]) : 1;
	if (!strcmp(argv[1], "pair"))
		run_pair(rounds, seed);
	else
		run_alone(rounds, seed);
	printf("done %llu\n", (unsigned long long)rounds);
	return 0;
}
