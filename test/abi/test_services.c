/* SPDX-License-Identifier: BSD-3-Clause */
/* What the client makes of each service: creation, the way to RTS, and which operations are taken. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fake_engine.h"

struct fixture {
	struct fake_engine *f;
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_qp *qp;
};

static struct fixture open_service(enum uroce_service service)
{
	struct fixture x;
	struct uroce_qp_init init = { .service = service, .cap = { 8, 8, 1, 1, 64 } };
	x.f = fake_open(&x.ctx);
	assert_int_equal(uroce_pd_create(x.ctx, &x.pd), 0);
	assert_int_equal(uroce_cq_create(x.ctx, 16, NULL, NULL, &x.cq), 0);
	init.send_cq = init.recv_cq = x.cq;
	assert_int_equal(uroce_qp_create(x.pd, &init, &x.qp), 0);
	return x;
}

static void close_service(struct fixture *x)
{
	assert_int_equal(uroce_qp_destroy(x->qp), 0);
	assert_int_equal(uroce_cq_destroy(x->cq), 0);
	assert_int_equal(uroce_pd_destroy(x->pd), 0);
	uroce_close(x->ctx);
	fake_free(x->f);
}

static void set_state(struct uroce_qp *qp, enum uroce_qp_state state)
{
	struct uroce_qp_attr attr = { .state = state };
	assert_int_equal(uroce_qp_modify(qp, &attr, UROCE_QP_STATE), 0);
}

static struct uroce_ah *open_ah(struct fixture *x)
{
	static const struct uroce_av av = { .dgid.raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 9 }, .sgid_index = 2, .flow_label = 0x12345, .traffic_class = 0x20, .sl = 3 };
	struct uroce_ah *ah;
	assert_int_equal(uroce_ah_create(x->pd, &av, &ah), 0);
	return ah;
}

static void test_create(void **state)
{
	for (unsigned service = UROCE_RC; service <= UROCE_UD; service++) {
		struct fixture x = open_service((enum uroce_service)service);
		assert_int_equal(fake_last(x.f, ABI_CREATE_QP)->create_qp.service, service);
		close_service(&x);
	}
}

/* IBA vol. 1, table 91: UC has no retries, no RNR timer and no READs. */
static void test_connect_uc(void **state)
{
	static const uint32_t masks[] = { ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS,
		ABI_QP_STATE | ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN, ABI_QP_STATE | ABI_QP_SQ_PSN };
	static const struct uroce_endpoint peer = {
		.gid.raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 }, .qpn = 0x77, .psn = 0x123456, .mtu = 512
	};
	struct fixture x = open_service(UROCE_UC);
	struct uroce_qp_attr attr = { .path_mtu = 256, .timeout = 14 };
	struct uroce_endpoint local;
	const struct abi_req *req;
	assert_int_equal(uroce_qp_endpoint(x.qp, 0, &local), 0);
	assert_int_equal(uroce_qp_connect(x.qp, &local, &peer, &attr, UROCE_QP_TIMEOUT), -EINVAL);
	assert_int_equal(fake_count(x.f, ABI_MODIFY_QP), 0);
	assert_int_equal(uroce_qp_connect(x.qp, &local, &peer, &attr, UROCE_QP_PATH_MTU), 0);
	assert_int_equal(fake_count(x.f, ABI_MODIFY_QP), 3);
	req = &x.f->req[x.f->reqs - 3];
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(req[i].modify_qp.mask, masks[i]);
	assert_int_equal(req[1].modify_qp.attr.path_mtu, ABI_MTU_256);
	close_service(&x);
}

