/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs on the slow path: creation, attributes, connecting, and the sentences about why one failed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cause.h"
#include "counters.h"
#include "fake_engine.h"

struct fixture {
	struct fake_engine *f;
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_qp *qp;
};

static struct fixture open_qp(void)
{
	struct fixture x;
	struct uroce_qp_init init = { .cap = { 3, 5, 2, 0, 20 }, .user = &init };
	x.f = fake_open(&x.ctx);
	assert_int_equal(uroce_pd_create(x.ctx, &x.pd), 0);
	assert_int_equal(uroce_cq_create(x.ctx, 16, NULL, NULL, &x.cq), 0);
	init.send_cq = init.recv_cq = x.cq;
	assert_int_equal(uroce_qp_create(x.pd, &init, &x.qp), 0);
	assert_ptr_equal(uroce_qp_user(x.qp), &init);
	return x;
}

static void close_qp(struct fixture *x)
{
	assert_int_equal(uroce_qp_destroy(x->qp), 0);
	assert_int_equal(uroce_cq_destroy(x->cq), 0);
	assert_int_equal(uroce_pd_destroy(x->pd), 0);
	uroce_close(x->ctx);
	fake_free(x->f);
}

/* ---- queue pairs ---- */

static void test_qp_create(void **state)
{
	struct fixture x = open_qp(), y = open_qp();
	const struct abi_req *req = fake_last(x.f, ABI_CREATE_QP);
	struct uroce_qp_init init = { .send_cq = x.cq, .recv_cq = x.cq };
	struct uroce_qp_cap cap;
	struct uroce_qp *qp;
	assert_int_equal(req->create_qp.cap.max_send_wr, 3);
	assert_int_equal(req->create_qp.cap.max_recv_wr, 5);
	assert_int_equal(req->create_qp.cap.max_send_sge, 2);
	assert_int_equal(req->create_qp.cap.max_recv_sge, 1); /* 0 means 1 */
	assert_int_equal(req->create_qp.cap.max_inline, 20);
	assert_int_equal(req->create_qp.service, ABI_SERVICE_RC);
	assert_int_equal(req->create_qp.signal_all, 0);
	uroce_qp_cap(x.qp, &cap);
	assert_int_equal(cap.max_recv_wr, 5);
	init.service = (enum uroce_service)99;
	assert_int_equal(uroce_qp_create(x.pd, &init, &qp), -EINVAL);
	init = (struct uroce_qp_init){ .send_cq = x.cq };
	assert_int_equal(uroce_qp_create(x.pd, &init, &qp), -EINVAL);
	init = (struct uroce_qp_init){ .send_cq = x.cq, .recv_cq = y.cq };
	assert_int_equal(uroce_qp_create(x.pd, &init, &qp), -EINVAL);
	assert_int_equal(fake_count(x.f, ABI_CREATE_QP), 1);
	close_qp(&x);
	close_qp(&y);
}

