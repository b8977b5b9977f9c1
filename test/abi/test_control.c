/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow path: what the client asks the engine for, in which order objects may go, and what it makes of answers that
 * are wrong. Queue pairs: test_qp_client.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- opening ---- */

static void test_device(void **state)
{
	struct uroce_device_attr d;
	struct uroce_gid gid;
	struct uroce_context *ctx;
	struct fake_engine *f = fake_open(&ctx);
	uint16_t vlan;
	assert_int_equal(uroce_query_device(ctx, &d), 0);
	assert_string_equal(d.name, "fake0");
	assert_int_equal(d.active_mtu, 1024);
	assert_int_equal(d.mode, 1);
	assert_true(d.port_up);
	assert_int_equal(d.max_msg_bytes, UINT64_C(1) << 31);
	assert_int_equal(d.max_inline, 256);
	assert_int_equal(uroce_query_gid(ctx, 0, &gid, NULL), 0);
	assert_int_equal(gid.raw[12], 10);
	assert_int_equal(uroce_query_gid(ctx, 2, &gid, &vlan), 0);
	assert_int_equal(vlan, 7);
	assert_int_equal(uroce_query_gid(ctx, 1, &gid, &vlan), -ENOENT);
	assert_int_equal(uroce_query_gid(ctx, 3, &gid, &vlan), -EINVAL);
	assert_string_equal(f->line, "GID index 3, the table has 3"); /* the engine's own words */
	assert_int_equal(uroce_engine_poll(ctx), 1);
	assert_int_equal(uroce_async_fd(ctx), f->async[0]);
	uroce_close(ctx);
	assert_int_equal(f->closes, 1);
	fake_free(f);
	uroce_close(NULL);
}

static void test_engine_poll_needs_inline(void **state)
{
	struct session_ops ops = fake_session_ops;
	struct fake_engine *f = fake_new();
	struct uroce_context *ctx;
	ops.poll = NULL;
	assert_int_equal(context_open(&ops, f, NULL, &ctx), 0);
	assert_int_equal(uroce_engine_poll(ctx), -EOPNOTSUPP);
	uroce_close(ctx);
	fake_free(f);
}

/* A session that was handed over is closed whatever happens. */
static void test_failed_open_closes_the_session(void **state)
{
	struct fake_engine *f = fake_new();
	struct uroce_open_attr attr = fake_open_attr(f);
	struct uroce_context *ctx;
	f->call_error = -ENODEV;
	assert_int_equal(context_open(&fake_session_ops, f, &attr, &ctx), -ENODEV);
	assert_int_equal(f->closes, 1);
	fake_free(f);
}

static void test_device_strings(void **state)
{
	struct fake_engine *f = fake_new();
	struct uroce_open_attr attr = fake_open_attr(f);
	struct uroce_context *ctx;
	unsetenv("UROCE_DEVICE");
	assert_int_equal(uroce_open(NULL, &attr, &ctx), -EINVAL);
	assert_non_null(strstr(f->line, "UROCE_DEVICE=unix:"));
	assert_int_equal(uroce_open("", &attr, &ctx), -EINVAL);
	assert_int_equal(uroce_open("eth0", &attr, &ctx), -EINVAL);
	assert_non_null(strstr(f->line, "\"eth0\""));
	assert_non_null(strstr(f->line, "embedded:"));
	setenv("UROCE_DEVICE", "unix:/nonexistent/uroced", 1);
	assert_int_equal(uroce_open(NULL, &attr, &ctx), -ENOENT);
	assert_non_null(strstr(f->line, "unix:/nonexistent/uroced"));
	unsetenv("UROCE_DEVICE");
	setenv("UROCE_ENGINE_LIBRARY", "/nonexistent/engine.so", 1);
	assert_int_equal(uroce_open("embedded:net_ring0", &attr, &ctx), -ENOENT);
	assert_non_null(strstr(f->line, "/nonexistent/engine.so"));
	/* a library that is none of ours */
	setenv("UROCE_ENGINE_LIBRARY", "libm.so.6", 1);
	assert_int_equal(uroce_open("inline:net_ring0", &attr, &ctx), -ENOENT);
	assert_non_null(strstr(f->line, UROCE_ENGINE_SESSION_OPEN));
	unsetenv("UROCE_ENGINE_LIBRARY");
	fake_free(f);
}