/* IBA vol. 1, table 38: what a service does not have is refused when it is posted. */
static void test_operations(void **state)
{
	static const char *const taken[] = { /* SEND, SEND_IMM, WRITE, WRITE_IMM, READ, COMPARE_SWAP, FETCH_ADD, ATOMIC_WRITE, FLUSH, SEND_WITH_INV, BIND_MW, LOCAL_INV, REG_MR */
		[UROCE_RC] = "yyyyyyyyyyyyy", [UROCE_UC] = "yyyy......yyy", [UROCE_UD] = "yy..........."
	};
	static const struct uroce_bind bind;
	static const struct uroce_sge word = { 0x1000, 8, 1 };
	for (unsigned service = UROCE_RC; service <= UROCE_UD; service++)
		for (unsigned op = UROCE_OP_SEND; op <= UROCE_OP_REG_MR; op++) {
			struct fixture x = open_service((enum uroce_service)service);
			struct uroce_ah *ah = open_ah(&x);
			struct uroce_send_wr wr = { .opcode = (enum uroce_opcode)op, .sg_list = &word, .num_sge = op != UROCE_OP_FLUSH && op < UROCE_OP_BIND_MW, .flush = { 8, UROCE_FLUSH_GLOBAL, UROCE_FLUSH_RANGE }, .ah = ah, .remote_qpn = 7 };
			set_state(x.qp, UROCE_QP_RTS);
			if (service != UROCE_UD && op >= UROCE_OP_BIND_MW)
				wr.bind = &bind;
			x.f->lines = 0;
			assert_int_equal(uroce_post_send(x.qp, &wr, 1), taken[service][op] == 'y' ? 1 : -EINVAL);
			assert_int_equal(x.f->lines, taken[service][op] != 'y');
			assert_int_equal(uroce_ah_destroy(ah), 0);
			close_service(&x);
		}
}

/* ---- datagrams ---- */

static void test_ah(void **state)
{
	struct fixture x = open_service(UROCE_UD);
	struct uroce_ah *ah = open_ah(&x);
	const struct abi_req *req = fake_last(x.f, ABI_CREATE_AH);
	assert_int_equal(req->create_ah.av.dgid[15], 9);
	assert_int_equal(req->create_ah.av.sgid_index, 2);
	assert_int_equal(req->create_ah.av.flow_label, 0x12345);
	assert_int_equal(req->create_ah.av.traffic_class, 0x20);
	assert_int_equal(req->create_ah.av.hop_limit, 64); /* 0 means 64 */
	assert_int_equal(req->create_ah.av.sl, 3);
	assert_int_equal(uroce_ah_destroy(ah), 0);
	assert_int_equal(uroce_ah_destroy(NULL), 0);
	atomic_store(&x.f->page->dead, 1);
	assert_int_equal(uroce_ah_create(x.pd, &(struct uroce_av){ 0 }, &ah), -ENODEV);
	close_service(&x);
}

static void test_posting_datagrams(void **state)
{
	struct fixture x = open_service(UROCE_UD), y = open_service(UROCE_UD);
	struct uroce_ah *ah = open_ah(&x), *foreign = open_ah(&y);
	static const struct uroce_sge whole = { 0x1000, 1024, 1 }, longer = { 0x1000, 1025, 1 };
	struct uroce_send_wr wr = { .wr_id = 3, .opcode = UROCE_OP_SEND_WITH_IMM, .imm = 5, .sg_list = &whole, .num_sge = 1, .ah = ah, .remote_qpn = 0xfffffe, .remote_qkey = 0x80000000, .remote_addr = 0x1111, .rkey = 0x2222 };
	set_state(x.qp, UROCE_QP_RTS);
	assert_int_equal(uroce_post_send(x.qp, &wr, 1), 1);
	const struct abi_send_wqe *w = fake_slot(&x.f->qp[0].sq, 0);
	assert_int_equal(w->ah, x.f->handles); /* the last that was made */
	assert_int_equal(w->remote_qpn, 0xfffffe);
	assert_int_equal(w->remote_qkey, 0x80000000);
	assert_int_equal(w->imm, 5);
	assert_int_equal(w->sge[0].len, 1024);
	const struct uroce_send_wr good = wr;
	for (unsigned way = 0; way < 5; way++) {
		wr = good;
		if (way == 0)
			wr.sg_list = &longer; /* than the port carries */
		if (way == 1)
			wr.ah = NULL;
		if (way == 2)
			wr.ah = foreign;
		if (way == 3)
			wr.remote_qpn = 0;
		if (way == 4)
			wr.remote_qpn = 0x1000000;
		x.f->lines = 0;
		assert_int_equal(uroce_post_send(x.qp, &wr, 1), -EINVAL);
		assert_int_equal(x.f->lines, 1);
		assert_non_null(strstr(x.f->line, way ? "AH" : "1025 bytes, the most is 1024"));
	}
	assert_int_equal(uroce_ah_destroy(ah), 0);
	assert_int_equal(uroce_ah_destroy(foreign), 0);
	close_service(&x);
	close_service(&y);
}

