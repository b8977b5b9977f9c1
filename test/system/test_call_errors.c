/* SPDX-License-Identifier: BSD-3-Clause */
/* The errors that uroce.h and the pages of doc/man name, one call each, in a process of its own engine. What only a daemon, a peer or a dying engine answers is in the tests of these.
 * Invariant: a refused call leaves everything as it was, so that all rows share one set of objects. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <uroce.h>

#define DEVICE "inline:net_ring,link=errors,side=0,ip=10.0.0.1/24"
#define RIGHTS (UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_MW_BIND)

static char plain[4096];

static struct {
	struct uroce_context *ctx, *other;
	struct uroce_device_attr device;
	struct uroce_pd *pd, *other_pd;
	struct uroce_mr *mr, *fast;
	struct uroce_mw *mw1, *mw2;
	struct uroce_channel *channel, *other_channel;
	struct uroce_cq *cq, *armable;
	struct uroce_srq *srq;
	struct uroce_qp *qp, *ud, *with_srq;
	struct uroce_endpoint self;
	char *pool;
} s;

static int set_up(void **state)
{
	struct uroce_srq_init srq_init = { .attr = { .max_wr = 4 } };
	struct uroce_qp_init init = { 0 };
	assert_int_equal(uroce_open(DEVICE, NULL, &s.ctx), 0);
	assert_int_equal(uroce_open(DEVICE, NULL, &s.other), 0);
	assert_int_equal(uroce_query_device(s.ctx, &s.device), 0);
	assert_int_equal(uroce_pd_create(s.ctx, &s.pd), 0);
	assert_int_equal(uroce_pd_create(s.other, &s.other_pd), 0);
	assert_int_equal(uroce_alloc(s.ctx, sizeof(plain), (void **)&s.pool), 0);
	assert_int_equal(uroce_mr_register(s.pd, s.pool, sizeof(plain), RIGHTS, &s.mr), 0);
	assert_int_equal(uroce_mr_alloc(s.pd, &s.fast), 0);
	assert_int_equal(uroce_mw_create(s.pd, UROCE_MW_TYPE_1, &s.mw1), 0);
	assert_int_equal(uroce_mw_create(s.pd, UROCE_MW_TYPE_2, &s.mw2), 0);
	assert_int_equal(uroce_channel_create(s.ctx, &s.channel), 0);
	assert_int_equal(uroce_channel_create(s.other, &s.other_channel), 0);
	assert_int_equal(uroce_cq_create(s.ctx, 64, NULL, NULL, &s.cq), 0);
	assert_int_equal(uroce_cq_create(s.ctx, 64, s.channel, NULL, &s.armable), 0);
	assert_int_equal(uroce_srq_create(s.pd, &srq_init, &s.srq), 0);
	init.send_cq = init.recv_cq = s.cq;
	assert_int_equal(uroce_qp_create(s.pd, &init, &s.qp), 0);
	init.srq = s.srq;
	assert_int_equal(uroce_qp_create(s.pd, &init, &s.with_srq), 0);
	init.srq = NULL;
	init.service = UROCE_UD;
	assert_int_equal(uroce_qp_create(s.pd, &init, &s.ud), 0);
	assert_int_equal(uroce_qp_endpoint(s.qp, 0, &s.self), 0);
	return 0;
}

static int tear_down(void **state)
{
	uroce_close(s.ctx);
	uroce_close(s.other);
	return 0;
}

static void test_device(void **state)
{
	struct uroce_context *ctx = NULL;
	struct uroce_gid gid;
	unsetenv("UROCE_DEVICE");
	assert_int_equal(uroce_open(NULL, NULL, &ctx), -EINVAL);
	assert_int_equal(uroce_open("", NULL, &ctx), -EINVAL);
	assert_int_equal(uroce_open("net_ring", NULL, &ctx), -EINVAL);
	assert_int_equal(uroce_open("inline:net_ring,link=a,side=7,ip=10.0.0.1/24", NULL, &ctx), -EINVAL);
	assert_int_equal(uroce_open("unix:/nowhere/uroce.sock", NULL, &ctx), -ENOENT);
	assert_int_equal(uroce_query_gid(s.ctx, s.device.gid_slots, &gid, NULL), -EINVAL);
	assert_null(ctx);
	uroce_close(NULL);
}

static void test_memory(void **state)
{
	struct uroce_mr *mr = NULL;
	struct uroce_mr_attr to = { .pd = s.other_pd, .access = 1u << 30 };
	struct uroce_mw *mw = NULL;
	void *p = NULL;
	assert_int_equal(uroce_pd_destroy(s.pd), -EBUSY);
	assert_int_equal(uroce_alloc(s.ctx, 0, &p), -EINVAL);
	assert_int_equal(uroce_free(s.ctx, s.pool + 1), -EINVAL);
	assert_int_equal(uroce_free(s.ctx, plain), -EINVAL);
	assert_int_equal(uroce_free(s.ctx, s.pool), -EBUSY);
	assert_int_equal(uroce_mr_register(s.pd, plain, 1, 1u << 30, &mr), -EINVAL);
	assert_int_equal(uroce_mr_register(s.pd, plain, 1, UROCE_ACCESS_REMOTE_WRITE, &mr), -EINVAL);
	assert_int_equal(uroce_mr_register(s.pd, plain, 1, UROCE_ACCESS_REMOTE_ATOMIC, &mr), -EINVAL);
	assert_int_equal(uroce_mr_register(s.pd, plain, SIZE_MAX, 0, &mr), -EINVAL);
	assert_int_equal(uroce_mr_register(s.pd, s.pool, (size_t)1 << 40, 0, &mr), -EINVAL);
	assert_int_equal(uroce_mr_register_iova(s.pd, plain, 2, UINT64_MAX, 0, &mr), -EINVAL);
	assert_int_equal(uroce_mr_register(s.pd, plain, 1, UROCE_ACCESS_FLUSH_PERSISTENT, &mr), -EOPNOTSUPP);
	assert_int_equal(uroce_mr_reregister(s.mr, &to, 0), -EINVAL);
	assert_int_equal(uroce_mr_reregister(s.mr, &to, UROCE_MR_PD), -EINVAL);
	assert_int_equal(uroce_mr_reregister(s.mr, &to, UROCE_MR_ACCESS), -EINVAL);
	to.access = UROCE_ACCESS_REMOTE_READ;
	assert_int_equal(uroce_mr_reregister(s.fast, &to, UROCE_MR_ACCESS), -EINVAL);
	assert_int_equal(uroce_mw_create(s.pd, (enum uroce_mw_type)3, &mw), -EINVAL);
	assert_null(mr);
	assert_null(mw);
	assert_null(p);
}

static void test_completion(void **state)
{
	struct uroce_cq *cq = NULL, *fired = NULL;
	struct uroce_async_event event;
	assert_int_equal(uroce_cq_create(s.ctx, 0, NULL, NULL, &cq), -EINVAL);
	assert_int_equal(uroce_cq_create(s.ctx, s.device.max_cqe + 1, NULL, NULL, &cq), -EINVAL);
	assert_int_equal(uroce_cq_create(s.ctx, 1, s.other_channel, NULL, &cq), -EINVAL);
	assert_int_equal(uroce_cq_resize(s.cq, 0), -EINVAL);
	assert_int_equal(uroce_cq_resize(s.cq, s.device.max_cqe + 1), -EINVAL);
	assert_int_equal(uroce_cq_arm(s.cq, false), -EINVAL);
	assert_int_equal(uroce_cq_moderate(s.cq, 2, 1), -EINVAL);
	assert_int_equal(uroce_cq_moderate(s.armable, 2, 0), -EINVAL);
	assert_int_equal(uroce_cq_moderate(s.armable, 65536, 1), -EINVAL);
	assert_int_equal(uroce_cq_moderate(s.armable, 2, 65536), -EINVAL);
	assert_int_equal(uroce_cq_moderate(s.armable, 65535, 65535), 0);
	assert_int_equal(uroce_cq_moderate(s.armable, 0, 0), 0);
	assert_int_equal(uroce_cq_destroy(s.cq), -EBUSY);
	assert_int_equal(uroce_channel_destroy(s.channel), -EBUSY);
	fcntl(uroce_channel_fd(s.channel), F_SETFL, O_NONBLOCK);
	fcntl(uroce_async_fd(s.ctx), F_SETFL, O_NONBLOCK);
	assert_int_equal(uroce_channel_get_event(s.channel, &fired), -EAGAIN);
	assert_int_equal(uroce_async_get_event(s.ctx, &event), -EAGAIN);
	assert_null(cq);
	assert_string_equal(uroce_wc_status_str((enum uroce_wc_status)99), "unknown status");
	assert_string_equal(uroce_wc_cause_str(UINT32_MAX), "unknown cause");
	assert_null(uroce_qp_counter_name(1000));
}

static void test_queues(void **state)
{
	struct uroce_srq_init srq_init = { .attr = { .max_wr = s.device.max_qp_wr + 1 } };
	struct uroce_srq_attr attr = { .max_wr = 4, .limit = 100000 };
	struct uroce_srq *srq = NULL;
	struct uroce_qp_init init = { .send_cq = s.cq };
	struct uroce_qp *qp = NULL;
	assert_int_equal(uroce_srq_create(s.pd, &srq_init, &srq), -EINVAL);
	srq_init.attr = (struct uroce_srq_attr){ .max_sge = s.device.max_sge + 1 };
	assert_int_equal(uroce_srq_create(s.pd, &srq_init, &srq), -EINVAL);
	srq_init.attr = (struct uroce_srq_attr){ .max_wr = 4, .limit = 5 };
	assert_int_equal(uroce_srq_create(s.pd, &srq_init, &srq), -EINVAL);
	assert_int_equal(uroce_srq_modify(s.srq, &attr, 0), -EINVAL);
	assert_int_equal(uroce_srq_modify(s.srq, &attr, UROCE_SRQ_LIMIT), -EINVAL);
	assert_int_equal(uroce_srq_destroy(s.srq), -EBUSY);
	assert_int_equal(uroce_qp_create(s.pd, &init, &qp), -EINVAL);
	init.recv_cq = s.cq;
	assert_int_equal(uroce_qp_create(s.other_pd, &init, &qp), -EINVAL);
	init.service = (enum uroce_service)7;
	assert_int_equal(uroce_qp_create(s.pd, &init, &qp), -EINVAL);
	init = (struct uroce_qp_init){ .send_cq = s.cq, .recv_cq = s.cq, .cap = { .max_send_wr = s.device.max_qp_wr + 1 } };
	assert_int_equal(uroce_qp_create(s.pd, &init, &qp), -EINVAL);
	init.cap = (struct uroce_qp_cap){ .max_inline = s.device.max_inline + 1 };
	assert_int_equal(uroce_qp_create(s.pd, &init, &qp), -EINVAL);
	assert_null(srq);
	assert_null(qp);
}

static void test_states(void **state)
{
	struct uroce_qp_attr attr = { .state = UROCE_QP_RTS, .cur_state = UROCE_QP_ERR, .path_mtu = 1000, .port_num = 2 };
	struct uroce_endpoint wrong = s.self, own;
	char text[8] = "before";
	assert_int_equal(uroce_qp_modify(s.qp, &attr, UROCE_QP_STATE), -EINVAL);
	assert_int_equal(uroce_qp_modify(s.qp, &attr, UROCE_QP_STATE | UROCE_QP_PATH_MTU), -EINVAL);
	attr.state = UROCE_QP_INIT;
	assert_int_equal(uroce_qp_modify(s.qp, &attr, UROCE_QP_STATE), -EINVAL);
	assert_int_equal(uroce_qp_modify(s.qp, &attr, UROCE_QP_STATE | UROCE_QP_PORT | UROCE_QP_PKEY_INDEX | UROCE_QP_ACCESS_FLAGS), -EINVAL);
	attr.state = UROCE_QP_ERR;
	assert_int_equal(uroce_qp_modify(s.qp, &attr, UROCE_QP_STATE | UROCE_QP_CUR_STATE), -EINVAL);
	assert_int_equal(uroce_qp_endpoint(s.qp, s.device.gid_slots, &own), -EINVAL);
	assert_int_equal(uroce_qp_connect(s.qp, &s.self, NULL, NULL, 0), -EINVAL);
	assert_int_equal(uroce_qp_connect(s.qp, &s.self, &s.self, &attr, UROCE_QP_STATE), -EINVAL);
	wrong.qpn++;
	assert_int_equal(uroce_qp_connect(s.qp, &wrong, &s.self, NULL, 0), -EINVAL);
	wrong = s.self;
	wrong.gid.raw[15] ^= 0x40;
	assert_int_equal(uroce_qp_connect(s.qp, &wrong, &s.self, NULL, 0), -EADDRNOTAVAIL);
	wrong.gid.raw[12] = 99; /* in no network of ours, and there is no gateway */
	assert_int_equal(uroce_qp_connect(s.qp, &s.self, &wrong, NULL, 0), -ENETUNREACH);
	assert_int_equal(uroce_qp_error_text(s.qp, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_true(uroce_qp_counters(s.qp, NULL, 0) > 0);
}

static void test_datagrams(void **state)
{
	struct uroce_gid group = { .raw = { [10] = 0xff, 0xff, 239, 0, 0, 1 } };
	struct uroce_av av = { .dgid = s.self.gid, .sgid_index = 99 };
	struct uroce_wc wc = { .flags = 0 };
	struct uroce_ah *ah = NULL;
	uint8_t grh[40] = { 0 };
	assert_int_equal(uroce_ah_create(s.pd, &av, &ah), -EINVAL);
	av.sgid_index = 0;
	av.dgid = (struct uroce_gid){ .raw = { 0xfd, [15] = 1 } };
	assert_int_equal(uroce_ah_create(s.pd, &av, &ah), -EINVAL);
	av.dgid = (struct uroce_gid){ .raw = { [10] = 0xff, 0xff, 99, 0, 0, 1 } };
	assert_int_equal(uroce_ah_create(s.pd, &av, &ah), -ENETUNREACH);
	assert_int_equal(uroce_av_from_wc(s.ctx, &wc, grh, &av), -EINVAL);
	wc.flags = UROCE_WC_HAS_GRH;
	assert_int_equal(uroce_av_from_wc(s.ctx, &wc, grh, &av), -EINVAL);
	grh[20] = 0x45;
	wc.vlan = 0xffff;
	assert_int_equal(uroce_av_from_wc(s.ctx, &wc, grh, &av), -EADDRNOTAVAIL);
	assert_int_equal(uroce_qp_attach_multicast(s.qp, &group), -EINVAL);
	assert_int_equal(uroce_qp_attach_multicast(s.ud, &s.self.gid), -EINVAL);
	assert_int_equal(uroce_qp_detach_multicast(s.ud, &group), -EINVAL);
	assert_null(ah);
}

static int post(struct uroce_qp *qp, struct uroce_send_wr wr)
{
	return uroce_post_send(qp, &wr, 1);
}

static void test_posts(void **state)
{
	struct uroce_sge sge[64] = { { (uintptr_t)s.pool, 4, uroce_mr_lkey(s.mr) } };
	struct uroce_recv_wr recv = { .sg_list = sge, .num_sge = 64 };
	struct uroce_bind to = { 0 };
	struct uroce_qp_attr attr = { .port_num = 1 };
	assert_int_equal(uroce_post_recv(s.qp, &recv, 1), -EINVAL);      /* RESET */
	assert_int_equal(uroce_post_srq_recv(s.srq, &recv, 1), -EINVAL); /* SGEs */
	assert_int_equal(post(s.qp, (struct uroce_send_wr){ .opcode = UROCE_OP_SEND }), -EINVAL);
	assert_int_equal(uroce_mw_bind(s.qp, s.mw2, &to, 0, 0), -EINVAL);

	assert_int_equal(uroce_qp_connect(s.qp, &s.self, &s.self, &attr, UROCE_QP_PORT), 0);
	assert_int_equal(uroce_post_recv(s.qp, &recv, 1), -EINVAL); /* SGEs */
	assert_int_equal(post(s.qp, (struct uroce_send_wr){ .opcode = (enum uroce_opcode)99 }), -EINVAL);
	assert_int_equal(post(s.qp, (struct uroce_send_wr){ .flags = 1u << 20 }), -EINVAL);
	assert_int_equal(post(s.qp, (struct uroce_send_wr){ .sg_list = sge, .num_sge = 64 }), -EINVAL);
	assert_int_equal(post(s.qp, (struct uroce_send_wr){ .opcode = UROCE_OP_READ, .flags = UROCE_SEND_INLINE }), -EINVAL);
	assert_int_equal(post(s.qp, (struct uroce_send_wr){ .opcode = UROCE_OP_FETCH_ADD, .sg_list = sge, .num_sge = 1 }), -EINVAL); /* of 4 bytes */
	sge[0].len = 8;
	assert_int_equal(post(s.qp, (struct uroce_send_wr){ .opcode = UROCE_OP_FETCH_ADD, .sg_list = sge, .num_sge = 1, .remote_addr = 4 }), -EINVAL);
	assert_int_equal(post(s.qp, (struct uroce_send_wr){ .opcode = UROCE_OP_FLUSH }), -EINVAL); /* for nothing */
	sge[0].len = 4096;
	assert_int_equal(post(s.qp, (struct uroce_send_wr){ .flags = UROCE_SEND_INLINE, .sg_list = sge, .num_sge = 1 }), -EINVAL);
	assert_int_equal(post(s.qp, (struct uroce_send_wr){ .opcode = UROCE_OP_BIND_MW }), -EINVAL);
	assert_int_equal(uroce_post_send(s.qp, NULL, 0), 0);

	recv.num_sge = 0;
	assert_int_equal(uroce_post_recv(s.with_srq, &recv, 1), -EINVAL);
	while (uroce_post_recv(s.qp, &recv, 1) == 1)
		;
	assert_int_equal(uroce_post_recv(s.qp, &recv, 1), -ENOMEM);
	while (uroce_post_srq_recv(s.srq, &recv, 1) == 1)
		;
	assert_int_equal(uroce_post_srq_recv(s.srq, &recv, 1), -ENOMEM);
	while (post(s.qp, (struct uroce_send_wr){ .opcode = UROCE_OP_WRITE }) == 1) /* nobody drives the engine */
		;
	assert_int_equal(post(s.qp, (struct uroce_send_wr){ .opcode = UROCE_OP_WRITE }), -ENOMEM);
}

static void test_datagram_posts(void **state)
{
	struct uroce_endpoint own;
	assert_int_equal(uroce_qp_endpoint(s.ud, 0, &own), 0);
	assert_int_equal(uroce_qp_connect(s.ud, &own, NULL, NULL, 0), 0);
	assert_int_equal(post(s.ud, (struct uroce_send_wr){ .opcode = UROCE_OP_SEND }), -EINVAL);
	assert_int_equal(post(s.ud, (struct uroce_send_wr){ .opcode = UROCE_OP_WRITE }), -EINVAL);
}

static void test_nothing_to_destroy(void **state)
{
	assert_int_equal(uroce_pd_destroy(NULL), 0);
	assert_int_equal(uroce_free(s.ctx, NULL), 0);
	assert_int_equal(uroce_mr_deregister(NULL), 0);
	assert_int_equal(uroce_mw_destroy(NULL), 0);
	assert_int_equal(uroce_channel_destroy(NULL), 0);
	assert_int_equal(uroce_cq_destroy(NULL), 0);
	assert_int_equal(uroce_srq_destroy(NULL), 0);
	assert_int_equal(uroce_qp_destroy(NULL), 0);
	assert_int_equal(uroce_ah_destroy(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_completion),
		cmocka_unit_test(test_queues),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_posts),
		cmocka_unit_test(test_datagram_posts),
		cmocka_unit_test(test_nothing_to_destroy),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
