/* SPDX-License-Identifier: BSD-3-Clause */
/* The other end is one of rdma-core's ibv_*_pingpong, or another of these: SENDs go to and fro, on each QP by itself, until each end has sent and received as many in all as it was told on its command line. Owns the
 * order of events; how they meet is cards.c's.
 *
 * Neither end hears when the other is through, and the last ACK could be lost or be owed still: an end goes on answering for a while after it has all it waits for. Of ibv_srq_pingpong some more messages than those
 * told may come, one of each QP at most.
 * Invariant: a message is answered on its QP by its own bytes, out of the slot into which it came; so what comes back to the client is what it sent, and all messages are the same. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cards.h"
#include "measure.h"
#include "pattern.h"
#include "program.h"
#include "report.h"
#include "role.h"

#define LINGER_NS UINT64_C(200000000) /* several times the timeout of the peer */
#define DEPTH 4u

struct player {
	uint64_t owed;        /* messages that came and were not answered */
	uint32_t outstanding; /* sends without completion */
	uint64_t asked_ns;    /* when the last one was sent; 0: none was */
	const uint8_t *last;  /* message to come; at first the client's own */
};

struct pingpong {
	struct end e;
	const struct program *program;
	bool is_client, is_verify;
	uint64_t sent, came, owed, outstanding; /* of all QPs */
	struct player *player; /* [qps] */
};

/* Receives can be posted then, before the peer sends. */
static int make_ready(struct end *e)
{
	static const uint32_t masks[] = { [UROCE_RC] = UROCE_QP_ACCESS_FLAGS, [UROCE_UC] = UROCE_QP_ACCESS_FLAGS, [UROCE_UD] = UROCE_QP_QKEY };
	struct uroce_qp_attr attr = { .state = UROCE_QP_INIT, .port_num = 1, .qkey = END_QKEY };
	int err = 0;
	for (uint32_t q = 0; q < e->trial.qps && !err; q++)
		err = uroce_qp_modify(e->qp[q], &attr, UROCE_QP_STATE | UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | masks[e->trial.service]);
	return err ? end_fail(e, "QP to INIT: %s", strerror(-err)) : 0;
}

static int post_receive(struct end *e, uint32_t home, uint32_t slot)
{
	struct uroce_sge sge;
	struct uroce_recv_wr wr = end_recv_wr(e, home, slot, &sge);
	wr.wr_id |= (uint64_t)slot << 32;
	return end_post_recv(e, home, &wr, 1);
}

static int post_receives(struct end *e)
{
	int err = 0;
	for (uint32_t q = 0; q < e->trial.qps; q++)
		for (uint32_t slot = 0; slot < e->slots && !err; slot++)
			err = post_receive(e, q, slot);
	return err;
}

static int send_message(struct pingpong *p, uint32_t q)
{
	struct player *one = &p->player[q];
	struct uroce_sge sge;
	struct uroce_send_wr wr = end_send_wr(&p->e, q, 0, &sge);
	sge.addr = (uintptr_t)one->last;
	p->sent++;
	p->outstanding++;
	one->outstanding++;
	one->asked_ns = end_now();
	return end_post_send(&p->e, q, &wr, 1);
}

/* What comes back to the client is its own; what comes to the server stays the same. */
static int look_at(struct pingpong *p, const uint8_t *data)
{
	struct end *e = &p->e;
	if (!p->is_client && !p->came)
		memcpy(e->memory, data, e->trial.size);
	else if (memcmp(e->memory, data, e->trial.size))
		return end_fail(e, "WRONG DATA: message %" PRIu64 " of %" PRIu64 " bytes is not the one before", p->came, e->trial.size);
	return 0;
}

static int take_message(struct pingpong *p, uint32_t q, const struct uroce_wc *wc, struct histogram *h)
{
	struct end *e = &p->e;
	struct player *one = &p->player[q];
	uint32_t home = (uint32_t)wc->wr_id, slot = (uint32_t)(wc->wr_id >> 32) & 0x7fffffff;
	if (wc->byte_len != e->headroom + e->trial.size)
		return end_fail(e, "a message of %u bytes came, expected %" PRIu64 ": both ends have to be given the same size", wc->byte_len - e->headroom,
			e->trial.size);
	if (e->trial.service == UROCE_UD && wc->src_qpn != e->remote[q].qpn)
		return end_fail(e, "a datagram of QP 0x%x came, which is not the peer's", wc->src_qpn);
	one->last = end_slot(e, home, slot) + e->in_offset + e->headroom;
	int err = p->is_verify ? look_at(p, one->last) : 0;
	if (one->asked_ns)
		histogram_add(h, (end_now() - one->asked_ns) / 2);
	p->came++;
	if (p->sent + p->owed < e->trial.iters) {
		p->owed++;
		one->owed++;
	}
	return err ? err : post_receive(e, home, slot); /* behind the others: what comes next does not come there */
}

