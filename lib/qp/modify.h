/* SPDX-License-Identifier: BSD-3-Clause */
/* Modify QP (IBA vol. 1, 11.2.5.2 and table 91): which transitions exist, what each needs and what it allows. */
#ifndef UROCE_MODIFY_H
#define UROCE_MODIFY_H

#include "qp.h"

struct qp_transition {
	bool is_valid;
	uint32_t required, optional; /* enum abi_qp_attr_mask, ABI_QP_STATE and CUR_STATE apart */
};
/* [service][from][to]. */
extern const struct qp_transition qp_transitions[ABI_SERVICES][ABI_QP_STATES][ABI_QP_STATES];

/* What the port and device allow. */
struct modify_limits {
	uint32_t max_mtu; /* enum abi_mtu */
	uint32_t max_rd_atomic;
	bool may_control; /* Q_Keys with the highest bit set (IBA vol. 1, 10.2.4.2) */
};
/* 0; or a negative errno with a sentence in text (len bytes): -EINVAL (transition, missing or extra attributes, values out of range), -EPERM, -ENETUNREACH, -ENOBUFS, -ENOMEM. On an error nothing has changed. */
int qp_modify(struct qp *q, const struct abi_qp_attr *attr, uint32_t mask, const struct modify_limits *limits, char *text, uint32_t len);
const char *qp_state_name(uint32_t state);
const char *qp_service_name(uint32_t service);

#endif