static void test_connect_ud(void **state)
{
	static const uint32_t masks[] = { ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_QKEY, ABI_QP_STATE, ABI_QP_STATE | ABI_QP_SQ_PSN };
	struct fixture x = open_service(UROCE_UD);
	struct uroce_qp_attr attr = { .qkey = 0x1234567, .path_mtu = 256 }, now;
	struct uroce_endpoint local;
	assert_int_equal(uroce_qp_endpoint(x.qp, 0, &local), 0);
	assert_int_equal(uroce_qp_connect(x.qp, &local, NULL, &attr, UROCE_QP_PATH_MTU), -EINVAL);
	assert_int_equal(uroce_qp_connect(x.qp, &local, NULL, &attr, UROCE_QP_QKEY), 0);
	const struct abi_req *req = &x.f->req[x.f->reqs - 3];
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(req[i].modify_qp.mask, masks[i]);
	assert_int_equal(req[0].modify_qp.attr.qkey, 0x1234567);
	assert_int_equal(uroce_qp_query(x.qp, &now), 0);
	assert_int_equal(now.qkey, 0x1234567);
	close_service(&x);
	x = open_service(UROCE_RC);
	assert_int_equal(uroce_qp_endpoint(x.qp, 0, &local), 0);
	assert_int_equal(uroce_qp_connect(x.qp, &local, NULL, NULL, 0), -EINVAL);
	close_service(&x);
}

static void test_wc_of_a_datagram(void **state)
{
	struct fixture x = open_service(UROCE_UD);
	struct abi_cqe e = { .wr_id = 1, .qpn = uroce_qp_num(x.qp), .opcode = ABI_WC_RECV, .flags = ABI_WC_HAS_GRH | ABI_WC_HAS_IMM, .src_qpn = 0x4321, .byte_len = 48, .imm = 6, .vlan = 7, .sl = 5 };
	struct uroce_wc wc;
	fake_complete(x.f, &x.f->cq[0], &e, false);
	assert_int_equal(uroce_cq_poll(x.cq, &wc, 1), 1);
	assert_int_equal(wc.flags, UROCE_WC_HAS_GRH | UROCE_WC_HAS_IMM);
	assert_int_equal(wc.src_qpn, 0x4321);
	assert_int_equal(wc.byte_len, 48);
	assert_int_equal(wc.vlan, 7);
	assert_int_equal(wc.sl, 5);
	assert_int_equal(wc.pkey_index, 0);
	close_service(&x);
}

/* The fake port has ::ffff:10.0.0.1 untagged at index 0, and fe80::1 on VLAN 7 at index 2. */
static void test_av_from_wc(void **state)
{
	struct fixture x = open_service(UROCE_UD);
	uint8_t ip4[40] = { [20] = 0x45, 0xbb, [28] = 9, 17, [32] = 10, 0, 0, 5, 10, 0, 0, 1 };
	uint8_t ip6[40] = { 0x6b, 0xb1, 0x23, 0x45, [6] = 17, 9, [8] = 0xfe, 0x80, [23] = 5, [24] = 0xfe, 0x80, [39] = 1 };
	struct uroce_wc wc = { .flags = UROCE_WC_HAS_GRH, .vlan = 0xffff, .sl = 2 };
	struct uroce_av av;
	assert_int_equal(uroce_av_from_wc(x.ctx, &wc, ip4, &av), 0);
	assert_int_equal(av.sgid_index, 0);
	assert_int_equal(av.dgid.raw[10], 0xff);
	assert_int_equal(av.dgid.raw[12], 10);
	assert_int_equal(av.dgid.raw[15], 5);
	assert_int_equal(av.traffic_class, 0xb8); /* without the bits of congestion */
	assert_int_equal(av.sl, 2);
	assert_int_equal(av.hop_limit, 0);
	assert_int_equal(uroce_av_from_wc(x.ctx, &wc, ip6, &av), -EADDRNOTAVAIL); /* on another VLAN */
	wc.vlan = 7;
	assert_int_equal(uroce_av_from_wc(x.ctx, &wc, ip6, &av), 0);
	assert_int_equal(av.sgid_index, 2);
	assert_int_equal(av.dgid.raw[0], 0xfe);
	assert_int_equal(av.dgid.raw[15], 5);
	assert_int_equal(av.flow_label, 0x12345);
	assert_int_equal(av.traffic_class, 0xb8);
	/* a group: the answer comes from the first address of its family */
	wc.vlan = 0xffff;
	ip4[36] = 239;
	assert_int_equal(uroce_av_from_wc(x.ctx, &wc, ip4, &av), 0);
	assert_int_equal(av.sgid_index, 0);
	ip4[36] = 11; /* none of ours */
	assert_int_equal(uroce_av_from_wc(x.ctx, &wc, ip4, &av), -EADDRNOTAVAIL);
	ip4[3] = 1; /* no headers at all */
	assert_int_equal(uroce_av_from_wc(x.ctx, &wc, ip4, &av), -EINVAL);
	wc.flags = 0;
	assert_int_equal(uroce_av_from_wc(x.ctx, &wc, ip6, &av), -EINVAL);
	close_service(&x);
}