static void test_modify_and_query(void **state)
{
	static const struct {
		uint32_t bytes;
		uint8_t code;
	} mtus[] = { { 256, 1 }, { 512, 2 }, { 1024, 3 }, { 2048, 4 }, { 4096, 5 } };
	struct fixture x = open_qp();
	struct uroce_qp_attr attr = { .state = UROCE_QP_RTR,
		.timeout = 1,
		.retry_cnt = 2,
		.rnr_retry = 3,
		.min_rnr_timer = 4,
		.max_rd_atomic = 5,
		.max_dest_rd_atomic = 6,
		.port_num = 1,
		.sqd_async_notify = true,
		.pkey_index = 7,
		.access = 8,
		.dest_qpn = 9,
		.rq_psn = 10,
		.sq_psn = 11,
		.path_mtu = 256,
		.av = { .dgid.raw = { 1, 2, 3 }, .sgid_index = 12, .flow_label = 13, .traffic_class = 14, .sl = 15 } };
	struct uroce_qp_attr got;
	const struct abi_qp_attr *sent;
	for (unsigned i = 0; i < 5; i++) {
		attr.path_mtu = mtus[i].bytes;
		assert_int_equal(uroce_qp_modify(x.qp, &attr, UROCE_QP_STATE | UROCE_QP_PATH_MTU), 0);
		sent = &fake_last(x.f, ABI_MODIFY_QP)->modify_qp.attr;
		assert_int_equal(sent->path_mtu, mtus[i].code);
		assert_int_equal(sent->av.hop_limit, 64); /* 0 means 64 */
		assert_int_equal(uroce_qp_query(x.qp, &got), 0);
		attr.av.hop_limit = 64;
		assert_memory_equal(&got, &attr, offsetof(struct uroce_qp_attr, av.sl) + 1); /* what is behind it is padding */
		attr.av.hop_limit = 0;
	}
	attr.path_mtu = 1500;
	assert_int_equal(uroce_qp_modify(x.qp, &attr, UROCE_QP_PATH_MTU), -EINVAL);
	assert_int_equal(uroce_qp_modify(x.qp, &attr, UROCE_QP_TIMEOUT), 0); /* not named: not looked at */
	attr.state = (enum uroce_qp_state)256;
	assert_int_equal(uroce_qp_modify(x.qp, &attr, UROCE_QP_STATE), -EINVAL);
	assert_int_equal(fake_count(x.f, ABI_MODIFY_QP), 6);
	close_qp(&x);
}

static void test_counters(void **state)
{
	static const char *const names[] = { "tx_packets", "tx_bytes", "rx_packets", "rx_bytes", "retransmitted_packets",
		"local_ack_timeout_err", "packet_seq_err", "implied_nak_seq_err", "rnr_nak_retry_err", "out_of_sequence",
		"duplicate_request", "rnr_nak_sent", "tail_probes", "acks_sent", "naks_sent", "acks_received",
		"completed_requests", "completed_receives", "dropped_packets", "source_port_changes",
		"tx_unreachable", "np_ecn_marked_roce_packets" };
	struct fixture x = open_qp();
	uint64_t value[32] = { 0 };
	assert_int_equal(sizeof(names) / sizeof(names[0]), QP_COUNTER_COUNT);
	assert_int_equal(uroce_qp_counters(x.qp, NULL, 0), QP_COUNTER_COUNT);
	assert_int_equal(uroce_qp_counters(x.qp, value, 2), QP_COUNTER_COUNT);
	assert_int_equal(value[1], 101);
	assert_int_equal(value[2], 0);
	assert_int_equal(uroce_qp_counters(x.qp, value, 32), QP_COUNTER_COUNT);
	assert_int_equal(value[QP_COUNTER_COUNT - 1], 100 + QP_COUNTER_COUNT - 1);
	assert_int_equal(value[QP_COUNTER_COUNT], 0);
	for (unsigned i = 0; i < QP_COUNTER_COUNT; i++)
		assert_string_equal(uroce_qp_counter_name(i), names[i]);
	assert_null(uroce_qp_counter_name(QP_COUNTER_COUNT));
	assert_null(uroce_qp_counter_name(UINT32_MAX));
	close_qp(&x);
}

/* ---- connecting ---- */

#define INIT_MASK (ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS)
#define RTR_MASK \
	(ABI_QP_STATE | ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN | ABI_QP_MAX_DEST_RD_ATOMIC \
		| ABI_QP_MIN_RNR_TIMER)
#define RTS_MASK (ABI_QP_STATE | ABI_QP_SQ_PSN | ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY | ABI_QP_MAX_QP_RD_ATOMIC)

static const struct uroce_endpoint peer = {
	.gid.raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 }, .qpn = 0x77, .psn = 0x123456, .mtu = 512, .rd_atomic = 4
};

static void test_endpoint(void **state)
{
	struct fixture x = open_qp();
	struct uroce_endpoint a, b;
	assert_int_equal(uroce_qp_endpoint(x.qp, 1, &a), -ENOENT);
	assert_int_equal(uroce_qp_endpoint(x.qp, 0, &a), 0);
	assert_int_equal(a.qpn, FAKE_QPN);
	assert_int_equal(a.mtu, 1024);
	assert_int_equal(a.rd_atomic, 16);
	assert_int_equal(a.gid.raw[15], 1);
	/* PSNs are random: sixteen equal ones mean that they are not */
	for (unsigned i = 0; i < 16; i++) {
		assert_int_equal(uroce_qp_endpoint(x.qp, 0, &b), 0);
		assert_true(b.psn <= 0xffffff);
		if (b.psn != a.psn)
			break;
	}
	assert_int_not_equal(a.psn, b.psn);
	close_qp(&x);
}

