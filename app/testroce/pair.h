/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic with another testroce: what the two say to each other beside it, over a TCP connection. The one that connected begins and ends; the one that listened answers. */
#ifndef TESTROCE_PAIR_H
#define TESTROCE_PAIR_H

#include <stdbool.h>

struct lab;

/* Starts lab->config with the peer. 0, or negative after a line on standard error. */
int pair_start(struct lab *lab);
/* After the traffic has ended here: has the peer end its own and say how it was. */
void pair_stop(struct lab *lab);
/* Looks at what the peer says; whether something was printed. */
bool pair_look(struct lab *lab);
/* Tells the peer that the traffic has failed here. */
void pair_tell_failure(struct lab *lab);

#endif
