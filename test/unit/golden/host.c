/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the core, the objects and the time of one side. */
#include "host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "direct_session.h"
#include "qp.h"

#define START_NS 1000000000ull
#define RD_ATOMIC 16u
#define PEER_QPN 0x123u
#define REMOTE (UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC)

struct golden_way golden_way_of(const struct packet *own)
{
	return (struct golden_way){ own->smac, own->dmac, own->src, own->dst, own->dqpn, NULL, own->tos, own->ttl };
}

struct golden_way golden_way_back(const struct packet *peers)
{
	static const uint8_t member_mac[6] = { 2, 0, 0, 0, 0, 9 };
	struct golden_way way = { peers->dmac, peers->smac, peers->dst, peers->src, PEER_QPN, NULL, peers->tos, peers->ttl };
	if (!peers->is_multicast)
		return way;
	way.mac = member_mac;
	way.group = &peers->dst;
	way.gid = peers->src;
	way.gid.b[15] ^= 3;
	return way;
}

static void open_core(struct golden_host *h, const struct golden_way *way)
{
	struct core_config c = { .name = "golden", .addr.mode = ADDR_OWN, .max_frame = 4300, .max_qp = 4, .max_cq = 4, .max_mr = 64, .seed = 1, .hooks = &direct_hooks };
	struct uroce_open_attr attr = { .log_level = 1 };
	uint32_t index;
	memcpy(c.addr.mac, way->mac, 6);
	assert_int_equal(core_new(&h->core, &c, h->now), 0);
	assert_int_equal(addr_gid_add(core_addr(h->core), &way->gid, VLAN_NONE, gid_is_ip4(&way->gid) ? 8 : 16, &index), 0);
	if (!gid_is_multicast(&way->peer))
		assert_int_equal(addr_learn(core_addr(h->core), &way->peer, VLAN_NONE, way->peer_mac, true, h->now), 0);
	assert_int_equal(direct_session_open(h->core, &h->now, &attr, &h->ctx), 0);
}

/* What is said of a QP beyond the defaults, by service. */
static const uint32_t masks[] = {
	[UROCE_RC] = UROCE_QP_PATH_MTU | UROCE_QP_MAX_DEST_RD_ATOMIC | UROCE_QP_MIN_RNR_TIMER | UROCE_QP_AV,
	[UROCE_UC] = UROCE_QP_PATH_MTU | UROCE_QP_AV,
	[UROCE_UD] = UROCE_QP_QKEY,
};

static void connect_qp(struct golden_host *h, const struct golden *g, const struct golden_way *way, const struct golden_qp *qp)
{
	struct uroce_endpoint local, remote = { .qpn = way->peer_qpn, .psn = qp->rq_psn, .mtu = g->mtu, .rd_atomic = RD_ATOMIC };
	struct uroce_qp_attr a = { .path_mtu = g->mtu, .max_dest_rd_atomic = RD_ATOMIC, .min_rnr_timer = qp->rnr_timer, .qkey = qp->qkey, .av = { .traffic_class = way->traffic_class, .hop_limit = way->hop_limit } };
	assert_int_equal(uroce_qp_endpoint(h->qp, 0, &local), 0);
	local.psn = qp->sq_psn;
	memcpy(remote.gid.raw, way->peer.b, 16);
	assert_int_equal(uroce_qp_connect(h->qp, &local, &remote, &a, masks[qp->service]), 0);
	a.av.dgid = remote.gid;
	if (qp->service == UROCE_UD)
		assert_int_equal(uroce_ah_create(h->pd, &a.av, &h->ah), 0);
}

static void join_group(struct golden_host *h, const struct gid *group)
{
	struct uroce_gid g;
	memcpy(g.raw, group->b, 16);
	assert_int_equal(uroce_qp_attach_multicast(h->qp, &g), 0);
	while (golden_host_pull(h)) /* reports of the membership */
		;
}

