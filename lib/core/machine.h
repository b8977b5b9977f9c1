/* SPDX-License-Identifier: BSD-3-Clause */
/* The inside of a core and of its clients; for the files of this folder only. core.c owns the life of a core, dispatch.c what comes in, schedule.c what goes out, doorbell.c which send queues are
 * looked at, event.c the events, channel.c how they get to the client, moderation.c when those of completions wait, control.c and ..._control.c the requests, client.c the objects of a client, look.c what is shown of them. */
#ifndef UROCE_MACHINE_H
#define UROCE_MACHINE_H

#include <sys/queue.h>

#include "arena.h"
#include "core.h"
#include "handles.h"
#include "mcast.h"
#include "modify.h"
#include "qp.h"
#include "qpn.h"
#include "recv.h"
#include "ud_ah.h"

#define LINGER_MAX 16u  /* idle SQs looked at without a doorbell */
#define WARM_MAX 8u      /* clients whose doorbells are looked at at every round; up to so many, all are */
#define LOOP_FRAMES 64u /* packets to ourselves under way */
#define LOOP_FRAME_BYTES 4352u

/* Packets from one QP of this core to another: never on the wire, through the same code. */
struct loop {
	uint8_t *buffer; /* LOOP_FRAMES of LOOP_FRAME_BYTES, allocated at first use */
	uint32_t len[LOOP_FRAMES];
	uint32_t head, tail; /* free running */
};

struct core {
	struct qp_env env;
	struct packet_filter filter;
	struct qpn_table qpns;
	struct loop loop;
	struct mcast_table mcasts;
	struct qp *linger[LINGER_MAX];
	uint32_t lingering;
	TAILQ_HEAD(, core_client) overruns;      /* with a CQ that overran, whose QPs have not all been told */
	TAILQ_HEAD(late_channels, channel) late; /* in which something waits for room */
	uint64_t late_at;
	bool is_port_up;
	struct core_client *clients; /* the last to come first, and so by falling id */
	uint32_t n_clients, n_cqs, n_mws;
	uint32_t attached;         /* clients there have been */
	uint32_t warms;
	struct core_client *warm[WARM_MAX]; /* rang lately */
	struct core_client *sweep; /* the next one to be looked at in turn; NULL: the first */
	uint64_t swept_at, sweep_due; /* ns, and ns times clients not yet used up */
	struct core_stats stats;
	struct modify_limits limits;
	struct core_config config;
	void (*tap)(void *arg, const struct core_seen *seen);
	void *tap_arg;
	uint32_t next_pd;
};

/* Where events of completions go, or the asynchronous ones of a client. */
struct channel {
	int read_fd, write_fd;
	uint32_t refs;
	bool is_late;
	TAILQ_HEAD(, completion_queue) late; /* with an event that is to be written */
	struct waiting_events *waiting;      /* asynchronous ones that are; NULL: a channel of completions */
	TAILQ_ENTRY(channel) late_link;
};

/* Pool memory handed out. */
struct memory {
	uint32_t arena;
	uint32_t refs; /* MRs */
	uint64_t offset, bytes;
};

/* An MR, or one for fast registration, and the pool memory under it, if any. */
struct region {
	struct mr *mr;
	struct memory *memory;
};

/* When the events of a CQ are written. */
struct moderation {
	uint32_t count;      /* CQEs that one waits for; 0 and 1: none is held back */
	uint64_t period_ns;  /* and for how long at most */
	bool is_holding;     /* one is due, */
	uint32_t since;      /* and counts the CQEs from this index on */
	uint32_t seen;       /* what the CQ had produced at the last look */
	struct timer timer;  /* runs while one is held back */
};

/* A CQ with its places and channel. */
struct completion_queue {
	struct cq cq; /* first: a struct cq is one */
	struct core_client *client;
	struct channel *channel;
	struct abi_ring_place control;     /* of its control block, */
	struct abi_ring_place place, next; /* its slots, and those that it is to go on in when it is being resized (slots 0: it is not) */
	struct moderation moderation;
	bool is_overrun_told;
	bool is_late;
	TAILQ_ENTRY(completion_queue) late_link;
};

/* An SRQ's place, and the one that it is to go on in when it is being resized (slots 0: it is not). */
struct shared_queue {
	struct srq srq; /* first: a struct srq is one */
	struct core_client *client;
	struct pd *pd;
	struct abi_ring_place place, next;
	uint32_t max_sge;
};

/* A QP's place. */
struct queue_pair {
	struct qp *qp;
	struct core_client *client;
	struct abi_ring_place sq, rq;
	struct mcast_list mcasts; /* UD: of which groups it is a member */
};

struct core_client {
	struct core *core;
	struct core_client *next;
	uint32_t id;               /* 0: not attached yet */
	struct arenas arenas;
	struct abi_engine_page *page;
	struct abi_doorbells *doorbells;
	struct handles pds, memories, regions, mws, channels, cqs, srqs, ahs, qps; /* of mws: struct mr */
	struct qp_group group;     /* its QPs share the sending with those of other clients as one */
	struct qp **by_doorbell;   /* ABI_DOORBELLS of them, grown as needed */
	uint32_t doorbells_room, doorbells_hint;
	uint64_t left[ABI_DOORBELL_TOP]; /* words that were rung and not looked at yet */
	bool has_left;
	struct channel async;
	struct core_usage usage, quota;
	bool has_quota;
	struct core_who who;
	uint32_t qps_gone;         /* how many QPs it had and has no more, */
	uint64_t counter[QP_COUNTER_COUNT]; /* and what these counted */
	bool is_attached;
	bool is_dead;              /* core_client_mark_dead */
	bool has_overrun;          /* in core->overruns */
	uint32_t overrun_left;     /* slots of qps below which QPs have not been told */
	TAILQ_ENTRY(core_client) overrun_link;
	bool is_warm;
	uint32_t quiet_rounds;     /* looks at its doorbells, while it is warm, since it rang */
	uint32_t ending_kind, ending_index; /* how far core_client_detach has come */
	struct log_limit refusals;
};

