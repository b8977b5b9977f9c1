/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs of a connection leave in memory. For program.c. */
#ifndef UROCE_SIM_IMAGE_H
#define UROCE_SIM_IMAGE_H

#include "program.h"

/* Of a pair whose programs are made. May choose what a compare-and-swap compares with. */
void images_make(struct plan_pair *pair, struct rng *r);

#endif
