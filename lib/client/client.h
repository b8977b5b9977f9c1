/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects behind the public handles, and what the files of this floor offer each other. All of it lives in the program's
 * own memory; only what the pointers `ring`, `slots`, `cqes`, `page` and `doorbells` lead to is shared with the engine.
 *
 * Locks. `control` is held over every control call and guards reference counts and pool blocks. `events` guards the table of
 * live objects and the event counts, is never held over anything that waits for the engine, and is taken inside `control`,
 * never the other way round. Posting and polling take neither. */
#ifndef UROCE_CLIENT_H
#define UROCE_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "cqe.h"
#include "ctl.h"
#include "log.h"
#include "msg.h"
#include "ring.h"
#include "session.h"
#include "uroce.h"
#include "wqe.h"

#define CLIENT_LINE 64
#define CLIENT_DOORBELLS_OFFSET 4096u /* in arena 0, see session.h */

/* ---- objects ---- */
enum object_kind { OBJECT_PD, OBJECT_MR, OBJECT_MW, OBJECT_CHANNEL, OBJECT_CQ, OBJECT_SRQ, OBJECT_AH, OBJECT_QP, OBJECT_KINDS };

/* First member of every object. The cookie is what the engine gives back in events: a serial number and not the address, so
 * that an event of a destroyed object can never be taken for one of a new object at the same address. */
struct object {
	uint64_t cookie;
	struct uroce_context *ctx;
	uint32_t handle; /* the engine's */
	enum object_kind kind;
	uint64_t delivered, acked; /* events that the program took, and those of them that it has done with; under `events` */
	UT_hash_handle hh;
};

/* size bytes, zeroed and aligned to a cache line, entered into the table of live objects. NULL: out of memory. */
void *object_new(struct uroce_context *ctx, enum object_kind kind, size_t size);
/* Takes it out of the table, so that events that name it are skipped from now on, and waits until those that the program took
 * are acknowledged. The caller holds no lock. */
void object_retire(struct object *o);
void object_ack(struct object *o, unsigned n);
/* Takes it out of the table if that is still to be done, and frees it. */
void object_free(struct object *o);
/* The live object that an event names, counted as delivered to the program; NULL when no live object of this kind has the
 * cookie. The caller holds ctx->events. */
struct object *object_deliver(struct uroce_context *ctx, enum object_kind kind, uint64_t cookie);
/* Frees all that are left, and says in *count how many of each kind there were. */
void object_free_all(struct uroce_context *ctx, unsigned count[OBJECT_KINDS]);

/* ---- context ---- */
struct client_log {
	struct log log;
	void (*write)(void *arg, int level, const char *line);
	void *arg;
};

struct uroce_context {
	const struct session_ops *ops;
	void *session;
	struct abi_engine_page *page;
	const _Atomic uint32_t *life; /* never NULL: where the session has none, the page's own word */
	struct abi_doorbells *doorbells;
	struct client_log log;
	pthread_mutex_t control;
	uint32_t sequence;        /* of the last request */
	struct abi_device device; /* as it was when the context was opened */
	void *blocks;             /* tree (tsearch) of pool blocks */
	pthread_mutex_t events;
	pthread_cond_t acked;
	struct object *objects;
	uint64_t last_cookie;
	_Atomic bool is_death_told; /* as an event */
};

struct uroce_pd {
	struct object o;
	uint32_t refs; /* MRs, MWs, SRQs, AHs and QPs */
};

/* A piece of pool memory that uroce_alloc gave out. */
struct memory_block {
	uint8_t *base;
	uint64_t bytes;
	uint32_t handle;
	uint32_t refs; /* MRs in it */
};

struct uroce_mr {
	struct object o;
	struct uroce_pd *pd;
	struct memory_block *block; /* NULL: direct memory */
	uint32_t lkey, rkey;
};

struct uroce_mw {
	struct object o;
	struct uroce_pd *pd;
	enum uroce_mw_type type;
	_Atomic uint32_t rkey; /* type 1: of the last bind posted, by who posts */
};

struct uroce_channel {
	struct object o;
	int fd; /* the session's: it is closed by the other side of the call */
	uint32_t refs; /* CQs */
};

/* A queue of a QP as the CQ knows it that its WRs complete into: needed only when the engine is gone (flush.c). */
struct cq_queue {
	struct cq_queue *next, *prev; /* of this CQ */
	struct uroce_qp *qp;
	bool is_rq;
	uint32_t since;  /* CQEs taken when the QP was made: older ones are of others */
	uint32_t oldest; /* WQE that is flushed next */
};

