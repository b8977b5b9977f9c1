/* SPDX-License-Identifier: BSD-3-Clause */
/* WRs that send nothing: binding a memory window, registering, invalidating (IBA vol. 1, 10.6.5, 10.6.7, 11.4.1.1). */
#ifndef UROCE_LOCAL_H
#define UROCE_LOCAL_H

#include "qp.h"

/* The WR at the cursor sends nothing: carries it out, and those of its kind that follow. true: one that sends stands at the cursor now. false: there is nothing to send, or not yet. */
bool local_run(struct qp *q);
/* Completes what was carried out and has become the oldest. */
void local_retire(struct qp *q);
/* The oldest WR has retired. */
static inline void local_on_retired(struct qp *q)
{
	if (q->flight.oldest && __builtin_expect(q->flight.oldest->is_carried_out, 0))
		local_retire(q);
}
/* RESET, or the end of the QP: its windows end too (IBA vol. 1, 10.6.7.2). */
void local_reset(struct qp *q);

#endif
