/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder (IBA vol. 1, 9.7.4, 9.7.5): requests into memory, receives and answers. */
#ifndef UROCE_RESP_H
#define UROCE_RESP_H

#include "qp.h"

enum drop resp_rx(struct qp *q, const struct packet *p);
void resp_reset(struct qp *q, struct psn epsn);

#endif
