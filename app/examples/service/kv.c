/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the client's QPs and memory. Invariant: a connection has a receive posted for each request that is outstanding, or will be, so no answer finds none; a request's buffer is the engine's until its WR has completed. */
#include "kv.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "greeting.h"

#define PATIENCE_S 5
#define IS_REQUEST 0x100u /* wr_id of a request: this, and its place; of a receive: its place */

static int fail(const char *what, int err)
{
	fprintf(stderr, "kv-client: %s: %s\n", what, strerror(-err));
	return -1;
}

static int post_answer(struct client *c, struct client_connection *n, unsigned place)
{
	struct uroce_sge sge = { (uintptr_t)&n->answers[place], sizeof(struct kv_message), uroce_mr_lkey(c->mr) };
	struct uroce_recv_wr wr = { .wr_id = place, .sg_list = &sge, .num_sge = 1 };
	int posted = uroce_post_recv(n->qp, &wr, 1);
	return posted == 1 ? 0 : fail("a receive", posted);
}

/* Receives first, then the connection: the peer may send at once. */
static int make_qp(struct client *c, struct client_connection *n, struct uroce_endpoint *ours)
{
	struct uroce_qp_init init = { .service = UROCE_RC, .send_cq = c->cq, .recv_cq = c->cq, .cap = { .max_send_wr = REQUESTS, .max_recv_wr = KV_DEPTH } };
	struct uroce_qp_attr to_init = { .state = UROCE_QP_INIT, .port_num = 1 };
	int err = uroce_qp_create(c->pd, &init, &n->qp);
	if (!err)
		err = uroce_qp_modify(n->qp, &to_init, UROCE_QP_STATE | UROCE_QP_PORT | UROCE_QP_PKEY_INDEX | UROCE_QP_ACCESS_FLAGS);
	if (!err)
		err = uroce_qp_endpoint(n->qp, 0, ours);
	if (err)
		return fail("a QP", err);
	n->qpn = uroce_qp_num(n->qp);
	for (unsigned i = 0; i < KV_DEPTH; i++)
		if (post_answer(c, n, i))
			return -1;
	return 0;
}

static int connect_one(struct client *c, struct client_connection *n, const char *to)
{
	struct uroce_endpoint ours, theirs;
	struct greeting out, in;
	if (make_qp(c, n, &ours))
		return -1;
	n->fd = greeting_connect(to);
	if (n->fd < 0)
		return -1;
	greeting_pack(&out, &ours);
	if (!greeting_exchange(n->fd, &out, &in) || !greeting_unpack(&in, &theirs)) {
		fprintf(stderr, "kv-client: %s does not answer as a kv-server (it may have as many clients as it takes)\n", to);
		return -1;
	}
	int err = uroce_qp_connect(n->qp, &ours, &theirs, NULL, 0);
	return err ? fail("cannot connect the QP", err) : 0;
}

static int make_objects(struct client *c)
{
	size_t bytes = sizeof(struct kv_message) * (REQUESTS + KV_DEPTH) * c->n;
	void *memory;
	int err = uroce_pd_create(c->ctx, &c->pd);
	if (!err)
		err = uroce_alloc(c->ctx, bytes, &memory);
	if (!err)
		err = uroce_mr_register(c->pd, memory, bytes, UROCE_ACCESS_LOCAL_WRITE, &c->mr);
	if (!err)
		err = uroce_cq_create(c->ctx, (REQUESTS + KV_DEPTH) * c->n, NULL, NULL, &c->cq);
	if (err)
		return fail("memory and CQ", err);
	c->memory = memory;
	return 0;
}

int client_open(struct client *c, const char *to, unsigned n)
{
	*c = (struct client){ .n = n };
	for (unsigned i = 0; i < n; i++)
		c->connections[i].fd = -1;
	int err = uroce_open(NULL, NULL, &c->ctx);
	if (err)
		return fail("cannot have the device", err);
	if (make_objects(c))
		return -1;
	for (unsigned i = 0; i < n; i++) {
		c->connections[i].requests = c->memory + (REQUESTS + KV_DEPTH) * i;
		c->connections[i].answers = c->connections[i].requests + REQUESTS;
		c->connections[i].free_requests = UINT32_MAX >> (32 - REQUESTS);
		if (connect_one(c, &c->connections[i], to))
			return -1;
	}
	return 0;
}

