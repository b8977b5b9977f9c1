/* SPDX-License-Identifier: BSD-3-Clause */
/* The other end is rdma-core's ibv_rc_pingpong, or another of these: SENDs go to and fro on one QP, each end as many as it was told on its command line. Owns that program's exchange over TCP and its order of events.
 *
 * The exchange: the client says "LID:QPN:PSN:GID" in hexadecimal, 51 characters and a zero byte, the server answers with its own, and the client says "done" and a zero byte; nothing follows. So neither end hears
 * when the other is through, and the last ACK could be lost or be owed still: an end goes on answering for a while after it has all it waits for.
 * Invariant: message n is echoed out of the slot into which it came, so what comes back to the client is what it sent. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "measure.h"
#include "pattern.h"
#include "report.h"
#include "role.h"

#define CARD_BYTES 52u /* with its zero byte */
#define LINGER_NS UINT64_C(200000000) /* several times the timeout of the peer */
#define DEPTH 4u

struct pingpong {
	struct end e;
	bool is_client, is_verify;
	uint64_t sent, came, outstanding;
	uint64_t owed; /* messages that came and were not answered */
	uint64_t asked_ns; /* when the last one was sent */
};

/* ---- the exchange ---- */

static int put_text(struct end *e, const char *text, size_t len)
{
	return send(e->exchange->fd, text, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : end_fail(e, "the peer is gone");
}

/* Drives the engine meanwhile: the peer resolves our address before it answers. */
static int get_text(struct end *e, char *text, size_t len)
{
	for (size_t have = 0; have < len;) {
		ssize_t n = recv(e->exchange->fd, text + have, len - have, MSG_DONTWAIT);
		if (n > 0)
			have += (size_t)n;
		else if (!n || (errno != EAGAIN && errno != EINTR))
			return end_fail(e, "the peer is gone");
		else if (end_pump(e) < 0)
			poll(&(struct pollfd){ .fd = e->exchange->fd, .events = POLLIN }, 1, 100);
	}
	return 0;
}

static int put_card(struct end *e)
{
	char text[CARD_BYTES], *gid = text + 19;
	snprintf(text, sizeof(text), "0000:%06x:%06x:", e->local->qpn, e->local->psn);
	for (unsigned i = 0; i < 16; i++)
		snprintf(gid + 2 * i, 3, "%02x", e->local->gid.raw[i]);
	return put_text(e, text, sizeof(text));
}

static int get_card(struct end *e, struct uroce_endpoint *remote)
{
	char text[CARD_BYTES + 1] = "", gid[33];
	unsigned lid;
	int err = get_text(e, text, CARD_BYTES);
	if (err)
		return err;
	*remote = (struct uroce_endpoint){ .mtu = e->trial.mtu, .rd_atomic = 1 };
	bool is_right = sscanf(text, "%4x:%6x:%6x:%32[0-9a-f]", &lid, &remote->qpn, &remote->psn, gid) == 4 && strlen(gid) == 32;
	for (unsigned i = 0; i < 16 && is_right; i++)
		is_right = sscanf(gid + 2 * i, "%2hhx", &remote->gid.raw[i]) == 1;
	return is_right ? 0 : end_fail(e, "the peer says something else than ibv_rc_pingpong would (is it that, with -g?)");
}

static int meet(struct pingpong *p)
{
	struct end *e = &p->e;
	struct uroce_endpoint remote;
	char done[5] = "done";
	int err = p->is_client ? put_card(e) : 0;
	if (!err)
		err = get_card(e, &remote);
	if (!err && p->is_client)
		err = put_text(e, done, sizeof(done));
	if (!err)
		err = end_connect_qp(e, 0, &remote);
	if (!err && !p->is_client)
		err = put_card(e);
	if (!err && !p->is_client)
		err = get_text(e, done, sizeof(done));
	return err;
}

/* ---- the game ---- */

/* Receives can be posted then, before the peer sends. */
static int make_ready(struct end *e)
{
	struct uroce_qp_attr attr = { .state = UROCE_QP_INIT, .port_num = 1 };
	int err = uroce_qp_modify(e->qp[0], &attr, UROCE_QP_STATE | UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | UROCE_QP_ACCESS_FLAGS);
	return err ? end_fail(e, "QP to INIT: %s", strerror(-err)) : 0;
}

static int post_receive(struct pingpong *p, uint64_t number)
{
	struct uroce_sge sge;
	struct uroce_recv_wr wr = end_recv_wr(&p->e, 0, (uint32_t)(number % p->e.slots), &sge);
	return end_post_recv(&p->e, 0, &wr, 1);
}

/* The client's first message is its own; every other one is what came last. */
static int send_message(struct pingpong *p)
{
	struct end *e = &p->e;
	struct uroce_sge sge;
	struct uroce_send_wr wr = end_send_wr(e, 0, p->came ? (uint32_t)((p->came - 1) % e->slots) : 0, &sge);
	if (p->came)
		sge.addr += e->in_offset;
	p->sent++;
	p->outstanding++;
	p->asked_ns = end_now();
	return end_post_send(e, 0, &wr, 1);
}

/* What comes back to the client is its own; what comes to the server stays the same. */
static int look_at(struct pingpong *p, const uint8_t *data)
{
	struct end *e = &p->e;
	if (!p->is_client && !p->came)
		memcpy(e->memory, data, e->trial.size);
	else if (memcmp(e->memory, data, e->trial.size))
		return end_fail(e, "WRONG DATA: message %llu of %llu bytes is not the one before", (unsigned long long)p->came, (unsigned long long)e->trial.size);
	return 0;
}

static int take_message(struct pingpong *p, const struct uroce_wc *wc, struct histogram *h)
{
	struct end *e = &p->e;
	if (wc->byte_len != e->trial.size)
		return end_fail(e, "a message of %u bytes came, expected %llu: both ends have to be given the same size", wc->byte_len, (unsigned long long)e->trial.size);
	int err = p->is_verify ? look_at(p, end_slot(e, 0, (uint32_t)(p->came % e->slots)) + e->in_offset) : 0;
	if (p->sent)
		histogram_add(h, (end_now() - p->asked_ns) / 2);
	p->came++;
	p->owed += p->sent + p->owed < e->trial.iters;
	return err ? err : post_receive(p, p->came + e->slots - 1);
}

static int play(struct pingpong *p, struct result *r)
{
	struct end *e = &p->e;
	struct uroce_wc wc[16];
	uint64_t start_ns = end_now(), iters = e->trial.iters;
	int err = p->is_client ? send_message(p) : 0;
	while (!err && (p->came < iters || p->sent < iters || p->outstanding)) {
		int n = end_take(e, wc, 16, true);
		err = n < 0 ? n : 0;
		for (int i = 0; i < n && !err; i++) {
			if (wc[i].wr_id & END_RECV)
				err = take_message(p, &wc[i], &r->latency);
			else
				p->outstanding--;
		}
		for (; !err && p->owed && p->outstanding < DEPTH; p->owed--)
			err = send_message(p);
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
	for (uint32_t i = 0; i < e->slots && !err; i++)
		err = post_receive(p, i);
	if (!err)
		err = meet(p);
	if (!err)
		err = play(p, r);
	if (!err)
		linger(e);
	return err;
}

static bool report_game(struct pingpong *p, const struct role *role, struct result *r, int err)
{
	static const char *const modes[3] = { "embedded", "inline", "served" };
	struct result verified = { .messages = r->messages, .bytes = r->bytes, .seconds = r->seconds }; /* the counters are counted once */
	const struct result *results[TESTS] = { [TEST_LATENCY] = err ? NULL : r, [TEST_VERIFY] = err || !p->is_verify ? NULL : &verified };
	struct report report = { .json = role->options->json, .mode = modes[p->e.device.mode % 3], .port = p->e.device.name,
		.cores = { p->is_client ? role->cores : "any", p->is_client ? "any" : role->cores }, .spinning = role->spinning, .mtu = p->e.trial.mtu, .options = role->options };
	if (p->e.qp && p->e.qp[0])
		uroce_qp_counters(p->e.qp[0], r->counters, RESULT_COUNTERS);
	report_start(&report);
	report_add(&report, &p->e.trial, results, err ? p->e.error : "");
	return report_end(&report);
}

int pingpong_run(struct role *role)
{
	const struct options *o = role->options;
	struct pingpong *p = calloc(1, sizeof(*p));
	struct result *r = calloc(1, sizeof(*r));
	int failed = 1;
	if (p && r) {
		p->is_client = o->connect != NULL;
		p->is_verify = o->is_verify;
		p->e = (struct end){ .exchange = &role->exchange, .trial = { .op = operation_find("send", 4), .test = TEST_LATENCY, .size = o->sizes[0], .qps = 1, .depth = DEPTH, .batch = 1,
			.inline_bytes = o->inline_bytes, .mtu = o->mtu, .iters = o->iters } };
		if (!end_open(&p->e, role->device, o->gid_index)) {
			int err = run_game(p, r);
			failed = !report_game(p, role, r, err) || err;
			end_release(&p->e);
		}
		end_close(&p->e);
	}
	exchange_close(&role->exchange);
	free(p);
	free(r);
	return failed;
}
