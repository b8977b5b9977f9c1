/* SPDX-License-Identifier: BSD-3-Clause */
/* Where commands come from: a terminal with line editing, history, completion and help (librte_cmdline), another standard input, or a file. */
#ifndef TESTROCE_PROMPT_H
#define TESTROCE_PROMPT_H

#include "lab.h"

/* Reads commands from standard input until it ends, or `quit`; looks after the traffic meanwhile. How many lines of a pipe or file went wrong; who sits at a terminal has seen it: 0. */
int prompt_run(struct lab *lab);
/* Carries out the lines of a file. How many went wrong, or -1 after a line on standard error: it cannot be read. */
int prompt_run_file(struct lab *lab, const char *path);
/* Waits, looking after the traffic; ends early when standard input has something (true), which may be its end, or at a signal. */
bool prompt_wait(struct lab *lab, double seconds, bool until_input);
/* Takes what there is then, a key; whether it was the end. */
bool prompt_is_closed(void);

#endif