static int take_completion(struct pingpong *p, const struct uroce_wc *wc, struct histogram *h)
{
	int q = end_find_qp(&p->e, wc->qpn), err = 0;
	if (q < 0)
		return end_fail(&p->e, "QP 0x%x completed, which there is not", wc->qpn);
	struct player *one = &p->player[q];
	if (wc->wr_id & END_RECV) {
		err = take_message(p, (uint32_t)q, wc, h);
	} else {
		one->outstanding--;
		p->outstanding--;
	}
	for (; !err && one->owed && one->outstanding < DEPTH; one->owed--, p->owed--)
		err = send_message(p, (uint32_t)q);
	return err;
}

static int begin(struct pingpong *p)
{
	const struct trial *t = &p->e.trial;
	int err = 0;
	for (uint32_t q = 0; q < t->qps; q++)
		p->player[q].last = p->e.memory;
	for (uint32_t q = 0; q < t->qps && p->is_client && p->sent < t->iters && !err; q++)
		err = send_message(p, q);
	return err;
}

static int play(struct pingpong *p, struct result *r)
{
	struct end *e = &p->e;
	struct uroce_wc wc[16];
	uint64_t start_ns = end_now(), iters = e->trial.iters;
	int err = begin(p);
	while (!err && (p->came < iters || p->sent < iters || p->outstanding)) {
		int n = end_take(e, wc, 16, true);
		err = n < 0 ? n : 0;
		for (int i = 0; i < n && !err; i++)
			err = take_completion(p, &wc[i], &r->latency);
	}
	r->messages = p->came;
	r->bytes = p->came * e->trial.size;
	r->seconds = (double)(end_now() - start_ns) * 1e-9;
	r->latency_of = "half round trip";
	return err;
}

static void linger(struct end *e)
{
	struct uroce_wc wc[4];
	for (uint64_t start_ns = end_now(); end_now() - start_ns < LINGER_NS;)
		if (end_take(e, wc, 4, false) < 0)
			return;
}

static int run_game(struct pingpong *p, struct result *r)
{
	struct end *e = &p->e;
	int err = end_prepare(e);
	if (!err)
		err = make_ready(e);
	if (!err)
		pattern_fill(e->memory, e->trial.size, pattern_seed(0, 0, 0));
	if (!err)
		err = post_receives(e);
	if (!err)
		err = cards_exchange(e, p->is_client, p->program->cards);
	if (!err)
		err = play(p, r);
	if (!err)
		linger(e);
	return err;
}

static bool report_game(struct pingpong *p, const struct role *role, struct result *r, int err)
{
	static const char *const modes[3] = { "embedded", "inline", "served" };
	const struct end *e = &p->e;
	struct result verified = { .messages = r->messages, .bytes = r->bytes, .seconds = r->seconds }; /* the counters are counted once */
	const struct result *results[TESTS] = { [TEST_LATENCY] = err ? NULL : r, [TEST_VERIFY] = err || !p->is_verify ? NULL : &verified };
	struct report report = { .json = role->options->json, .file = role->json, .mode = modes[e->device.mode % 3], .port = e->device.name,
		.cores = { p->is_client ? role->cores : "any", p->is_client ? "any" : role->cores }, .spinning = role->spinning,
		.mtu = e->trial.mtu ? e->trial.mtu : e->device.active_mtu, .options = role->options };
	result_add_counters(r, e);
	report_start(&report);
	report_add(&report, &e->trial, results, err ? e->error : "");
	return report_end(&report);
}

int pingpong_run(struct role *role)
{
	const struct options *o = role->options;
	struct pingpong *p = calloc(1, sizeof(*p));
	struct player *players = calloc(o->qps, sizeof(*players));
	struct result *r = calloc(1, sizeof(*r));
	int failed = 1;
	if (p && players && r) {
		p->player = players;
		p->program = program_find(o->service, o->has_srq);
		p->is_client = o->connect != NULL;
		p->is_verify = o->is_verify;
		p->e = (struct end){ .trial = { .op = operation_find("send", 4), .service = o->service,
			.has_srq = o->has_srq, .test = TEST_LATENCY, .size = o->sizes[0], .qps = o->qps, .depth = DEPTH, .batch = 1, .inline_bytes = o->inline_bytes,
			.mtu = o->mtu, .iters = o->iters } };
		if (!role_open(role, &p->e)) {
			int err = run_game(p, r);
			failed = !report_game(p, role, r, err) || err;
			end_release(&p->e);
		}
		end_close(&p->e);
	}
	exchange_close(&role->exchange);
	free(players);
	free(p);
	free(r);
	return failed;
}