static void test_connect(void **state)
{
	struct fixture x = open_qp();
	struct uroce_endpoint local;
	struct uroce_qp_attr attr;
	const struct abi_req *req;
	assert_int_equal(uroce_qp_endpoint(x.qp, 2, &local), 0);
	assert_int_equal(uroce_qp_connect(x.qp, &local, &peer, NULL, 0xffffffff), 0); /* without attr the mask says nothing */
	assert_int_equal(fake_count(x.f, ABI_MODIFY_QP), 3);
	req = &x.f->req[x.f->reqs - 3];
	assert_int_equal(req[0].modify_qp.mask, INIT_MASK);
	assert_int_equal(req[0].modify_qp.attr.state, ABI_QP_INIT);
	assert_int_equal(req[0].modify_qp.attr.port_num, 1);
	assert_int_equal(req[0].modify_qp.attr.pkey_index, 0);
	assert_int_equal(req[0].modify_qp.attr.access,
		UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC | UROCE_ACCESS_FLUSH_GLOBAL);
	assert_int_equal(req[1].modify_qp.mask, RTR_MASK);
	assert_int_equal(req[1].modify_qp.attr.state, ABI_QP_RTR);
	assert_int_equal(req[1].modify_qp.attr.path_mtu, ABI_MTU_512); /* the lesser one */
	assert_int_equal(req[1].modify_qp.attr.dest_qpn, 0x77);
	assert_int_equal(req[1].modify_qp.attr.rq_psn, 0x123456);
	assert_int_equal(req[1].modify_qp.attr.max_dest_rd_atomic, 16);
	assert_int_equal(req[1].modify_qp.attr.min_rnr_timer, 12);
	assert_int_equal(req[1].modify_qp.attr.av.sgid_index, 2);
	assert_int_equal(req[1].modify_qp.attr.av.hop_limit, 64);
	assert_memory_equal(req[1].modify_qp.attr.av.dgid, peer.gid.raw, 16);
	assert_int_equal(req[2].modify_qp.mask, RTS_MASK);
	assert_int_equal(req[2].modify_qp.attr.state, ABI_QP_RTS);
	assert_int_equal(req[2].modify_qp.attr.sq_psn, local.psn);
	assert_int_equal(req[2].modify_qp.attr.timeout, 14);
	assert_int_equal(req[2].modify_qp.attr.retry_cnt, 7);
	assert_int_equal(req[2].modify_qp.attr.rnr_retry, 7);
	assert_int_equal(req[2].modify_qp.attr.max_rd_atomic, 4); /* what the peer serves */
	assert_int_equal(uroce_qp_query(x.qp, &attr), 0);
	assert_int_equal(attr.state, UROCE_QP_RTS);
	close_qp(&x);
}

