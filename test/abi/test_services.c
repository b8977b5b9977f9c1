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

static void test_create(void **state)
{
	for (unsigned service = UROCE_RC; service <= UROCE_UC; service++) {
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
	static const char *const taken[] = { /* SEND, SEND_IMM, WRITE, WRITE_IMM, READ, COMPARE_SWAP, FETCH_ADD */
		[UROCE_RC] = "yyyyyyy", [UROCE_UC] = "yyyy..."
	};
	static const struct uroce_sge word = { 0x1000, 8, 1 };
	for (unsigned service = UROCE_RC; service <= UROCE_UC; service++) {
		struct fixture x = open_service((enum uroce_service)service);
		set_state(x.qp, UROCE_QP_RTS);
		for (unsigned op = UROCE_OP_SEND; op <= UROCE_OP_FETCH_ADD; op++) {
			struct uroce_send_wr wr = { .opcode = (enum uroce_opcode)op, .sg_list = &word, .num_sge = 1 };
			x.f->lines = 0;
			assert_int_equal(uroce_post_send(x.qp, &wr, 1), taken[service][op] == 'y' ? 1 : -EINVAL);
			assert_int_equal(x.f->lines, taken[service][op] != 'y');
		}
		close_service(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_connect_uc),
		cmocka_unit_test(test_operations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
