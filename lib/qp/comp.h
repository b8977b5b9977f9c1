/* SPDX-License-Identifier: BSD-3-Clause */
/* The completer (IBA vol. 1, 9.7.5, 9.7.7.2 to .5): acknowledgements and responses into completions. */
#ifndef UROCE_COMP_H
#define UROCE_COMP_H

#include "qp.h"

enum drop comp_rx(struct qp *q, const struct packet *p);
void comp_reset(struct qp *q);

#endif
