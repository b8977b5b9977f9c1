/* SPDX-License-Identifier: BSD-3-Clause */
/* stack.h over libibverbs: the end that runs in the guest. Owns the verbs objects of the one QP. */
#include "stack.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <infiniband/verbs.h>

struct stack {
	struct ibv_context *ctx;
	struct ibv_pd *pd, *foreign_pd;
	struct ibv_mr *mr, *foreign_mr;
	struct ibv_cq *cq;
	struct ibv_srq *srq; /* or NULL */
	struct ibv_qp *qp;
	struct ibv_mw *mw[2]; /* by type less one, or NULL */
	struct ibv_ah *ah;   /* where datagrams go, or NULL */
	int membership;      /* a socket, through which the kernel is in groups; -1: none */
	struct stack_aim aim;
	struct stack_plan plan;
};

const char stack_name[] = "verbs";

static const enum ibv_wr_opcode opcodes[STACK_OPS] = {
	[STACK_SEND] = IBV_WR_SEND, [STACK_SEND_IMM] = IBV_WR_SEND_WITH_IMM, [STACK_WRITE] = IBV_WR_RDMA_WRITE, [STACK_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[STACK_READ] = IBV_WR_RDMA_READ, [STACK_CAS] = IBV_WR_ATOMIC_CMP_AND_SWP, [STACK_FADD] = IBV_WR_ATOMIC_FETCH_AND_ADD, [STACK_SEND_INV] = IBV_WR_SEND_WITH_INV,
};

#define RTR_UC (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)

/* The attributes that each step takes beside the state. */
static const struct service {
	enum ibv_qp_type type;
	int init, rtr, rts;
} services[STACK_SERVICES] = {
	[STACK_RC] = { IBV_QPT_RC, IBV_QP_ACCESS_FLAGS, RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC },
	[STACK_UC] = { IBV_QPT_UC, IBV_QP_ACCESS_FLAGS, RTR_UC, IBV_QP_SQ_PSN },
	[STACK_UD] = { IBV_QPT_UD, IBV_QP_QKEY, 0, IBV_QP_SQ_PSN },
};

int stack_open(struct stack **out, const char *device)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct stack *s = calloc(1, sizeof(*s));
	if (s)
		s->membership = -1;
	for (int i = 0; s && list && list[i] && !s->ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), device))
			s->ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	if (s && s->ctx) {
		*out = s;
		return 0;
	}
	free(s);
	return -ENODEV;
}

int stack_gid(struct stack *s, uint32_t index, uint8_t gid[16])
{
	static const uint8_t zero[16];
	union ibv_gid g;
	if (ibv_query_gid(s->ctx, 1, (int)index, &g) || !memcmp(g.raw, zero, 16))
		return -ENOENT;
	memcpy(gid, g.raw, 16);
	return 0;
}

static bool make_objects(struct stack *s)
{
	const struct stack_plan *p = &s->plan;
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = p->depth, .max_sge = 1 } };
	s->pd = ibv_alloc_pd(s->ctx);
	s->foreign_pd = ibv_alloc_pd(s->ctx);
	if (!s->pd || !s->foreign_pd)
		return false;
	s->mr = ibv_reg_mr(s->pd, p->memory, p->bytes, (int)p->rights | IBV_ACCESS_LOCAL_WRITE);
	s->foreign_mr = ibv_reg_mr(s->foreign_pd, p->memory, p->bytes, (int)p->rights | IBV_ACCESS_LOCAL_WRITE);
	s->cq = ibv_create_cq(s->ctx, (int)(2 * p->depth), NULL, NULL, 0);
	s->srq = p->has_srq ? ibv_create_srq(s->pd, &srq) : NULL;
	if (!s->mr || !s->foreign_mr || !s->cq || (p->has_srq && !s->srq))
		return false;
	struct ibv_qp_init_attr init = { .send_cq = s->cq, .recv_cq = s->cq, .qp_type = services[p->service].type, .sq_sig_all = 1, .srq = s->srq,
		.cap = { .max_send_wr = p->depth, .max_recv_wr = p->depth, .max_send_sge = 1, .max_recv_sge = 1 } };
	s->qp = ibv_create_qp(s->pd, &init);
	return s->qp != NULL;
}