static void test_connect_with_attributes(void **state)
{
	static const struct uroce_qp_attr attr = { .timeout = 0,
		.retry_cnt = 1,
		.rnr_retry = 2,
		.min_rnr_timer = 3,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 2,
		.port_num = 2,
		.pkey_index = 9,
		.access = 2,
		.path_mtu = 256,
		.av = { .sgid_index = 0, .traffic_class = 0x20, .hop_limit = 3, .sl = 5, .flow_label = 6 } };
	static const uint32_t mask = UROCE_QP_TIMEOUT | UROCE_QP_RETRY_CNT | UROCE_QP_RNR_RETRY | UROCE_QP_MIN_RNR_TIMER
		| UROCE_QP_MAX_RD_ATOMIC | UROCE_QP_MAX_DEST_RD_ATOMIC | UROCE_QP_PORT | UROCE_QP_PKEY_INDEX
		| UROCE_QP_ACCESS_FLAGS | UROCE_QP_PATH_MTU | UROCE_QP_AV;
	struct fixture x = open_qp();
	struct uroce_endpoint local;
	const struct abi_qp_attr *a;
	assert_int_equal(uroce_qp_endpoint(x.qp, 2, &local), 0);
	assert_int_equal(uroce_qp_connect(x.qp, &local, &peer, &attr, mask), 0);
	a = &x.f->req[x.f->reqs - 1].modify_qp.attr;
	assert_int_equal(a->timeout, 0);
	assert_int_equal(a->retry_cnt, 1);
	assert_int_equal(a->rnr_retry, 2);
	assert_int_equal(a->min_rnr_timer, 3);
	assert_int_equal(a->max_rd_atomic, 1);
	assert_int_equal(a->max_dest_rd_atomic, 2);
	assert_int_equal(a->port_num, 2);
	assert_int_equal(a->pkey_index, 9);
	assert_int_equal(a->access, 2);
	assert_int_equal(a->path_mtu, ABI_MTU_256);
	assert_int_equal(a->av.sgid_index, 0);
	assert_int_equal(a->av.traffic_class, 0x20);
	assert_int_equal(a->av.hop_limit, 3);
	assert_int_equal(a->av.sl, 5);
	assert_int_equal(a->av.flow_label, 6);
	assert_memory_equal(a->av.dgid, peer.gid.raw, 16); /* a zero dgid means the peer's */
	close_qp(&x);
}

static void test_refused_connects(void **state)
{
	struct fixture x = open_qp();
	static const struct uroce_qp_attr attr;
	struct uroce_endpoint local, l, r;
	assert_int_equal(uroce_qp_endpoint(x.qp, 0, &local), 0);
	assert_int_equal(uroce_qp_connect(x.qp, &peer, &local, NULL, 0), -EINVAL);
	assert_non_null(strstr(x.f->line, "swapped"));
	for (unsigned row = 0; row < 8; row++) {
		l = local;
		r = peer;
		if (row == 0)
			l.mtu = 1500;
		else if (row == 1)
			r.mtu = 0;
		else if (row == 2)
			memset(&r.gid, 0, sizeof(r.gid));
		else if (row == 3)
			r.qpn = 0;
		else if (row == 4)
			r.qpn = 0x1000000;
		else if (row == 5)
			l.psn = 0x1000000;
		else if (row == 6)
			r.psn = 0xffffffff;
		else
			l.gid.raw[15] = 99;
		assert_int_equal(uroce_qp_connect(x.qp, &l, &r, NULL, 0), row == 7 ? -EADDRNOTAVAIL : -EINVAL);
	}
	assert_int_equal(uroce_qp_connect(x.qp, &local, &peer, &attr, UROCE_QP_RQ_PSN), -EINVAL);
	assert_int_equal(uroce_qp_connect(x.qp, &local, &peer, &attr, UROCE_QP_STATE), -EINVAL);
	assert_int_equal(uroce_qp_connect(x.qp, &local, &peer, &attr, 1u << 31), -EINVAL);
	assert_int_equal(fake_count(x.f, ABI_MODIFY_QP), 0);
	close_qp(&x);
}

static void refuse_rtr(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->type == ABI_MODIFY_QP && req->modify_qp.attr.state == ABI_QP_RTR)
		rep->status = -ENETUNREACH;
}

static void test_connect_stops_at_a_refusal(void **state)
{
	struct fixture x = open_qp();
	struct uroce_send_wr send = { .opcode = UROCE_OP_SEND };
	struct uroce_recv_wr recv = { 0 };
	struct uroce_endpoint local;
	x.f->on_answered = refuse_rtr;
	assert_int_equal(uroce_qp_endpoint(x.qp, 0, &local), 0);
	assert_int_equal(uroce_qp_connect(x.qp, &local, &peer, NULL, 0), -ENETUNREACH);
	assert_int_equal(fake_count(x.f, ABI_MODIFY_QP), 2);
	assert_int_equal(uroce_post_recv(x.qp, &recv, 1), 1); /* it stays in INIT */
	assert_int_equal(uroce_post_send(x.qp, &send, 1), -EINVAL);
	/* and from there the same call may be tried again */
	x.f->on_answered = NULL;
	assert_int_equal(uroce_qp_connect(x.qp, &local, &peer, NULL, 0), 0);
	assert_int_equal(uroce_post_send(x.qp, &send, 1), 1);
	close_qp(&x);
}

