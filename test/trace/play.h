/* SPDX-License-Identifier: BSD-3-Clause */
/* One script, played in a process of its own, so that one that crashes is one failure. */
#ifndef UROCE_TRACE_PLAY_H
#define UROCE_TRACE_PLAY_H

#include <stdbool.h>
#include <stdio.h>

/* Reads the script and closes it; name is what a failure is reported with. Ends the process at the first line that is not so. */
void play(FILE *script, const char *name);
/* The same in a child. false: it failed, and has said why. */
bool play_apart(FILE *script, const char *name);

#endif
