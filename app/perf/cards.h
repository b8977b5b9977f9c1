/* SPDX-License-Identifier: BSD-3-Clause */
/* How rdma-core's ibv_*_pingpong meet: over TCP each end shows a card for every QP that it may have. */
#ifndef PERF_CARDS_H
#define PERF_CARDS_H

#include "end.h"

/* Shows ours, sees the peer's and connects to it; closes the exchange. cards: of each end, those of QPs it does not have too. 0 or -EIO with e->error. */
int cards_exchange(struct end *e, bool is_client, uint32_t cards);

#endif
