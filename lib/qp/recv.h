/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive source: where a responder gets its receive WQEs from, a QP's own RQ or a shared receive queue (IBA vol. 1, 10.2.9). Receive WQEs whose message came to nothing go back to it, and are taken first. */
#ifndef UROCE_RECV_H
#define UROCE_RECV_H

#include "qp.h"

/* Shared by QPs of any service of its core; owned by the core's client, written by recv.c. */
struct srq {
	struct recv_queue rq;
	struct qp_env *env;
	uint32_t limit;       /* an event is raised once when fewer are posted; 0: not armed */
	bool is_broken;       /* its ring said what cannot be: nothing is taken from it any more */
	uint32_t refs;        /* QPs */
	uint64_t cookie;
};

enum recv_result {
	RECV_OK,
	RECV_NONE,  /* no WQE is posted */
	RECV_BROKEN /* the WQE or the ring's index is impossible */
};
/* Takes the next WQE as a private copy. */
enum recv_result recv_take(struct recv_queue *rq, struct qp_env *env, struct recv_wr **out);
/* r, taken from rq, completes with the CQE that has been counted: its slot is free again. */
void recv_retire(struct recv_queue *rq);
/* Gives the slots of completed receives back to the program. */
void recv_free_slots(struct recv_queue *rq);
/* One that no message has completed: the next one gets it. */
void recv_return(struct recv_queue *rq, struct recv_wr *r);
/* One whose QP begins anew or goes away. */
void recv_drop(struct recv_queue *rq, struct qp_env *env, struct recv_wr *r);
/* Frees what has come back. */
void recv_forget(struct recv_queue *rq, struct qp_env *env);
void recv_free(struct qp_env *env, struct recv_wr *r);

/* WQEs that no message has taken, as far as its ring can be believed. */
uint32_t srq_posted(const struct srq *s);
/* Arms the limit event; it comes at once when fewer are posted already (IBA vol. 1, 10.2.9.3). */
void srq_arm(struct srq *s, uint32_t limit);
/* Goes on in another ring, whose slots hold what is posted in the old one. false: they cannot, and nothing has changed. */
bool srq_switch(struct srq *s, struct abi_ring *ring, const uint8_t *slots, uint32_t n, uint32_t slot_bytes);

#endif