/* ---- multicast ---- */

static const struct uroce_gid group = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3 } };

static void refuse_attach(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->type == ABI_ATTACH_MULTICAST)
		rep->status = -ENOSPC;
}

static void test_attach(void **state)
{
	struct fixture x = open_service(UROCE_UD);
	assert_int_equal(fake_last(x.f, ABI_CREATE_QP)->create_qp.flags, 0);
	assert_int_equal(uroce_qp_attach_multicast(x.qp, &group), 0);
	assert_int_equal(fake_last(x.f, ABI_ATTACH_MULTICAST)->group.qp, 0); /* the first */
	assert_memory_equal(fake_last(x.f, ABI_ATTACH_MULTICAST)->group.gid, group.raw, 16);
	assert_int_equal(uroce_qp_detach_multicast(x.qp, &group), 0);
	assert_int_equal(fake_last(x.f, ABI_DETACH_MULTICAST)->group.qp, 0); /* the first */
	assert_memory_equal(fake_last(x.f, ABI_DETACH_MULTICAST)->group.gid, group.raw, 16);
	x.f->on_answered = refuse_attach;
	assert_int_equal(uroce_qp_attach_multicast(x.qp, &group), -ENOSPC);
	atomic_store(&x.f->page->dead, 1);
	assert_int_equal(uroce_qp_attach_multicast(x.qp, &group), -ENODEV);
	close_service(&x);
}

static void test_block_own_multicast(void **state)
{
	struct fixture x = open_service(UROCE_UD);
	struct uroce_qp_init init = { .service = UROCE_UD, .send_cq = x.cq, .recv_cq = x.cq, .cap = { 8, 8, 1, 1, 64 }, .block_own_multicast = true };
	struct uroce_qp *qp;
	assert_int_equal(uroce_qp_create(x.pd, &init, &qp), 0);
	assert_int_equal(fake_last(x.f, ABI_CREATE_QP)->create_qp.flags, ABI_QP_BLOCK_SELF_MCAST_LB);
	assert_int_equal(uroce_qp_destroy(qp), 0);
	close_service(&x);
}

/* known-bugs: 30 */
static void test_posting_to_a_group(void **state)
{
	static const struct uroce_gid groups[] = { { .raw = { [10] = 0xff, [11] = 0xff, [12] = 224, [15] = 1 } }, { .raw = { 0xff, 0x12, [15] = 9 } } };
	struct fixture x = open_service(UROCE_UD);
	set_state(x.qp, UROCE_QP_RTS);
	for (unsigned i = 0; i < 2; i++) {
		struct uroce_av av = { .dgid = groups[i] };
		struct uroce_send_wr wr = { .opcode = UROCE_OP_SEND, .remote_qpn = UROCE_QPN_MULTICAST };
		struct uroce_ah *ah;
		assert_int_equal(uroce_ah_create(x.pd, &av, &ah), 0);
		wr.ah = ah;
		assert_int_equal(uroce_post_send(x.qp, &wr, 1), 1);
		assert_int_equal(((const struct abi_send_wqe *)fake_slot(&x.f->qp[0].sq, i))->remote_qpn, 0xffffff);
		wr.remote_qpn = 7;
		x.f->lines = 0;
		assert_int_equal(uroce_post_send(x.qp, &wr, 1), -EINVAL);
		assert_int_equal(x.f->lines, 1);
		assert_int_equal(uroce_ah_destroy(ah), 0);
	}
	close_service(&x);
}

