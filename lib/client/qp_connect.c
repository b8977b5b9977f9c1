/* SPDX-License-Identifier: BSD-3-Clause */
/* The usual way of a connected QP through INIT and RTR to RTS, with what the two programs told each other (IBA vol. 1, 11.2.5.2
 * and table 91). How they tell each other is theirs.
 * Invariant: each step names exactly the attributes that the table requires for it and the optional ones of RoCE, no others. */
#include <errno.h>
#include <string.h>

#include "client.h"
#include "psn.h"
#include "random.h"

/* In the order in which they are taken. */
static const enum uroce_qp_state states[] = { UROCE_QP_INIT, UROCE_QP_RTR, UROCE_QP_RTS };
#define STEPS (sizeof(states) / sizeof(states[0]))

#define INIT_MASK (UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | UROCE_QP_ACCESS_FLAGS)
#define RTR_MASK (UROCE_QP_AV | UROCE_QP_PATH_MTU | UROCE_QP_DEST_QPN | UROCE_QP_RQ_PSN)
static const uint32_t masks[][STEPS] = {
	[UROCE_RC] = { INIT_MASK, RTR_MASK | UROCE_QP_MAX_DEST_RD_ATOMIC | UROCE_QP_MIN_RNR_TIMER,
		UROCE_QP_SQ_PSN | UROCE_QP_TIMEOUT | UROCE_QP_RETRY_CNT | UROCE_QP_RNR_RETRY | UROCE_QP_MAX_RD_ATOMIC },
	[UROCE_UC] = { INIT_MASK, RTR_MASK, UROCE_QP_SQ_PSN },
	[UROCE_UD] = { UROCE_QP_PKEY_INDEX | UROCE_QP_PORT | UROCE_QP_QKEY, 0, UROCE_QP_SQ_PSN },
};
/* What the endpoints say is not to be said twice. */
#define FROM_ENDPOINTS (UROCE_QP_DEST_QPN | UROCE_QP_RQ_PSN | UROCE_QP_SQ_PSN)

static uint32_t get_least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

int uroce_qp_endpoint(struct uroce_qp *qp, uint32_t gid_index, struct uroce_endpoint *local)
{
	struct uroce_context *ctx = qp->o.ctx;
	struct abi_device device;
	struct uroce_gid gid;
	uint32_t psn;
	int err = uroce_query_gid(ctx, gid_index, &gid, NULL);
	if (err)
		return err;
	context_lock(ctx);
	err = context_query_device(ctx, &device);
	context_unlock(ctx);
	if (!err)
		err = random_bytes(&psn, sizeof(psn));
	if (err)
		return err;
	qp->gid_index = gid_index;
	*local = (struct uroce_endpoint){
		.gid = gid, .qpn = qp->qpn, .psn = psn_make(psn).v,
		.mtu = qp_client_mtu_bytes(device.active_mtu), .rd_atomic = get_least(device.max_rd_atomic, 128),
	};
	return 0;
}

/* Where `gid` is in the table: where uroce_qp_endpoint took it from if it is still there, else the first place. */
static int find_gid(struct uroce_qp *qp, const struct uroce_gid *gid, uint32_t *index)
{
	struct uroce_context *ctx = qp->o.ctx;
	struct uroce_gid at;
	if (!uroce_query_gid(ctx, qp->gid_index, &at, NULL) && !memcmp(&at, gid, sizeof(at))) {
		*index = qp->gid_index;
		return 0;
	}
	for (uint32_t i = 0; i < ctx->device.gid_slots; i++) {
		if (!uroce_query_gid(ctx, i, &at, NULL) && !memcmp(&at, gid, sizeof(at))) {
			*index = i;
			return 0;
		}
	}
	log_write(context_log(ctx), LOG_WARN,
		"QP 0x%x not connected: the local endpoint's GID is none of this port's; take it from uroce_qp_endpoint",
		qp->qpn);
	return -EADDRNOTAVAIL;
}

static const char *refuse_endpoints(const struct uroce_qp *qp, const struct uroce_endpoint *local,
	const struct uroce_endpoint *remote, uint32_t mask)
{
	static const struct uroce_gid none;
	if (mask & (~(masks[qp->service][0] | masks[qp->service][1] | masks[qp->service][2]) | FROM_ENDPOINTS))
		return "mask names an attribute that the endpoints give, or that connecting does not use";
	if (local->qpn != qp->qpn)
		return "the local endpoint is another QP's (local and remote swapped?)";
	if (local->psn > PSN_MASK)
		return "the local endpoint's PSN has more than 24 bits";
	if (qp->service == UROCE_UD)
		return NULL;
	if (!remote)
		return "there is no remote endpoint";
	if (!qp_client_mtu_code(local->mtu) || !qp_client_mtu_code(remote->mtu))
		return "an endpoint's MTU is not 256, 512, 1024, 2048 or 4096 bytes";
	if (!memcmp(&remote->gid, &none, sizeof(none)) || !remote->qpn || remote->qpn > 0xffffff)
		return "the remote endpoint has no GID, or a QPN that there cannot be (was it received whole?)";
	if (remote->psn > PSN_MASK)
		return "the remote endpoint's PSN has more than 24 bits";
	return NULL;
}

