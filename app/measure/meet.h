/* SPDX-License-Identifier: BSD-3-Clause */
/* How the two ends of a measurement find each other, and how long one waits for the other. */
#ifndef APP_MEET_H
#define APP_MEET_H

#include "exchange.h"

#define MEET_PATIENCE_S 60u /* an answer takes no longer, whatever the other end has to make ready */

/* With listen ("": at the usual port) the server, which says on standard error where it waits; else the client of connect. A peer that is silent for too long, or whose host has died, is given up. 0, or -1 after a line on
 * standard error. */
int meet_peer(struct exchange *x, const char *listen, const char *connect, const char *usual_port);
/* The peer's connection to a socket of exchange_offer, which is closed; -1: it has not come within some seconds. */
int meet_accept(int listener);

#endif
