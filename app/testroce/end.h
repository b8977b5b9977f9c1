/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of the traffic: the objects it is made of, and what a mode does with them. Made, connected and freed by the prompt's thread, used by the driver's in between. */
#ifndef TESTROCE_END_H
#define TESTROCE_END_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "mode.h"
#include "station.h"

#define END_GRH_BYTES 40u /* before a datagram */
#define END_GUARD_BYTES 64u
#define END_QKEY 0x11111111u

struct flow_config {
	const struct mode *mode;
	uint64_t size;   /* bytes of a message */
	uint32_t depth;  /* messages outstanding on a QP */
	uint32_t qps;
	uint32_t mtu;    /* path MTU in bytes, 0: what both ports carry */
	bool is_verified;
	uint64_t seed;   /* what mode mixed follows from */
};

/* What is counted, readable from any thread. */
enum tally { TALLY_MESSAGES, TALLY_BYTES, TALLY_VERIFIED, TALLY_LOST, TALLY_LATE, TALLY_RTT_NS, TALLY_RTT_MIN_NS, TALLY_RTT_MAX_NS, TALLIES };

/* A QP and what goes over it. Messages that leave are at out, those that arrive at in; a message has a slot of `stride` bytes, with bytes behind it that nobody may touch. */
struct lane {
	uint32_t number;
	struct home *home;
	struct uroce_qp *qp;
	struct uroce_endpoint local, remote;
	struct uroce_ah *ah;     /* UD */
	uint8_t *out, *in;
	uint64_t remote_addr;    /* of the peer's `in` */
	uint64_t posted, done;   /* messages of ours */
	uint64_t received;       /* messages of the peer's */
	uint64_t next;           /* number that the next one should have */
	uint64_t sent, arrived;  /* WRs of ours that take a receive of the peer's, and the other way round, whatever the mode makes of them */
	void *state;             /* mode->state_bytes */
};

/* What QPs are made in. The client of mode incast has one for each. */
struct home {
	struct uroce_context *ctx;
	bool is_own;             /* not the station's */
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_srq *srq;
	struct uroce_mr *mr;
	uint8_t *memory;
};

struct end {
	const struct mode *mode;
	const struct role *role;
	const struct station *station;
	struct flow_config config;
	bool is_client;
	struct home *home;
	uint32_t homes;
	struct lane *lane;       /* config.qps of them */
	uint32_t recv_depth;     /* receives of a lane (or of the SRQ, for each lane) */
	uint32_t slots_out, slots_in; /* of a lane; more of the latter than receives */
	uint64_t stride, lane_bytes;
	uint32_t remote_rkey;
	uint32_t caps;           /* enum uroce_device_cap: what both ends have */
	_Atomic uint64_t tally[TALLIES];
	char error[640];         /* why it failed, "" if it did not */
};

static inline uint64_t end_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void end_count(struct end *e, enum tally t, uint64_t n)
{
	/* one writer */
	atomic_store_explicit(&e->tally[t], atomic_load_explicit(&e->tally[t], memory_order_relaxed) + n, memory_order_relaxed);
}

/* Makes everything but the connection. config is what was asked for; what is done, within what mode and device allow, is in e->config. 0, or a negative errno with e->error. end_close undoes it, also in part. */
int end_open(struct end *e, const struct station *s, const struct flow_config *config, bool is_client);
void end_close(struct end *e);
/* What the peer has to know; and taking what it said, which connects. */
json_t *end_pack(const struct end *e);
int end_connect(struct end *e, json_t *peer);
/* Sets e->error unless it is set; -EIO. */
__attribute__((format(printf, 2, 3))) int end_fail(struct end *e, const char *format, ...);

/* ---- the driver's ---- */
/* Takes completions and, if is_wanted, posts. How much was done, or -EIO with e->error. */
int end_step(struct end *e, bool is_wanted);
/* Whether everything that it posted has completed. */
bool end_is_drained(const struct end *e);
/* After the end, of two that are both here: what `from` has sent and did not arrive at `to` is lost, which is counted if the mode may lose, and else an error. 0 or -EIO. */
int end_compare(const struct end *from, struct end *to);
/* Nothing more is wanted and it is drained: whether that was the end; else it goes on for a while. -EIO. */
int end_finish(struct end *e);

/* ---- for modes ---- */
static inline uint8_t *end_out(const struct end *e, const struct lane *l, uint32_t slot)
{
	return l->out + (uint64_t)slot * e->stride;
}
static inline uint8_t *end_in(const struct end *e, const struct lane *l, uint32_t slot)
{
	return l->in + (uint64_t)slot * e->stride;
}
static inline uint64_t end_remote(const struct end *e, const struct lane *l, uint32_t slot)
{
	return l->remote_addr + (uint64_t)slot * e->stride;
}
static inline bool end_has_room(const struct end *e, const struct lane *l)
{
	return l->posted - l->done < e->config.depth;
}
/* Posts one WR, signaled, whose completion comes back with that slot; a datagram gets its destination. */
int end_send(struct end *e, struct lane *l, uint32_t slot, struct uroce_send_wr *wr);
/* Posts a receive into a slot of `in`, one without memory, or one into other memory. */
int end_receive(struct end *e, struct lane *l, uint32_t slot);
int end_receive_nothing(struct end *e, struct lane *l, uint32_t slot);
int end_receive_into(struct end *e, struct lane *l, uint32_t slot, const struct uroce_sge *sge);
/* Whether such a WR takes a receive of the peer's. */
bool end_takes_receive(enum uroce_opcode o);
/* Where what this WC is of has landed, and the same receive once more: an SRQ's may have been posted for another lane than the one that took it. */
const uint8_t *end_landed(const struct end *e, const struct uroce_wc *wc);
int end_receive_again(struct end *e, const struct uroce_wc *wc);
/* All receives of all lanes, at the beginning. */
int end_receive_all(struct end *e);
/* A message of ours is done. */
void end_done(struct end *e, struct lane *l, uint64_t bytes);
/* The n-th message of a lane: its bytes, if they are looked at. */
void end_fill(const struct end *e, const struct lane *l, uint64_t n, uint8_t *to, uint64_t len);
int end_check(struct end *e, const struct lane *l, uint64_t n, const uint8_t *data, uint64_t len);
/* That a slot's bytes beyond len are untouched. */
int end_check_guard(struct end *e, const struct lane *l, const uint8_t *slot, uint64_t len);

#endif
