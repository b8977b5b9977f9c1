/* SPDX-License-Identifier: BSD-3-Clause */
/* The EAL of this process: one, started when the first engine needs it, shared by all, and never cleaned up (it cannot be initialised twice). */
#ifndef UROCE_EAL_H
#define UROCE_EAL_H

#include <stdbool.h>
#include <stdint.h>

#include "log.h"

#define EAL_FILE_PREFIX "uroce" /* of DPDK's files: dpdk-telemetry.py -f uroce */

struct eal_need {
	uint32_t memory_mib;  /* 0: default (512 without hugepages) */
	bool has_telemetry;   /* its socket is wanted */
	const char *pci;      /* address of the PCI device that will be used, or NULL */
	const struct log *log;
};

/* Starts the EAL, or takes the one that runs, the program's own too. 0; -ENODEV, -ENOMEM after one log line. Any thread; its affinity, signal mask and signal handlers stay as they are. */
int eal_get(const struct eal_need *need);
/* The EAL stays; only the count of users goes down. */
void eal_put(void);
unsigned eal_users(void);
/* Whether DPDK's telemetry can be reached, as far as is known: with an EAL of the program's own that is the program's business. After eal_get. */
bool eal_has_telemetry(void);
/* Gives the calling thread an lcore number, without which it has no mempool cache (30 ns instead of 8 for each mbuf). Cheap when it has one; given back when the thread ends.
 * No number left: works without. */
void eal_enter_thread(void);

#endif
