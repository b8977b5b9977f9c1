/* SPDX-License-Identifier: BSD-3-Clause */
/* The programs of rdma-core that can be the other end of --peer pingpong, one row each. */
#ifndef PERF_PROGRAM_H
#define PERF_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "uroce.h"

struct program {
	const char *name;
	enum uroce_service service;
	bool has_srq;
	uint64_t size;  /* bytes of a message, if it is not told; so are qps */
	uint32_t qps;
	uint32_t cards; /* that each end shows the other, those of QPs that it does not have too: how many QPs it can have */
};

/* NULL: there is none. */
const struct program *program_find(enum uroce_service service, bool has_srq);

#endif
