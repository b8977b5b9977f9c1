/* SPDX-License-Identifier: BSD-3-Clause */
/* One core with one QP in the place of one side of a capture: its addresses, its peer, virtual time. */
#ifndef UROCE_GOLDEN_HOST_H
#define UROCE_GOLDEN_HOST_H

#include "core.h"
#include "capture.h"
#include "uroce.h"

#define GOLDEN_FRAME_BYTES 4352u
#define GOLDEN_REGIONS 16u
#define GOLDEN_WRS 512u

struct golden_region {
	uint32_t captured_rkey;
	uint64_t va, len;
	bool is_window; /* the peer may invalidate its key */
	uint8_t *memory;
	struct uroce_mr *mr;
	uint32_t rkey; /* ours */
};

struct golden_host {
	uint64_t now, start;
	struct core *core;
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_qp *qp;
	struct uroce_ah *ah; /* UD: to the peer */
	struct golden_region region[GOLDEN_REGIONS];
	unsigned regions;
	uint8_t frame[GOLDEN_FRAME_BYTES]; /* pulled last */
};

/* Whose place is taken, and who its peer is. */
struct golden_way {
	const uint8_t *mac, *peer_mac;
	struct gid gid, peer;
	uint32_t peer_qpn;
	const struct gid *group; /* that it is in, or NULL */
	uint8_t traffic_class, hop_limit;
};
/* Of who sent a packet; of who it was sent to, which knows no QPN of its peer's. A member of a group that it was sent to is a neighbour of the sender's. */
struct golden_way golden_way_of(const struct packet *own);
struct golden_way golden_way_back(const struct packet *peers);

struct golden_qp {
	enum uroce_service service;
	uint32_t sq_psn, rq_psn; /* first ones that it sends and expects */
	uint8_t rnr_timer;       /* the code of its RNR NAKs */
	uint32_t qkey;           /* UD */
};

void golden_host_open(struct golden_host *h, const struct golden *g, const struct golden_way *way, const struct golden_qp *qp);
void golden_host_close(struct golden_host *h);
/* Memory that a peer, or a WR, names from va on. */
struct golden_region *golden_host_region(struct golden_host *h, uint32_t captured_rkey, uint64_t va, uint64_t len);
/* The same through a memory window. */
void golden_host_window(struct golden_host *h, uint32_t captured_rkey, uint64_t va, uint64_t len);
void golden_host_feed(struct golden_host *h, const uint8_t *frame, uint32_t len);
/* The next frame that it sends now; its length, 0: none. */
uint32_t golden_host_pull(struct golden_host *h);
/* Lets time pass until then, or until something is sent: its length, 0: nothing. */
uint32_t golden_host_wait(struct golden_host *h, uint64_t time_ns);

#endif
