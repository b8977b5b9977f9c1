/* SPDX-License-Identifier: BSD-3-Clause */
/* stack.h over uroce: the end that is tested. Owns the uroce objects of the one QP. */
#include "stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "uroce.h"

struct stack {
	struct uroce_context *ctx;
	struct uroce_pd *pd, *foreign_pd;
	struct uroce_mr *mr, *foreign_mr;
	struct uroce_cq *cq;
	struct uroce_srq *srq; /* or NULL */
	struct uroce_qp *qp;
	struct uroce_mw *mw[2]; /* by type less one, or NULL */
	uint32_t mw_rkey;      /* of that of type 2 */
	struct uroce_ah *ah;   /* where datagrams go, or NULL */
	struct stack_aim aim;
	struct uroce_endpoint own;
	struct stack_plan plan;
};

const char stack_name[] = "uroce";

static const enum uroce_opcode opcodes[STACK_OPS] = {
	[STACK_SEND] = UROCE_OP_SEND, [STACK_SEND_IMM] = UROCE_OP_SEND_WITH_IMM, [STACK_WRITE] = UROCE_OP_WRITE, [STACK_WRITE_IMM] = UROCE_OP_WRITE_WITH_IMM,
	[STACK_READ] = UROCE_OP_READ, [STACK_CAS] = UROCE_OP_COMPARE_SWAP, [STACK_FADD] = UROCE_OP_FETCH_ADD,
	[STACK_ATOMIC_WRITE] = UROCE_OP_ATOMIC_WRITE, [STACK_FLUSH] = UROCE_OP_FLUSH, [STACK_SEND_INV] = UROCE_OP_SEND_WITH_INV,
};

#define CONNECT_UC (UROCE_QP_ACCESS_FLAGS | UROCE_QP_PATH_MTU)
#define CONNECT_RC (CONNECT_UC | UROCE_QP_TIMEOUT | UROCE_QP_RETRY_CNT | UROCE_QP_RNR_RETRY | UROCE_QP_MIN_RNR_TIMER | UROCE_QP_MAX_RD_ATOMIC | UROCE_QP_MAX_DEST_RD_ATOMIC)

/* The attributes that a QP takes on its way to INIT, and from there to RTS. */
static const struct service {
	enum uroce_service service;
	uint32_t init, connect;
} services[STACK_SERVICES] = {
	[STACK_RC] = { UROCE_RC, UROCE_QP_ACCESS_FLAGS, CONNECT_RC },
	[STACK_UC] = { UROCE_UC, UROCE_QP_ACCESS_FLAGS, CONNECT_UC },
	[STACK_UD] = { UROCE_UD, UROCE_QP_QKEY, UROCE_QP_QKEY },
};

/* Access rights in the order of the bits of <infiniband/verbs.h>. */
_Static_assert(UROCE_ACCESS_REMOTE_WRITE == 2 && UROCE_ACCESS_REMOTE_READ == 4 && UROCE_ACCESS_REMOTE_ATOMIC == 8, "as verbs has them");

int stack_open(struct stack **out, const char *device)
{
	struct stack *s = calloc(1, sizeof(*s));
	int err = s ? uroce_open(device, NULL, &s->ctx) : -ENOMEM;
	if (err)
		free(s);
	else
		*out = s;
	return err;
}

int stack_gid(struct stack *s, uint32_t index, uint8_t gid[16])
{
	struct uroce_gid g;
	int err = uroce_query_gid(s->ctx, index, &g, NULL);
	if (!err)
		memcpy(gid, g.raw, 16);
	return err ? -ENOENT : 0;
}

