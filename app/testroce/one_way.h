/* SPDX-License-Identifier: BSD-3-Clause */
/* What modes that send one message after the other have in common. */
#ifndef TESTROCE_ONE_WAY_H
#define TESTROCE_ONE_WAY_H

#include "end.h"

/* A client's step: as many messages as there is room for, each in its slot, its number as immediate; and that of one lane. */
int one_way_step(struct end *e);
int one_way_step_lane(struct end *e, struct lane *l);
/* It is done when it was sent. */
int one_way_on_sent(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc);
/* A server's receive of a service that keeps order and loses nothing: bytes, length, immediate. Posted again. */
int one_way_on_received(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc);
/* The same where messages may be lost: the immediate says which one it is. */
int one_way_on_received_some(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc);
/* Mode write's, which incast takes, too: each message is READ back if it is to be verified. */
int write_step(struct end *e);
int write_on_sent(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc);

#endif
