/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's end of an SQ (IBA vol. 1, 10.8): WQEs into private WRs. */
#ifndef UROCE_SQ_H
#define UROCE_SQ_H

#include "qp.h"

/* Takes the next WQE into the record of what is in flight. false: none there, or no memory (then again later). */
bool sq_take(struct qp *q);
/* Gives the slots of retired WRs back to the program. */
void sq_free_slots(struct qp *q);
/* SQE to RTS: what was posted until now is part of the error, and is flushed before anything is sent. */
void sq_leave_send_error(struct qp *q);
/* ERR, SQE and what sq_leave_send_error left: flushes all that was taken, and takes and flushes up to `most` of what is in the ring. Returns how many of those. */
uint32_t sq_flush(struct qp *q, uint32_t most);

#endif
