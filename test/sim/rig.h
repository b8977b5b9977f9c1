/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts and connected QPs in a simulated world, for tests of one situation each. Any error of set-up ends the process with a line. */
#ifndef UROCE_RIG_H
#define UROCE_RIG_H

#include "sim_world.h"
#include "uroce.h"

#define RIG_HOSTS_MAX 3u
#define RIG_QPS_MAX 64u

struct rig_config {
	unsigned hosts;              /* 0: 2 */
	unsigned qps;                /* from host 0 to each other host; 0: 1 */
	enum uroce_service service;
	uint32_t mtu;                /* 0: 4096 */
	uint64_t bits_per_second;    /* 0: 10 Gbit/s */
	uint64_t propagation_ns;     /* 0: 1 us each way */
	uint32_t tx_frames;          /* 0: 1024 */
	uint64_t memory;             /* bytes at each end of each QP; 0: 1 MiB */
	const char *fault[RIG_HOSTS_MAX]; /* on what a host receives */
	struct uroce_qp_attr attr;   /* as named by attr_mask */
	uint32_t attr_mask;
	uint32_t first_psn;          /* 0: random */
	bool is_memory_shared;       /* the QPs of a host use the same bytes */
};

/* One end of a connection. */
struct rig_end {
	struct uroce_qp *qp;
	struct uroce_mr *mr;
	uint8_t *memory;
	unsigned host;
};

struct rig {
	struct rig_config config;
	struct sim_world *world;
	struct sim_host *host[RIG_HOSTS_MAX];
	struct uroce_context *ctx[RIG_HOSTS_MAX];
	struct uroce_pd *pd[RIG_HOSTS_MAX];
	struct uroce_cq *cq[RIG_HOSTS_MAX];
	uint8_t *memory[RIG_HOSTS_MAX];
	unsigned pairs;
	struct rig_end near[RIG_QPS_MAX], far[RIG_QPS_MAX]; /* near: on host 0 */
};

void rig_open(struct rig *r, const struct rig_config *config);
void rig_close(struct rig *r);
/* Runs for so long. */
void rig_run(struct rig *r, uint64_t ns);
/* Runs until n completions of a host's CQ have come into wc, at most so long; returns how many came. */
unsigned rig_wait(struct rig *r, unsigned host, struct uroce_wc *wc, unsigned n, uint64_t ns);
uint64_t rig_counter(struct uroce_qp *qp, unsigned counter);
/* A WR from an end to the other: len bytes from offset 0 of the one to offset 0 of the other. sge is filled and has to stay. */
struct uroce_send_wr rig_wr(const struct rig_end *from, const struct rig_end *to, struct uroce_sge *sge, enum uroce_opcode opcode, uint32_t len);

#endif
