/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations that can be measured, one row each, and a trial: one operation with everything that both ends have to agree on. */
#ifndef APP_OPERATION_H
#define APP_OPERATION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "uroce.h"

struct operation {
	const char *name;
	enum uroce_opcode opcode;
	unsigned services; /* which have it: bits of enum uroce_service */
	bool takes_recv; /* uses up a receive WR of the peer */
	bool has_imm;
	bool is_fetching; /* bytes come to the requester: READ and atomics */
	bool is_atomic;   /* changes a word by its operands, and brings what was there */
	uint32_t size;    /* bytes of a message, whatever was asked; 0: as asked */
};

enum test { TEST_STREAM, TEST_LATENCY, TEST_VERIFY, TESTS };

/* What is done in one step. The server gets it from the client. */
struct trial {
	const struct operation *op; /* NULL: kernel TCP */
	enum uroce_service service;
	bool has_srq;   /* the QPs of an end take their receives from one SRQ */
	enum test test;
	uint64_t size;  /* bytes of a message */
	uint32_t qps;
	uint32_t depth; /* messages of a QP outstanding; a multiple of batch */
	uint32_t batch; /* messages of one post */
	uint32_t inline_bytes; /* messages up to this go inline */
	uint32_t mtu;   /* path MTU in bytes; 0: the largest both carry */
	uint64_t iters; /* messages of a QP; 0: as many as fit in seconds */
	uint64_t bytes; /* end after so many, though not before two messages; 0: no such limit */
	double seconds;
	const struct pace *pace; /* the client's; NULL: nobody looks on. Does not travel. */
};

/* Somebody who looks on while a trial runs: told now and then how many messages have moved so far. */
struct pace {
	void (*show)(void *arg, uint64_t messages, double seconds);
	void *arg;
};

/* NULL beyond the last. */
const struct operation *operation_at(unsigned i);
/* By its name, of len characters; NULL: there is none. */
const struct operation *operation_find(const char *name, size_t len);
const char *trial_name(const struct trial *t);
const char *service_name(enum uroce_service service);
bool service_find(const char *name, enum uroce_service *service);

/* Takes depth, batch and QPs down to what the test uses, a whole number of batches in the depth and in iters, and few enough bytes: those of a trial stay under 512 MiB at
 * each end, and those under way low enough for the trial to end in time. */
void trial_fit(struct trial *t);

/* The message that announces a trial. NULL: no memory. */
json_t *trial_pack(const struct trial *t);
/* false: not a trial that this version can do. */
bool trial_unpack(json_t *message, struct trial *t);

#endif
