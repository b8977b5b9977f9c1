/* SPDX-License-Identifier: BSD-3-Clause */
/* From a run that failed to the least one that still does. For soak.c. */
#ifndef UROCE_SIM_SHRINK_H
#define UROCE_SIM_SHRINK_H

#include "run.h"

/* Leaves out connections, then faults, then the ends of programs, as long as the run fails, in whatever way. `fixed` says what is left; result: of the last run that failed. */
void shrink(uint64_t seed, struct plan_fixed *fixed, struct run_result *result);

#endif
