/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of a core without the client library: requests, and rings as they lie in memory. For tests that count cache lines and time, or write what no library would. Any error of set-up ends the
 * process with a line. */
#ifndef UROCE_TEST_RAW_CLIENT_H
#define UROCE_TEST_RAW_CLIENT_H

#include "core.h"
#include "cqe.h"
#include "wqe.h"

struct raw_client {
	struct core *core;
	struct core_client *k;
	const uint64_t *clock;
	uint32_t pd;
	enum abi_service service; /* of the QPs made next, */
	uint32_t flags;           /* enum abi_qp_flag, */
	uint32_t srq;             /* and the handle of their SRQ; 0: RQs of their own */
	struct abi_rep rep; /* to the last request */
	struct abi_engine_page *page;
	struct abi_doorbells *doorbells;
};

struct raw_memory {
	uint32_t handle, mr, key; /* iova 0, all rights */
	uint8_t *host;
	uint64_t bytes;
};

struct raw_cq {
	uint32_t handle;
	struct abi_ring *ring;
	struct abi_cqe *slots;
	uint32_t n, head;
};

struct raw_ring {
	struct abi_ring *ring;
	uint8_t *slots;
	uint32_t n, slot_bytes, tail;
};
struct raw_srq {
	uint32_t handle;
	struct raw_ring rq;
};
struct raw_qp {
	uint32_t handle, qpn, doorbell;
	enum abi_service service;
	struct raw_ring sq, rq; /* with an SRQ there is no rq */
};

/* A core with one address, 10.0.0.1, all random numbers from a seed, and hooks of direct_hooks.h. */
struct core *raw_core_new(uint32_t core_index, uint32_t cores, uint64_t now_ns);
/* A client with a PD, attached. clock: the time of its requests, borrowed. */
void raw_open(struct raw_client *c, struct core *core, const uint64_t *clock);
/* The reply's status; the reply is in c->rep. */
int raw_ask(struct raw_client *c, const struct abi_req *req);
int raw_ask_handle(struct raw_client *c, enum abi_msg type, uint32_t handle);

void raw_memory_new(struct raw_client *c, uint64_t bytes, struct raw_memory *m);
void raw_cq_new(struct raw_client *c, uint32_t entries, uint32_t channel, struct raw_cq *q);
void raw_srq_new(struct raw_client *c, uint32_t max_wr, uint32_t max_sge, struct raw_srq *q);
/* With these CQs, in RESET. */
void raw_qp_new(struct raw_client *c, const struct raw_cq *send, const struct raw_cq *recv, const struct abi_qp_cap *cap, struct raw_qp *q);
/* From RESET to RTS, to that QP number at that address. */
void raw_connect(struct raw_client *c, const struct raw_qp *q, const char *peer, uint32_t dest_qpn);
int raw_set_state(struct raw_client *c, const struct raw_qp *q, uint32_t state);

/* The ring that the last reply names. */
struct raw_ring raw_ring_of(const struct raw_client *c, const struct abi_ring_place *p);
/* Writes the WQE into the next slot, without asking whether it is free, and publishes it. */
void raw_post(struct raw_ring *r, const void *wqe, uint32_t bytes);
/* Rings, if the ring's flag says that nobody looks; true: it did. */
bool raw_ring_doorbell(struct raw_client *c, const struct raw_qp *q, const struct raw_ring *r);
/* An 8-byte WRITE, signaled, inline. */
void raw_write(struct raw_client *c, struct raw_qp *q, uint64_t wr_id, const struct raw_memory *to);
/* The next CQE, if there is one. */
bool raw_poll(struct raw_cq *q, struct abi_cqe *out);

#endif
