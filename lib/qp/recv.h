/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive source: where a responder gets its receive WQEs from. Now a QP's own RQ. Receive WQEs whose message came to nothing go back to it, and are taken first. */
#ifndef UROCE_RECV_H
#define UROCE_RECV_H

#include "qp.h"

enum recv_result {
	RECV_OK,
	RECV_NONE,  /* no WQE is posted */
	RECV_BROKEN /* the WQE or the ring's index is impossible */
};
/* Takes the next WQE as a private copy. */
enum recv_result recv_take(struct recv_queue *rq, struct qp_env *env, struct recv_wr **out);
/* Gives the slots of completed receives back to the program. */
void recv_free_slots(struct recv_queue *rq);
/* One that no message has completed: the next one gets it. */
void recv_return(struct recv_queue *rq, struct recv_wr *r);
/* Frees what has come back. */
void recv_forget(struct recv_queue *rq, struct qp_env *env);
void recv_free(struct qp_env *env, struct recv_wr *r);

#endif
