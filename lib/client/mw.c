/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's handle of a memory window, and the bind of one of type 1 (IBA vol. 1, 10.6.7.2, 11.2.9). A bind is a WR like any other: post.c's; whether it is granted, and what the window then opens, is
 * the engine's. */
#include <errno.h>

#include "client.h"

_Static_assert(UROCE_MW_TYPE_1 == (int)ABI_MW_TYPE_1 && UROCE_MW_TYPE_2 == (int)ABI_MW_TYPE_2, "types go to the engine as they are");

int uroce_mw_create(struct uroce_pd *pd, enum uroce_mw_type type, struct uroce_mw **out)
{
	struct uroce_context *ctx = pd->o.ctx;
	struct uroce_mw *mw = object_new(ctx, OBJECT_MW, sizeof(*mw));
	struct abi_req req = { .type = ABI_CREATE_MW };
	struct abi_rep rep;
	int err;
	if (!mw)
		return -ENOMEM;
	mw->pd = pd;
	mw->type = type;
	req.create_mw.pd = pd->o.handle;
	req.create_mw.type = (uint32_t)type;
	context_lock(ctx);
	err = context_call(ctx, &req, &rep);
	if (!err) {
		mw->o.handle = rep.handle;
		atomic_init(&mw->rkey, rep.mr.rkey);
		pd->refs++;
	}
	context_unlock(ctx);
	if (err) {
		object_free(&mw->o);
		return err;
	}
	*out = mw;
	return 0;
}

int uroce_mw_destroy(struct uroce_mw *mw)
{
	struct uroce_context *ctx;
	int err;
	if (!mw)
		return 0;
	ctx = mw->o.ctx;
	context_lock(ctx);
	err = context_call_handle(ctx, ABI_DESTROY_MW, mw->o.handle);
	if (!err)
		mw->pd->refs--;
	context_unlock(ctx);
	if (!err)
		object_free(&mw->o);
	return err;
}

uint32_t uroce_mw_rkey(const struct uroce_mw *mw)
{
	return atomic_load_explicit(&mw->rkey, memory_order_relaxed);
}

uint32_t uroce_inc_rkey(uint32_t rkey)
{
	return (rkey & 0xffffff00) | ((rkey + 1) & 0xff);
}

int uroce_mw_bind(struct uroce_qp *qp, struct uroce_mw *mw, const struct uroce_bind *to, uint64_t wr_id, uint32_t flags)
{
	struct uroce_send_wr wr = { .wr_id = wr_id, .opcode = UROCE_OP_BIND_MW, .flags = flags, .rkey = uroce_inc_rkey(uroce_mw_rkey(mw)), .bind = to };
	int posted;
	if (mw->type != UROCE_MW_TYPE_1 || mw->o.ctx != qp->o.ctx) {
		log_write(context_log(qp->o.ctx), LOG_WARN, "window not bound: %s",
			mw->o.ctx != qp->o.ctx ? "it is of another context" : "it is of type 2; post UROCE_OP_BIND_MW");
		return -EINVAL;
	}
	posted = uroce_post_send(qp, &wr, 1);
	if (posted != 1)
		return posted;
	atomic_store_explicit(&mw->rkey, wr.rkey, memory_order_relaxed);
	return 0;
}