static int make_objects(struct stack *s)
{
	const struct stack_plan *p = &s->plan;
	uint32_t rights = p->rights | UROCE_ACCESS_LOCAL_WRITE;
	struct uroce_srq_init srq = { .attr = { .max_wr = p->depth } };
	int err = uroce_pd_create(s->ctx, &s->pd);
	if (!err)
		err = uroce_pd_create(s->ctx, &s->foreign_pd);
	if (!err)
		err = uroce_mr_register(s->pd, p->memory, p->bytes, rights, &s->mr);
	if (!err)
		err = uroce_mr_register(s->foreign_pd, p->memory, p->bytes, rights, &s->foreign_mr);
	if (!err)
		err = uroce_cq_create(s->ctx, 2 * p->depth, NULL, NULL, &s->cq);
	if (!err && p->has_srq)
		err = uroce_srq_create(s->pd, &srq, &s->srq);
	struct uroce_qp_init init = { .service = services[p->service].service, .send_cq = s->cq, .recv_cq = s->cq, .signal_all = true, .srq = s->srq, .cap = { .max_send_wr = p->depth, .max_recv_wr = p->depth } };
	return err ? err : uroce_qp_create(s->pd, &init, &s->qp);
}

int stack_create(struct stack *s, const struct stack_plan *plan, struct stack_card *card)
{
	struct uroce_qp_attr attr = { .state = UROCE_QP_INIT, .port_num = 1, .access = plan->access, .qkey = plan->qkey };
	s->plan = *plan;
	int err = make_objects(s);
	if (!err)
		err = uroce_qp_modify(s->qp, &attr, UROCE_QP_STATE | UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | services[plan->service].init);
	if (!err)
		err = uroce_qp_endpoint(s->qp, plan->gid_index, &s->own);
	if (err)
		return err;
	*card = (struct stack_card){ .qpn = s->own.qpn, .rkey = uroce_mr_rkey(s->mr), .foreign = uroce_mr_rkey(s->foreign_mr) };
	memcpy(card->gid, s->own.gid.raw, 16);
	return 0;
}

void stack_destroy(struct stack *s)
{
	uroce_mw_destroy(s->mw[0]);
	uroce_mw_destroy(s->mw[1]);
	uroce_qp_destroy(s->qp);
	uroce_srq_destroy(s->srq);
	uroce_ah_destroy(s->ah);
	uroce_cq_destroy(s->cq);
	uroce_mr_deregister(s->mr);
	uroce_mr_deregister(s->foreign_mr);
	uroce_pd_destroy(s->pd);
	uroce_pd_destroy(s->foreign_pd);
	*s = (struct stack){ .ctx = s->ctx };
}

int stack_connect(struct stack *s, const struct stack_path *p)
{
	struct uroce_endpoint remote = { .qpn = p->qpn, .psn = p->psn, .mtu = p->mtu, .rd_atomic = p->max_rd_atomic };
	struct uroce_qp_attr attr = { .path_mtu = p->mtu, .timeout = p->timeout, .retry_cnt = p->retry_cnt, .rnr_retry = p->rnr_retry, .min_rnr_timer = p->min_rnr_timer,
		.max_rd_atomic = p->max_rd_atomic, .max_dest_rd_atomic = p->max_dest_rd_atomic, .access = s->plan.access, .qkey = s->plan.qkey };
	memcpy(remote.gid.raw, p->gid, 16);
	s->own.psn = p->own_psn;
	return uroce_qp_connect(s->qp, &s->own, &remote, &attr, services[s->plan.service].connect);
}

int stack_aim(struct stack *s, const struct stack_aim *aim)
{
	struct uroce_av av = { .sgid_index = s->plan.gid_index };
	memcpy(av.dgid.raw, aim->gid, 16);
	uroce_ah_destroy(s->ah);
	s->ah = NULL;
	s->aim = *aim;
	return uroce_ah_create(s->pd, &av, &s->ah);
}

int stack_join(struct stack *s, const uint8_t group[16], bool is_in)
{
	struct uroce_gid g;
	memcpy(g.raw, group, 16);
	return is_in ? uroce_qp_attach_multicast(s->qp, &g) : uroce_qp_detach_multicast(s->qp, &g);
}

