/* SPDX-License-Identifier: BSD-3-Clause */
/* A benchmark that meets an error says what it was and ends: a figure of half a run means nothing. */
#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int bench_check(int rc, const char *what)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", what, strerror(-rc));
		exit(1);
	}
	return rc;
}

double bench_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void bench_pin(unsigned cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	bench_check(-pthread_setaffinity_np(pthread_self(), sizeof(set), &set), "pin");
}

unsigned bench_poll(struct uroce_cq *cq, struct uroce_wc wc[64], struct uroce_qp *const *qp, unsigned qps)
{
	char text[256];
	int n = bench_check(uroce_cq_poll(cq, wc, 64), "poll");
	for (int i = 0; i < n; i++) {
		if (wc[i].status == UROCE_WC_SUCCESS)
			continue;
		for (unsigned q = 0; q < qps; q++)
			if (uroce_qp_num(qp[q]) == wc[i].qpn && uroce_qp_error_text(qp[q], text, sizeof(text)) > 0)
				fprintf(stderr, "%s\n", text);
		bench_check(-EIO, uroce_wc_status_str(wc[i].status));
	}
	return (unsigned)n;
}

unsigned bench_take(struct uroce_cq *cq, struct uroce_qp *const *qp, unsigned qps)
{
	struct uroce_wc wc[64];
	return bench_poll(cq, wc, qp, qps);
}