/* dispatch.c */
void dispatch_loop(struct core *c);

/* event.c */
/* Looks at the arm words of the CQs that have new CQEs. */
void event_notify(struct core *c);
void event_forget_cq(struct core *c, struct completion_queue *q);
/* Writes an event of q's, or sees to it that it is written; it has been armed for. */
void event_fire(struct core *c, struct completion_queue *q);
void event_on_qp(struct qp_env *env, struct qp *q, enum abi_event event);
void event_on_srq(struct qp_env *env, struct srq *srq, enum abi_event event);
void event_on_cq_overrun(struct qp_env *env, struct cq *cq);
void event_on_gids_changed(void *arg);
/* A piece of what overrun CQs bring about. */
void event_handle_overruns(struct core *c);
void event_forget_client(struct core_client *k);

/* channel.c */
/* 0 or a negative errno. */
int channel_init(struct channel *ch, const struct core_hooks *h, bool is_async);
void channel_destroy(struct channel *ch, const struct core_hooks *h);
/* An event of q's, which is not late: now, or when there is room. false: its client takes no more, and it is lost. */
bool channel_put_completion(struct core *c, struct completion_queue *q);
/* The same; also lost is what finds no room and may not wait, or finds too many that do. */
bool channel_put_async(struct core *c, struct channel *ch, const struct abi_async_event *e, bool may_wait);
/* What found no room, once in a while; there is something. */
void channel_retry_late(struct core *c);
void channel_forget_cq(struct core *c, struct completion_queue *q);
void channel_forget_async(struct core *c, struct channel *ch);

/* moderation.c */
void moderation_init(struct moderation *m);
/* What is held back is let go. */
void moderation_set(struct core *c, struct completion_queue *q, uint32_t count, uint32_t period_us);
/* q, which is moderated, has new CQEs: whether an event is to be written for them now. As cq_take_arm, it disarms. */
bool moderation_is_over(struct core *c, struct completion_queue *q);
void moderation_forget(struct core *c, struct moderation *m);

/* doorbell.c */
void doorbell_scan(struct core *c);
void doorbell_on_idle(struct qp_env *env, struct qp *q);
void doorbell_forget(struct core *c, struct qp *q);
bool doorbell_is_rung(const struct core *c);
/* The next scan looks at all clients. */
void doorbell_sweep_all(struct core *c);
/* It leaves the core. */
void doorbell_forget_client(struct core_client *k);
/* A number for q among its client's doorbells. 0, -ENOMEM, -ENOSPC. */
int doorbell_take(struct core_client *k, struct qp *q);
void doorbell_give(struct core_client *k, struct qp *q);

/* control.c */
#define MAX_QP_WR 32768u
uint32_t control_round_up(uint32_t n);

/* memory_control.c */
int memory_alloc(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);
int mr_create(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);
int mr_alloc(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);
int mr_end(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);
int mr_modify(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);
/* It lets go of what it is bound to. */
void mr_unbind(struct core_client *k, struct region *r);
void mr_destroy(struct core_client *k, uint32_t handle, struct region *r);
int mw_create(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);
void mw_destroy(struct core_client *k, uint32_t handle, struct mr *mr);

/* cq_control.c */
#define CORE_MAX_CQE (1u << 22)
int cq_create(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);
int cq_modify(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);
void cq_destroy(struct core_client *k, uint32_t handle, struct completion_queue *q);

/* srq_control.c */
int srq_create(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);
int srq_modify(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);
int srq_query(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);
void srq_destroy(struct core_client *k, uint32_t handle, struct shared_queue *q);

/* ah_control.c */
int ah_create(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);
void ah_destroy(struct core_client *k, uint32_t handle, struct ud_ah *a);

/* client.c */
/* DESTROY_*, DEREG_MR, FREE_MEMORY. 0; -ENOENT, -EBUSY with a text. */
int client_destroy(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);
/* Control block and slots of a ring, one piece of an arena. */
int client_take_ring(struct core_client *k, uint32_t slots, uint32_t slot_bytes, struct abi_ring_place *p);
/* Whether the client may have so much more. 0; -EDQUOT with a text and a log line. */
int client_check_quota(struct core_client *k, const struct core_usage *more, struct abi_rep *rep);
uint64_t client_ring_bytes(uint32_t slots, uint32_t slot_bytes);
void client_give_ring(struct core_client *k, const struct abi_ring_place *p);
/* Slots alone, to go on in; p is left alone when there is no memory. */
int client_take_slots(struct core_client *k, uint32_t slots, uint32_t slot_bytes, struct abi_ring_place *p);
/* The two parts of a ring that have come to lie apart. */
void client_give_slots(struct core_client *k, const struct abi_ring_place *p);
void client_give_control(struct core_client *k, const struct abi_ring_place *p);
/* Puts a sentence into the reply and returns `error`. */
int client_refuse(struct abi_rep *rep, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
struct queue_pair *client_qp(struct qp *q);
void client_destroy_qp(struct core_client *k, uint32_t handle, struct queue_pair *p);

static inline struct core *core_of(struct qp_env *env)
{
	return (struct core *)((uint8_t *)env - offsetof(struct core, env));
}

#endif
