/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains: each way in which a WR, a peer or an object can name what is of another PD, on a real core, and what comes of it. Nothing of the foreign memory is read or written. IBA vol. 1, 10.2.3, C10-72. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "direct_session.h"
#include "gid.h"
#include "uroce.h"

enum { BYTES = 4096 };
#define ALL ((uint32_t)UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC | UROCE_ACCESS_MW_BIND)

struct world {
	uint64_t now_ns;
	struct core *core;
	struct uroce_context *ctx;
	struct uroce_pd *pd, *foreign_pd;
	struct uroce_cq *send_cq, *recv_cq;
	struct uroce_qp *qp[2];
	struct uroce_srq *srq;       /* of qp[1], when there is one; of foreign_pd */
	struct uroce_mr *mr, *foreign;
	struct uroce_mw *mw, *foreign_mw, *mw_1, *foreign_mw_1;
	struct uroce_ah *foreign_ah;
	uint8_t *own, *other;        /* memory of mr, of foreign */
};

static void open_objects(struct world *w)
{
	struct uroce_av av = { 0 };
	void *own, *other;
	assert_int_equal(uroce_pd_create(w->ctx, &w->pd), 0);
	assert_int_equal(uroce_pd_create(w->ctx, &w->foreign_pd), 0);
	assert_int_equal(uroce_cq_create(w->ctx, 16, NULL, NULL, &w->send_cq), 0);
	assert_int_equal(uroce_cq_create(w->ctx, 16, NULL, NULL, &w->recv_cq), 0);
	assert_int_equal(uroce_alloc(w->ctx, BYTES, &own), 0);
	assert_int_equal(uroce_alloc(w->ctx, BYTES, &other), 0);
	w->own = own;
	w->other = other;
	memset(own, 0x11, BYTES);
	memset(other, 0x22, BYTES);
	assert_int_equal(uroce_mr_register(w->pd, own, BYTES, ALL, &w->mr), 0);
	assert_int_equal(uroce_mr_register(w->foreign_pd, other, BYTES, ALL, &w->foreign), 0);
	assert_int_equal(uroce_mw_create(w->pd, UROCE_MW_TYPE_2, &w->mw), 0);
	assert_int_equal(uroce_mw_create(w->foreign_pd, UROCE_MW_TYPE_2, &w->foreign_mw), 0);
	assert_int_equal(uroce_mw_create(w->pd, UROCE_MW_TYPE_1, &w->mw_1), 0);
	assert_int_equal(uroce_mw_create(w->foreign_pd, UROCE_MW_TYPE_1, &w->foreign_mw_1), 0);
	assert_int_equal(uroce_query_gid(w->ctx, 0, &av.dgid, NULL), 0);
	assert_int_equal(uroce_ah_create(w->foreign_pd, &av, &w->foreign_ah), 0);
}

static void open_world(struct world *w, enum uroce_service service, bool has_srq)
{
	static const struct log quiet = { .level = LOG_ERROR };
	static const struct uroce_open_attr attr = { .log_level = 1 };
	struct core_config config = { .name = "domains", .max_frame = 4300, .addr = { .mac = { 2, 0, 0, 0, 0, 1 } }, .hooks = &direct_hooks, .log = &quiet };
	struct uroce_endpoint e[2];
	struct gid gid;
	uint32_t index;
	*w = (struct world){ .now_ns = 1000000 };
	assert_int_equal(core_new(&w->core, &config, w->now_ns), 0);
	assert_int_equal(gid_parse("10.0.0.1", &gid), 0);
	assert_int_equal(addr_gid_add(core_addr(w->core), &gid, 0xffff, 24, &index), 0);
	assert_int_equal(direct_session_open(w->core, &w->now_ns, &attr, &w->ctx), 0);
	open_objects(w);
	if (has_srq)
		assert_int_equal(uroce_srq_create(w->foreign_pd, &(struct uroce_srq_init){ .attr = { 4, 1, 0 } }, &w->srq), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct uroce_qp_init init = { .service = service, .send_cq = w->send_cq, .recv_cq = w->recv_cq, .cap = { 8, 8, 1, 1, 0 }, .srq = i ? w->srq : NULL };
		assert_int_equal(uroce_qp_create(w->pd, &init, &w->qp[i]), 0);
		assert_int_equal(uroce_qp_endpoint(w->qp[i], 0, &e[i]), 0);
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(uroce_qp_connect(w->qp[i], &e[i], &e[!i], NULL, 0), 0);
}

static void close_world(struct world *w)
{
	for (unsigned i = 0; i < BYTES; i++)
		assert_int_equal(w->other[i], 0x22);
	uroce_close(w->ctx);
	core_free(w->core);
}

/* The next completion of a CQ; status -1: none comes. */
static int await(struct world *w, struct uroce_cq *cq)
{
	struct core_frame none;
	struct uroce_wc wc;
	for (unsigned i = 0; i < 100; i++, w->now_ns += 1000) {
		if (uroce_cq_poll(cq, &wc, 1) == 1)
			return (int)wc.status;
		core_run(w->core, w->now_ns);
		core_scan(w->core);
		core_tx(w->core, w->now_ns, &none, 0);
	}
	return -1;
}

/* One WR of qp[0]: which of its two keys is foreign, or both are its own. */
static void check_keys(enum uroce_opcode op, bool is_foreign_lkey, bool is_foreign_rkey, int status)
{
	struct world w;
	open_world(&w, UROCE_RC, false);
	struct uroce_sge sge = { (uintptr_t)(is_foreign_lkey ? w.other : w.own), 8, uroce_mr_lkey(is_foreign_lkey ? w.foreign : w.mr) };
	struct uroce_send_wr wr = { .opcode = op, .flags = UROCE_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1, .remote_addr = (uintptr_t)(is_foreign_rkey ? w.other : w.own) + 64,
		.rkey = uroce_mr_rkey(is_foreign_rkey ? w.foreign : w.mr), .compare_add = 1 };
	assert_int_equal(uroce_post_recv(w.qp[1], &(struct uroce_recv_wr){ .sg_list = &(struct uroce_sge){ (uintptr_t)w.own + 128, 64, uroce_mr_lkey(w.mr) }, .num_sge = 1 }, 1), 1);
	assert_int_equal(uroce_post_send(w.qp[0], &wr, 1), 1);
	assert_int_equal(await(&w, w.send_cq), status);
	close_world(&w);
}

/* known-bugs: 35 V9 */
static void test_keys_of_send_wrs(void **state)
{
	static const enum uroce_opcode ops[] = { UROCE_OP_SEND, UROCE_OP_WRITE, UROCE_OP_READ, UROCE_OP_FETCH_ADD, UROCE_OP_COMPARE_SWAP };
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		check_keys(ops[i], false, false, UROCE_WC_SUCCESS);
		check_keys(ops[i], true, false, UROCE_WC_LOC_PROT_ERR);
		if (ops[i] != UROCE_OP_SEND)
			check_keys(ops[i], false, true, UROCE_WC_REM_ACCESS_ERR);
	}
}

