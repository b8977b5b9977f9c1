/* SPDX-License-Identifier: BSD-3-Clause */
/* The programs of one context: they post what the plan says, in batches and at times of chance, poll, and have every completion checked. Between run.c, actor.c (turns), post.c, upkeep.c (what is to be done beside
 * posting) and check.c. */
#ifndef UROCE_SIM_ACTOR_H
#define UROCE_SIM_ACTOR_H

#include <stdio.h>

#include "plan.h"
#include "sim_host.h"

#define CONTEXT_CQS_MAX 3u

/* The first failure of a run, in words; later ones are consequences. */
struct verdict {
	char text[400];
};
void verdict_fail(struct verdict *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline bool verdict_is_bad(const struct verdict *v)
{
	return v->text[0];
}

struct actor;

/* Receive buffers, see pool.h. */
struct pool {
	uint8_t *memory;
	struct uroce_mr *mr;
	uint64_t iova;
	uint32_t buffers, room, stride, posted;
	bool *is_posted;
	bool is_shared;                 /* of an SRQ */
};

/* One side of a connection as it runs. */
struct end {
	const struct plan_end *plan;
	struct end *peer;
	struct actor *actor;
	unsigned number;                /* of the plan's ends */
	enum uroce_service service;
	char name[32];
	struct uroce_qp *qp;            /* NULL: gone, or never there */
	struct uroce_ah *ah[PLAN_WAYS_MAX]; /* UD: to each other end and group, made when it is needed */
	uint32_t ah_until[PLAN_WAYS_MAX];   /* steps before this one may name it */
	uint32_t qpn;
	struct uroce_gid gid;           /* its own */
	struct uroce_mr *source, *landing, *target;
	struct uroce_mw *window[SLOTS_MAX];
	struct uroce_mr *fast[SLOTS_MAX];
	uint32_t opening_key[OPENINGS_MAX];
	uint8_t *local, *target_memory;
	uint64_t local_iova, target_iova;
	uint32_t source_lkey, landing_lkey, target_rkey;
	uint32_t steps_posted, steps_done;       /* done: completed, or passed over as unsignaled */
	uint32_t receives_posted, receives_done, receives_good;
	struct pool pool;
	uint32_t next_from[PLAN_ENDS_MAX]; /* pooled: messages of that end before this one came, or will not come any more */
	bool *is_lost;                  /* steps that were flushed */
	uint32_t last_wqe_events, error_events;
	uint32_t failed_step;           /* first that completed in error; NO_INDEX: none, or none since it recovered */
	uint32_t failures;
	bool has_failed_receive;
	bool is_stopped, is_gone, is_revoked, is_ah_gone;
	bool is_drained, is_draining;   /* was taken to SQD; and is on the way there */
	uint64_t resume_ns, completed_when_drained;
	uint32_t post_again;            /* sends and receives that found a full queue: for statistics */
};

struct actor {
	const struct plan *plan;
	struct verdict *verdict;
	struct end *all;                /* of the run, by number */
	const struct uroce_gid *groups;
	FILE *history;                  /* or NULL */
	struct sim_host *host;
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_channel *channel;  /* NULL: does not wait */
	struct uroce_cq *cq[CONTEXT_CQS_MAX];
	uint32_t cq_needs;              /* CQEs that can be in one of them at a time */
	struct uroce_srq *srq;          /* or NULL */
	struct pool srq_pool;
	uint32_t limit;                 /* armed; 0: its event has come */
	bool is_limit_due;              /* fewer are posted: it must come */
	unsigned cqs, ends;
	struct end *end[2 * PLAN_PAIRS_MAX];
	struct uroce_mr *passing;       /* an MR that comes and goes beside the others, or NULL */
	struct rng rng;
	uint64_t now_ns, next_ns, pause_ns, seen_events;
	bool is_waiting;                /* armed, and nothing to post */
};

/* A line of the history: what a program did or saw. */
void actor_note(const struct actor *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t actor_next(void *actor, uint64_t now_ns);
void actor_act(void *actor, uint64_t now_ns);
/* What has completed or happened, and was not taken yet. */
void actor_finish(struct actor *a, uint64_t now_ns);

/* post.c: up to n of what is to be posted; whether anything was. */
bool post_sends(struct end *e, uint32_t n);
bool post_receives(struct end *e, uint32_t n);
bool post_shared(struct actor *a, uint32_t n);
/* Receives for a QP that is to be connected. */
void post_early(struct end *e);
bool post_has_more(const struct end *e);

/* upkeep.c: what happens at its time, or now and then. */
void upkeep_end(struct end *e);
void upkeep_actor(struct actor *a);
/* Something is to happen at its time. */
bool upkeep_is_due(const struct end *e);
void upkeep_take_events(struct actor *a);
/* What is left of it when all is over. */
void upkeep_finish(struct actor *a);

/* check.c: whether a completion is the next one that the plan has. */
void check_completion(struct actor *a, const struct uroce_wc *wc);
/* Whether the end has got all that it can get. */
bool check_is_done(const struct end *e);
/* check_end.c: memory, counters and state when all is over. */
void check_end(struct end *e, struct verdict *v);
/* Receives that are to be posted at all. */
uint32_t check_receives_offered(const struct end *e);

/* A recovery is to come, and until then there is nothing to post. */
static inline bool end_waits_to_recover(const struct end *e)
{
	return e->plan->recovers && e->failed_step != NO_INDEX;
}

static inline uint64_t end_wr_id(bool is_receive, uint32_t index)
{
	return (uint64_t)is_receive << 32 | index;
}

#endif