/* ---- shared receive queues ---- */

static struct uroce_srq *open_srq(struct fixture *x, uint32_t max_wr, uint32_t max_sge)
{
	struct uroce_srq_init init = { .attr = { max_wr, max_sge, 2 }, .user = x };
	struct uroce_srq *srq;
	assert_int_equal(uroce_srq_create(x->pd, &init, &srq), 0);
	assert_ptr_equal(uroce_srq_user(srq), x);
	return srq;
}

static void post(struct uroce_srq *srq, uint64_t wr_id, int n)
{
	static const struct uroce_sge sge[3] = { { 0x10, 1, 2 }, { 0x20, 3, 4 }, { 0x30, 5, 6 } };
	struct uroce_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = 3 };
	assert_int_equal(uroce_post_srq_recv(srq, &wr, 1), n);
}

static void test_srq(void **state)
{
	struct fixture x = open_service(UROCE_RC);
	struct uroce_srq *srq = open_srq(&x, 4, 3);
	struct uroce_qp_init init = { .send_cq = x.cq, .recv_cq = x.cq, .srq = srq, .cap = { 8, 8, 1, 1, 0 } };
	struct uroce_srq_attr attr;
	struct uroce_recv_wr wr = { 0 };
	struct uroce_qp_cap cap;
	struct uroce_qp *qp;
	assert_int_equal(fake_last(x.f, ABI_CREATE_SRQ)->create_srq.limit, 2);
	assert_int_equal(uroce_qp_create(x.pd, &init, &qp), 0);
	assert_int_equal(fake_last(x.f, ABI_CREATE_QP)->create_qp.srq, 1);
	uroce_qp_cap(qp, &cap);
	assert_int_equal(cap.max_recv_wr, 0);
	set_state(qp, UROCE_QP_INIT);
	x.f->lines = 0;
	assert_int_equal(uroce_post_recv(qp, &wr, 1), -EINVAL);
	assert_int_equal(x.f->lines, 1);
	assert_int_equal(uroce_srq_query(srq, &attr), 0);
	assert_int_equal(attr.max_wr, 4);
	assert_int_equal(attr.max_sge, 3);
	assert_int_equal(attr.limit, 2);
	attr.limit = 3;
	assert_int_equal(uroce_srq_modify(srq, &attr, UROCE_SRQ_LIMIT), 0);
	assert_int_equal(fake_last(x.f, ABI_MODIFY_SRQ)->modify_srq.limit, 3);
	assert_int_equal(uroce_srq_modify(srq, &attr, 4), -EINVAL);
	assert_int_equal(uroce_srq_modify(srq, &attr, 0), -EINVAL);
	unsigned asked = fake_count(x.f, ABI_MODIFY_SRQ);
	assert_int_equal(uroce_srq_modify(srq, &(struct uroce_srq_attr){ .max_wr = 16, .limit = 17 }, UROCE_SRQ_MAX_WR | UROCE_SRQ_LIMIT), -EINVAL);
	assert_int_equal(fake_count(x.f, ABI_MODIFY_SRQ), asked); /* nothing was changed */
	assert_int_equal(uroce_srq_destroy(srq), -EBUSY);
	set_state(qp, UROCE_QP_RESET);
	assert_int_equal(uroce_qp_destroy(qp), 0);
	assert_int_equal(uroce_srq_destroy(srq), 0);
	assert_int_equal(uroce_srq_destroy(NULL), 0);
	close_service(&x);
}

