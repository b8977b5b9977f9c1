/* SPDX-License-Identifier: BSD-3-Clause */
/* SIGINT and SIGTERM: they end whatever waits instead of the process. What waits looks here at least every INTERRUPT_LOOK_MS. */
#ifndef TESTROCE_INTERRUPT_H
#define TESTROCE_INTERRUPT_H

#include <stdbool.h>

#define INTERRUPT_LOOK_MS 100

void interrupt_catch(void);
/* Whether one has come since the last interrupt_forget; whether one of them was to end the program, whatever it does (SIGTERM). */
bool interrupt_is_there(void);
bool interrupt_is_final(void);
/* What is begun now may be interrupted anew. */
void interrupt_forget(void);

#endif
