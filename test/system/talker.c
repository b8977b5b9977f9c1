/* SPDX-License-Identifier: BSD-3-Clause */
#include "talker.h"

#include <arpa/inet.h>
#include <string.h>
#include <time.h>

#define ROOM 1024u /* of one receive */
#define SEND_AT (TALKER_RECEIVES * ROOM)
#define PATIENCE_MS 20000u

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void post_receive(struct talker *t)
{
	uint32_t slot = t->posted++ % TALKER_RECEIVES;
	struct uroce_sge sge = { (uintptr_t)t->buffer + slot * ROOM, ROOM, uroce_mr_lkey(t->mr) };
	struct uroce_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };
	CHECK(uroce_post_recv(t->qp, &wr, 1) == 1);
}

static void open_context(struct talker *t, const char *device)
{
	if (strncmp(device, "unix:", 5))
		CHECK(!side_open_context(device, &t->ctx, &t->engine));
	else
		CHECK(!uroce_open(device, NULL, &t->ctx));
}

void talker_open(struct talker *t, const char *device, bool block_own_multicast)
{
	struct uroce_qp_attr attr = { .qkey = TALKER_QKEY };
	struct uroce_endpoint local;
	memset(t, 0, sizeof(*t));
	t->is_inline = !strncmp(device, "inline:", 7);
	open_context(t, device);
	CHECK(!uroce_pd_create(t->ctx, &t->pd));
	CHECK(!uroce_cq_create(t->ctx, TALKER_RECEIVES, NULL, NULL, &t->send_cq) && !uroce_cq_create(t->ctx, TALKER_RECEIVES, NULL, NULL, &t->recv_cq));
	CHECK(!uroce_alloc(t->ctx, SEND_AT + ROOM, (void **)&t->buffer));
	CHECK(!uroce_mr_register(t->pd, t->buffer, SEND_AT + ROOM, UROCE_ACCESS_LOCAL_WRITE, &t->mr));
	struct uroce_qp_init init = { .service = UROCE_UD, .send_cq = t->send_cq, .recv_cq = t->recv_cq, .cap = { 16, TALKER_RECEIVES, 1, 1, 0 }, .signal_all = true, .block_own_multicast = block_own_multicast };
	CHECK(!uroce_qp_create(t->pd, &init, &t->qp));
	CHECK(!uroce_qp_endpoint(t->qp, 0, &local));
	CHECK(!uroce_qp_connect(t->qp, &local, NULL, &attr, UROCE_QP_QKEY));
	t->qpn = uroce_qp_num(t->qp);
	for (unsigned i = 0; i < TALKER_RECEIVES; i++)
		post_receive(t);
}

void talker_close(struct talker *t)
{
	CHECK(!uroce_qp_destroy(t->qp));
	CHECK(!uroce_cq_destroy(t->send_cq) && !uroce_cq_destroy(t->recv_cq));
	CHECK(!uroce_mr_deregister(t->mr));
	uroce_close(t->ctx); /* with the AHs that are left */
}

struct uroce_gid talker_gid(const char *text)
{
	struct uroce_gid g = { .raw = { [10] = 0xff, [11] = 0xff } };
	if (inet_pton(AF_INET, text, g.raw + 12) != 1)
		CHECK(inet_pton(AF_INET6, text, g.raw) == 1);
	return g;
}

int talker_attach(struct talker *t, const char *group)
{
	struct uroce_gid g = talker_gid(group);
	return uroce_qp_attach_multicast(t->qp, &g);
}

int talker_detach(struct talker *t, const char *group)
{
	struct uroce_gid g = talker_gid(group);
	return uroce_qp_detach_multicast(t->qp, &g);
}

static bool is_ip4(const struct uroce_gid *g)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	return !memcmp(g->raw, mapped, sizeof(mapped));
}

struct uroce_ah *talker_ah(struct talker *t, const char *to)
{
	struct uroce_av av = { .dgid = talker_gid(to), .hop_limit = 1 };
	struct uroce_gid own;
	struct uroce_ah *ah;
	for (; !uroce_query_gid(t->ctx, av.sgid_index, &own, NULL); av.sgid_index++)
		if (is_ip4(&own) == is_ip4(&av.dgid))
			break;
	CHECK(!uroce_ah_create(t->pd, &av, &ah));
	return ah;
}

static int poll_cq(struct talker *t, struct uroce_cq *cq, struct uroce_wc *wc, unsigned ms)
{
	uint64_t end = now_ms() + ms;
	int n;
	while (!(n = uroce_cq_poll(cq, wc, 1)) && now_ms() < end)
		if (t->is_inline)
			CHECK(uroce_engine_poll(t->ctx) >= 0);
	CHECK(n >= 0);
	return n;
}

void talker_send(struct talker *t, const struct uroce_ah *ah, uint32_t qpn, const char *text)
{
	struct uroce_sge sge = { (uintptr_t)t->buffer + SEND_AT, (uint32_t)strlen(text), uroce_mr_lkey(t->mr) };
	struct uroce_send_wr wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_SEND, .ah = ah, .remote_qpn = qpn, .remote_qkey = TALKER_QKEY };
	struct uroce_wc wc;
	memcpy(t->buffer + SEND_AT, text, strlen(text));
	CHECK(uroce_post_send(t->qp, &wr, 1) == 1);
	CHECK(poll_cq(t, t->send_cq, &wc, PATIENCE_MS) == 1 && wc.status == UROCE_WC_SUCCESS);
}

static bool take(struct talker *t, const char *text, unsigned ms, uint32_t *src_qpn)
{
	struct uroce_wc wc;
	if (!poll_cq(t, t->recv_cq, &wc, ms))
		return false;
	const char *got = (const char *)t->buffer + wc.wr_id * ROOM + 40;
	if (wc.status || wc.byte_len != 40 + strlen(text) || memcmp(got, text, strlen(text))) {
		printf("awaited \"%s\", got \"%.*s\" (%s)\n", text, (int)wc.byte_len - 40, got, uroce_wc_status_str(wc.status));
		fflush(stdout);
		_exit(1);
	}
	post_receive(t);
	*src_qpn = wc.src_qpn;
	return true;
}

uint32_t talker_hear(struct talker *t, const char *text)
{
	uint32_t src_qpn = 0;
	if (!take(t, text, PATIENCE_MS, &src_qpn)) {
		printf("\"%s\" did not come\n", text);
		fflush(stdout);
		_exit(1);
	}
	return src_qpn;
}

bool talker_listen(struct talker *t, const char *text, unsigned ms)
{
	uint32_t src_qpn;
	return take(t, text, ms, &src_qpn);
}

struct engine_core *talker_core(const struct talker *t)
{
	return engine_core_at(t->engine, t->qpn & 15);
}
