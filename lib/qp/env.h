/* SPDX-License-Identifier: BSD-3-Clause */
/* What all QPs of a core share, and the few things they ask of it. Owned by the core; one thread. */
#ifndef UROCE_ENV_H
#define UROCE_ENV_H

#include "addr.h"
#include "counters.h"
#include "cq.h"
#include "drop.h"
#include "group.h"
#include "log.h"
#include "mr.h"
#include "msg.h"
#include "slab.h"
#include "wheel.h"

struct qp;
struct srq;

struct qp_env {
	uint64_t now_ns;           /* stamped once per call into the core */
	struct wheel *wheel;
	struct mr_table *mrs;
	struct addr *addr;
	const struct log *log;
	struct drop_counters drops;
	struct slab wr_small, wr_large; /* struct wr and struct recv_wr */
	struct circle groups;        /* struct qp_group, whose QPs have something to send */
	struct cq *dirty;          /* CQs with new CQEs and a channel */
	uint64_t cqes, wqes;
	uint64_t qp_counter[QP_COUNTER_COUNT]; /* of all QPs, those that are gone too: what qp_count counts, and nothing that happens with every packet */
	uint64_t qp_bytes;         /* of all QPs, qp_bytes() of each */
	uint64_t bad_wqes;         /* that cannot be carried out: opcode, SGEs, lengths */
	uint64_t bad_indices;      /* looks at an SQ or RQ whose index cannot be */
	uint32_t round;            /* counts calls of core_tx */
	uint32_t window_packets;   /* most PSNs of a QP in flight */
	void (*on_event)(struct qp_env *env, struct qp *qp, enum abi_event event);
	void (*on_srq_event)(struct qp_env *env, struct srq *srq, enum abi_event event);
	void (*on_cq_overrun)(struct qp_env *env, struct cq *cq);
	void (*on_sq_idle)(struct qp_env *env, struct qp *qp); /* its ring was found empty */
};

/* A CQ has a new CQE: look at its arm word at the end of the burst. */
static inline void env_mark_dirty(struct qp_env *env, struct cq *cq)
{
	if (cq->event_fd >= 0 && !cq->is_dirty) {
		cq->is_dirty = true;
		cq->next_dirty = env->dirty;
		env->dirty = cq;
	}
}

#endif