int stack_post_send(struct stack *s, const struct stack_wr *wr)
{
	struct uroce_sge sge = { (uintptr_t)s->plan.memory + wr->at, wr->len, uroce_mr_lkey(s->mr) };
	struct uroce_send_wr w = { .wr_id = wr->wr_id, .sg_list = &sge, .num_sge = wr->len && wr->op != STACK_FLUSH, .opcode = opcodes[wr->op], .imm = wr->op == STACK_SEND_INV ? wr->rkey : wr->imm,
		.remote_addr = wr->remote_addr, .flush = { wr->len, UROCE_FLUSH_GLOBAL, UROCE_FLUSH_RANGE }, .rkey = wr->rkey, .compare_add = wr->compare_add, .swap = wr->swap, .ah = s->ah,
		.remote_qpn = s->aim.qpn, .remote_qkey = s->aim.qkey };
	int n = uroce_post_send(s->qp, &w, 1);
	return n < 0 ? n : 0;
}

int stack_bind(struct stack *s, uint64_t wr_id, int type, uint64_t at, uint64_t len, uint32_t *rkey)
{
	struct uroce_bind to = { .addr = (uintptr_t)s->plan.memory + at, .len = len, .lkey = uroce_mr_lkey(s->mr), .access = UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ };
	struct uroce_mw **mw = &s->mw[type - 1];
	int err = *mw ? 0 : uroce_mw_create(s->pd, (enum uroce_mw_type)type, mw);
	if (err)
		return err;
	if (type == 1) {
		err = uroce_mw_bind(s->qp, *mw, &to, wr_id, 0);
		*rkey = uroce_mw_rkey(*mw);
		return err;
	}
	s->mw_rkey = uroce_inc_rkey(s->mw_rkey ? s->mw_rkey : uroce_mw_rkey(*mw));
	*rkey = s->mw_rkey;
	struct uroce_send_wr w = { .wr_id = wr_id, .opcode = UROCE_OP_BIND_MW, .rkey = s->mw_rkey, .bind = &to };
	int n = uroce_post_send(s->qp, &w, 1);
	return n < 0 ? n : 0;
}

int stack_unbind(struct stack *s, uint64_t wr_id)
{
	struct uroce_send_wr w = { .wr_id = wr_id, .opcode = UROCE_OP_LOCAL_INV, .invalidate_rkey = s->mw_rkey };
	int n = uroce_post_send(s->qp, &w, 1);
	return n < 0 ? n : 0;
}

int stack_post_recv(struct stack *s, uint64_t wr_id, uint64_t at, uint32_t len)
{
	struct uroce_sge sge = { (uintptr_t)s->plan.memory + at, len, uroce_mr_lkey(s->mr) };
	struct uroce_recv_wr w = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
	int n = s->srq ? uroce_post_srq_recv(s->srq, &w, 1) : uroce_post_recv(s->qp, &w, 1);
	return n < 0 ? n : 0;
}

int stack_poll(struct stack *s, struct stack_wc *wc, unsigned n)
{
	struct uroce_wc w[16];
	int got = uroce_cq_poll(s->cq, w, n < 16 ? n : 16);
	for (int i = 0; i < got; i++)
		wc[i] = (struct stack_wc){ w[i].wr_id, (uint32_t)w[i].status, w[i].byte_len, w[i].src_qpn, w[i].imm, w[i].flags & UROCE_WC_HAS_IMM, w[i].flags & UROCE_WC_HAS_GRH,
			w[i].flags & UROCE_WC_HAS_INVALIDATED };
	return got;
}

int stack_state(struct stack *s)
{
	struct uroce_qp_attr attr;
	int err = uroce_qp_query(s->qp, &attr);
	return err ? err : (int)attr.state;
}

void stack_counters(struct stack *s, FILE *out)
{
	uint64_t value[64];
	int n = uroce_qp_counters(s->qp, value, 64);
	for (int i = 0; i < n && i < 64; i++)
		fprintf(out, " %s=%llu", uroce_qp_counter_name((unsigned)i), (unsigned long long)value[i]);
}

void stack_why(struct stack *s, char *text, size_t room)
{
	uroce_qp_error_text(s->qp, text, room);
}
