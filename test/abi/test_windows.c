/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows, MRs for fast registration and re-registration, as a program sees them: what the client makes of each call against an engine played by hand, then two connected QPs of a real core. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client.h"
#include "direct_session.h"
#include "fake_engine.h"
#include "gid.h"

#define REMOTE ((uint32_t)UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC)
#define ALL (REMOTE | UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_MW_BIND)

/* ---- requests and WQEs ---- */

struct desk {
	struct fake_engine *f;
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_qp *qp;
};

static struct desk open_desk(void)
{
	struct desk d;
	struct uroce_qp_init init = { .cap = { 8, 8, 1, 1, 64 } };
	struct uroce_qp_attr attr = { .state = UROCE_QP_RTS };
	d.f = fake_open(&d.ctx);
	assert_int_equal(uroce_pd_create(d.ctx, &d.pd), 0);
	assert_int_equal(uroce_cq_create(d.ctx, 16, NULL, NULL, &d.cq), 0);
	init.send_cq = init.recv_cq = d.cq;
	assert_int_equal(uroce_qp_create(d.pd, &init, &d.qp), 0);
	assert_int_equal(uroce_qp_modify(d.qp, &attr, UROCE_QP_STATE), 0);
	return d;
}

static void close_desk(struct desk *d)
{
	assert_int_equal(uroce_qp_destroy(d->qp), 0);
	assert_int_equal(uroce_cq_destroy(d->cq), 0);
	assert_int_equal(uroce_pd_destroy(d->pd), 0); /* nothing counts itself among its users any more */
	uroce_close(d->ctx);
	fake_free(d->f);
}

static void test_window_calls(void **state)
{
	struct desk d = open_desk(), other = open_desk();
	struct uroce_bind to = { .addr = 0x1000, .len = UINT64_C(5) << 32, .lkey = 7, .access = 6, .iova = 9 };
	struct uroce_mw *one, *two;
	assert_int_equal(uroce_mw_create(d.pd, UROCE_MW_TYPE_1, &one), 0);
	assert_int_equal(fake_last(d.f, ABI_CREATE_MW)->create_mw.type, ABI_MW_TYPE_1);
	assert_int_equal(uroce_mw_create(d.pd, UROCE_MW_TYPE_2, &two), 0);
	assert_int_equal(uroce_pd_destroy(d.pd), -EBUSY);
	uint32_t key = uroce_mw_rkey(one);
	assert_int_equal(uroce_mw_bind(d.qp, one, &to, 77, UROCE_SEND_SIGNALED), 0);
	assert_int_equal(uroce_mw_rkey(one), uroce_inc_rkey(key));
	const struct abi_send_wqe *w = fake_slot(&d.f->qp[0].sq, 0);
	assert_int_equal(w->opcode, ABI_OP_BIND_MW);
	assert_int_equal(w->wr_id, 77);
	assert_int_equal(w->flags, ABI_SEND_SIGNALED);
	assert_int_equal(w->num_sge, 0);
	assert_int_equal(w->rkey, uroce_inc_rkey(key));
	assert_memory_equal(&w->bind, &to, sizeof(to));
	/* refused: the key stays */
	assert_int_equal(uroce_mw_bind(d.qp, two, &to, 0, 0), -EINVAL);
	assert_int_equal(uroce_mw_bind(other.qp, one, &to, 0, 0), -EINVAL);
	assert_int_equal(uroce_mw_bind(d.qp, one, NULL, 0, 0), -EINVAL);
	for (unsigned i = 1; i < 8; i++)
		assert_int_equal(uroce_mw_bind(d.qp, one, &to, 0, 0), 0);
	key = uroce_mw_rkey(one);
	assert_int_equal(uroce_mw_bind(d.qp, one, &to, 0, 0), -ENOMEM);
	assert_int_equal(uroce_mw_rkey(one), key);
	assert_int_equal(uroce_mw_destroy(one), 0);
	assert_int_equal(uroce_mw_destroy(two), 0);
	assert_int_equal(uroce_mw_destroy(NULL), 0);
	assert_int_equal(fake_count(d.f, ABI_DESTROY_MW), 2);
	assert_int_equal(uroce_inc_rkey(0x123456ff), 0x12345600);
	close_desk(&d);
	close_desk(&other);
}

