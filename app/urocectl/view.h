/* SPDX-License-Identifier: BSD-3-Clause */
/* Where watch puts what it has seen: a terminal's screen, lines of text, or JSON. */
#ifndef UROCECTL_VIEW_H
#define UROCECTL_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* A sample is an object: time (seconds since 1970), interval_s, and the lists port, clients, qps and drops, whose rows have rates. */
struct view {
	bool (*open)(void);            /* false: it cannot be had, after one line */
	void (*show)(const json_t *sample);
	bool (*wait)(double seconds);  /* false: the user wants no more */
	void (*close)(void);
};
extern const struct view view_screen, view_text, view_json;

/* A sample as text, at most so many rows of clients and of QPs. */
void view_print(FILE *out, const json_t *sample, size_t clients, size_t qps);
/* Waits, or less if a signal asks for the end: then false. */
bool view_nap(double seconds);

#endif
