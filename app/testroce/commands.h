/* SPDX-License-Identifier: BSD-3-Clause */
/* The sections of the help, each with a table of commands in a file of its own. */
#ifndef TESTROCE_COMMANDS_H
#define TESTROCE_COMMANDS_H

#include "grammar.h"

extern const struct command commands_program[]; /* help, lesson, wait, load, quit */
extern const struct command commands_traffic[]; /* set, start, stop, show fwd */
extern const struct command commands_port[];    /* port, gid, neigh; events, counters, drops, cores */
extern const struct command commands_link[];    /* fault, capture */
extern const struct command commands_object[];  /* pd, cq, srq, ah, qp by hand */
extern const struct command commands_memory[];  /* mr, mw */
extern const struct command commands_wr[];      /* what is posted to them, and polled */

/* What main does, too. */
bool traffic_is_running(const struct lab *lab);
/* Whether stop has something to say: it runs, or has failed and nobody has been told. */
bool traffic_is_open(const struct lab *lab);
int traffic_start(struct lab *lab, const struct value *value, unsigned given);
int traffic_stop(struct lab *lab, const struct value *value, unsigned given);

#endif