static void test_invalidation_wqes(void **state)
{
	struct desk d = open_desk();
	struct uroce_sge sge = { 0x1000, 8, 1 };
	struct uroce_send_wr wr[2] = { { .opcode = UROCE_OP_SEND_WITH_INV, .sg_list = &sge, .num_sge = 1, .invalidate_rkey = 0xabcd }, { .opcode = UROCE_OP_LOCAL_INV, .invalidate_rkey = 0x1234 } };
	assert_int_equal(uroce_post_send(d.qp, wr, 2), 2);
	const struct abi_send_wqe *send = fake_slot(&d.f->qp[0].sq, 0), *inv = fake_slot(&d.f->qp[0].sq, 1);
	assert_int_equal(send->opcode, ABI_OP_SEND_WITH_INV);
	assert_int_equal(send->imm, 0xabcd);
	assert_int_equal(send->sge[0].len, 8);
	assert_int_equal(inv->opcode, ABI_OP_LOCAL_INV);
	assert_int_equal(inv->imm, 0x1234);
	fake_complete(d.f, &d.f->cq[0], &(struct abi_cqe){ .qpn = uroce_qp_num(d.qp), .opcode = ABI_WC_RECV, .flags = ABI_WC_HAS_INVALIDATE, .imm = 0x55 }, false);
	struct uroce_wc wc;
	assert_int_equal(uroce_cq_poll(d.cq, &wc, 1), 1);
	assert_int_equal(wc.flags, UROCE_WC_HAS_INVALIDATED);
	assert_int_equal(wc.invalidated_rkey, 0x55);
	close_desk(&d);
}

static void test_mr_calls(void **state)
{
	static uint8_t own[64];
	struct desk d = open_desk(), other = open_desk();
	struct uroce_pd *pd;
	struct uroce_mr *mr, *fast;
	void *pool;
	assert_int_equal(uroce_pd_create(d.ctx, &pd), 0);
	assert_int_equal(uroce_alloc(d.ctx, 4096, &pool), 0);
	assert_int_equal(uroce_mr_register(d.pd, own, sizeof(own), 0, &mr), 0);
	uint32_t key = uroce_mr_rkey(mr);
	struct uroce_mr_attr to = { .pd = pd, .addr = (uint8_t *)pool + 16, .len = 32, .iova = 0, .access = UROCE_ACCESS_REMOTE_READ };
	assert_int_equal(uroce_mr_reregister(mr, &to, UROCE_MR_MEMORY | UROCE_MR_PD | UROCE_MR_ACCESS), 0);
	const struct abi_req *req = fake_last(d.f, ABI_REREG_MR);
	assert_int_equal(req->reg_mr.mask, ABI_REREG_MEMORY | ABI_REREG_PD | ABI_REREG_ACCESS);
	assert_int_equal(req->reg_mr.addr, 16);
	assert_int_equal(req->reg_mr.len, 32);
	assert_int_equal(req->reg_mr.iova, 0);
	assert_true(req->reg_mr.memory != 0 && req->reg_mr.mr != 0 && req->reg_mr.pd != 0);
	assert_int_not_equal(uroce_mr_rkey(mr), key); /* the engine's word */
	assert_int_equal(uroce_free(d.ctx, pool), -EBUSY);
	assert_int_equal(uroce_pd_destroy(pd), -EBUSY);
	/* refused before anybody is asked: nothing moves */
	to.addr = (uint8_t *)pool + 4090;
	assert_int_equal(uroce_mr_reregister(mr, &to, UROCE_MR_MEMORY), -EINVAL);
	to.iova = UINT64_MAX - 3;
	assert_int_equal(uroce_mr_reregister(mr, &to, UROCE_MR_MEMORY), -EINVAL);
	to.pd = other.pd;
	assert_int_equal(uroce_mr_reregister(mr, &to, UROCE_MR_PD), -EINVAL);
	to.pd = NULL;
	assert_int_equal(uroce_mr_reregister(mr, &to, UROCE_MR_PD), -EINVAL);
	assert_int_equal(fake_count(d.f, ABI_REREG_MR), 1);
	to = (struct uroce_mr_attr){ .pd = d.pd, .addr = own, .len = sizeof(own), .iova = UINT64_MAX - sizeof(own) + 1 }; /* up to the very end */
	assert_int_equal(uroce_mr_reregister(mr, &to, UROCE_MR_MEMORY | UROCE_MR_PD), 0);
	assert_int_equal(uroce_free(d.ctx, pool), 0);
	assert_int_equal(uroce_pd_destroy(pd), 0);
	assert_int_equal(uroce_mr_alloc(d.pd, &fast), 0);
	assert_int_equal(uroce_pd_destroy(d.pd), -EBUSY);
	assert_int_equal(uroce_mr_deregister(fast), 0);
	assert_int_equal(uroce_mr_deregister(mr), 0);
	close_desk(&d);
	close_desk(&other);
}

