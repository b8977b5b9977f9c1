/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles of UD. Owns q->ud, who waits for which AH, and what makes an AH of an address vector; the way to the address is addr/ah.c's.
 * Invariant: a QP is in the list of the AH that ud.waits_for names, and in no other. */
#include "ud_ah.h"

void ud_ah_forget(struct qp *q)
{
	struct ud *u = &q->ud;
	if (!u->waits_for)
		return;
	*u->at = u->next;
	if (u->next)
		u->next->ud.at = u->at;
	u->waits_for = NULL;
}

void ud_ah_wait(struct ud_ah *a, struct qp *q)
{
	struct ud *u = &q->ud;
	u->waits_for = a;
	u->next = a->waiting;
	u->at = &a->waiting;
	if (u->next)
		u->next->ud.at = &u->next;
	a->waiting = q;
}

static void wake_waiting(struct ud_ah *a)
{
	while (a->waiting) {
		struct qp *q = a->waiting;
		ud_ah_forget(q);
		qp_wake(q);
	}
}

static void on_path_changed(struct ah *ah)
{
	wake_waiting((struct ud_ah *)ah);
}

/* The flow label, if there is one; else packets to one address stay on one path and those to others may take others. */
static uint32_t choose_flow(const struct abi_av *av)
{
	uint32_t hash = 0x9e3779b9, word;
	for (unsigned i = 0; i < sizeof(av->dgid); i += sizeof(word)) {
		memcpy(&word, av->dgid + i, sizeof(word));
		hash = (hash ^ word) * 0x85ebca6b;
	}
	return av->flow_label & 0xfffff ? av->flow_label & 0xfffff : hash >> 12;
}

int ud_ah_open(struct ud_ah *a, struct addr *addr, const struct abi_av *av, struct pd *pd, uint64_t now_ns)
{
	struct ah_fields f = {
		.sgid_index = av->sgid_index, .traffic_class = av->traffic_class, .hop_limit = av->hop_limit, .flow_label = av->flow_label, .priority = av->sl,
		.udp_src_port = qp_source_port(choose_flow(av)),
	};
	memcpy(f.dgid.b, av->dgid, sizeof(av->dgid));
	int rc = gid_is_multicast(&f.dgid) ? ah_open_group(&a->ah, addr, &f) : ah_open(&a->ah, addr, &f, on_path_changed, now_ns);
	if (rc)
		return rc;
	a->waiting = NULL;
	a->pd = pd;
	pd->refs++;
	return 0;
}

void ud_ah_close(struct ud_ah *a)
{
	wake_waiting(a);
	a->pd->refs--;
	ah_close(&a->ah);
}
