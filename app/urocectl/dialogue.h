/* SPDX-License-Identifier: BSD-3-Clause */
/* The talk of an operator with a daemon (ctl.h). Each call that fails has said why, in one line; what is left then is dialogue_close. One thread. */
#ifndef UROCECTL_DIALOGUE_H
#define UROCECTL_DIALOGUE_H

#include <jansson.h>
#include <stdbool.h>

#include "talk.h"

struct dialogue {
	struct talk talk;
	bool is_quiet;     /* keeps the line for dialogue_close: the terminal is somebody else's meanwhile */
	char kept[512];
};

bool dialogue_open(struct dialogue *d, const char *path);
/* Prints the line that was kept. */
void dialogue_close(struct dialogue *d);
/* The rows of a noun, the caller's to json_decref. */
bool dialogue_show(struct dialogue *d, const char *noun, json_t **rows);
/* A request with its descriptor, or -1, which stays the caller's. False: it was refused, or the talk is over. */
bool dialogue_ask(struct dialogue *d, enum ctl_type type, struct ctl_message *m, int fd, struct ctl_answer *answer);

#endif
