/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of a measurement: a device, and for each trial its memory, CQ and QPs. Used by one thread. */
#ifndef APP_END_H
#define APP_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "exchange.h"
#include "operation.h"
#include "uroce.h"

#define END_RECV (UINT64_C(1) << 63) /* in wr_id: of a receive; the low half is the number of the QP */

#define END_QKEY 0x11111111u
#define END_HEADERS 40u /* in front of a datagram, where it is received */

/* Which of an end's QPs has a number. */
struct end_number {
	uint32_t qpn, index;
};

struct end {
	struct uroce_context *ctx;
	struct uroce_device_attr device;
	uint32_t gid_index;
	bool is_inline;  /* this thread drives the engine */
	bool is_crowded; /* more threads spin than there are CPUs: offer the CPU whenever nothing comes */
	bool is_client;
	struct exchange *exchange;

	struct trial trial;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_mr *mr;
	struct uroce_srq *srq; /* NULL: each QP has a queue of its own */
	struct uroce_ah *ah;   /* of the peer; UD */
	struct uroce_qp **qp;
	struct uroce_endpoint *local, *remote; /* of each QP, and of the one that it talks to */
	struct end_number *numbers; /* of the QPs, sorted */
	uint8_t *memory;
	uint64_t stride;    /* from one message to the next: its bytes and some that nobody writes */
	uint32_t slots;     /* messages of a QP in memory */
	uint64_t in_offset; /* where messages arrive; those that leave are at 0. The same place unless a trial needs both. */
	uint32_t recv_depth;  /* of a QP */
	uint32_t headroom;    /* bytes of headers before what is received */
	uint64_t received;    /* messages, of those whose arrival is seen; told to the client */
	uint64_t remote_addr;
	uint32_t remote_rkey;
	uint32_t empty; /* polls since something came */
	uint64_t stuck_since_ns;
	char error[1024]; /* why the trial failed, "" if it did not */
};

static inline uint64_t end_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* 0, or a negative errno after a line on standard error. */
int end_open(struct end *e, const char *device, uint32_t gid_index);
void end_close(struct end *e);

/* Makes everything for e->trial: 0, or a negative errno with e->error. end_release undoes it, also in part. */
int end_prepare(struct end *e);
void end_release(struct end *e);
/* What the peer has to know, and taking what it said; the latter connects. */
json_t *end_pack(struct end *e);
int end_connect(struct end *e, json_t *peer);
/* Connects every QP to what e->remote says. */
int end_join(struct end *e);

/* Sets e->error, unless it is set; returns -EIO. */
__attribute__((format(printf, 2, 3))) int end_fail(struct end *e, const char *format, ...);

/* Drives the engine if that is this thread's, and takes completions. Returns how many, or -EIO: one of them was no success, or nothing has come for
 * so long (is_waiting) that nothing will. */
int end_take(struct end *e, struct uroce_wc *wc, unsigned n, bool is_waiting);
/* Drives the engine without looking at completions: what exchange.pump wants. */
int end_pump(void *end);

/* What gets lost stays lost. */
static inline bool end_may_lose(const struct end *e)
{
	return e->trial.service != UROCE_RC;
}

/* What has not come after so long was lost. Ends that share a CPU wait for that, too. */
static inline uint64_t end_patience_ns(const struct end *e)
{
	return e->is_crowded ? UINT64_C(500000000) : UINT64_C(100000000);
}

/* Which QP has this number, or -1. */
int end_find_qp(const struct end *e, uint32_t qpn);

/* Posts all n, which have to fit. 0 or -EIO. Receives go to the SRQ if there is one. */
int end_post_send(struct end *e, uint32_t qp, const struct uroce_send_wr *wr, unsigned n);
int end_post_recv(struct end *e, uint32_t qp, const struct uroce_recv_wr *wr, unsigned n);

static inline uint8_t *end_slot(const struct end *e, uint32_t qp, uint32_t slot)
{
	return e->memory + ((uint64_t)qp * e->slots + slot % e->slots) * e->stride;
}

/* WRs of a slot; the SGEs have to outlive them. */
struct uroce_send_wr end_send_wr(const struct end *e, uint32_t qp, uint32_t slot, struct uroce_sge *sge);
struct uroce_recv_wr end_recv_wr(const struct end *e, uint32_t qp, uint32_t slot, struct uroce_sge *sge);

#endif
