/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers and retry budgets of a requester (IBA vol. 1, 9.7.6.1, 9.7.5.2.8): the transport timeout, RNR waiting, the tail-loss probe, RTT samples. Decides when, not what. */
#ifndef UROCE_RETRY_H
#define UROCE_RETRY_H

#include "qp.h"

/* IBA vol. 1, table 46: RNR NAK timer code to nanoseconds. */
extern const uint32_t rnr_timer_ns[32];

void retry_init(struct qp *q);
void retry_reset(struct qp *q);
/* Takes timeout, retry_cnt and rnr_retry from q->attr. */
void retry_configure(struct qp *q);
/* psn went out for the first time and asks for an answer when `asks`. */
void retry_on_sent(struct qp *q, struct psn psn, bool asks, bool is_again);
/* una moved. true: twice running only by what a probe carried, so that what was sent after it is lost as well. */
bool retry_on_progress(struct qp *q);
/* A tail-loss probe has gone out. */
void retry_on_probe_sent(struct qp *q);
/* Uses one of retry_cnt; false: none is left, and the QP has failed with `cause`. */
bool retry_take(struct qp *q, enum wc_cause cause);
/* An RNR NAK with this timer code; false: rnr_retry is used up, and the QP has failed. */
bool retry_take_rnr(struct qp *q, uint8_t code);
/* Nothing is sent for so long. */
void retry_pause(struct qp *q, uint64_t ns);
static inline bool retry_is_waiting(const struct qp *q)
{
	return q->retry.rnr_until != 0;
}

#endif
