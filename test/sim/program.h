/* SPDX-License-Identifier: BSD-3-Clause */
/* The programs of the two sides of a connection, and what they leave in memory. For plan.c. */
#ifndef UROCE_SIM_PROGRAM_H
#define UROCE_SIM_PROGRAM_H

#include "plan.h"

#define LEN_MAX (64u << 10) /* of a message */

/* An operation, by its opcode. */
struct step_kind {
	unsigned weight; /* how often it is chosen */
	bool has_payload, has_receive, is_remote, is_word, is_flush;
};
extern const struct step_kind step_kinds[];

/* Styles, capacities, attributes and steps_most of the pair are set. is_exact: nothing on the way is lost, so a mistake strikes at one step and no other. */
void program_make(struct plan_pair *pair, enum mistake mistake, bool is_exact, struct rng *r);
void program_free(struct plan_end *e);

#endif
