/* SPDX-License-Identifier: BSD-3-Clause */
/* The scatter/gather cursor: walks the SGEs of a WQE, each piece through mr_check, and copies between them and a packet. It holds no pointer into an MR between calls,
 * so an MR may be deregistered at any time (known-bugs 11, 38). */
#ifndef UROCE_SG_H
#define UROCE_SG_H

#include <stdint.h>

#include "mr.h"
#include "wqe.h"

struct sg {
	const struct abi_sge *sge; /* private copy of the WQE's, never the ring */
	uint32_t num_sge;
	uint32_t at;     /* index of the SGE that holds `offset` */
	uint32_t in_sge; /* bytes of it already passed */
};

void sg_init(struct sg *s, const struct abi_sge *sge, uint32_t num_sge);
/* Total bytes of the SGEs (64 bits: 32 SGEs of up to 2^32-1). */
uint64_t sg_total(const struct abi_sge *sge, uint32_t num_sge);
/* Moves the cursor to `offset` bytes from the start; at most the total. */
void sg_seek(struct sg *s, uint64_t offset);
/* Copies the next len bytes out of (gather) or into (scatter, needs MEM_LOCAL_WRITE) the SGEs and advances. The caller knows that so many remain; running out is
 * MEM_BAD_RANGE. On a refusal nothing more is copied and the cursor stays where the refused piece begins. SGEs of length 0 are passed without a check. */
enum mem_verdict sg_gather(struct sg *s, const struct mr_table *t, const struct pd *pd, uint8_t *to, uint32_t len);
enum mem_verdict sg_scatter(struct sg *s, const struct mr_table *t, const struct pd *pd, const uint8_t *from, uint32_t len);
/* Checks len bytes from the cursor for scattering without moving it or touching memory. */
enum mem_verdict sg_check(const struct sg *s, const struct mr_table *t, const struct pd *pd, uint32_t len, uint32_t access);

/* memcpy whose bytes become visible in address order, the last cache line last: a program that polls the last byte of a WRITE sees all before it (DESIGN section 6). */
void mem_place(uint8_t *to, const uint8_t *from, uint32_t len);

#endif