int stack_create(struct stack *s, const struct stack_plan *plan, struct stack_card *card)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = plan->access, .qkey = plan->qkey };
	s->plan = *plan;
	if (!make_objects(s))
		return errno ? -errno : -EIO;
	int err = ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | services[plan->service].init);
	*card = (struct stack_card){ .qpn = s->qp->qp_num, .rkey = s->mr->rkey, .foreign = s->foreign_mr->rkey };
	return err ? -err : stack_gid(s, plan->gid_index, card->gid);
}

void stack_destroy(struct stack *s)
{
	for (int i = 0; i < 2; i++)
		if (s->mw[i])
			ibv_dealloc_mw(s->mw[i]);
	if (s->qp)
		ibv_destroy_qp(s->qp);
	if (s->srq)
		ibv_destroy_srq(s->srq);
	if (s->ah)
		ibv_destroy_ah(s->ah);
	if (s->cq)
		ibv_destroy_cq(s->cq);
	if (s->mr)
		ibv_dereg_mr(s->mr);
	if (s->foreign_mr)
		ibv_dereg_mr(s->foreign_mr);
	if (s->pd)
		ibv_dealloc_pd(s->pd);
	if (s->foreign_pd)
		ibv_dealloc_pd(s->foreign_pd);
	if (s->membership >= 0)
		close(s->membership);
	*s = (struct stack){ .ctx = s->ctx, .membership = -1 };
}

static enum ibv_mtu mtu_of(uint32_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;
	while (mtu < IBV_MTU_4096 && 128u << mtu < bytes)
		mtu++;
	return mtu;
}

static struct ibv_ah_attr way_to(const struct stack *s, const uint8_t gid[16])
{
	struct ibv_ah_attr a = { .is_global = 1, .port_num = 1, .grh = { .sgid_index = (uint8_t)s->plan.gid_index, .hop_limit = 64 } };
	memcpy(a.grh.dgid.raw, gid, 16);
	return a;
}

int stack_connect(struct stack *s, const struct stack_path *p)
{
	const struct service *service = &services[s->plan.service];
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = mtu_of(p->mtu), .dest_qp_num = p->qpn, .rq_psn = p->psn, .max_dest_rd_atomic = p->max_dest_rd_atomic,
		.min_rnr_timer = p->min_rnr_timer, .ah_attr = way_to(s, p->gid) };
	int err = ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | service->rtr);
	if (err)
		return -err;
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .sq_psn = p->own_psn, .timeout = p->timeout, .retry_cnt = p->retry_cnt, .rnr_retry = p->rnr_retry,
		.max_rd_atomic = p->max_rd_atomic };
	return -ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | service->rts);
}

int stack_aim(struct stack *s, const struct stack_aim *aim)
{
	struct ibv_ah_attr attr = way_to(s, aim->gid);
	if (s->ah)
		ibv_destroy_ah(s->ah);
	s->aim = *aim;
	s->ah = ibv_create_ah(s->pd, &attr);
	return s->ah ? 0 : errno ? -errno : -EIO;
}

/* rxe takes what the kernel takes: so the kernel has to be in the group, too, and it tells routers and switches. */
static int join_by_kernel(struct stack *s, const uint8_t group[16], bool is_in)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	bool is_ip4 = !memcmp(group, mapped, 12);
	int err = 0;
	if (is_in && s->membership < 0)
		s->membership = socket(is_ip4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0);
	struct ip_mreqn four = { .imr_ifindex = (int)if_nametoindex("eth0") };
	struct ipv6_mreq six = { .ipv6mr_interface = if_nametoindex("eth0") };
	memcpy(&four.imr_multiaddr, group + 12, 4);
	memcpy(&six.ipv6mr_multiaddr, group, 16);
	if (is_ip4)
		err = setsockopt(s->membership, IPPROTO_IP, is_in ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &four, sizeof(four));
	else
		err = setsockopt(s->membership, IPPROTO_IPV6, is_in ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &six, sizeof(six));
	return err ? -errno : 0;
}

int stack_join(struct stack *s, const uint8_t group[16], bool is_in)
{
	union ibv_gid g;
	memcpy(g.raw, group, 16);
	int err = join_by_kernel(s, group, is_in);
	return err ? err : -(is_in ? ibv_attach_mcast(s->qp, &g, 0) : ibv_detach_mcast(s->qp, &g, 0));
}

