/* SPDX-License-Identifier: BSD-3-Clause */
/* What every benchmark over the public API needs. */
#ifndef UROCE_BENCH_COMMON_H
#define UROCE_BENCH_COMMON_H

#include <stdint.h>

#include "uroce.h"

/* Ends the program unless rc is at least 0; returns it. */
int bench_check(int rc, const char *what);
/* Seconds, of any origin. */
double bench_now(void);
/* This thread, from now on only on that CPU. */
void bench_pin(unsigned cpu);
/* Takes up to 64 completions of a CQ that these QPs use; ends the program on an error, with the QP's own words. Returns how many. */
unsigned bench_poll(struct uroce_cq *cq, struct uroce_wc wc[64], struct uroce_qp *const *qp, unsigned qps);
/* The same when only their number matters. */
unsigned bench_take(struct uroce_cq *cq, struct uroce_qp *const *qp, unsigned qps);

#endif
