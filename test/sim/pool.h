/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive buffers of which any may get any message: those of a queue pair whose messages may be lost, so that nobody can say beforehand which receive gets which. A buffer is posted, found in a completion,
 * compared with what the peer sent, filled with a pattern and posted again. The messages themselves are the plan's: which of them came is found by what is in the buffer. */
#ifndef UROCE_SIM_POOL_H
#define UROCE_SIM_POOL_H

#include "actor.h"

/* Memory and MR, nothing posted. is_shared: for an SRQ. */
int pool_open(struct pool *p, struct uroce_pd *pd, uint64_t iova, const struct plan_pool *plan, bool is_shared);
int pool_close(struct pool *p);
/* Up to n WRs of buffers that are not posted, into wr and sge (one each); pool_posted says how many the queue took. */
uint32_t pool_offer(struct pool *p, uint32_t n, struct uroce_recv_wr *wr, struct uroce_sge *sge);
void pool_posted(struct pool *p, const struct uroce_recv_wr *wr, uint32_t n);
static inline bool pool_has_free(const struct pool *p)
{
	return p->posted < p->buffers;
}
/* A completion of end e whose buffer is one of the pool's. */
void pool_complete(struct pool *p, struct end *e, const struct uroce_wc *wc);
/* Messages that e must get if nothing of them is lost. */
uint32_t pool_count_due(const struct end *e);

#endif
