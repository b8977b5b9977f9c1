/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester (IBA vol. 1, 9.7.2, 9.7.3, 9.7.7.2): WQEs into packets. */
#ifndef UROCE_REQ_H
#define UROCE_REQ_H

#include "qp.h"

/* Writes the next request packet; 0: blocked or nothing to do. */
uint32_t req_tx(struct qp *q, uint8_t *frame);
/* Everything from una on is to be sent again. */
void req_on_lost(struct qp *q);
/* A READ segment or an atomic was answered in full. */
void req_on_answered(struct qp *q);
/* ---- for datagrams, which ud.c builds ---- */
#define LOST_AT_ONCE 32u /* messages to peers that cannot be reached, before a pause: nothing else would slow them */
/* Whether a WR stands at the cursor that may be sent in this state, taken now if need be. */
bool req_find_work(struct qp *q);
/* The WR at the cursor, one taken now if need be; NULL: there is none that may be sent now. */
struct wr *req_next(struct qp *q);
/* The WR at the cursor is lost: it completes all the same. */
void req_lose(struct qp *q);
void req_pause(struct qp *q);
/* The WR at the cursor was sent. */
void req_sent_datagram(struct qp *q);
/* n bytes from byte `at` of w; false: a key was refused, w has its error. */
bool req_copy_payload(struct qp *q, struct wr *w, uint32_t at, uint8_t *to, uint32_t n);

/* No message that was begun is outstanding. */
bool req_is_drained(const struct qp *q);
/* max_rd_atomic has been changed, while nothing was outstanding: a READ or atomic that was taken before may not be sent any more. */
void req_on_rd_atomic_changed(struct qp *q);
/* A tail-loss probe is due. */
void req_on_probe(struct qp *q);

#endif
