/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams that do not go to the peer, and such as nobody wants. For plan.c. */
#ifndef UROCE_SIM_STRAY_H
#define UROCE_SIM_STRAY_H

#include "plan.h"

/* Among the UD ends of a plan whose programs are made. */
void stray_datagrams(struct plan *p);

#endif
