/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder of an unreliable connection: which packets belong together. Owns the sequence rules of UC in q->resp; what a packet then does is deliver.c's. Nothing is ever answered.
 * IBA vol. 1, 9.8.2: a packet that is not the one expected ends the message in progress; what follows is dropped up to the next packet that begins a message, whatever its PSN. An InfiniBand network neither repeats
 * nor reorders, so the specification does not say what to do about either; an Ethernet may do both. Packets from a little before what has come are dropped and change nothing, so that a message is delivered once at
 * most, and messages come in the order of their posts.
 *
 * Invariant: epsn is the PSN behind the newest packet seen; in_message holds only while no packet of that message is missing. */
#include "uc.h"

#include "deliver.h"

/* A packet from so far back was delayed; one from before that is a peer that has begun anew somewhere else. */
#define OLD_MAX 4096

enum verdict uc_rx(struct qp *q, const struct packet *p)
{
	struct resp *r = &q->resp;
	bool begins = p->op->flags & OPCODE_FIRST;
	int32_t ahead = psn_distance(p->psn, r->epsn);
	if (ahead < 0 && (!begins || ahead >= -OLD_MAX))
		return PSN_OLD;
	if (ahead)
		qp_count(q, QP_OUT_OF_SEQUENCE);
	r->epsn = psn_add(p->psn, 1);
	if (begins)
		deliver_abandon(q); /* what was before it, if it has not ended */
	else if (ahead || !r->in_message || r->message != p->op->message)
		return MESSAGE_INCOMPLETE;
	if (!deliver_is_enabled(q, p))
		return OPCODE_DISABLED;
	return deliver(q, p);
}
