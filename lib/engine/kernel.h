/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharing the addresses of a kernel interface (DESIGN section 8, "shared"): GIDs, routes and neighbours come from the kernel by rtnetlink; the kernel answers ARP, ND and echo. */
#ifndef UROCE_KERNEL_H
#define UROCE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "addr.h"
#include "gid_index.h"
#include "log.h"

struct kernel;

struct kernel_config {
	uint32_t interface_index;
	struct addr *addr;         /* with GID_INDEX_MAX slots; tells `index` when one of them is empty again */
	struct gid_index *index;   /* of all cores */
	unsigned core;             /* the first one speaks and keeps the port quiet for all */
	const struct log *log;
};

/* Fills addr with the interface's addresses, routes and known neighbours, and, as the first core of an engine, keeps UDP port 4791 from answering with ICMP errors. 0; -EADDRNOTAVAIL (the interface
 * has no address) or another negative errno, after one log line. */
int kernel_open(struct kernel **out, const struct kernel_config *config, uint64_t now_ns);
/* Every millisecond or so, on the thread that drives the core: takes what the kernel told, asks what addr wants to know. Does not block. */
void kernel_poll(struct kernel *k, uint64_t now_ns);
/* NULL is fine. */
void kernel_close(struct kernel *k);

#endif
