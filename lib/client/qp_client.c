/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's handle of a queue pair: creation, state changes, queries, destruction (IBA vol. 1, 10.2.4, 11.2.5). Which
 * transitions and attributes are allowed is the engine's table; posting is post.c's, the usual way to RTS qp_connect.c's.
 * Invariant: `state` is the state after the last control call, or a later one that an event told of; the engine may have
 * gone on to ERR or SQE by itself, and none of the rules for posting differ then. */
#include <errno.h>
#include <string.h>

#include "client.h"
#include "counters.h"

_Static_assert(UROCE_RC == (int)ABI_SERVICE_RC && UROCE_UC == (int)ABI_SERVICE_UC && UROCE_UD == (int)ABI_SERVICE_UD, "services go to the engine as they are");

/* ---- conversions ---- */

uint8_t qp_client_mtu_code(uint32_t bytes)
{
	for (uint8_t code = ABI_MTU_256; code <= ABI_MTU_4096; code++)
		if (qp_client_mtu_bytes(code) == bytes)
			return code;
	return 0;
}

uint32_t qp_client_mtu_bytes(uint32_t code)
{
	return code >= ABI_MTU_256 && code <= ABI_MTU_4096 ? UINT32_C(128) << code : 0;
}

void qp_client_pack_av(struct abi_av *to, const struct uroce_av *from)
{
	*to = (struct abi_av){
		.sgid_index = from->sgid_index, .flow_label = from->flow_label, .traffic_class = from->traffic_class,
		.hop_limit = from->hop_limit ? from->hop_limit : 64, .sl = from->sl,
	};
	memcpy(to->dgid, from->dgid.raw, sizeof(to->dgid));
}

static void pack_attr(struct abi_qp_attr *to, const struct uroce_qp_attr *from)
{
	*to = (struct abi_qp_attr){
		.state = (uint8_t)from->state, .cur_state = (uint8_t)from->cur_state,
		.path_mtu = qp_client_mtu_code(from->path_mtu), .timeout = from->timeout,
		.retry_cnt = from->retry_cnt, .rnr_retry = from->rnr_retry, .min_rnr_timer = from->min_rnr_timer,
		.max_rd_atomic = from->max_rd_atomic, .max_dest_rd_atomic = from->max_dest_rd_atomic,
		.sqd_async_notify = from->sqd_async_notify, .port_num = from->port_num, .pkey_index = from->pkey_index,
		.access = from->access, .qkey = from->qkey, .dest_qpn = from->dest_qpn, .rq_psn = from->rq_psn,
		.sq_psn = from->sq_psn,
	};
	qp_client_pack_av(&to->av, &from->av);
}

static void unpack_attr(struct uroce_qp_attr *to, const struct abi_qp_attr *from)
{
	*to = (struct uroce_qp_attr){
		.state = (enum uroce_qp_state)from->state, .cur_state = (enum uroce_qp_state)from->cur_state,
		.path_mtu = qp_client_mtu_bytes(from->path_mtu), .timeout = from->timeout,
		.retry_cnt = from->retry_cnt, .rnr_retry = from->rnr_retry, .min_rnr_timer = from->min_rnr_timer,
		.max_rd_atomic = from->max_rd_atomic, .max_dest_rd_atomic = from->max_dest_rd_atomic,
		.sqd_async_notify = from->sqd_async_notify, .port_num = from->port_num, .pkey_index = from->pkey_index,
		.access = from->access, .qkey = from->qkey, .dest_qpn = from->dest_qpn, .rq_psn = from->rq_psn,
		.sq_psn = from->sq_psn,
		.av = {
			.sgid_index = from->av.sgid_index, .flow_label = from->av.flow_label,
			.traffic_class = from->av.traffic_class,
			.hop_limit = from->av.hop_limit, .sl = from->av.sl,
		},
	};
	memcpy(to->av.dgid.raw, from->av.dgid, sizeof(to->av.dgid.raw));
}

/* ---- creation and destruction ---- */

static bool is_granted(const struct abi_qp_cap *got, const struct abi_qp_cap *asked, bool has_rq)
{
	if (has_rq && (got->max_recv_wr < asked->max_recv_wr || got->max_recv_sge < asked->max_recv_sge))
		return false;
	return got->max_send_wr >= asked->max_send_wr && got->max_send_sge >= asked->max_send_sge
		&& got->max_inline >= asked->max_inline;
}

