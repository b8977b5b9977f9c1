/* SPDX-License-Identifier: BSD-3-Clause */
/* QP numbers: random but for the core's index in the low bits, never 0, 1 or 0xFFFFFF, and at rest for a while after use (known-bugs 20, V5). And the look-up from a number to its QP. */
#ifndef UROCE_QPN_H
#define UROCE_QPN_H

#include <stdbool.h>
#include <stdint.h>

#include "core.h"
#include "random.h"

struct qp;

struct qpn_slot {
	uint32_t qpn; /* 0: empty */
	struct qp *qp;
};
struct qpn_table {
	struct qpn_slot *slot; /* open addressing, at most half full */
	uint32_t mask;
	uint32_t count;
	uint32_t *resting;     /* ring of numbers freed last */
	uint32_t resting_next;
	uint64_t *taken;       /* bitmap of all numbers in use or at rest, without the core's bits */
	struct rng rng;        /* with is_replayed: everything follows from a test's seed */
	bool is_replayed;
	uint32_t core_index;
};
#define QPN_RESTING 4096u

/* seed: 0, or a test's own. */
int qpn_table_init(struct qpn_table *t, uint32_t core_index, uint64_t seed);
void qpn_table_destroy(struct qpn_table *t);
/* A new number for qp. 0, -ENOMEM, -ENOSPC; -ENOSYS and the like when the kernel has no random numbers. */
int qpn_take(struct qpn_table *t, struct qp *qp, uint32_t *qpn);
void qpn_release(struct qpn_table *t, uint32_t qpn);

static inline struct qp *qpn_find(const struct qpn_table *t, uint32_t qpn)
{
	/* numbers are random above the core's bits: they are their own hash */
	for (uint32_t i = qpn >> CORE_INDEX_BITS;; i++) {
		const struct qpn_slot *s = &t->slot[i & t->mask];
		if (s->qpn == qpn || !s->qpn)
			return s->qpn ? s->qp : 0;
	}
}

#endif
