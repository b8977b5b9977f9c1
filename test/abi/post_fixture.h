/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP in RTS over the engine played by hand, for the tests of posting. Each test opens and closes its own. */
#ifndef UROCE_POST_FIXTURE_H
#define UROCE_POST_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_engine.h"

struct fixture {
	struct fake_engine *f;
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_qp *qp;
};

static void set_state(struct uroce_qp *qp, enum uroce_qp_state state)
{
	struct uroce_qp_attr attr = { .state = state };
	assert_int_equal(uroce_qp_modify(qp, &attr, UROCE_QP_STATE), 0);
}

static struct fixture open_qp(struct uroce_qp_cap cap, bool signal_all, uint32_t first_index, uint32_t doorbell)
{
	struct fixture x;
	struct uroce_qp_init init = { .cap = cap, .signal_all = signal_all };
	x.f = fake_open(&x.ctx);
	x.f->first_index = first_index;
	x.f->doorbell = doorbell;
	assert_int_equal(uroce_pd_create(x.ctx, &x.pd), 0);
	assert_int_equal(uroce_cq_create(x.ctx, 16, NULL, NULL, &x.cq), 0);
	init.send_cq = init.recv_cq = x.cq;
	assert_int_equal(uroce_qp_create(x.pd, &init, &x.qp), 0);
	set_state(x.qp, UROCE_QP_RTS);
	return x;
}

static void close_qp(struct fixture *x)
{
	assert_int_equal(uroce_qp_destroy(x->qp), 0);
	assert_int_equal(uroce_cq_destroy(x->cq), 0);
	assert_int_equal(uroce_pd_destroy(x->pd), 0);
	uroce_close(x->ctx);
	assert_int_equal(x->f->closes, 1);
	fake_free(x->f);
}

static const struct uroce_qp_cap usual = {
	.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 4, .max_recv_sge = 3, .max_inline = 64
};

#endif