static int take_reply(struct uroce_qp *qp, const struct abi_req *req, const struct abi_rep *rep)
{
	struct uroce_context *ctx = qp->o.ctx;
	const struct abi_qp_cap *cap = &rep->qp.cap;
	int err;
	qp->o.handle = rep->handle;
	if (!is_granted(cap, &req->create_qp.cap, !qp->srq) || cap->max_send_sge > ABI_MAX_SGE || cap->max_recv_sge > ABI_MAX_SGE
		|| cap->max_inline > ABI_MAX_INLINE || rep->qp.doorbell >= ABI_DOORBELLS) {
		log_write(context_log(ctx), LOG_ERROR,
			"the engine granted a QP with less than was asked for, or more than there can be");
		return -EPROTO;
	}
	err = post_queue_init(ctx, &qp->sq, &rep->qp.sq, abi_send_slot_bytes(cap->max_send_sge, cap->max_inline), cap->max_send_wr,
		cap->max_send_sge, cap->max_inline);
	if (!err && !qp->srq)
		err = post_queue_init(ctx, &qp->rq, &rep->qp.rq, abi_recv_slot_bytes(cap->max_recv_sge), cap->max_recv_wr,
			cap->max_recv_sge, 0);
	if (err)
		return err;
	qp->cap = (struct uroce_qp_cap){ cap->max_send_wr, cap->max_recv_wr, cap->max_send_sge, cap->max_recv_sge,
		cap->max_inline };
	qp->qpn = rep->qp.qpn;
	qp->doorbell = rep->qp.doorbell;
	return 0;
}

static uint32_t at_least_one(uint32_t n)
{
	return n ? n : 1;
}

static int create_locked(struct uroce_qp *qp, const struct uroce_qp_init *init)
{
	struct uroce_context *ctx = qp->o.ctx;
	struct abi_req req = { .type = ABI_CREATE_QP };
	struct abi_rep rep;
	int err;
	req.create_qp.pd = qp->pd->o.handle;
	req.create_qp.send_cq = qp->send_cq->o.handle;
	req.create_qp.recv_cq = qp->recv_cq->o.handle;
	req.create_qp.service = (uint32_t)qp->service;
	req.create_qp.cap = (struct abi_qp_cap){ at_least_one(init->cap.max_send_wr), at_least_one(init->cap.max_recv_wr),
		at_least_one(init->cap.max_send_sge), at_least_one(init->cap.max_recv_sge), init->cap.max_inline };
	req.create_qp.signal_all = init->signal_all;
	req.create_qp.flags = init->block_own_multicast ? ABI_QP_BLOCK_SELF_MCAST_LB : 0;
	req.create_qp.srq = qp->srq ? qp->srq->o.handle : 0;
	req.create_qp.cookie = qp->o.cookie;
	err = context_call(ctx, &req, &rep);
	if (err)
		return err;
	err = take_reply(qp, &req, &rep);
	if (err) {
		context_call_handle(ctx, ABI_DESTROY_QP, rep.handle);
		return err;
	}
	qp->pd->refs++;
	qp->send_cq->refs++;
	qp->recv_cq->refs++;
	if (qp->srq)
		qp->srq->refs++;
	flush_add(qp);
	return 0;
}

static const char *refuse_init(const struct uroce_context *ctx, const struct uroce_qp_init *init)
{
	if ((unsigned)init->service > UROCE_UD)
		return "the service is none of UROCE_RC, UROCE_UC and UROCE_UD";
	if (!init->send_cq || !init->recv_cq)
		return "send_cq and recv_cq are both needed (they may be the same)";
	if (init->send_cq->o.ctx != ctx || init->recv_cq->o.ctx != ctx)
		return "PD and CQs are not of one context";
	if (init->srq && init->srq->o.ctx != ctx)
		return "the SRQ is of another context";
	return NULL;
}

/* A datagram is one packet (IBA vol. 1, 9.8.3). */
static uint64_t get_max_bytes(const struct uroce_context *ctx, enum uroce_service service)
{
	const uint64_t most = UINT64_C(1) << 31, device = ctx->device.max_msg_bytes;
	if (service == UROCE_UD)
		return qp_client_mtu_bytes(ctx->device.active_mtu);
	return device && device < most ? device : most;
}

