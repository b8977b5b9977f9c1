/* SPDX-License-Identifier: BSD-3-Clause */
/* The turns of a benchmark that waits for its next one, so that another can run meanwhile: what is compared runs within the same second, on CPUs placed alike. */
#ifndef UROCE_TURNS_H
#define UROCE_TURNS_H

/* Names of loops: those of the arguments, or, when there are none, what standard input says, a line each. */
struct turns {
	char **name; /* ends with NULL, as argv does */
	char line[64];
};

/* The next name, until the next call; NULL after the last one. Sleeps until a line has come. */
const char *turns_next(struct turns *t);
/* A line "NAME VALUE", at once. */
void turns_say(const char *name, double value);

#endif
