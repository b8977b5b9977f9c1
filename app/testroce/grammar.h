/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines into calls. A command is a pattern of words: a plain word stands for itself, <kind> for a value of that kind, <kind|all> for the word "all", too, and what is in brackets at the end may be left out. From the same tables come parsing, completion, help, and the one
 * line that says what was expected where. */
#ifndef TESTROCE_GRAMMAR_H
#define TESTROCE_GRAMMAR_H

#include <stdbool.h>
#include <stdint.h>

#include "gid.h"

struct lab;

#define GRAMMAR_WORDS 12u
#define GRAMMAR_WORD_MAX 512u

/* A value as its kind took it; text is what was typed. */
struct value {
	const char *text;
	uint64_t number;
	struct gid gid;
	uint8_t mac[6];
};

struct kind {
	const char *name;  /* as in patterns, without the angle brackets */
	const char *takes; /* what is expected, in words */
	bool (*take)(struct lab *lab, const char *text, struct value *v);
	/* The i-th value that can be completed, NULL after the last; NULL: there are none to be listed. */
	const char *(*nth)(struct lab *lab, const struct kind *k, unsigned i);
	unsigned of; /* nth's own */
};

struct command {
	const char *pattern;
	/* value[i]: the i-th <kind> of the pattern; given: how many of them were there ("all" is none). 0, or negative after one line on standard error. */
	int (*run)(struct lab *lab, const struct value *value, unsigned given);
	const char *help;
};

/* A section of the help. */
struct section {
	const char *name, *title;
	const struct command *commands; /* ends with an empty row */
};

/* What somebody types who comes from another program. */
struct habit {
	const char *theirs; /* the first words of a line */
	const char *ours;
};

struct grammar {
	const struct section *sections; /* ends with an empty row */
	const struct kind *kinds;       /* so does it */
	const struct habit *habits;     /* so does it; NULL: none. A line that is refused and begins so is answered by what it is called here, too */
	struct lab *lab;
};

/* Carries out one line. An empty one, and one that begins with #, is nothing. 0, or negative after one line on standard error. */
int grammar_run(const struct grammar *g, const char *line);
/* The i-th word that may stand where the last word of line, or the space after it, is; NULL after the last. part: how many characters of it are there already. The text is valid until the next call. */
const char *grammar_complete(const struct grammar *g, const char *line, unsigned i, unsigned *part);
/* The same for people: also what values may stand there that cannot be listed, and what the command does where the line is whole. */
const char *grammar_hint(const struct grammar *g, const char *line, unsigned i);
/* Every command by sections, those of one section, or those whose pattern begins with this word; how many there were. */
unsigned grammar_help(const struct grammar *g, const char *word);

#endif
