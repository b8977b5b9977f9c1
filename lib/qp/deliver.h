/* SPDX-License-Identifier: BSD-3-Clause */
/* What SEND and WRITE packets do: payload into memory, receive WQEs into completions. Whether a packet's turn has come is its service's business. */
#ifndef UROCE_DELIVER_H
#define UROCE_DELIVER_H

#include "verdict.h"

/* A SEND or WRITE packet whose place in its message is right: checks its length, places its payload and, with the message's last packet, completes the message. Nothing has changed unless the answer is EXECUTE. */
enum verdict deliver(struct qp *q, const struct packet *p);
/* The message in progress ends here, and never completes: its receive WQE is for another. */
void deliver_abandon(struct qp *q);
/* A message has been executed to its end, with resp.received bytes. */
void deliver_end_message(struct qp *q, const struct packet *p);
/* A receive WQE for the message in progress, taken now unless it has one. */
enum verdict deliver_take_receive(struct qp *q);
/* Whether the QP grants what this packet asks for (IBA vol. 1, 9.7.4.1.4). */
bool deliver_is_enabled(const struct qp *q, const struct packet *p);
/* What a FLUSH needs of both. */
static inline uint32_t deliver_flush_rights(const struct packet *p)
{
	return (p->feth.placement & FLUSH_GLOBAL ? MEM_FLUSH_GLOBAL : 0u) | (p->feth.placement & FLUSH_PERSISTENT ? MEM_FLUSH_PERSISTENT : 0u);
}
/* Whether the memory does. A zero-length access names no byte and its key is not looked at (IBA vol. 1, 9.7.4.1.4; known-bugs 33). */
static inline bool deliver_is_granted(const struct qp *q, uint32_t rkey, uint64_t va, uint32_t len, uint32_t access, uint8_t **host)
{
	return len == 0 || mr_check_remote(q->env->mrs, q->pd, &q->windows, rkey, va, len, access, host) == MEM_OK;
}

#endif
