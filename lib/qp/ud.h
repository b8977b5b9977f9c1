/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable datagrams (IBA vol. 1, 9.8.3, 10.2.2.4; annex A17): both directions of a UD QP. */
#ifndef UROCE_UD_H
#define UROCE_UD_H

#include "ud_ah.h"
#include "verdict.h"

#define GRH_BYTES 40u
#define QKEY_CONTROLLED 0x80000000u /* in a WR: the QP's own Q_Key is meant (IBA vol. 1, 10.2.4.2) */

/* The AH of the WR at the cursor, ready to be sent to. WRs that cannot be sent have failed or are lost. NULL: there is nothing to send now. */
struct ud_ah *ud_aim(struct qp *q);
/* Writes the packet of the WR at the cursor; 0: nothing to send. */
uint32_t ud_tx(struct qp *q, uint8_t *frame);
enum verdict ud_rx(struct qp *q, const struct packet *p);
#endif
