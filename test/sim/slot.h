/* SPDX-License-Identifier: BSD-3-Clause */
/* The windows and fast MRs of an end, as window.c planned them. */
#ifndef UROCE_SIM_SLOT_H
#define UROCE_SIM_SLOT_H

#include "actor.h"

/* Bound to nothing. 0 or a negative errno. */
int slots_open(struct end *e);
int slots_close(struct end *e);

/* A step that is about an opening: its own side's, or the peer's. */
static inline bool slot_is_of(const struct step *s)
{
	return s->opening != NO_INDEX;
}
/* Whether what it waits for has happened. */
bool slot_is_ready(const struct end *e, const struct step *s);
/* A bind that is no WR of uroce_post_send, and is posted by slot_bind. */
bool slot_is_type_1(const struct end *e, const struct step *s);
int slot_bind(struct end *e, uint32_t index);
/* What it changes in the WR; bind has to stay until it is posted. */
void slot_put(struct end *e, const struct step *s, struct uroce_send_wr *wr, struct uroce_bind *bind);
/* Whether a receive of e says what it has to about the peer's step. */
bool slot_is_invalidated(const struct end *e, const struct step *s, const struct uroce_wc *wc);

#endif