/* known-bugs: 41 */
static void test_posting_to_an_srq(void **state)
{
	struct fixture x = open_service(UROCE_RC);
	struct uroce_srq *srq = open_srq(&x, 4, 3);
	struct fake_srq *s = &x.f->srq[0];
	struct uroce_recv_wr wrs[3] = { { .wr_id = 90 }, { .wr_id = 91, .num_sge = 4 }, { .wr_id = 92 } };
	uint32_t last;
	for (uint64_t i = 0; i < 3; i++)
		post(srq, i, 1);
	const struct abi_recv_wqe *w = fake_slot(&s->rq, 1);
	assert_int_equal(w->wr_id, 1);
	assert_int_equal(w->num_sge, 3);
	assert_int_equal(w->sge[2].addr, 0x30);
	assert_int_equal(w->sge[2].lkey, 6);
	assert_int_equal(fake_tail(&s->rq), 3);
	assert_int_equal(fake_take_doorbells(x.f, &last), 0); /* nobody has to be told */
	assert_int_equal(x.f->wakes, 0);
	assert_int_equal(uroce_post_srq_recv(srq, wrs, 3), 1); /* the good one before the bad one */
	post(srq, 5, -ENOMEM);
	fake_release(&s->rq, 1);
	assert_int_equal(uroce_post_srq_recv(srq, wrs + 1, 2), -EINVAL);
	post(srq, 5, 1);
	atomic_store(&s->rq.ring->engine_index, 77); /* an impossible one frees nothing */
	post(srq, 6, -ENOMEM);
	assert_int_equal(uroce_post_srq_recv(srq, wrs, 0), 0);
	atomic_store(&x.f->page->dead, 1);
	post(srq, 6, -ENODEV);
	assert_int_equal(uroce_srq_destroy(srq), 0);
	close_service(&x);
}

/* known-bugs: 49 */
static void test_resize_of_an_srq(void **state)
{
	struct fixture x = open_service(UROCE_RC);
	x.f->first_index = 0xfffffffe;
	struct uroce_srq *srq = open_srq(&x, 4, 3);
	struct fake_srq *s = &x.f->srq[0];
	struct uroce_srq_attr attr = { .max_wr = 8, .limit = 5 };
	for (uint64_t i = 0; i < 4; i++)
		post(srq, i, 1);
	fake_release(&s->rq, 1);
	assert_int_equal(uroce_srq_modify(srq, &attr, UROCE_SRQ_MAX_WR | UROCE_SRQ_LIMIT), 0);
	assert_int_equal(fake_count(x.f, ABI_MODIFY_SRQ), 3);
	assert_int_equal(s->rq.count, 8);
	assert_int_equal(s->limit, 5);
	assert_int_equal(fake_tail(&s->rq), 2);
	for (uint32_t i = 1; i < 4; i++) {
		const struct abi_recv_wqe *w = fake_slot(&s->rq, 0xfffffffe + i);
		assert_int_equal(w->wr_id, i);
		assert_int_equal(w->sge[2].lkey, 6);
	}
	for (uint64_t i = 4; i < 9; i++)
		post(srq, i, 1);
	post(srq, 9, -ENOMEM);
	assert_int_equal(((const struct abi_recv_wqe *)fake_slot(&s->rq, 6))->wr_id, 8);
	assert_int_equal(fake_tail(&s->old), 2); /* nothing goes to the old one any more */
	assert_int_equal(uroce_srq_destroy(srq), 0);
	close_service(&x);
}

static void refuse_switch(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->type == ABI_MODIFY_SRQ && req->modify_srq.mask == ABI_SRQ_SWITCH)
		rep->status = -EINVAL;
	if (req->type == ABI_MODIFY_SRQ && req->modify_srq.mask == ABI_SRQ_MAX_WR && f->polls)
		rep->status = -EINVAL;
}

