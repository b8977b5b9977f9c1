/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events: what happened to ports and objects outside of any WR. Said when they come, and kept for `show event`. The prompt's thread. */
#ifndef TESTROCE_EVENTS_H
#define TESTROCE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#define EVENTS_MAX 64u /* the last ones are kept */

struct lab;

struct events {
	char text[EVENTS_MAX][160];
	uint64_t ns[EVENTS_MAX]; /* when it was seen */
	uint64_t n;              /* seen so far */
};

/* Takes what has come of all ports; is_said: with a line each. Whether anything was printed. */
bool events_look(struct lab *lab, bool is_said);
void events_print(const struct events *e);
void events_clear(struct events *e);

#endif
