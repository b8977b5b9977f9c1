/* SPDX-License-Identifier: BSD-3-Clause */
/* A lesson: the life of a SEND in nine steps on live objects, then a WRITE, a READ, and a send over a socket beside them. */
#ifndef TESTROCE_LESSON_H
#define TESTROCE_LESSON_H

#include <stdbool.h>

/* is_stepwise: waits for Enter after each step, if standard input is a terminal. 0, or negative after a line on standard error. */
int lesson_run(bool is_stepwise);

#endif