struct uroce_cq {
	struct object o;
	struct uroce_channel *channel;
	void *user;
	uint32_t refs; /* QPs, twice when both queues of one use it */
	uint32_t entries; /* what it was granted */
	struct cq_queue *queues;   /* utlist; under `events` of the context */
	struct cq_queue *flushing; /* where the next poll goes on, NULL: at the beginning */
	struct abi_cqe closed;     /* what is polled instead of the ring when the engine is gone: never there */
	/* the polling thread's */
	_Alignas(CLIENT_LINE) struct abi_cqe *cqes;
	struct abi_ring *ring;
	struct abi_engine_page *page;
	const _Atomic uint32_t *life;
	uint32_t head;  /* CQEs taken */
	uint32_t slots; /* power of two; its bit of the head is the pass: odd or even */
};

/* One SQ, RQ or SRQ, the posting thread's. tail and head are read by who polls, once the engine is gone. */
struct post_queue {
	struct abi_ring *ring;
	uint8_t *slots;
	_Atomic uint32_t tail; /* WQEs posted */
	_Atomic uint32_t head; /* slots free again, as last read */
	uint32_t count;      /* slots, power of two */
	uint32_t slot_bytes;
	uint32_t max_sge;
	uint32_t max_inline;
	struct log_limit refusals;
};

struct uroce_srq {
	struct object o;
	struct uroce_pd *pd;
	void *user;
	uint32_t refs; /* QPs */
	/* what posting reads and only control calls write */
	_Alignas(CLIENT_LINE) struct abi_engine_page *page;
	const _Atomic uint32_t *life;
	_Alignas(CLIENT_LINE) struct post_queue rq;
};

struct uroce_ah {
	struct object o;
	struct uroce_pd *pd;
	bool is_group; /* it leads to a multicast group */
};

struct uroce_qp {
	struct object o;
	struct uroce_pd *pd;
	struct uroce_cq *send_cq, *recv_cq;
	struct uroce_srq *srq; /* NULL: it has an RQ of its own */
	void *user;
	struct uroce_qp_cap cap;
	uint32_t qpn;
	uint32_t gid_index;  /* of the last uroce_qp_endpoint */
	struct cq_queue in_send_cq, in_recv_cq;
	/* what both queues read and only control calls write */
	_Alignas(CLIENT_LINE) struct abi_engine_page *page;
	const _Atomic uint32_t *life;
	struct abi_doorbells *doorbells;
	uint64_t max_msg_bytes;
	uint32_t doorbell;
	uint32_t always_flags; /* enum abi_send_flag, set on every send */
	enum uroce_service service;
	uint32_t ops;          /* operations of its service, a bit 1 << enum uroce_opcode each */
	_Atomic uint32_t state; /* enum uroce_qp_state, as far as this side knows */
	_Alignas(CLIENT_LINE) struct post_queue sq;
	_Alignas(CLIENT_LINE) struct post_queue rq;
};

/* The engine has ended: in order, or without a word. Two lines that hardly ever change. */
static inline bool engine_is_dead(const struct abi_engine_page *page, const _Atomic uint32_t *life)
{
	return atomic_load_explicit(&page->dead, memory_order_relaxed)
		|| atomic_load_explicit(life, memory_order_relaxed) & CTL_LIFE_DEAD;
}

void context_log_init(struct client_log *log, const struct uroce_open_attr *attr);
/* Another that writes to the same place, for as long as the program's function may be called. */
void context_log_copy(struct client_log *to, const struct client_log *from);
static inline const struct log *context_log(const struct uroce_context *ctx)
{
	return &ctx->log.log;
}
void context_lock(struct uroce_context *ctx);
void context_unlock(struct uroce_context *ctx);
/* One request and its reply; a refusal is logged with the engine's own words. The caller holds ctx->control. 0, or the
 * reply's negative status, or -ENODEV, or -EPROTO. */
int context_call(struct uroce_context *ctx, struct abi_req *req, struct abi_rep *rep);
/* The same for requests that only name a handle and are answered by a status. An engine that is gone has let go of
 * everything: 0. */