void golden_host_open(struct golden_host *h, const struct golden *g, const struct golden_way *way, const struct golden_qp *qp)
{
	*h = (struct golden_host){ .now = START_NS, .start = START_NS };
	open_core(h, way);
	assert_int_equal(uroce_pd_create(h->ctx, &h->pd), 0);
	assert_int_equal(uroce_cq_create(h->ctx, 4 * GOLDEN_WRS, NULL, NULL, &h->cq), 0);
	struct uroce_qp_init init = { .service = qp->service, .send_cq = h->cq, .recv_cq = h->cq, .cap = { GOLDEN_WRS, GOLDEN_WRS, 1, 1, 0 } };
	assert_int_equal(uroce_qp_create(h->pd, &init, &h->qp), 0);
	connect_qp(h, g, way, qp);
	if (way->group)
		join_group(h, way->group);
}

void golden_host_close(struct golden_host *h)
{
	uroce_close(h->ctx);
	core_free(h->core);
	for (unsigned i = 0; i < h->regions; i++)
		free(h->region[i].memory);
}

struct golden_region *golden_host_region(struct golden_host *h, uint32_t captured_rkey, uint64_t va, uint64_t len)
{
	struct golden_region *r = &h->region[h->regions++];
	assert_true(h->regions <= GOLDEN_REGIONS);
	*r = (struct golden_region){ captured_rkey, va, len, false, calloc(1, len + 1), NULL, 0 };
	assert_int_equal(uroce_mr_register_iova(h->pd, r->memory, len, va, REMOTE | UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_MW_BIND, &r->mr), 0);
	r->rkey = uroce_mr_rkey(r->mr);
	return r;
}

void golden_host_window(struct golden_host *h, uint32_t captured_rkey, uint64_t va, uint64_t len)
{
	struct golden_region *r = golden_host_region(h, captured_rkey, va, len);
	struct uroce_bind to = { .addr = va, .len = len, .lkey = uroce_mr_lkey(r->mr), .access = REMOTE };
	struct uroce_mw *mw;
	struct uroce_wc wc;
	assert_int_equal(uroce_mw_create(h->pd, UROCE_MW_TYPE_2, &mw), 0);
	r->rkey = uroce_inc_rkey(uroce_mw_rkey(mw));
	struct uroce_send_wr wr = { .opcode = UROCE_OP_BIND_MW, .flags = UROCE_SEND_SIGNALED, .rkey = r->rkey, .bind = &to };
	assert_int_equal(uroce_post_send(h->qp, &wr, 1), 1);
	assert_int_equal(golden_host_pull(h), 0);
	assert_int_equal(uroce_cq_poll(h->cq, &wc, 1), 1);
	assert_int_equal(wc.status, UROCE_WC_SUCCESS);
}

void golden_host_feed(struct golden_host *h, const uint8_t *frame, uint32_t len)
{
	uint8_t *copy = malloc(len); /* in a block of its own, for the sanitizers */
	memcpy(copy, frame, len);
	struct core_frame f = { .data = copy, .len = len, .vlan_tci = VLAN_NONE };
	core_rx(h->core, h->now, &f, 1);
	free(copy);
}

uint32_t golden_host_pull(struct golden_host *h)
{
	struct core_frame f = { .data = h->frame, .room = GOLDEN_FRAME_BYTES };
	core_run(h->core, h->now);
	core_scan(h->core);
	for (unsigned round = 0; round <= ACK_ROUNDS; round++) /* for which an ACK waits */
		if (core_tx(h->core, h->now, &f, 1))
			return f.len;
	return 0;
}

uint32_t golden_host_wait(struct golden_host *h, uint64_t time_ns)
{
	uint64_t until = h->start + time_ns;
	for (;;) {
		uint32_t len = golden_host_pull(h);
		if (len || h->now >= until)
			return len;
		uint64_t next = core_next(h->core);
		next = next > h->now ? next : h->now + 1;
		h->now = next < until ? next : until;
	}
}
