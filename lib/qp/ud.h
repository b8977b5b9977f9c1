/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable datagrams (IBA vol. 1, 9.8.3, 10.2.2.4; annex A17): both directions of a UD QP. */
#ifndef UROCE_UD_H
#define UROCE_UD_H

#include "ud_ah.h"
#include "verdict.h"

#define GRH_BYTES 40u
#define QKEY_CONTROLLED 0x80000000u /* in a WR: the QP's own Q_Key is meant (IBA vol. 1, 10.2.4.2) */

/* Sending is qp_next_ah and qp_tx_to (qp.h). */
enum verdict ud_rx(struct qp *q, const struct packet *p);
#endif
