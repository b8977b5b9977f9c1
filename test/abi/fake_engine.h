/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine played by hand. It answers the client's requests, keeps what was asked, and lays rings out in memory of its own;
 * all that a poll core would do to the rings is done by the test, one step at a time, through the calls below. */
#ifndef UROCE_FAKE_ENGINE_H
#define UROCE_FAKE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "cqe.h"
#include "msg.h"
#include "ring.h"
#include "session.h"
#include "uroce.h"
#include "wqe.h"

#define FAKE_OBJECTS 64u
#define FAKE_REQUESTS 1024u
#define FAKE_ARENA0 (4096u * 3) /* the page and the doorbells */
#define FAKE_ARENA (1u << 20)   /* everything else */
#define FAKE_QPN 0x1234u /* of the first QP; the next ones follow */

struct fake_ring {
	struct abi_ring *ring;
	uint8_t *slots;
	uint32_t count, slot_bytes;
};

struct fake_cq {
	struct fake_ring r;
	struct fake_ring next; /* slots to go on in */
	uint32_t tail;
	uint32_t channel; /* handle */
	uint64_t cookie;
	bool is_live;
};

struct fake_qp {
	struct fake_ring sq, rq;
	struct abi_qp_cap cap;
	struct abi_qp_attr attr;
	struct abi_qp_error error;
	uint32_t doorbell, qpn;
	uint64_t cookie;
};

struct fake_srq {
	struct fake_ring rq, old; /* the one in use, and the one before a resize */
	uint32_t max_sge, limit;
	uint64_t cookie;
};

struct fake_engine {
	uint8_t *arena[2];
	int arena_fd[2]; /* memfds */
	_Atomic uint32_t life; /* what session_ops.life gives, if that is used */
	uint32_t arena_used;
	struct abi_engine_page *page;
	struct abi_doorbells *doorbells;
	struct abi_req req[FAKE_REQUESTS];
	unsigned reqs;
	struct fake_cq cq[FAKE_OBJECTS];
	struct fake_qp qp[FAKE_OBJECTS];
	struct fake_srq srq[FAKE_OBJECTS]; /* handle n is srq[n - 1] */
	unsigned cqs, qps, srqs;
	int channel[FAKE_OBJECTS][2]; /* the reading end and the other; handle 1 is channel[0] */
	unsigned channels;
	int async[2];
	uint32_t handles;
	uint32_t doorbell;   /* of the next QP */
	uint32_t qpn_twist;  /* the numbers of QPs, from FAKE_QPN on, are exclusive-ored with it */
	uint32_t first_index; /* where the indices of the next rings begin */
	unsigned wakes, polls, closes;
	void (*on_woken)(struct fake_engine *f);
	void *on_woken_arg;
	/* Changes a reply before the client gets it. */
	void (*on_answered)(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep);
	int call_error;      /* what session_ops.call itself returns */
	bool is_dying;       /* it carries the next request out and dies before it can answer */
	/* the client's log */
	char line[512];
	unsigned lines;
};

/* An engine without a client. fake_open makes one and opens a context over it; uroce_close ends the session, fake_free frees
 * the memory. */
struct fake_engine *fake_new(void);
void fake_free(struct fake_engine *f);
struct fake_engine *fake_open(struct uroce_context **ctx);
extern const struct session_ops fake_session_ops;
/* Answers a request, without its descriptor. */
void fake_answer(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep);
struct uroce_open_attr fake_open_attr(struct fake_engine *f);

/* The last request of a type; fails the test when there was none. */
const struct abi_req *fake_last(const struct fake_engine *f, enum abi_msg type);
unsigned fake_count(const struct fake_engine *f, enum abi_msg type);

/* Slot of the WQE with this index. */
void *fake_slot(const struct fake_ring *r, uint32_t index);
uint32_t fake_tail(const struct fake_ring *r);
/* The engine gives n slots back. */
void fake_release(struct fake_ring *r, uint32_t n);
/* Takes all doorbells as an engine does; how many bits there were, *last the number of the last one. */
unsigned fake_take_doorbells(struct fake_engine *f, uint32_t *last);
/* Writes a CQE, then fires if the CQ is armed for it. */
void fake_complete(struct fake_engine *f, struct fake_cq *cq, const struct abi_cqe *cqe, bool is_solicited);
void fake_complete_id(struct fake_engine *f, struct fake_cq *cq, uint32_t qpn, uint64_t wr_id);
/* Half of it: body and tail, but not the phase. */
void fake_write_cqe(struct fake_cq *cq, const struct abi_cqe *cqe);
/* A good completion of the WQE with this index, as it lies in the ring. */
struct abi_cqe fake_cqe_of(const struct fake_engine *f, unsigned qp, bool is_rq, uint32_t index);
/* Completes the oldest WQE that was not given back, and gives it back. */
void fake_finish(struct fake_engine *f, struct fake_cq *cq, unsigned qp, bool is_rq);
void fake_fire(struct fake_engine *f, const struct fake_cq *cq);
void fake_async(struct fake_engine *f, uint64_t cookie, uint32_t type);

#endif
