/* SPDX-License-Identifier: BSD-3-Clause */
/* Modify QP: the table of transitions of IBA vol. 1, 11.2.5.2 (table 91) for each service, the checks of each attribute, and carrying it out. Owns q->attr. */
#include "modify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "comp.h"
#include "reply.h"
#include "req.h"
#include "resp.h"
#include "retry.h"
#include "sq.h"
#include "ud.h"

/* ---- which transitions there are ---- */

/* What a peer may be allowed; a QP may name a right that no memory here grants. */
#define QP_ACCESS ((uint32_t)(MEM_ACCESS_ALL | MEM_FLUSH_PERSISTENT))
#define ALWAYS { true, 0, 0 }
/* From every state the QP can be taken to RESET and to ERR. */
#define ENDS [ABI_QP_RESET] = ALWAYS, [ABI_QP_ERR] = ALWAYS
#define RC_RTS_OPTIONAL (ABI_QP_ACCESS_FLAGS | ABI_QP_MIN_RNR_TIMER)

const struct qp_transition qp_transitions[ABI_SERVICES][ABI_QP_STATES][ABI_QP_STATES] = {
	[ABI_SERVICE_RC] = {
		[ABI_QP_RESET] = { ENDS, [ABI_QP_INIT] = { true, ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS, 0 } },
		[ABI_QP_INIT] = { ENDS,
			[ABI_QP_INIT] = { true, 0, ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS },
			[ABI_QP_RTR] = { true, ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN | ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER, ABI_QP_ACCESS_FLAGS | ABI_QP_PKEY_INDEX } },
		[ABI_QP_RTR] = { ENDS, [ABI_QP_RTS] = { true, ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY | ABI_QP_SQ_PSN | ABI_QP_MAX_QP_RD_ATOMIC, RC_RTS_OPTIONAL } },
		[ABI_QP_RTS] = { ENDS, [ABI_QP_RTS] = { true, 0, RC_RTS_OPTIONAL }, [ABI_QP_SQD] = { true, 0, ABI_QP_EN_SQD_ASYNC_NOTIFY } },
		[ABI_QP_SQD] = { ENDS,
			[ABI_QP_RTS] = { true, 0, RC_RTS_OPTIONAL },
			[ABI_QP_SQD] = { true, 0,
				RC_RTS_OPTIONAL | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_AV | ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY | ABI_QP_MAX_QP_RD_ATOMIC | ABI_QP_MAX_DEST_RD_ATOMIC } },
		/* RC never enters SQE */
		[ABI_QP_ERR] = { ENDS },
	},
	[ABI_SERVICE_UC] = {
		[ABI_QP_RESET] = { ENDS, [ABI_QP_INIT] = { true, ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS, 0 } },
		[ABI_QP_INIT] = { ENDS,
			[ABI_QP_INIT] = { true, 0, ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS },
			[ABI_QP_RTR] = { true, ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN, ABI_QP_ACCESS_FLAGS | ABI_QP_PKEY_INDEX } },
		[ABI_QP_RTR] = { ENDS, [ABI_QP_RTS] = { true, ABI_QP_SQ_PSN, ABI_QP_ACCESS_FLAGS } },
		[ABI_QP_RTS] = { ENDS, [ABI_QP_RTS] = { true, 0, ABI_QP_ACCESS_FLAGS }, [ABI_QP_SQD] = { true, 0, ABI_QP_EN_SQD_ASYNC_NOTIFY } },
		[ABI_QP_SQD] = { ENDS,
			[ABI_QP_RTS] = { true, 0, ABI_QP_ACCESS_FLAGS },
			[ABI_QP_SQD] = { true, 0, ABI_QP_ACCESS_FLAGS | ABI_QP_PKEY_INDEX | ABI_QP_AV } },
		[ABI_QP_SQE] = { ENDS, [ABI_QP_RTS] = { true, 0, ABI_QP_ACCESS_FLAGS } },
		[ABI_QP_ERR] = { ENDS },
	},
	[ABI_SERVICE_UD] = {
		[ABI_QP_RESET] = { ENDS, [ABI_QP_INIT] = { true, ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_QKEY, 0 } },
		[ABI_QP_INIT] = { ENDS,
			[ABI_QP_INIT] = { true, 0, ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_QKEY },
			[ABI_QP_RTR] = { true, 0, ABI_QP_PKEY_INDEX | ABI_QP_QKEY } },
		[ABI_QP_RTR] = { ENDS, [ABI_QP_RTS] = { true, ABI_QP_SQ_PSN, ABI_QP_QKEY } },
		[ABI_QP_RTS] = { ENDS, [ABI_QP_RTS] = { true, 0, ABI_QP_QKEY }, [ABI_QP_SQD] = { true, 0, ABI_QP_EN_SQD_ASYNC_NOTIFY } },
		[ABI_QP_SQD] = { ENDS, [ABI_QP_RTS] = { true, 0, ABI_QP_QKEY }, [ABI_QP_SQD] = { true, 0, ABI_QP_PKEY_INDEX | ABI_QP_QKEY } },
		[ABI_QP_SQE] = { ENDS, [ABI_QP_RTS] = { true, 0, ABI_QP_QKEY } },
		[ABI_QP_ERR] = { ENDS },
	},
};