static void test_log_levels(void **state)
{
	struct fake_engine *f = fake_new();
	struct uroce_open_attr attr = fake_open_attr(f);
	struct uroce_context *ctx;
	attr.log_level = 1; /* errors only */
	assert_int_equal(context_open(&fake_session_ops, f, &attr, &ctx), 0);
	assert_int_equal(uroce_free(ctx, f), -EINVAL);
	assert_int_equal(f->lines, 0);
	uroce_close(ctx);
	attr.log_level = 0;
	setenv("UROCE_LOG", "loud", 1);
	assert_int_equal(context_open(&fake_session_ops, f, &attr, &ctx), 0);
	assert_int_equal(f->lines, 1);
	assert_non_null(strstr(f->line, "\"loud\""));
	assert_int_equal(uroce_free(ctx, f), -EINVAL);
	assert_int_equal(f->lines, 2); /* a warning is above the default */
	uroce_close(ctx);
	setenv("UROCE_LOG", "error", 1);
	assert_int_equal(context_open(&fake_session_ops, f, &attr, &ctx), 0);
	assert_int_equal(uroce_free(ctx, f), -EINVAL);
	assert_int_equal(f->lines, 2);
	uroce_close(ctx);
	unsetenv("UROCE_LOG");
	fake_free(f);
}

/* ---- answers that are wrong ---- */

static void answer_other_sequence(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	rep->sequence++;
}

static void answer_other_type(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	rep->type++;
}

static void answer_status(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	rep->status = -ENOSPC;
	memset(rep->text, 'x', sizeof(rep->text)); /* without an end */
}

static void answer_far_arena(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->type == ABI_CREATE_CQ)
		rep->cq.ring.arena = 9;
}

static void answer_outside(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->type == ABI_CREATE_CQ)
		rep->cq.ring.slots_offset = UINT64_MAX & ~UINT64_C(63);
}

static void answer_odd_slots(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->type == ABI_CREATE_CQ)
		rep->cq.ring.slots = 12;
}

static void answer_few_slots(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->type == ABI_CREATE_CQ)
		rep->cq.ring.slots = 4;
}

static void answer_misaligned(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->type == ABI_CREATE_CQ)
		rep->cq.ring.control_offset += 4;
}

static void test_wrong_answers(void **state)
{
	static const struct {
		void (*answer)(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep);
		int err;
		bool is_undone;
	} rows[] = {
		{ answer_other_sequence, -EPROTO, false },
		{ answer_other_type, -EPROTO, false },
		{ answer_status, -ENOSPC, false },
		{ answer_far_arena, -ENOENT, true },
		{ answer_outside, -EPROTO, true },
		{ answer_odd_slots, -EPROTO, true },
		{ answer_few_slots, -EPROTO, true },
		{ answer_misaligned, -EPROTO, true },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct uroce_context *ctx;
		struct fake_engine *f = fake_open(&ctx);
		struct uroce_cq *cq;
		f->on_answered = rows[i].answer;
		assert_int_equal(uroce_cq_create(ctx, 8, NULL, NULL, &cq), rows[i].err);
		assert_int_equal(fake_count(f, ABI_DESTROY_CQ), rows[i].is_undone);
		uroce_close(ctx);
		fake_free(f);
	}
}

static void grant_less(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->type == ABI_CREATE_QP)
		rep->qp.cap.max_inline = 3;
}

static void grant_narrow_slots(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->type == ABI_CREATE_QP)
		rep->qp.cap.max_send_sge = 8;
}

static void grant_far_doorbell(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->type == ABI_CREATE_QP)
		rep->qp.doorbell = ABI_DOORBELLS;
}

static void test_wrong_grants(void **state)
{
	void (*const rows[])(struct fake_engine *, const struct abi_req *, struct abi_rep *) = { grant_less, grant_narrow_slots,
		grant_far_doorbell };
	for (unsigned i = 0; i < 3; i++) {
		struct fixture x = open_qp();
		struct uroce_qp_init init = { .send_cq = x.cq, .recv_cq = x.cq, .cap.max_inline = 20 };
		struct uroce_qp *qp;
		x.f->on_answered = rows[i];
		assert_int_equal(uroce_qp_create(x.pd, &init, &qp), -EPROTO);
		assert_int_equal(fake_count(x.f, ABI_DESTROY_QP), 1);
		close_qp(&x);
	}
}

/* ---- memory ---- */