/* ---- a real core ---- */

enum { BYTES = 8192, PART = 1024 };

struct world {
	struct core *core;
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_qp *qp[2];
	struct uroce_mr *mr; /* of all of memory, addressed from 0 */
	uint8_t *memory;
};

static uint64_t now_ns = 1000000;
static const uint8_t pattern = 0x6e;

static void open_world(struct world *w)
{
	static const struct log quiet = { .level = LOG_ERROR };
	static const struct uroce_open_attr attr = { .log_level = 1 };
	struct core_config config = { .name = "windows", .max_frame = 4300, .addr = { .mac = { 2, 0, 0, 0, 0, 1 } }, .hooks = &direct_hooks, .log = &quiet };
	struct uroce_endpoint e[2];
	struct gid gid;
	uint32_t index;
	void *memory;
	assert_int_equal(core_new(&w->core, &config, now_ns), 0);
	assert_int_equal(gid_parse("10.0.0.1", &gid), 0);
	assert_int_equal(addr_gid_add(core_addr(w->core), &gid, 0xffff, 24, &index), 0);
	assert_int_equal(direct_session_open(w->core, &now_ns, &attr, &w->ctx), 0);
	assert_int_equal(uroce_pd_create(w->ctx, &w->pd), 0);
	assert_int_equal(uroce_cq_create(w->ctx, 64, NULL, NULL, &w->cq), 0);
	assert_int_equal(uroce_alloc(w->ctx, BYTES, &memory), 0);
	w->memory = memory;
	memset(memory, pattern, BYTES);
	assert_int_equal(uroce_mr_register_iova(w->pd, memory, BYTES, 0, ALL, &w->mr), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct uroce_qp_init init = { .send_cq = w->cq, .recv_cq = w->cq, .cap = { 16, 16, 1, 1, 64 }, .signal_all = true };
		assert_int_equal(uroce_qp_create(w->pd, &init, &w->qp[i]), 0);
		assert_int_equal(uroce_qp_endpoint(w->qp[i], 0, &e[i]), 0);
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(uroce_qp_connect(w->qp[i], &e[i], &e[!i], NULL, 0), 0);
}

static void close_world(struct world *w)
{
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(uroce_qp_destroy(w->qp[i]), 0);
	assert_int_equal(uroce_cq_destroy(w->cq), 0);
	assert_int_equal(uroce_mr_deregister(w->mr), 0);
	assert_int_equal(uroce_free(w->ctx, w->memory), 0);
	assert_int_equal(uroce_pd_destroy(w->pd), 0);
	uroce_close(w->ctx);
	core_free(w->core);
}

static struct uroce_wc await(struct world *w)
{
	struct uroce_wc wc = { 0 };
	struct core_frame none;
	for (unsigned i = 0; i < 1000 && uroce_cq_poll(w->cq, &wc, 1) == 0; i++) {
		now_ns += 1000;
		core_run(w->core, now_ns);
		core_scan(w->core);
		core_tx(w->core, now_ns, &none, 0);
	}
	return wc;
}

static enum uroce_wc_status carry_out(struct world *w, unsigned i, const struct uroce_send_wr *wr)
{
	assert_int_equal(uroce_post_send(w->qp[i], wr, 1), 1);
	return await(w).status;
}

/* PART bytes at PART of memory. */
static enum uroce_wc_status bind(struct world *w, unsigned i, enum uroce_opcode op, uint32_t key, uint32_t access)
{
	struct uroce_bind to = { .addr = PART, .len = PART, .lkey = uroce_mr_lkey(w->mr), .access = access, .iova = 0x500000 };
	return carry_out(w, i, &(struct uroce_send_wr){ .opcode = op, .rkey = key, .bind = &to });
}

/* Eight bytes of the other side's memory, by QP i. */
static enum uroce_wc_status peer_writes(struct world *w, unsigned i, uint32_t rkey, uint64_t at)
{
	static const uint64_t word = 0x1122334455667788;
	struct uroce_sge sge = { (uintptr_t)&word, 8, 0 };
	return carry_out(w, i, &(struct uroce_send_wr){ .opcode = UROCE_OP_WRITE, .flags = UROCE_SEND_INLINE, .sg_list = &sge, .num_sge = 1, .rkey = rkey, .remote_addr = at });
}

static void test_life_of_a_window(void **state)
{
	struct world w;
	struct uroce_mw *one, *two;
	open_world(&w);
	assert_int_equal(uroce_mw_create(w.pd, UROCE_MW_TYPE_1, &one), 0);
	assert_int_equal(uroce_mw_create(w.pd, UROCE_MW_TYPE_2, &two), 0);
	struct uroce_bind to = { .addr = PART, .len = PART, .lkey = uroce_mr_lkey(w.mr), .access = UROCE_ACCESS_REMOTE_WRITE };
	assert_int_equal(uroce_mw_bind(w.qp[1], one, &to, 5, 0), 0);
	struct uroce_wc wc = await(&w);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.opcode, UROCE_WC_BIND_MW);
	assert_int_equal(peer_writes(&w, 0, uroce_mw_rkey(one), PART), UROCE_WC_SUCCESS);
	assert_int_equal(w.memory[PART], 0x88);
	assert_int_equal(w.memory[PART + 8], pattern);
	assert_int_equal(uroce_mr_deregister(w.mr), -EBUSY);
	to.len = 0;
	assert_int_equal(uroce_mw_bind(w.qp[1], one, &to, 6, 0), 0);
	assert_int_equal(await(&w).status, UROCE_WC_SUCCESS);
	uint32_t key = uroce_inc_rkey(uroce_mw_rkey(two));
	assert_int_equal(bind(&w, 1, UROCE_OP_BIND_MW, key, REMOTE | UROCE_ACCESS_ZERO_BASED), UROCE_WC_SUCCESS);
	assert_int_equal(peer_writes(&w, 0, key, 16), UROCE_WC_SUCCESS);
	assert_int_equal(w.memory[PART + 16], 0x88);
	assert_int_equal(carry_out(&w, 1, &(struct uroce_send_wr){ .opcode = UROCE_OP_LOCAL_INV, .invalidate_rkey = key }), UROCE_WC_SUCCESS);
	assert_int_equal(peer_writes(&w, 0, key, 16), UROCE_WC_REM_ACCESS_ERR);
	assert_int_equal(uroce_mw_destroy(one), 0);
	assert_int_equal(uroce_mw_destroy(two), 0);
	close_world(&w);
}

