/* SPDX-License-Identifier: BSD-3-Clause */
/* Ways into the target memory of RC ends beside its MR: they open, are used by the peer, and close. For program.c. */
#ifndef UROCE_SIM_WINDOW_H
#define UROCE_SIM_WINDOW_H

#include "program.h"

/* Of a pair whose programs are made, and whose images are not. */
void windows_make(struct plan_pair *pair, struct rng *r);

#endif
