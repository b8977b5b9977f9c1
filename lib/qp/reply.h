/* SPDX-License-Identifier: BSD-3-Clause */
/* What a responder sends: READ and atomic responses, ACK and NAK, in PSN order. An ACK never covers, overtakes or is put between the responses of an unfinished READ or atomic. */
#ifndef UROCE_REPLY_H
#define UROCE_REPLY_H

#include "qp.h"

#define AETH_ACK 0x1f      /* ACK, credits not counted */
#define AETH_RNR 0x20      /* | timer code */
#define AETH_NAK_SEQUENCE 0x60
#define AETH_NAK_INVALID_REQUEST 0x61
#define AETH_NAK_REMOTE_ACCESS 0x62
#define AETH_NAK_REMOTE_OPERATION 0x63
#define AETH_NAK_INVALID_RD_REQUEST 0x64

/* Writes the next answer; 0: none is due. */
uint32_t reply_tx(struct qp *q, uint8_t *frame);
static inline bool reply_is_due(const struct qp *q)
{
	return q->out.is_ack_due || q->out.is_nak_due || q->out.replay.pending;
}
void reply_ack(struct qp *q);
/* is_last: it ends the QP. */
void reply_nak(struct qp *q, uint8_t syndrome, struct psn psn, bool is_last);
/* The packet that a NAK in the queue asks for has come after all: an ACK says more. */
void reply_on_gap_closed(struct qp *q);
/* A READ or atomic was executed: its answer acknowledges what came before it, too. */
void reply_request_answer(struct qp *q, struct replay_record *rec);
/* One is asked for again. */
void reply_answer(struct qp *q, struct replay_record *rec);
void reply_reset(struct qp *q);

#endif
