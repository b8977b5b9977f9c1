/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys without memory of their own, which programs bind to a part of an MR by WRs and take away again: memory windows of types 1 and 2B, and MRs for fast registration (IBA vol. 1, 10.6.7). Whether the memory
 * is reached still decides mr_check alone: a bound key is an MR like any other, with a range inside another's.
 *
 *            needs of the MR     bound again while bound   ends by                                  may be named
 *   type 1   MW_BIND             yes                       a bind of no bytes                       by peers of any QP of the PD
 *   type 2B  MW_BIND             no                        invalidation; its QP's RESET or end      by peers of that QP
 *   MR_FAST  nothing             no                        invalidation                             as an MR
 *
 * One thread: the core's. */
#ifndef UROCE_MW_H
#define UROCE_MW_H

#include <sys/queue.h>

#include "mr.h"

struct entry;

/* Windows of type 2B bound on one QP; all zeroes is empty. So many at most, since all go at once when the QP does. */
#define MW_PER_QP_MAX 4096u
struct mw_list {
	LIST_HEAD(, entry) head;
	uint32_t n;
};

enum bind_verdict {
	BIND_OK,
	BIND_NO_TARGET,   /* the key names no window (or MR_FAST) of this PD */
	BIND_NOT_FREE,    /* it is bound, and has to be invalidated first */
	BIND_BAD_MR,      /* the lkey names no MR of this PD */
	BIND_BAD_RIGHTS,  /* rights that there are not, or that the MR does not allow to be passed on */
	BIND_BAD_RANGE,   /* not within the MR, or no bytes */
	BIND_TOO_MANY,    /* MW_PER_QP_MAX */
	BIND_VERDICT_COUNT
};

/* What a bind WR asks for. */
struct mw_bind {
	const struct pd *pd;      /* the QP's */
	struct mw_list *through;  /* the QP's */
	uint32_t key;             /* the upper 24 bits say which, the lower 8 are its new ones */
	uint32_t lkey;
	uint64_t addr, len;       /* of the MR of lkey */
	uint64_t iova;            /* MR_FAST: how its first byte is to be addressed; windows: addr */
	uint32_t access;          /* enum mem_access */
};

/* A window or MR_FAST, bound to nothing. *key: its upper 24 bits, and 8 to begin with. 0; -ENOSPC: the table is full; -ENOMEM. Ends by mr_deregister. Takes a reference to pd. */
int mw_allocate(struct mr_table *t, struct pd *pd, enum mr_kind kind, uint32_t *key, struct mr **out);
/* BIND_MW (is_window) and REG_MR (not): IBA vol. 1, 10.6.7.2, C10-72 to C10-75; 10.6.7.1. Unless it is BIND_OK nothing has changed. */
enum bind_verdict mw_bind(struct mr_table *t, const struct mw_bind *b, bool is_window);
/* What a peer, or a WR, may invalidate through this QP (IBA vol. 1, 10.6.5 and o10-37.2.26; known-bugs 37): a bound window of type 2B of its own, or a bound MR_FAST of its PD to which no window is bound. NULL: nothing else. */
struct mr *mw_find_invalidable(const struct mr_table *t, const struct pd *pd, const struct mw_list *through, uint32_t key);
/* It is bound to nothing any more. */
void mw_unbind(struct mr_table *t, struct mr *mr);
/* All of a QP's. */
void mw_unbind_all(struct mr_table *t, struct mw_list *l);

#endif
