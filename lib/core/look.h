/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects of a core as an operator sees them: copied a piece at a time by the thread that drives the core, which so is held up by no more than LOOK_OBJECTS objects and clients, LOOK_SLOTS empty places of tables, and a walk along the list of its clients, between two
 * rounds, however many objects there are. What is written in rings by clients is only ever shown, bounded. */
#ifndef UROCE_LOOK_H
#define UROCE_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "core.h"
#include "counters.h"
#include "gid.h"

#define LOOK_OBJECTS 64u
#define LOOK_SLOTS 4096u

enum look_kind { LOOK_CLIENT, LOOK_QP, LOOK_CQ, LOOK_MR, LOOK_KINDS };

struct look_client {
	struct core_who who;
	struct core_usage used, most;
	bool has_quota;
	uint64_t counter[QP_COUNTER_COUNT]; /* of QPs that were looked at in this piece; with the first one of a client, those that are gone too */
	uint32_t qps_gone;                  /* how many: when two pieces of a client differ in it, their sum is wrong */
};

struct look_qp {
	uint32_t qpn;
	uint8_t service, state; /* enum abi_service, enum abi_qp_state */
	bool has_peer, has_srq;
	struct gid peer;
	uint32_t peer_qpn;
	uint32_t path_mtu;      /* bytes */
	uint32_t srtt_ns, rttvar_ns; /* 0: no sample yet */
	uint64_t rto_ns;        /* 0: no timeout */
	uint32_t window_packets, in_flight_packets;
	uint32_t sq_size, sq_used, rq_size, rq_used; /* WRs: posted and not completed */
	uint32_t send_cq, recv_cq;
	struct abi_qp_error error;
	uint64_t counter[QP_COUNTER_COUNT];
};

struct look_cq {
	uint32_t id;            /* within its client */
	uint32_t entries, used; /* CQEs: written and not taken */
	uint32_t armed;         /* enum abi_arm */
	uint32_t qps;
	bool is_overrun, has_channel;
};

struct look_mr {
	uint32_t key;           /* the upper 24 bits */
	uint8_t kind;           /* enum mr_kind */
	uint32_t access;        /* enum mem_access, what it grants */
	uint32_t pd;
	uint32_t bound;         /* windows on it */
	uint64_t iova, len;
};

struct look_row {
	uint32_t client; /* core_client_id */
	union {
		struct look_client of_client;
		struct look_qp qp;
		struct look_cq cq;
		struct look_mr mr;
	};
};

/* Where to go on; at first all zeroes. */
struct look_place {
	uint32_t client; /* 0: with the first one */
	uint32_t table;  /* of the kind's */
	uint32_t slot;
	bool is_over;
};

/* The next piece: how many rows, up to LOOK_OBJECTS and perhaps none; at->is_over says that there are no more. By client, the last to come first. Of LOOK_CLIENT a row is a client, or a part of one that has too many QPs for a piece: parts of a client follow
 * one another, and their counters are to be added up. Driving thread. */
unsigned core_look(const struct core *c, enum look_kind kind, struct look_place *at, struct look_row *rows);

#endif
