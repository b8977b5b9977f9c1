/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the tests' peer share: the line that is being carried out, and the memory that it may name. */
#ifndef INTEROP_PEER_H
#define INTEROP_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "stack.h"

#define WORDS_MAX 32u
#define PAUSE_US 100

struct peer {
	struct stack *stack;
	uint8_t *memory;
	uint64_t bytes;
	enum stack_service service;
	uint32_t depth;
	bool has_qp;
	uint64_t posted_sends, posted_recvs, sends, recvs, bad;
	uint64_t first_wr;
	uint32_t first_status;
	struct stack_wc last_recv;
};

/* A line, cut at its spaces; word[0] is the command. */
struct line {
	char *word[WORDS_MAX];
	unsigned n;
};

struct command {
	const char *name;
	int (*run)(struct peer *p, const struct line *l);
};

/* The value of a key; NULL: the line has none. */
const char *text_of(const struct line *l, const char *key);
uint64_t number_of(const struct line *l, const char *key, uint64_t otherwise);
/* Writes "error TEXT"; returns err. */
int answer_error(int err);
int answer_ok(void);
uint64_t now_ms(void);

/* Slots of memory that a line names. */
struct range {
	uint64_t at, len, n, stride, seed;
};
/* false: they do not all lie in the memory. */
bool take_range(const struct peer *p, const struct line *l, struct range *r);

/* peer_memory.c; ends with an entry without a name. */
extern const struct command memory_commands[];

#endif
