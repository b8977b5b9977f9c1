/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connection, the responder's side (IBA vol. 1, 9.8.2). */
#ifndef UROCE_UC_H
#define UROCE_UC_H

#include "verdict.h"

enum verdict uc_rx(struct qp *q, const struct packet *p);

#endif
