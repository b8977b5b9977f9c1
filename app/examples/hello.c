/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest complete uroce program: two ends in one process. One SENDs a greeting, then WRITEs into the other's memory. Runs for anyone, over a ring link (no root, no hugepages, no network), or as a client of uroced:
 *
 *     cc hello.c $(pkg-config --cflags --libs uroce) -o hello && ./hello
 *     UROCE_DEVICE=unix:/run/uroce/uroce0.sock ./hello */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uroce.h>

/* One end of the connection: an engine's port, memory it may touch, a queue pair and the queue its completions come to. */
struct end {
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_mr *mr;
	struct uroce_cq *cq;
	struct uroce_qp *qp;
	struct uroce_endpoint address; /* what the other end has to know */
	char *memory;
};

#define BYTES 64

static void check(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-rc));
	exit(1);
}

static void open_end(struct end *e, const char *device)
{
	struct uroce_qp_init init = { .cap = { .max_send_wr = 4, .max_recv_wr = 4 } };
	void *memory;
	check(uroce_open(device, NULL, &e->ctx), "open");
	check(uroce_pd_create(e->ctx, &e->pd), "protection domain");
	check(uroce_alloc(e->ctx, BYTES, &memory), "memory"); /* of the engine's pool: a daemon can reach no other */
	e->memory = memory;
	check(uroce_mr_register(e->pd, e->memory, BYTES, UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE, &e->mr), "memory region");
	check(uroce_cq_create(e->ctx, 8, NULL, NULL, &e->cq), "completion queue");
	init.send_cq = init.recv_cq = e->cq;
	check(uroce_qp_create(e->pd, &init, &e->qp), "queue pair");
	check(uroce_qp_endpoint(e->qp, 0, &e->address), "endpoint");
}

/* Drives both engines (in inline mode they run only when they are called, else the calls do nothing) until a work completion comes. */
static struct uroce_wc wait_for_completion(struct end *whose, struct end *other)
{
	struct uroce_wc wc;
	while (uroce_cq_poll(whose->cq, &wc, 1) == 0) {
		uroce_engine_poll(whose->ctx);
		uroce_engine_poll(other->ctx);
	}
	if (wc.status != UROCE_WC_SUCCESS) {
		char why[256];
		uroce_qp_error_text(whose->qp, why, sizeof(why));
		fprintf(stderr, "%s: %s\n", uroce_wc_status_str(wc.status), why);
		exit(1);
	}
	return wc;
}

int main(void)
{
	static struct end a, b;
	const char *device = getenv("UROCE_DEVICE");
	open_end(&a, device ? device : "inline:net_ring,link=hello,side=0,ip=10.0.0.1/24");
	open_end(&b, device ? device : "inline:net_ring,link=hello,side=1,ip=10.0.0.2/24");

	/* Between two hosts the addresses would be exchanged first, over a socket for instance. */
	check(uroce_qp_connect(a.qp, &a.address, &b.address, NULL, 0), "connect");
	check(uroce_qp_connect(b.qp, &b.address, &a.address, NULL, 0), "connect");

	/* The receiver says where a message may land, before it comes. */
	struct uroce_sge into = { (uintptr_t)b.memory, BYTES, uroce_mr_lkey(b.mr) };
	struct uroce_recv_wr recv = { .wr_id = 1, .sg_list = &into, .num_sge = 1 };
	check(uroce_post_recv(b.qp, &recv, 1), "post receive");

	/* SEND: both sides get a completion. */
	strcpy(a.memory, "hello");
	struct uroce_sge from = { (uintptr_t)a.memory, 6, uroce_mr_lkey(a.mr) };
	struct uroce_send_wr send = { .wr_id = 2, .sg_list = &from, .num_sge = 1, .opcode = UROCE_OP_SEND, .flags = UROCE_SEND_SIGNALED };
	check(uroce_post_send(a.qp, &send, 1), "post send");
	struct uroce_wc wc = wait_for_completion(&b, &a);
	printf("SEND:  received %u bytes: \"%s\"\n", wc.byte_len, b.memory);
	wait_for_completion(&a, &b);

	/* WRITE: goes straight into the other's memory, named by address and key; the other side's program is not involved. */
	strcpy(a.memory, "hello again");
	from.len = 12;
	send.opcode = UROCE_OP_WRITE;
	send.remote_addr = (uintptr_t)b.memory;
	send.rkey = uroce_mr_rkey(b.mr);
	check(uroce_post_send(a.qp, &send, 1), "post write");
	wait_for_completion(&a, &b);
	printf("WRITE: the other end's memory says \"%s\"\n", b.memory);

	int is_wrong = strcmp(b.memory, "hello again") != 0;
	uroce_close(a.ctx); /* its memory goes with it */
	uroce_close(b.ctx);
	return is_wrong;
}