/* known-bugs: 49 */
static void test_resize_that_fails(void **state)
{
	struct fixture x = open_service(UROCE_RC);
	struct uroce_srq *srq = open_srq(&x, 4, 1 + 2);
	struct uroce_srq_attr attr = { .max_wr = 8 };
	post(srq, 0, 1);
	x.f->polls = 1;
	x.f->on_answered = refuse_switch;
	assert_int_equal(uroce_srq_modify(srq, &attr, UROCE_SRQ_MAX_WR), -EINVAL);
	x.f->on_answered = NULL;
	struct fake_ring before = x.f->srq[0].rq;
	post(srq, 1, 1);
	assert_int_equal(fake_tail(&before), 2);
	assert_int_equal(((const struct abi_recv_wqe *)fake_slot(&before, 1))->wr_id, 1);
	assert_int_equal(uroce_srq_destroy(srq), 0);
	close_service(&x);
}

static void test_events_of_an_srq(void **state)
{
	struct fixture x = open_service(UROCE_RC);
	struct uroce_srq *srq = open_srq(&x, 4, 1);
	struct uroce_async_event e;
	fake_async(x.f, x.f->srq[0].cookie, ABI_EVENT_SRQ_LIMIT_REACHED);
	assert_int_equal(uroce_async_get_event(x.ctx, &e), 0);
	assert_int_equal(e.type, UROCE_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(e.srq, srq);
	assert_null(e.qp);
	assert_null(e.cq);
	uroce_async_ack_event(&e);
	fake_async(x.f, x.f->qp[0].cookie, ABI_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(uroce_async_get_event(x.ctx, &e), 0);
	assert_ptr_equal(e.qp, x.qp);
	uroce_async_ack_event(&e);
	fake_async(x.f, x.f->srq[0].cookie, ABI_EVENT_SRQ_ERR);
	fake_async(x.f, x.f->qp[0].cookie, ABI_EVENT_COMM_EST);
	assert_int_equal(uroce_srq_destroy(srq), 0); /* its event is passed over */
	assert_int_equal(uroce_async_get_event(x.ctx, &e), 0);
	assert_ptr_equal(e.qp, x.qp);
	uroce_async_ack_event(&e);
	close_service(&x);
}

/* When the engine is gone, sends are flushed; what waits in an SRQ is in no CQ. */
static void test_death_with_an_srq(void **state)
{
	struct fixture x = open_service(UROCE_RC);
	struct uroce_srq *srq = open_srq(&x, 4, 3);
	struct uroce_qp_init init = { .send_cq = x.cq, .recv_cq = x.cq, .srq = srq, .cap = { 8, 8, 1, 1, 0 } };
	struct uroce_send_wr wr = { .wr_id = 5, .opcode = UROCE_OP_SEND };
	struct uroce_wc wc[4];
	struct uroce_qp *qp;
	assert_int_equal(uroce_qp_create(x.pd, &init, &qp), 0);
	set_state(qp, UROCE_QP_RTS);
	post(srq, 1, 1);
	assert_int_equal(uroce_post_send(qp, &wr, 1), 1);
	fake_complete(x.f, &x.f->cq[0], &(struct abi_cqe){ .wr_id = 77, .qpn = uroce_qp_num(qp), .opcode = ABI_WC_RECV, .index = 0 }, false);
	atomic_store(&x.f->page->dead, 1);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 4), 1);
	assert_int_equal(wc[0].wr_id, 77);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 4), 1);
	assert_int_equal(wc[0].wr_id, 5);
	assert_int_equal(wc[0].status, UROCE_WC_WR_FLUSH_ERR);
	assert_int_equal(uroce_cq_poll(x.cq, wc, 4), -ENODEV);
	assert_int_equal(uroce_qp_destroy(qp), 0);
	assert_int_equal(uroce_srq_destroy(srq), 0);
	close_service(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_connect_uc),
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_ah),
		cmocka_unit_test(test_posting_datagrams),
		cmocka_unit_test(test_connect_ud),
		cmocka_unit_test(test_wc_of_a_datagram),
		cmocka_unit_test(test_av_from_wc),
		cmocka_unit_test(test_attach),
		cmocka_unit_test(test_block_own_multicast),
		cmocka_unit_test(test_posting_to_a_group),
		cmocka_unit_test(test_srq),
		cmocka_unit_test(test_posting_to_an_srq),
		cmocka_unit_test(test_resize_of_an_srq),
		cmocka_unit_test(test_resize_that_fails),
		cmocka_unit_test(test_events_of_an_srq),
		cmocka_unit_test(test_death_with_an_srq),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