/* What only the last step would refuse is refused before the first one: from RTR the call could not be repeated. */
static void test_connect_refuses_before_it_begins(void **state)
{
	struct fixture x = open_qp();
	struct uroce_endpoint local;
	static const struct { struct uroce_qp_attr attr; uint32_t mask; } rows[] = {
		{ { .timeout = 32 }, UROCE_QP_TIMEOUT }, { { .retry_cnt = 8 }, UROCE_QP_RETRY_CNT }, { { .rnr_retry = 8 }, UROCE_QP_RNR_RETRY },
		{ { .max_rd_atomic = 255 }, UROCE_QP_MAX_RD_ATOMIC },
	};
	assert_int_equal(uroce_qp_endpoint(x.qp, 0, &local), 0);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(uroce_qp_connect(x.qp, &local, &peer, &rows[i].attr, rows[i].mask), -EINVAL);
	assert_int_equal(fake_count(x.f, ABI_MODIFY_QP), 0);
	assert_int_equal(uroce_qp_connect(x.qp, &local, &peer, NULL, 0), 0);
	close_qp(&x);
}

/* ---- sentences ---- */

static void test_no_error_text_of_a_dead_engine(void **state)
{
	struct fixture x = open_qp();
	char text[8] = "garbage";
	x.f->is_dying = true;
	assert_int_equal(uroce_qp_error_text(x.qp, text, sizeof(text)), -ENODEV);
	assert_string_equal(text, "");
	x.f->is_dying = false;
	close_qp(&x);
}

static const uint8_t peer4[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 };
static const uint8_t peer6[16] = { [0] = 0xfe, [1] = 0x80, [15] = 9 };

