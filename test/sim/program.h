/* SPDX-License-Identifier: BSD-3-Clause */
/* The programs of the two sides of a connection, and what they leave in memory. For plan.c. */
#ifndef UROCE_SIM_PROGRAM_H
#define UROCE_SIM_PROGRAM_H

#include "plan.h"

/* Styles, capacities and attributes of the pair are set. is_exact: nothing on the way is lost, so a mistake strikes at one step and no other. */
void program_make(struct plan_pair *pair, enum mistake mistake, bool is_exact, struct rng *r);
void program_free(struct plan_end *e);

#endif
