/* SPDX-License-Identifier: BSD-3-Clause */
/* The verbs of trace scripts. */
#ifndef UROCE_TRACE_STEPS_H
#define UROCE_TRACE_STEPS_H

#include "world.h"

void step_run(struct world *w, struct line *l);
/* What must hold at the end of every script: nothing to send, no completion and no event that the script does not have. */
void step_end(struct world *w);

#endif