static void fill_defaults(struct uroce_qp_attr *a, const struct uroce_context *ctx, const struct uroce_endpoint *local,
	const struct uroce_endpoint *remote)
{
	*a = (struct uroce_qp_attr){
		.port_num = 1,
		.access = UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC | UROCE_ACCESS_FLUSH_GLOBAL,
		.path_mtu = get_least(local->mtu, remote->mtu),
		.dest_qpn = remote->qpn,
		.rq_psn = remote->psn,
		.sq_psn = local->psn,
		.max_dest_rd_atomic = (uint8_t)get_least(local->rd_atomic, 128),
		/* Not more than the peer serves, and not more than we can keep. */
		.max_rd_atomic = (uint8_t)get_least(get_least(remote->rd_atomic, ctx->device.max_rd_atomic), 128),
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.av.dgid = remote->gid,
	};
}

static void override(struct uroce_qp_attr *a, const struct uroce_qp_attr *with, uint32_t mask)
{
	static const struct uroce_gid none;
	struct uroce_gid dgid = a->av.dgid;
	if (mask & UROCE_QP_ACCESS_FLAGS)
		a->access = with->access;
	if (mask & UROCE_QP_PKEY_INDEX)
		a->pkey_index = with->pkey_index;
	if (mask & UROCE_QP_PORT)
		a->port_num = with->port_num;
	if (mask & UROCE_QP_QKEY)
		a->qkey = with->qkey;
	if (mask & UROCE_QP_PATH_MTU)
		a->path_mtu = with->path_mtu;
	if (mask & UROCE_QP_TIMEOUT)
		a->timeout = with->timeout;
	if (mask & UROCE_QP_RETRY_CNT)
		a->retry_cnt = with->retry_cnt;
	if (mask & UROCE_QP_RNR_RETRY)
		a->rnr_retry = with->rnr_retry;
	if (mask & UROCE_QP_MIN_RNR_TIMER)
		a->min_rnr_timer = with->min_rnr_timer;
	if (mask & UROCE_QP_MAX_RD_ATOMIC)
		a->max_rd_atomic = with->max_rd_atomic;
	if (mask & UROCE_QP_MAX_DEST_RD_ATOMIC)
		a->max_dest_rd_atomic = with->max_dest_rd_atomic;
	if (mask & UROCE_QP_AV) {
		a->av = with->av;
		if (!memcmp(&a->av.dgid, &none, sizeof(none)))
			a->av.dgid = dgid;
	}
}

/* What only the last step would refuse, in a state from which the first one cannot be repeated. */
static const char *refuse_attributes(const struct uroce_qp *qp, const struct uroce_qp_attr *a)
{
	if (qp->service != UROCE_RC)
		return NULL;
	if (a->timeout > 31)
		return "timeout is over 31";
	if (a->retry_cnt > 7 || a->rnr_retry > 7)
		return "retry_cnt or rnr_retry is over 7";
	return a->max_rd_atomic > qp->o.ctx->device.max_rd_atomic ? "max_rd_atomic is more than the device has" : NULL;
}

static int refuse(const struct uroce_qp *qp, const char *why)
{
	log_write(context_log(qp->o.ctx), LOG_WARN, "QP 0x%x not connected: %s", qp->qpn, why);
	return -EINVAL;
}

static int walk_to_rts(struct uroce_qp *qp, struct uroce_qp_attr *a)
{
	int err = 0;
	for (size_t i = 0; i < STEPS && !err; i++) {
		a->state = states[i];
		err = qp_client_modify(qp, a, UROCE_QP_STATE | masks[qp->service][i]);
	}
	return err;
}

int uroce_qp_connect(struct uroce_qp *qp, const struct uroce_endpoint *local, const struct uroce_endpoint *remote,
	const struct uroce_qp_attr *attr, uint32_t mask)
{
	struct uroce_context *ctx = qp->o.ctx;
	const char *why = refuse_endpoints(qp, local, remote, attr ? mask : 0);
	struct uroce_qp_attr a;
	int err;
	if (why)
		return refuse(qp, why);
	fill_defaults(&a, ctx, local, qp->service == UROCE_UD ? local : remote); /* no mask of UD's names what is the peer's */
	err = find_gid(qp, &local->gid, &a.av.sgid_index);
	if (err)
		return err;
	if (attr)
		override(&a, attr, mask);
	why = refuse_attributes(qp, &a);
	if (why)
		return refuse(qp, why);
	context_lock(ctx);
	err = walk_to_rts(qp, &a);
	context_unlock(ctx);
	return err;
}