/* What the kind of operation needs: these lie in one union. */
static void address_wr(const struct stack *s, const struct stack_wr *wr, struct ibv_send_wr *w)
{
	if (s->plan.service == STACK_UD) {
		w->wr.ud.ah = s->ah;
		w->wr.ud.remote_qpn = s->aim.qpn;
		w->wr.ud.remote_qkey = s->aim.qkey;
	} else if (wr->op == STACK_CAS || wr->op == STACK_FADD) {
		w->wr.atomic.remote_addr = wr->remote_addr;
		w->wr.atomic.rkey = wr->rkey;
		w->wr.atomic.compare_add = wr->compare_add;
		w->wr.atomic.swap = wr->swap;
	} else {
		w->wr.rdma.remote_addr = wr->remote_addr;
		w->wr.rdma.rkey = wr->rkey;
	}
}

int stack_post_send(struct stack *s, const struct stack_wr *wr)
{
	struct ibv_sge sge = { (uintptr_t)s->plan.memory + wr->at, wr->len, s->mr->lkey };
	struct ibv_send_wr w = { .wr_id = wr->wr_id, .sg_list = &sge, .num_sge = wr->len ? 1 : 0, .opcode = opcodes[wr->op], .imm_data = wr->imm }, *bad;
	if (wr->op == STACK_ATOMIC_WRITE || wr->op == STACK_FLUSH) /* not in libibverbs of Debian 12 */
		return -EOPNOTSUPP;
	if (wr->op == STACK_SEND_INV)
		w.invalidate_rkey = wr->rkey;
	address_wr(s, wr, &w);
	return -ibv_post_send(s->qp, &w, &bad);
}

int stack_bind(struct stack *s, uint64_t wr_id, int type, uint64_t at, uint64_t len, uint32_t *rkey)
{
	struct ibv_mw_bind_info to = { s->mr, (uintptr_t)s->plan.memory + at, len, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
	struct ibv_mw **mw = &s->mw[type - 1];
	int err;
	if (!*mw)
		*mw = ibv_alloc_mw(s->pd, type == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	if (!*mw)
		return errno ? -errno : -EIO;
	if (type == 1) {
		err = -ibv_bind_mw(s->qp, *mw, &(struct ibv_mw_bind){ .wr_id = wr_id, .bind_info = to });
	} else {
		struct ibv_send_wr w = { .wr_id = wr_id, .opcode = IBV_WR_BIND_MW, .bind_mw = { *mw, ibv_inc_rkey((*mw)->rkey), to } }, *bad;
		err = -ibv_post_send(s->qp, &w, &bad);
		(*mw)->rkey = err ? (*mw)->rkey : w.bind_mw.rkey;
	}
	*rkey = (*mw)->rkey;
	return err;
}

int stack_unbind(struct stack *s, uint64_t wr_id)
{
	struct ibv_send_wr w = { .wr_id = wr_id, .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = s->mw[1] ? s->mw[1]->rkey : 0 }, *bad;
	return -ibv_post_send(s->qp, &w, &bad);
}

int stack_post_recv(struct stack *s, uint64_t wr_id, uint64_t at, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)s->plan.memory + at, len, s->mr->lkey };
	struct ibv_recv_wr w = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;
	return -(s->srq ? ibv_post_srq_recv(s->srq, &w, &bad) : ibv_post_recv(s->qp, &w, &bad));
}

int stack_poll(struct stack *s, struct stack_wc *wc, unsigned n)
{
	struct ibv_wc w[16];
	int got = ibv_poll_cq(s->cq, n < 16 ? (int)n : 16, w);
	for (int i = 0; i < got; i++)
		wc[i] = (struct stack_wc){ w[i].wr_id, (uint32_t)w[i].status, w[i].byte_len, w[i].src_qp, w[i].imm_data, w[i].wc_flags & IBV_WC_WITH_IMM, w[i].wc_flags & IBV_WC_GRH, w[i].wc_flags & IBV_WC_WITH_INV };
	return got < 0 ? -EIO : got;
}

int stack_state(struct stack *s)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	int err = ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init);
	return err ? -err : (int)attr.qp_state;
}

void stack_counters(struct stack *s, FILE *out)
{
	/* rxe counts per device, see /sys/class/infiniband */
}

void stack_why(struct stack *s, char *text, size_t room)
{
	text[0] = 0;
}
