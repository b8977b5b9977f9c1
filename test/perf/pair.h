/* SPDX-License-Identifier: BSD-3-Clause */
/* Two sides of a benchmark: two threads of this process, each pinned to a CPU of its own, each running program and engine in turn (inline mode), joined by a ring link. The layout of limits.c. */
#ifndef UROCE_PAIR_H
#define UROCE_PAIR_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common.h"

#define PAIR_MEMORY (64u << 20)
#define PAIR_QKEY 0x11111111u

/* Of QPs: RC without receives, RC each with its own, RC all with those of one SRQ, UD. */
enum kind { KIND_PLAIN, KIND_RQ, KIND_SRQ, KIND_UD, KINDS };

struct pair;

/* What one side has of a kind, all zero until pair_open. */
struct set {
	unsigned qps;
	struct uroce_cq *cq;
	struct uroce_srq *srq; /* or NULL */
	struct uroce_ah *ah;   /* UD: to the other side */
	struct uroce_qp **qp;
	struct uroce_endpoint *endpoint;
	unsigned recvs;        /* posted to each QP, or to the SRQ; 0: a kind without receives */
	unsigned *used;        /* [qps, with an SRQ only [0]] receives that have completed and are not posted again */
};

struct side {
	struct pair *pair;
	unsigned index;
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_mr *mr;
	struct set set[KINDS];
	uint8_t *memory;
	uint32_t lkey, rkey;
	volatile uint64_t arrived; /* receives taken so far */
};

struct pair_config {
	unsigned qps;
	unsigned depth;    /* send WRs of a QP */
	unsigned cpu[2];
};

struct pair {
	struct pair_config config;
	struct side side[2];
	volatile unsigned arrived[2]; /* how many meeting points each side has reached */
	volatile bool stop;           /* side 0 has done: side 1 need not drive its engine any more */
	pthread_barrier_t wake;
	void (*run)(struct side *s, void *arg);
	void *arg;
};

/* Opens both sides and calls run on each of the two threads. Ends the program with a line on any error. */
void pair_run(const struct pair_config *config, void (*run)(struct side *s, void *arg), void *arg);
static inline struct side *pair_other(const struct side *s)
{
	return &s->pair->side[!s->index];
}
/* Connects qps QPs of a kind between the sides, which both call it. False: they were connected already. */
bool pair_open(struct side *s, enum kind kind);
/* Both sides go on when both have come, driving their engines meanwhile. */
void pair_meet(struct side *s);
/* Both sides sleep until both have come; stop is false again. */
void pair_sleep(struct side *s);
/* Takes completions of sends; ends the program on an error. Returns how many. */
unsigned pair_take(struct set *t);
/* Takes completions of receives and posts receives again, a batch at a time. Returns how many completed. */
unsigned pair_receive(struct side *s, struct set *t);

#endif