/* Through the QP on which it was bound, and no other of the PD. */
static void test_a_window_of_another_qp(void **state)
{
	struct world w;
	struct uroce_mw *two;
	open_world(&w);
	assert_int_equal(uroce_mw_create(w.pd, UROCE_MW_TYPE_2, &two), 0);
	uint32_t key = uroce_mw_rkey(two);
	assert_int_equal(bind(&w, 0, UROCE_OP_BIND_MW, key, REMOTE), UROCE_WC_SUCCESS);
	assert_int_equal(peer_writes(&w, 1, key, PART), UROCE_WC_SUCCESS);
	assert_int_equal(peer_writes(&w, 0, key, PART + 8), UROCE_WC_REM_ACCESS_ERR);
	assert_int_equal(w.memory[PART + 8], pattern);
	assert_int_equal(uroce_mw_destroy(two), 0);
	close_world(&w);
}

static void test_send_with_invalidate(void **state)
{
	for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
		struct world w;
		struct uroce_mw *two;
		struct uroce_mr *fast;
		open_world(&w);
		assert_int_equal(uroce_mw_create(w.pd, UROCE_MW_TYPE_2, &two), 0);
		assert_int_equal(uroce_mr_alloc(w.pd, &fast), 0);
		uint32_t key = uroce_inc_rkey(is_fast ? uroce_mr_rkey(fast) : uroce_mw_rkey(two));
		uint64_t at = is_fast ? 0x500000 : PART;
		assert_int_equal(bind(&w, 1, is_fast ? UROCE_OP_REG_MR : UROCE_OP_BIND_MW, key, is_fast ? ALL : REMOTE), UROCE_WC_SUCCESS);
		assert_int_equal(peer_writes(&w, 0, key, at), UROCE_WC_SUCCESS);
		assert_int_equal(uroce_post_recv(w.qp[1], &(struct uroce_recv_wr){ .wr_id = 9 }, 1), 1);
		assert_int_equal(uroce_post_send(w.qp[0], &(struct uroce_send_wr){ .wr_id = 8, .opcode = UROCE_OP_SEND_WITH_INV, .invalidate_rkey = key }, 1), 1);
		struct uroce_wc wc = await(&w);
		assert_int_equal(wc.wr_id, 9);
		assert_int_equal(wc.flags, UROCE_WC_HAS_INVALIDATED);
		assert_int_equal(wc.invalidated_rkey, key);
		assert_int_equal(await(&w).wr_id, 8);
		assert_int_equal(peer_writes(&w, 0, key, at + 8), UROCE_WC_REM_ACCESS_ERR);
		assert_int_equal(w.memory[PART + 8], pattern);
		assert_int_equal(uroce_mw_destroy(two), 0);
		assert_int_equal(uroce_mr_deregister(fast), 0);
		close_world(&w);
	}
}