void client_close(struct client *c)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->connections[i].fd >= 0)
			close(c->connections[i].fd);
	if (c->ctx)
		uroce_close(c->ctx);
}

bool client_can_send(const struct client *c, unsigned connection)
{
	return c->connections[connection].outstanding < KV_DEPTH && c->connections[connection].free_requests;
}

int64_t client_send(struct client *c, unsigned connection, enum kv_op op, const char *key, size_t key_len, const void *value, size_t value_len)
{
	struct client_connection *n = &c->connections[connection];
	unsigned place = (unsigned)__builtin_ctz(n->free_requests);
	struct kv_message *m = &n->requests[place];
	memset(m, 0, KV_HEAD_BYTES);
	m->id = n->ids++;
	m->what = (uint8_t)op;
	m->key_len = (uint16_t)key_len;
	m->value_len = (uint16_t)value_len;
	memcpy(m->data, key, key_len);
	if (value_len)
		memcpy(m->data + key_len, value, value_len);
	struct uroce_sge sge = { (uintptr_t)m, (uint32_t)(KV_HEAD_BYTES + key_len + value_len), uroce_mr_lkey(c->mr) };
	struct uroce_send_wr wr = { .wr_id = IS_REQUEST | place, .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_SEND, .flags = UROCE_SEND_SIGNALED };
	int posted = uroce_post_send(n->qp, &wr, 1);
	if (posted != 1)
		return fail("a request", posted);
	n->free_requests &= n->free_requests - 1;
	n->outstanding++;
	return m->id;
}

static struct client_connection *find(struct client *c, uint32_t qpn)
{
	unsigned i = 0;
	while (i + 1 < c->n && c->connections[i].qpn != qpn)
		i++;
	return &c->connections[i];
}

/* 1: it is an answer; 0: a request is acknowledged; -1: neither. */
static int take(struct client_connection *n, const struct uroce_wc *wc, const struct kv_message **answer)
{
	char why[256];
	if (wc->status != UROCE_WC_SUCCESS) {
		uroce_qp_error_text(n->qp, why, sizeof(why));
		fprintf(stderr, "kv-client: %s: %s\n", uroce_wc_status_str(wc->status), why);
		return -1;
	}
	if (wc->wr_id & IS_REQUEST) {
		n->free_requests |= 1u << (wc->wr_id & ~(uint64_t)IS_REQUEST);
		return 0;
	}
	*answer = &n->answers[wc->wr_id];
	if (wc->byte_len >= KV_HEAD_BYTES && wc->byte_len == KV_HEAD_BYTES + (*answer)->value_len && (*answer)->what < KV_STATUSES)
		return 1;
	fprintf(stderr, "kv-client: what came is no answer\n");
	return -1;
}

int client_receive(struct client *c, unsigned *connection, const struct kv_message **answer)
{
	struct uroce_wc wc;
	uroce_engine_poll(c->ctx); /* in other modes than inline it does nothing */
	int n = uroce_cq_poll(c->cq, &wc, 1);
	if (n <= 0)
		return n < 0 ? fail("the engine", n) : 0;
	struct client_connection *from = find(c, wc.qpn);
	*connection = (unsigned)(from - c->connections);
	return take(from, &wc, answer);
}

int client_wait(struct client *c, unsigned *connection, const struct kv_message **answer)
{
	time_t end = time(NULL) + PATIENCE_S + 1;
	int n;
	for (unsigned round = 1; !(n = client_receive(c, connection, answer)); round++) {
		if (round % 64)
			continue;
		sched_yield(); /* the engine may be waiting for this CPU */
		if (time(NULL) > end) {
			fprintf(stderr, "kv-client: no answer within %d s\n", PATIENCE_S);
			return -1;
		}
	}
	return n < 0 ? -1 : 0;
}

int client_done(struct client *c, unsigned connection, const struct kv_message *answer)
{
	struct client_connection *n = &c->connections[connection];
	n->outstanding--;
	return post_answer(c, n, (unsigned)(answer - n->answers));
}