/* Into an RQ's and an SRQ's WR: the keys are those of the PD of the queue, for an SRQ not those of the QP. */
/* known-bugs: 35 */
static void test_keys_of_receives(void **state)
{
	for (unsigned has_srq = 0; has_srq < 2; has_srq++)
		for (unsigned is_wrong = 0; is_wrong < 2; is_wrong++) {
			struct world w;
			open_world(&w, UROCE_RC, has_srq);
			bool is_foreign = has_srq != is_wrong;
			struct uroce_sge into = { (uintptr_t)(is_foreign ? w.other : w.own), 64, uroce_mr_lkey(is_foreign ? w.foreign : w.mr) }, from = { (uintptr_t)w.own + 64, 8, uroce_mr_lkey(w.mr) };
			struct uroce_recv_wr recv = { .sg_list = &into, .num_sge = 1 };
			memset(w.own + 64, 0x22, 8);
			assert_int_equal(has_srq ? uroce_post_srq_recv(w.srq, &recv, 1) : uroce_post_recv(w.qp[1], &recv, 1), 1);
			assert_int_equal(uroce_post_send(w.qp[0], &(struct uroce_send_wr){ .opcode = UROCE_OP_SEND, .flags = UROCE_SEND_SIGNALED, .sg_list = &from, .num_sge = 1 }, 1), 1);
			assert_int_equal(await(&w, w.send_cq), is_wrong ? UROCE_WC_REM_OP_ERR : UROCE_WC_SUCCESS);
			assert_int_equal(await(&w, w.recv_cq), is_wrong ? UROCE_WC_LOC_PROT_ERR : UROCE_WC_SUCCESS);
			close_world(&w);
		}
}

/* QP, window and MR of a bind: any of the two last of another PD. */
/* known-bugs: 35 */
static void test_binds(void **state)
{
	for (unsigned type = 1; type <= 2; type++)
		for (unsigned foreign = 0; foreign < 4; foreign++) {
			struct world w;
			bool is_window = foreign & 1, is_memory = foreign & 2;
			open_world(&w, UROCE_RC, false);
			struct uroce_bind to = { .addr = (uintptr_t)(is_memory ? w.other : w.own), .len = 64, .lkey = uroce_mr_lkey(is_memory ? w.foreign : w.mr), .access = UROCE_ACCESS_REMOTE_WRITE };
			struct uroce_send_wr wr = { .opcode = UROCE_OP_BIND_MW, .flags = UROCE_SEND_SIGNALED, .rkey = uroce_mw_rkey(is_window ? w.foreign_mw : w.mw), .bind = &to };
			if (type == 1)
				assert_int_equal(uroce_mw_bind(w.qp[0], is_window ? w.foreign_mw_1 : w.mw_1, &to, 0, UROCE_SEND_SIGNALED), 0);
			else
				assert_int_equal(uroce_post_send(w.qp[0], &wr, 1), 1);
			assert_int_equal(await(&w, w.send_cq), foreign ? UROCE_WC_MW_BIND_ERR : UROCE_WC_SUCCESS);
			close_world(&w);
		}
}

/* known-bugs: 35 */
static void test_ah(void **state)
{
	struct world w;
	open_world(&w, UROCE_UD, false);
	struct uroce_send_wr wr = { .opcode = UROCE_OP_SEND, .flags = UROCE_SEND_SIGNALED, .ah = w.foreign_ah, .remote_qpn = uroce_qp_num(w.qp[1]) };
	assert_int_equal(uroce_post_send(w.qp[0], &wr, 1), 1);
	assert_int_equal(await(&w, w.send_cq), UROCE_WC_LOC_QP_OP_ERR);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_of_send_wrs),
		cmocka_unit_test(test_keys_of_receives),
		cmocka_unit_test(test_binds),
		cmocka_unit_test(test_ah),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
