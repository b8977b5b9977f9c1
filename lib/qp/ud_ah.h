/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles that the WRs of UD QPs name (IBA vol. 1, 10.2.2.3, 11.2.2.1). */
#ifndef UROCE_UD_AH_H
#define UROCE_UD_AH_H

#include "qp.h"

/* An AH. Owned by the core's client; may go while WRs name it. */
struct ud_ah {
	struct ah ah; /* first: its hook gets this */
	struct pd *pd;
	struct qp *waiting; /* QPs whose next WR goes there, until it is resolved; through ud.next */
};
/* 0, or what ah_open answers. Takes a reference to pd. */
int ud_ah_open(struct ud_ah *a, struct addr *addr, const struct abi_av *av, struct pd *pd, uint64_t now_ns);
/* Whoever waits for it finds it gone. */
void ud_ah_close(struct ud_ah *a);

/* Wakes q when the state of a changes, or a is gone. */
void ud_ah_wait(struct ud_ah *a, struct qp *q);
/* It waits for no AH any more. */
void ud_ah_forget(struct qp *q);

#endif
