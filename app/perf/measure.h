/* SPDX-License-Identifier: BSD-3-Clause */
/* What is measured, and the tests that measure it. A test is two functions: the client's begins and decides when it is enough, the server's answers until the client says something on the exchange. */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "end.h"
#include "histogram.h"

#define RESULT_COUNTERS 64u

struct result {
	uint64_t messages, bytes; /* payload; of UC and UD, what arrived, if that is seen */
	uint64_t sent, lost;      /* messages, of UC and UD */
	double seconds;
	uint64_t counters[RESULT_COUNTERS]; /* of the client's QPs, as uroce_qp_counter_name numbers them */
	const char *latency_of;   /* what the histogram holds */
	struct histogram latency; /* ns */
};

struct test_row {
	const char *name;
	/* 0 or -EIO with e->error. */
	int (*run)(struct end *e, struct result *result);
	/* Posts what has to be there, calls end_ready, answers; returns when exchange_is_ready. */
	int (*serve)(struct end *e);
};
/* Indexed by enum test. */
extern const struct test_row tests[TESTS];

int stream_run(struct end *e, struct result *result);
int stream_serve(struct end *e);
int latency_run(struct end *e, struct result *result);
int latency_serve(struct end *e);
int verify_run(struct end *e, struct result *result);
int verify_serve(struct end *e);

/* What the QPs of an end have counted. */
void result_add_counters(struct result *r, const struct end *e);

/* Kernel TCP: the client's trial, over the exchange's peer; and the server's, which ends with its answer. error: room for a sentence. */
int tcp_run(struct exchange *x, const struct trial *t, struct result *result, char *error, size_t room);
int tcp_serve(struct exchange *x, const struct trial *t);

/* Tells the client that it may begin. */
int end_ready(struct end *e);
/* When a measurement that began at start_ns has had enough of it. count: messages of one QP. */
bool trial_is_over(const struct trial *t, uint64_t count, uint64_t all_bytes, uint64_t start_ns);

#endif