int context_call_handle(struct uroce_context *ctx, enum abi_msg type, uint32_t handle);
int context_query_device(struct uroce_context *ctx, struct abi_device *device);
/* The address of a range of an arena. -EPROTO with a log line when it does not lie in there. */
int context_region(struct uroce_context *ctx, uint32_t arena, uint64_t offset, uint64_t bytes, void **out);
/* The slots of a ring that the engine made. slot_bytes: what is needed at least. -EPROTO with a log line. */
int context_slots(struct uroce_context *ctx, const struct abi_ring_place *place, uint32_t slot_bytes, void **slots);
/* The same, and its control block. */
int context_ring(struct uroce_context *ctx, const struct abi_ring_place *place, uint32_t slot_bytes, struct abi_ring **ring,
	void **slots);

/* ---- between files ---- */
/* device.c: a session with what a device string names (NULL or "": the environment). 0, or a negative errno with a log
 * line. The same for the ways that it knows: engine_library.c, an engine in this process; served.c, a daemon's socket. */
int device_open(const struct client_log *log, const char *device, const struct uroce_open_attr *attr,
	const struct session_ops **ops, void **session);
int engine_library_open(const struct client_log *log, const char *device, const struct uroce_open_attr *attr,
	const struct session_ops **ops, void **session);
/* How long one wait for the daemon may be. */
struct served_patience {
	unsigned step_ms;  /* for each message while attaching */
	unsigned reply_ms; /* for each message that answers a request */
};
extern const struct served_patience served_patience; /* what device.c takes */
int served_open(const struct client_log *log, const char *path, const struct served_patience *patience,
	const struct session_ops **ops, void **session);
/* dial.c: connects to a daemon's socket, which then is non-blocking. */
int dial(const struct log *log, const char *path, unsigned ms, int *out);
/* post.c: the client's end of a queue that the engine made, for `wrs` WRs in slots of at least slot_bytes. 0, or -EPROTO. */
int post_queue_init(struct uroce_context *ctx, struct post_queue *q, const struct abi_ring_place *place, uint32_t slot_bytes,
	uint32_t wrs, uint32_t max_sge, uint32_t max_inline);
/* post.c: what a service can send, as struct uroce_qp.ops. */
uint32_t post_ops(enum uroce_service service);
/* flush.c: a QP's queues are among those of its CQs from flush_add to flush_remove. */
void flush_add(struct uroce_qp *qp);
void flush_remove(struct uroce_qp *qp);
/* The engine is gone and the ring is empty: finds what is outstanding in every queue, and closes the CQ. last: a CQE whose
 * phase was not turned any more, or NULL. By who polls, once. */
void flush_begin(struct uroce_cq *cq, const struct abi_cqe *last);
/* After it: up to n (not 0) flushed WRs, or -ENODEV. */
int flush_take(struct uroce_cq *cq, struct uroce_wc *wc, unsigned n);
/* completion.c: the phase of a CQE in a ring of so many slots: 1 in even passes over it, 0 in odd ones; the 32-bit index wraps
 * after an even number of passes. */
static inline uint32_t completion_phase(uint32_t slots, uint32_t index)
{
	return !(index & slots);
}
/* completion.c: makes slots seem not written yet, from this index on. */
void completion_clear(struct abi_cqe *cqes, uint32_t slots, uint32_t head);
/* completion.c: whether the CQE with this index was written; slots that were never written seem to hold one of QP 0. */
bool completion_is_there(const struct uroce_cq *cq, uint32_t index);
/* completion.c: a CQE into another slot, whose phase stays. */
void completion_move(struct abi_cqe *to, const struct abi_cqe *from);
/* completion.c: takes the CQEs of a QP that are not polled yet out of the ring. By who polls, or nobody meanwhile. */
void completion_purge(struct uroce_cq *cq, uint32_t qpn);
/* memory.c: frees the blocks that are left. */
void memory_free_all(struct uroce_context *ctx);
/* qp_client.c: the enum of a path MTU in bytes, 0 when there is none, and back. */
uint8_t qp_client_mtu_code(uint32_t bytes);
uint32_t qp_client_mtu_bytes(uint32_t code);
/* qp_client.c: an address vector for the engine. */
void qp_client_pack_av(struct abi_av *to, const struct uroce_av *from);
/* qp_client.c: as uroce_qp_modify, but the caller holds ctx->control. */
int qp_client_modify(struct uroce_qp *qp, const struct uroce_qp_attr *attr, uint32_t mask);
/* strings.c: a template of one sentence about a cause; {peer}, {sent} and {rnr_sent} stand for the peer's address and QP and
 * the number of transmissions. Never NULL. */
const char *strings_cause_sentence(uint32_t cause);

#endif