static const char *const service_names[ABI_SERVICES] = { "RC", "UC", "UD" };
static const char *const state_names[ABI_QP_STATES] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

const char *qp_state_name(uint32_t state)
{
	return state < ABI_QP_STATES ? state_names[state] : "unknown state";
}

const char *qp_service_name(uint32_t service)
{
	return service < ABI_SERVICES ? service_names[service] : "unknown service";
}

/* Names of the attribute bits, for messages. */
static const char *const attr_names[21] = {
	"state", "cur_state", "en_sqd_async_notify", "access_flags", "pkey_index", "port", "qkey", "av", "path_mtu", "timeout", "retry_cnt", "rnr_retry", "rq_psn",
	"max_rd_atomic", "alt_path", "min_rnr_timer", "sq_psn", "max_dest_rd_atomic", "path_mig_state", "cap", "dest_qpn",
};

static int refuse(char *text, uint32_t len, int error, const char *format, ...) __attribute__((format(printf, 4, 5)));
static int refuse(char *text, uint32_t len, int error, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(text, len, format, args);
	va_end(args);
	return error;
}

static const char *list_attrs(uint32_t mask, char *to, uint32_t len)
{
	uint32_t at = 0;
	to[0] = 0;
	for (unsigned i = 0; i < 21 && at < len; i++)
		if (mask & 1u << i)
			at += (uint32_t)snprintf(to + at, len - at, "%s%s", at ? ", " : "", attr_names[i]);
	return to;
}

static int check_transition(const struct qp *q, uint32_t to, uint32_t mask, char *text, uint32_t len)
{
	char names[128];
	const struct qp_transition *t = &qp_transitions[q->service][q->state][to];
	uint32_t given = mask & ~(uint32_t)(ABI_QP_STATE | ABI_QP_CUR_STATE);
	if (!t->is_valid)
		return refuse(text, len, -EINVAL, "QP 0x%x: no transition from %s to %s for %s", q->qpn, qp_state_name(q->state), qp_state_name(to), qp_service_name(q->service));
	if (t->required & ~given)
		return refuse(text, len, -EINVAL, "QP 0x%x: %s to %s also needs %s", q->qpn, qp_state_name(q->state), qp_state_name(to), list_attrs(t->required & ~given, names, sizeof(names)));
	if (given & ~(t->required | t->optional))
		return refuse(text, len, -EINVAL, "QP 0x%x: %s to %s does not take %s", q->qpn, qp_state_name(q->state), qp_state_name(to),
			list_attrs(given & ~(t->required | t->optional), names, sizeof(names)));
	return 0;
}

/* One numeric attribute: its bit, value and bounds. */
struct bound {
	uint32_t mask;
	const char *name;
	uint32_t value, min, max;
};

