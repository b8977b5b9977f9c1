/* SPDX-License-Identifier: BSD-3-Clause */
/* What is in the rings, decoded: straight from the shared memory that program and engine have between them. */
#ifndef TESTROCE_LESSON_SHOW_H
#define TESTROCE_LESSON_SHOW_H

#include "stage.h"

/* The WQE that was posted last, to the SQ or the RQ. */
void show_send_wqe(const struct player *p);
void show_recv_wqe(const struct player *p);
/* The CQE that the program will poll next. */
void show_cqe(const struct player *p);
void show_wc(const struct uroce_wc *wc);

#endif