static void test_memory(void **state)
{
	struct fixture x = open_qp();
	static uint8_t own[256];
	struct uroce_mr *mr[3];
	void *a, *b;
	const struct abi_req *req;
	assert_int_equal(uroce_alloc(x.ctx, 0, &a), -EINVAL);
	assert_int_equal(uroce_alloc(x.ctx, 5000, &a), 0);
	assert_int_equal(uroce_alloc(x.ctx, 100, &b), 0);
	assert_int_equal((uintptr_t)a % 4096, 0);
	memset(a, 1, 8192);
	/* pool memory goes by handle and offset */
	assert_int_equal(uroce_mr_register(x.pd, (uint8_t *)a + 16, 8192 - 16, UROCE_ACCESS_LOCAL_WRITE, &mr[0]), 0);
	req = fake_last(x.f, ABI_REG_MR);
	assert_true(req->reg_mr.memory != 0);
	assert_int_equal(req->reg_mr.addr, 16);
	assert_int_equal(req->reg_mr.len, 8192 - 16);
	assert_int_equal(req->reg_mr.iova, (uintptr_t)a + 16);
	assert_int_equal(req->reg_mr.access, UROCE_ACCESS_LOCAL_WRITE);
	assert_true(uroce_mr_lkey(mr[0]) > 0x1000 && uroce_mr_rkey(mr[0]) == uroce_mr_lkey(mr[0]) + 0x1000);
	/* the program's own memory goes by address */
	assert_int_equal(uroce_mr_register_iova(x.pd, own, sizeof(own), 0x7000, 0, &mr[1]), 0);
	req = fake_last(x.f, ABI_REG_MR);
	assert_int_equal(req->reg_mr.memory, 0);
	assert_int_equal(req->reg_mr.addr, (uintptr_t)own);
	assert_int_equal(req->reg_mr.iova, 0x7000);
	/* out of the block, and over the end of everything */
	assert_int_equal(uroce_mr_register(x.pd, (uint8_t *)a + 16, 8192 - 15, 0, &mr[2]), -EINVAL);
	assert_int_equal(uroce_mr_register(x.pd, (void *)(UINTPTR_MAX - 5), 16, 0, &mr[2]), -EINVAL);
	assert_int_equal(uroce_mr_register_iova(x.pd, own, sizeof(own), UINT64_MAX - 5, 0, &mr[2]), -EINVAL);
	assert_int_equal(fake_count(x.f, ABI_REG_MR), 2);
	/* order of destruction */
	assert_int_equal(uroce_free(x.ctx, a), -EBUSY);
	assert_int_equal(uroce_free(x.ctx, (uint8_t *)a + 1), -EINVAL);
	assert_int_equal(uroce_free(x.ctx, own), -EINVAL);
	assert_int_equal(uroce_free(x.ctx, NULL), 0);
	assert_int_equal(uroce_pd_destroy(x.pd), -EBUSY);
	assert_int_equal(uroce_mr_deregister(mr[0]), 0);
	assert_int_equal(uroce_free(x.ctx, a), 0);
	assert_int_equal(uroce_free(x.ctx, a), -EINVAL);
	assert_int_equal(uroce_mr_deregister(mr[1]), 0);
	assert_int_equal(uroce_mr_deregister(NULL), 0);
	assert_int_equal(fake_count(x.f, ABI_FREE_MEMORY), 1);
	close_qp(&x); /* b is left to the context */
}

/* Blocks are found whatever the order in which they came and went. */
static void test_many_blocks(void **state)
{
	struct uroce_context *ctx;
	struct fake_engine *f = fake_open(&ctx);
	void *block[60];
	for (unsigned i = 0; i < 60; i++)
		assert_int_equal(uroce_alloc(ctx, 4096, &block[i]), 0);
	for (unsigned i = 0; i < 60; i++)
		assert_int_equal(uroce_free(ctx, block[i * 7 % 60]), 0);
	for (unsigned i = 0; i < 60; i++)
		assert_int_equal(uroce_free(ctx, block[i]), -EINVAL);
	uroce_close(ctx);
	fake_free(f);
}

static void test_close_with_objects_left(void **state)
{
	struct fixture x = open_qp();
	struct uroce_channel *ch;
	struct uroce_mr *mr;
	void *p;
	assert_int_equal(uroce_channel_create(x.ctx, &ch), 0);
	assert_int_equal(uroce_alloc(x.ctx, 100, &p), 0);
	assert_int_equal(uroce_mr_register(x.pd, p, 100, 0, &mr), 0);
	uroce_close(x.ctx);
	assert_non_null(strstr(x.f->line, "1 QPs, 1 CQs and 1 MRs"));
	fake_free(x.f);
}

static void refuse_destruction(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->type == ABI_DESTROY_QP || req->type == ABI_DESTROY_CQ || req->type == ABI_DESTROY_PD)
		rep->status = -EBUSY;
}

/* What the engine keeps, the client keeps: the handle stays good. */
static void test_refused_destruction(void **state)
{
	struct fixture x = open_qp();
	x.f->on_answered = refuse_destruction;
	assert_int_equal(uroce_qp_destroy(x.qp), -EBUSY);
	assert_int_equal(uroce_pd_destroy(x.pd), -EBUSY);
	assert_int_equal(uroce_qp_num(x.qp), FAKE_QPN);
	x.f->on_answered = NULL;
	close_qp(&x);
	assert_int_equal(uroce_qp_destroy(NULL), 0);
	assert_int_equal(uroce_cq_destroy(NULL), 0);
	assert_int_equal(uroce_pd_destroy(NULL), 0);
	assert_int_equal(uroce_channel_destroy(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device),
		cmocka_unit_test(test_engine_poll_needs_inline),
		cmocka_unit_test(test_failed_open_closes_the_session),
		cmocka_unit_test(test_device_strings),
		cmocka_unit_test(test_log_levels),
		cmocka_unit_test(test_wrong_answers),
		cmocka_unit_test(test_wrong_grants),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_many_blocks),
		cmocka_unit_test(test_close_with_objects_left),
		cmocka_unit_test(test_refused_destruction),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