static int check_values(const struct qp *q, const struct abi_qp_attr *a, uint32_t mask, const struct modify_limits *limits, char *text, uint32_t len)
{
	const struct bound bounds[] = {
		{ ABI_QP_PKEY_INDEX, "pkey_index", a->pkey_index, 0, 0 },
		{ ABI_QP_PORT, "port", a->port_num, 1, 1 },
		{ ABI_QP_PATH_MTU, "path_mtu (1: 256 .. 5: 4096)", a->path_mtu, ABI_MTU_256, limits->max_mtu },
		{ ABI_QP_TIMEOUT, "timeout", a->timeout, 0, 31 },
		{ ABI_QP_RETRY_CNT, "retry_cnt", a->retry_cnt, 0, 7 },
		{ ABI_QP_RNR_RETRY, "rnr_retry", a->rnr_retry, 0, 7 },
		{ ABI_QP_MIN_RNR_TIMER, "min_rnr_timer", a->min_rnr_timer, 0, 31 },
		{ ABI_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", a->max_rd_atomic, 0, limits->max_rd_atomic },
		{ ABI_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", a->max_dest_rd_atomic, 0, limits->max_rd_atomic },
		{ ABI_QP_RQ_PSN, "rq_psn", a->rq_psn, 0, PSN_MASK },
		{ ABI_QP_SQ_PSN, "sq_psn", a->sq_psn, 0, PSN_MASK },
		{ ABI_QP_DEST_QPN, "dest_qpn", a->dest_qpn, 2, 0xfffffe },
	};
	for (unsigned i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
		if ((mask & bounds[i].mask) && (bounds[i].value < bounds[i].min || bounds[i].value > bounds[i].max))
			return refuse(text, len, -EINVAL, "QP 0x%x: %s is %u, must be %u to %u", q->qpn, bounds[i].name, bounds[i].value, bounds[i].min, bounds[i].max);
	if ((mask & ABI_QP_ACCESS_FLAGS) && (a->access & ~QP_ACCESS))
		return refuse(text, len, -EINVAL, "QP 0x%x: access flags are 0x%x, known are 0x%x", q->qpn, a->access, QP_ACCESS);
	if ((mask & ABI_QP_QKEY) && (a->qkey & QKEY_CONTROLLED) && !limits->may_control)
		return refuse(text, len, -EPERM, "QP 0x%x: Q_Key 0x%08x: those with the highest bit set are for privileged programs", q->qpn, a->qkey);
	if ((mask & ABI_QP_CUR_STATE) && a->cur_state != q->state)
		return refuse(text, len, -EINVAL, "QP 0x%x is in %s, not in %s", q->qpn, qp_state_name(q->state), qp_state_name(a->cur_state));
	return 0;
}

/* UDP source port: the same for both directions of a connection, so that a flow stays on one path. The flow label if there is one, else both QPNs, mixed the way Linux and ConnectX do. */
static uint16_t choose_source_port(const struct qp *q, uint32_t dest_qpn, uint32_t flow_label)
{
	uint32_t f = flow_label & 0xfffff;
	if (!f) {
		uint64_t v = (uint64_t)q->qpn * dest_qpn;
		v ^= v >> 20;
		v ^= v >> 40;
		f = (uint32_t)v & 0xfffff;
	}
	return qp_source_port(f);
}

static void on_path_changed(struct ah *ah)
{
	struct qp *q = (struct qp *)((uint8_t *)ah - offsetof(struct qp, ah));
	qp_wake(q);
}

static uint32_t progress_of(const struct ah *ah)
{
	const struct qp *q = (const struct qp *)((const uint8_t *)ah - offsetof(struct qp, ah));
	return q->retry.progress;
}

static int open_path(struct qp *q, const struct abi_qp_attr *a, uint32_t dest_qpn, char *text, uint32_t len)
{
	char peer[GID_TEXT_MAX];
	struct ah_fields f = {
		.sgid_index = a->av.sgid_index, .traffic_class = a->av.traffic_class, .hop_limit = a->av.hop_limit, .flow_label = a->av.flow_label, .priority = a->av.sl,
		.udp_src_port = choose_source_port(q, dest_qpn, a->av.flow_label),
	};
	struct ah fresh;
	memcpy(f.dgid.b, a->av.dgid, 16);
	int rc = ah_open(&fresh, q->env->addr, &f, on_path_changed, q->env->now_ns);
	if (rc)
		return refuse(text, len, rc, "QP 0x%x: no path from GID index %u to %s: %s", q->qpn, f.sgid_index, gid_format(&f.dgid, peer),
			rc == -EINVAL ? "no such GID index, or the address families differ" : rc == -ENETUNREACH ? "no route" : "too many addresses are being resolved");
	ah_close(&fresh);
	if (q->has_ah)
		ah_close(&q->ah);
	/* an AH is linked into its neighbour's list and so cannot be moved; the second opening of the same path finds what the first one found */
	rc = ah_open(&q->ah, q->env->addr, &f, on_path_changed, q->env->now_ns);
	q->has_ah = rc == 0;
	if (q->has_ah && q->service == SERVICE_RC)
		ah_watch_progress(&q->ah, progress_of);
	return rc ? refuse(text, len, rc, "QP 0x%x: the path to %s went away", q->qpn, gid_format(&f.dgid, peer)) : 0;
}

/* Simple copies: attribute bits to fields of q->attr. */
static void store_attrs(struct abi_qp_attr *to, const struct abi_qp_attr *a, uint32_t mask)
{
	if (mask & ABI_QP_EN_SQD_ASYNC_NOTIFY)
		to->sqd_async_notify = a->sqd_async_notify;
	if (mask & ABI_QP_ACCESS_FLAGS)
		to->access = a->access;
	if (mask & ABI_QP_QKEY)
		to->qkey = a->qkey;
	if (mask & ABI_QP_PORT)
		to->port_num = a->port_num;
	if (mask & ABI_QP_AV)
		to->av = a->av;
	if (mask & ABI_QP_PATH_MTU)
		to->path_mtu = a->path_mtu;
	if (mask & ABI_QP_TIMEOUT)
		to->timeout = a->timeout;
	if (mask & ABI_QP_RETRY_CNT)
		to->retry_cnt = a->retry_cnt;
	if (mask & ABI_QP_RNR_RETRY)
		to->rnr_retry = a->rnr_retry;
	if (mask & ABI_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = a->min_rnr_timer;
	if (mask & ABI_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = a->max_rd_atomic;
	if (mask & ABI_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = a->max_dest_rd_atomic;
	if (mask & ABI_QP_RQ_PSN)
		to->rq_psn = a->rq_psn;
	if (mask & ABI_QP_SQ_PSN)
		to->sq_psn = a->sq_psn;
	if (mask & ABI_QP_DEST_QPN)
		to->dest_qpn = a->dest_qpn;
}

/* A datagram is as long as the port carries (IBA vol. 1, 9.8.3). */
static void enter_datagram_rtr(struct qp *q, const struct modify_limits *limits)
{
	q->attr.path_mtu = (uint8_t)limits->max_mtu;
	q->req.max_bytes = 128u << limits->max_mtu;
}

static void enter_state(struct qp *q, uint32_t to, const struct modify_limits *limits)
{
	uint32_t from = q->state;
	if (to == ABI_QP_ERR) {
		reply_reset(q); /* the program stops it: the peer gets no answer any more */
		qp_enter_error(q);
		return;
	}
	if (from == ABI_QP_SQE)
		sq_leave_send_error(q);
	q->state = (uint8_t)to;
	if (from == to)
		return;
	if (to == ABI_QP_RTR) {
		if (q->service == SERVICE_UD)
			enter_datagram_rtr(q, limits);
		q->mtu_log2 = (uint8_t)(7 + q->attr.path_mtu);
		q->dest_qpn = q->attr.dest_qpn;
		resp_reset(q, psn_make(q->attr.rq_psn));
	}
	if (from == ABI_QP_RTR && to == ABI_QP_RTS) {
		inflight_init(&q->flight, psn_make(q->attr.sq_psn));
		comp_reset(q);
	}
	q->is_draining = to == ABI_QP_SQD;
	qp_wake(q);
}

/* What can fail, before anything is changed. */
static int prepare(struct qp *q, const struct abi_qp_attr *a, uint32_t mask, char *text, uint32_t len)
{
	if (q->state == ABI_QP_SQD && (mask & ABI_QP_AV) && !req_is_drained(q))
		return refuse(text, len, -EBUSY, "QP 0x%x: the SQ is still draining, wait for SQ_DRAINED before changing the path", q->qpn);
	if (q->state == ABI_QP_SQD && (mask & ABI_QP_MAX_QP_RD_ATOMIC) && !req_is_drained(q))
		return refuse(text, len, -EBUSY, "QP 0x%x: the SQ is still draining, wait for SQ_DRAINED before changing max_rd_atomic", q->qpn);
	struct replay records;
	int rc = 0;
	if (mask & ABI_QP_MAX_DEST_RD_ATOMIC)
		rc = replay_copy(&q->out.replay, a->max_dest_rd_atomic, &records);
	if (rc)
		return refuse(text, len, rc, "QP 0x%x: max_dest_rd_atomic %u: %s", q->qpn, a->max_dest_rd_atomic, rc == -EBUSY ? "more READs and atomics are being answered" : "out of memory");
	if (mask & ABI_QP_AV)
		rc = open_path(q, a, mask & ABI_QP_DEST_QPN ? a->dest_qpn : q->dest_qpn, text, len);
	if (mask & ABI_QP_MAX_DEST_RD_ATOMIC) {
		replay_free(rc ? &records : &q->out.replay);
		if (!rc)
			q->out.replay = records;
		qp_count_bytes(q);
	}
	return rc;
}

int qp_modify(struct qp *q, const struct abi_qp_attr *attr, uint32_t mask, const struct modify_limits *limits, char *text, uint32_t len)
{
	uint32_t to = mask & ABI_QP_STATE ? attr->state : q->state;
	if (to >= ABI_QP_STATES)
		return refuse(text, len, -EINVAL, "QP 0x%x: state %u does not exist, must be 0 (RESET) to 6 (ERR)", q->qpn, to);
	int rc = check_transition(q, to, mask, text, len);
	if (!rc)
		rc = check_values(q, attr, mask, limits, text, len);
	if (rc)
		return rc;
	if (to == ABI_QP_RESET) {
		qp_reset(q);
		return 0;
	}
	rc = prepare(q, attr, mask, text, len);
	if (rc)
		return rc;
	if (to == ABI_QP_SQD && q->state == ABI_QP_RTS)
		q->attr.sqd_async_notify = 0; /* unless asked for this time */
	store_attrs(&q->attr, attr, mask);
	if (mask & (ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY))
		retry_configure(q);
	if (mask & ABI_QP_MAX_QP_RD_ATOMIC)
		req_on_rd_atomic_changed(q);
	enter_state(q, to, limits);
	return 0;
}