/* An MR changes under its peer: rights, then memory. */
static void test_reregistration(void **state)
{
	struct world w;
	struct uroce_mr *mr;
	open_world(&w);
	assert_int_equal(uroce_mr_register(w.pd, w.memory, PART, ALL, &mr), 0);
	uint32_t key = uroce_mr_rkey(mr);
	assert_int_equal(peer_writes(&w, 0, key, (uintptr_t)w.memory), UROCE_WC_SUCCESS);
	struct uroce_mr_attr to = { .addr = w.memory + 4096, .len = PART, .iova = 0x1000, .access = UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_READ };
	assert_int_equal(uroce_mr_reregister(mr, &to, UROCE_MR_MEMORY), 0);
	assert_int_not_equal(uroce_mr_rkey(mr), key);
	key = uroce_mr_rkey(mr);
	assert_int_equal(peer_writes(&w, 0, key, 0x1008), UROCE_WC_SUCCESS);
	assert_int_equal(w.memory[4096 + 8], 0x88);
	assert_int_equal(w.memory[8], pattern);
	assert_int_equal(uroce_mr_reregister(mr, &to, UROCE_MR_ACCESS), 0);
	assert_int_equal(uroce_mr_rkey(mr), key);
	assert_int_equal(peer_writes(&w, 0, key, 0x1010), UROCE_WC_REM_ACCESS_ERR);
	assert_int_equal(w.memory[4096 + 16], pattern);
	assert_int_equal(uroce_mr_deregister(mr), 0);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window_calls),
		cmocka_unit_test(test_invalidation_wqes),
		cmocka_unit_test(test_mr_calls),
		cmocka_unit_test(test_life_of_a_window),
		cmocka_unit_test(test_a_window_of_another_qp),
		cmocka_unit_test(test_send_with_invalidate),
		cmocka_unit_test(test_reregistration),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
