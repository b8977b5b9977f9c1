/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of commands, a file each. */
#ifndef TESTROCE_COMMANDS_H
#define TESTROCE_COMMANDS_H

#include "grammar.h"

extern const struct command commands_traffic[]; /* set, start, stop, show fwd; and what is of the program: help, wait, load, quit */
extern const struct command commands_port[];    /* port, gid, neigh; counters, drops, cores */
extern const struct command commands_link[];    /* fault, capture */
extern const struct command commands_object[];  /* pd, mr, cq, srq, mw, qp by hand */
extern const struct command commands_wr[];      /* what is posted to them, and polled */

/* What main does, too. */
int traffic_start(struct lab *lab, const struct value *value, unsigned given);
int traffic_stop(struct lab *lab, const struct value *value, unsigned given);

#endif