static void test_error_text(void **state)
{
	static const struct {
		struct abi_qp_error e;
		const uint8_t *peer;
		const char *text;
	} rows[] = {
		{ { .cause = CAUSE_ACK_TIMEOUT,
			  .status = ABI_WC_RETRY_EXC_ERR,
			  .peer_qpn = 0x77,
			  .retries = 7,
			  .last_psn_sent = 0x10,
			  .last_psn_acked = 0x0c },
			peer4,
			"QP 0x1234: retry exceeded: no ACK from 10.0.0.2 QP 0x77 after 8 transmissions: "
			"last PSN sent 0x10, last acknowledged 0x0c" },
		{ { .cause = CAUSE_RNR,
			  .status = ABI_WC_RNR_RETRY_EXC_ERR,
			  .peer_qpn = 0xabcdef,
			  .rnr_retries = 2,
			  .retries = 9,
			  .last_psn_sent = 0xffffff,
			  .last_psn_acked = 0xfffffe },
			peer6,
			"QP 0x1234: RNR retry exceeded: fe80::9 QP 0xabcdef had no receive posted at any of 3 transmissions: "
			"last PSN sent 0xffffff, last acknowledged 0xfffffe" },
		{ { .cause = CAUSE_LOCAL_KEY, .status = ABI_WC_LOC_PROT_ERR }, peer4,
			"QP 0x1234: local protection error: an lkey is unknown or of another PD" },
		{ { .cause = CAUSE_PEER_REQUEST,
			  .status = ABI_WC_WR_FLUSH_ERR,
			  .peer_qpn = 1,
			  .last_psn_sent = 2,
			  .last_psn_acked = 1 },
			peer4, "QP 0x1234: 10.0.0.2 QP 0x1 sent an invalid request: last PSN sent 0x02, last acknowledged 0x01" },
		{ { .cause = 9999, .status = 200 }, peer4, "QP 0x1234: unknown status: unknown cause" },
		{ { .cause = CAUSE_NONE }, peer4, "QP 0x1234: moved to ERR by the program" },
	};
	struct fixture x = open_qp();
	char text[256], cut[10];
	x.f->qp[0].attr.state = ABI_QP_ERR;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int len = (int)strlen(rows[i].text);
		x.f->qp[0].error = rows[i].e;
		memcpy(x.f->qp[0].error.peer, rows[i].peer, 16);
		assert_int_equal(uroce_qp_error_text(x.qp, text, sizeof(text)), len);
		assert_string_equal(text, rows[i].text);
		/* cut as snprintf cuts */
		assert_int_equal(uroce_qp_error_text(x.qp, cut, sizeof(cut)), len);
		assert_memory_equal(cut, rows[i].text, 9);
		assert_int_equal(cut[9], 0);
		assert_int_equal(uroce_qp_error_text(x.qp, text, (size_t)len), len);
		assert_int_equal(strlen(text), len - 1);
		assert_int_equal(uroce_qp_error_text(x.qp, NULL, 0), len);
	}
	x.f->qp[0].attr.state = ABI_QP_RTS;
	assert_int_equal(uroce_qp_error_text(x.qp, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	x.f->call_error = -ENODEV;
	assert_int_equal(uroce_qp_error_text(x.qp, text, sizeof(text)), -ENODEV);
	x.f->call_error = 0;
	close_qp(&x);
}

/* Every cause has a text and a sentence without a word left unfilled. */
static void test_every_cause(void **state)
{
	struct fixture x = open_qp();
	char text[300];
	x.f->qp[0].attr.state = ABI_QP_ERR;
	for (uint32_t i = 0; i < CAUSE_COUNT; i++) {
		assert_string_not_equal(uroce_wc_cause_str(i), "unknown cause");
		x.f->qp[0].error = (struct abi_qp_error){ .cause = i,
			.status = ABI_WC_GENERAL_ERR,
			.peer_qpn = 0x77,
			.retries = 6,
			.rnr_retries = 6 };
		assert_in_range(uroce_qp_error_text(x.qp, text, sizeof(text)), 10, 299);
		assert_null(strchr(text, '{'));
		assert_null(strstr(text, "unknown cause"));
		for (uint32_t j = 0; j < i; j++)
			assert_string_not_equal(uroce_wc_cause_str(i), uroce_wc_cause_str(j));
	}
	assert_string_equal(uroce_wc_cause_str(CAUSE_COUNT), "unknown cause");
	close_qp(&x);
}

static void test_statuses(void **state)
{
	static const enum uroce_wc_status all[] = { UROCE_WC_SUCCESS, UROCE_WC_LOC_LEN_ERR, UROCE_WC_LOC_QP_OP_ERR,
		UROCE_WC_LOC_PROT_ERR, UROCE_WC_WR_FLUSH_ERR, UROCE_WC_MW_BIND_ERR, UROCE_WC_BAD_RESP_ERR,
		UROCE_WC_LOC_ACCESS_ERR, UROCE_WC_REM_INV_REQ_ERR, UROCE_WC_REM_ACCESS_ERR, UROCE_WC_REM_OP_ERR,
		UROCE_WC_RETRY_EXC_ERR, UROCE_WC_RNR_RETRY_EXC_ERR, UROCE_WC_FATAL_ERR, UROCE_WC_GENERAL_ERR };
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_string_not_equal(uroce_wc_status_str(all[i]), "unknown status");
	assert_string_equal(uroce_wc_status_str((enum uroce_wc_status)14), "unknown status");
	assert_string_equal(uroce_wc_status_str((enum uroce_wc_status)22), "unknown status");
	assert_string_equal(uroce_wc_status_str((enum uroce_wc_status)-1), "unknown status");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_qp_create),
		cmocka_unit_test(test_modify_and_query),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_endpoint),
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_connect_with_attributes),
		cmocka_unit_test(test_refused_connects),
		cmocka_unit_test(test_connect_stops_at_a_refusal),
		cmocka_unit_test(test_connect_refuses_before_it_begins),
		cmocka_unit_test(test_no_error_text_of_a_dead_engine),
		cmocka_unit_test(test_error_text),
		cmocka_unit_test(test_every_cause),
		cmocka_unit_test(test_statuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