int uroce_qp_create(struct uroce_pd *pd, const struct uroce_qp_init *init, struct uroce_qp **out)
{
	struct uroce_context *ctx = pd->o.ctx;
	const char *why = refuse_init(ctx, init);
	struct uroce_qp *qp;
	int err;
	if (why) {
		log_write(context_log(ctx), LOG_WARN, "QP not created: %s", why);
		return -EINVAL;
	}
	qp = object_new(ctx, OBJECT_QP, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->pd = pd;
	qp->send_cq = init->send_cq;
	qp->recv_cq = init->recv_cq;
	qp->srq = init->srq;
	qp->user = init->user;
	qp->service = init->service;
	qp->ops = post_ops(init->service);
	qp->page = ctx->page;
	qp->life = ctx->life;
	qp->doorbells = ctx->doorbells;
	qp->max_msg_bytes = get_max_bytes(ctx, init->service);
	qp->always_flags = init->signal_all ? ABI_SEND_SIGNALED : 0;
	context_lock(ctx);
	err = create_locked(qp, init);
	context_unlock(ctx);
	if (err) {
		object_free(&qp->o);
		return err;
	}
	if (qp->sq.max_inline > qp->max_msg_bytes)
		qp->sq.max_inline = (uint32_t)qp->max_msg_bytes;
	*out = qp;
	return 0;
}

static void purge(struct uroce_qp *qp)
{
	completion_purge(qp->send_cq, qp->qpn);
	if (qp->recv_cq != qp->send_cq)
		completion_purge(qp->recv_cq, qp->qpn);
}

int uroce_qp_destroy(struct uroce_qp *qp)
{
	struct uroce_context *ctx;
	int err;
	if (!qp)
		return 0;
	ctx = qp->o.ctx;
	context_lock(ctx);
	err = context_call_handle(ctx, ABI_DESTROY_QP, qp->o.handle);
	if (!err) {
		/* After the reply, so that none comes later: wr_ids of a QP that is gone must not be polled. */
		purge(qp);
		flush_remove(qp);
		qp->pd->refs--;
		qp->send_cq->refs--;
		qp->recv_cq->refs--;
		if (qp->srq)
			qp->srq->refs--;
	}
	context_unlock(ctx);
	if (err)
		return err;
	object_retire(&qp->o);
	object_free(&qp->o);
	return 0;
}

uint32_t uroce_qp_num(const struct uroce_qp *qp)
{
	return qp->qpn;
}

void *uroce_qp_user(const struct uroce_qp *qp)
{
	return qp->user;
}

void uroce_qp_cap(const struct uroce_qp *qp, struct uroce_qp_cap *cap)
{
	*cap = qp->cap;
}

/* ---- states ---- */

static const char *refuse_attr(const struct uroce_qp_attr *attr, uint32_t mask)
{
	if ((mask & UROCE_QP_STATE && attr->state > UROCE_QP_ERR)
		|| (mask & UROCE_QP_CUR_STATE && attr->cur_state > UROCE_QP_ERR))
		return "there is no such state";
	if (mask & UROCE_QP_PATH_MTU && !qp_client_mtu_code(attr->path_mtu))
		return "the path MTU is not 256, 512, 1024, 2048 or 4096 bytes";
	return NULL;
}

int qp_client_modify(struct uroce_qp *qp, const struct uroce_qp_attr *attr, uint32_t mask)
{
	struct uroce_context *ctx = qp->o.ctx;
	struct abi_req req = { .type = ABI_MODIFY_QP, .modify_qp = { .qp = qp->o.handle, .mask = mask } };
	struct abi_rep rep;
	const char *why = refuse_attr(attr, mask);
	int err;
	if (why) {
		log_write(context_log(ctx), LOG_WARN, "QP 0x%x not modified: %s", qp->qpn, why);
		return -EINVAL;
	}
	pack_attr(&req.modify_qp.attr, attr);
	err = context_call(ctx, &req, &rep);
	if (err || !(mask & UROCE_QP_STATE))
		return err;
	/* The engine dropped what was queued, and the program must not poll what was completed before (IBA vol. 1, 10.3.1.1). */
	if (attr->state == UROCE_QP_RESET)
		purge(qp);
	atomic_store_explicit(&qp->state, attr->state, memory_order_relaxed);
	return 0;
}

int uroce_qp_modify(struct uroce_qp *qp, const struct uroce_qp_attr *attr, uint32_t mask)
{
	int err;
	context_lock(qp->o.ctx);
	err = qp_client_modify(qp, attr, mask);
	context_unlock(qp->o.ctx);
	return err;
}

int uroce_qp_query(struct uroce_qp *qp, struct uroce_qp_attr *attr)
{
	struct abi_req req = { .type = ABI_QUERY_QP, .handle = qp->o.handle };
	struct abi_rep rep;
	int err;
	context_lock(qp->o.ctx);
	err = context_call(qp->o.ctx, &req, &rep);
	if (!err && rep.query_qp.attr.state >= ABI_QP_STATES)
		err = -EPROTO;
	if (!err) {
		unpack_attr(attr, &rep.query_qp.attr);
		atomic_store_explicit(&qp->state, attr->state, memory_order_relaxed);
	}
	context_unlock(qp->o.ctx);
	return err;
}

int uroce_qp_counters(struct uroce_qp *qp, uint64_t *value, unsigned n)
{
	struct abi_req req = { .type = ABI_QUERY_COUNTERS, .handle = qp->o.handle };
	struct abi_rep rep;
	int err;
	context_lock(qp->o.ctx);
	err = context_call(qp->o.ctx, &req, &rep);
	context_unlock(qp->o.ctx);
	if (err)
		return err;
	if (n)
		memcpy(value, rep.counters.value, sizeof(*value) * (n < QP_COUNTER_COUNT ? n : QP_COUNTER_COUNT));
	return QP_COUNTER_COUNT;
}
