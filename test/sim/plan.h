/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that happens in one run of the soak test, derived from its seed before it begins: hosts and cables, connections, and for each side of a connection a program of WRs with its memory before and
 * after. It is the reference model: what a correct stack must have done when all is over. */
#ifndef UROCE_SIM_PLAN_H
#define UROCE_SIM_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "random.h"
#include "uroce.h"

#define PLAN_PAIRS_MAX 64u
#define PLAN_HOSTS_MAX 3u
#define PLAN_CONTEXTS 2u /* most of one host */
#define PIECES_MAX 8u
#define PLAN_GROUPS 2u   /* multicast, if any QP of UD is in them */
#define GRH_BYTES 40u      /* before a datagram in its receive */
#define NO_INDEX UINT32_MAX

/* A deliberate error, and what a program that makes it must see. */
enum mistake {
	MISTAKE_NONE,
	MISTAKE_KEY,          /* remote key, or range, that the peer does not grant */
	MISTAKE_TOO_LONG,     /* a SEND longer than its receive */
	MISTAKE_LOCAL_KEY,
	MISTAKE_RECEIVE_KEY,  /* the receive's local key is wrong */
	MISTAKE_RNR,          /* the receive never comes, and rnr_retry is finite */
	MISTAKE_REVOKED,      /* the peer deregisters its target memory in the middle */
	MISTAKE_PEER_GONE,    /* the peer's QP is destroyed in the middle */
	MISTAKE_HOST_GONE,    /* a host's cables are cut in the middle */
	MISTAKE_STOPPED,      /* the program itself takes the QP to ERR in the middle */
	MISTAKE_DESTROYED,    /* or destroys it, with WRs under way */
	MISTAKE_OWN_REVOKED,  /* or deregisters the memory that its sends come from */
	MISTAKE_AH_GONE,      /* or destroys the AH that they name */
	MISTAKES
};
struct mistake_row {
	const char *name;
	enum uroce_wc_status send, receive; /* of the WR that meets it; SUCCESS: none there */
	bool is_fatal_to_peer;              /* the peer's QP goes to ERR as well */
	bool is_vague;                      /* when it strikes is chance */
	bool is_silence;                    /* nobody answers from then on */
};
extern const struct mistake_row mistake_rows[MISTAKES];

/* Bytes of an end's local memory. */
struct piece {
	uint32_t offset, len;
};

/* One send WR. */
struct step {
	enum uroce_opcode opcode;
	uint32_t flags;          /* enum uroce_send_flag */
	uint32_t len, imm;
	uint32_t remote_offset;  /* in the peer's target memory */
	uint64_t compare_add, swap;
	struct uroce_flush flush;
	bool takes_receive;
	uint32_t receive;        /* the peer's receive that it uses up; NO_INDEX: none, or whichever of its pool */
	uint32_t garbage;        /* not 0: address and key are nonsense, since no byte is named */
	bool is_mistaken;
	bool is_last_word;       /* nothing later touches the remote range */
	uint32_t stray;          /* a datagram that goes to the end of this number, or to PLAN_ENDS_MAX and the group of this number; NO_INDEX: to the peer, as all others do */
	uint32_t opening;        /* of the peer's that it goes by or ends, or of its own side that it makes or ends; NO_INDEX: none */
	uint32_t after;          /* step of the peer that has to have completed before this one is posted; NO_INDEX: none */
	bool is_unwanted;        /* with a Q_Key that is not the receiver's */
	uint8_t pieces;
	struct piece piece[PIECES_MAX];
};

/* Whether it ends with bytes of the peer's. */
static inline bool step_brings_bytes(const struct step *s)
{
	return s->opcode == UROCE_OP_READ || s->opcode == UROCE_OP_COMPARE_SWAP || s->opcode == UROCE_OP_FETCH_ADD;
}
static inline bool step_is_write(const struct step *s)
{
	return s->opcode == UROCE_OP_WRITE || s->opcode == UROCE_OP_WRITE_WITH_IMM;
}

/* One receive WR. */
struct receive {
	uint32_t step;           /* of the peer, that uses it up; NO_INDEX: nothing does */
	uint32_t room;
	bool is_mistaken, is_partial; /* partial: may hold anything afterwards */
	uint8_t pieces;
	struct piece piece[PIECES_MAX];
};

/* Receive buffers for whatever comes; buffers 0: there are none. */
struct plan_pool {
	uint32_t buffers, room;
};

/* A way into target memory beside its MR, which opens and closes again and again. */
enum slot_kind { SLOT_WINDOW_1, SLOT_WINDOW_2, SLOT_FAST_MR, SLOT_KINDS };
#define SLOTS_MAX 3u
#define OPENINGS_MAX 24u
struct opening {
	uint32_t slot, offset, len; /* what of the target */
	uint64_t iova;              /* fast MRs: of its first byte */
	bool is_zero_based;
	uint8_t key;                /* its lower 8 bits */
	uint32_t opened;            /* by this step */
};

/* One side of a connection. Memory: `local` begins with source_bytes that only ever are read, then come places that are each written once; `target` is what the peer reads and writes. Both are filled
 * from fill_seed at the beginning and are the image_* at the end. */
struct plan_end {
	unsigned host, context, send_cq, recv_cq;
	struct step *step;
	uint32_t steps;
	struct receive *receive;
	uint32_t receives;
	uint64_t fill_seed;
	uint32_t source_bytes, local_bytes, target_bytes;
	uint8_t *image_local, *image_target;
	struct plan_pool pool;      /* its own; buffers 0: none, or it uses its context's */
	bool uses_srq;
	struct uroce_qp_cap cap;
	bool signal_all, is_pool, posts_late;
	uint32_t psn;
	struct uroce_qp_attr attr;  /* with the masks below */
	uint64_t gap_ns;            /* about so long between two turns of its program */
	uint32_t batch;
	enum mistake mistake;       /* its own */
	enum mistake peer_mistake;
	uint32_t mistake_step;      /* NO_INDEX: whenever, or never */
	uint64_t mistake_ns;        /* when a vague one strikes; 0: none does */
	uint64_t drain_ns;          /* goes to SQD then, and back to RTS when it is told that it is drained; 0: does not */
	bool is_exact;              /* a mistake strikes at its step and no other */
	bool is_member[PLAN_GROUPS], blocks_own;
	enum slot_kind slot[SLOTS_MAX];
	unsigned slots;
	struct opening opening[OPENINGS_MAX];
	uint32_t openings;
	bool recovers;              /* goes from SQE back to RTS, and on with what was not posted yet */
};
#define PLAN_RC_ATTR_MASK (UROCE_QP_PATH_MTU | UROCE_QP_TIMEOUT | UROCE_QP_RETRY_CNT | UROCE_QP_RNR_RETRY | UROCE_QP_MAX_RD_ATOMIC | UROCE_QP_MAX_DEST_RD_ATOMIC | UROCE_QP_MIN_RNR_TIMER)

static inline bool plan_is_pooled(const struct plan_end *e)
{
	return e->pool.buffers || e->uses_srq;
}

struct plan_pair {
	unsigned number;            /* in the seed's plan */
	enum uroce_service service;
	uint32_t steps_most;        /* of a side */
	uint32_t mtu;
	struct plan_end end[2];
};

struct plan_host {
	uint64_t turn_ns, bits_per_second, propagation_ns;
	uint32_t rx_frames, tx_frames, queue_frames;
	unsigned contexts, cqs[PLAN_CONTEXTS];
	bool waits[PLAN_CONTEXTS];  /* for events of its CQs, instead of polling in turns */
	struct plan_pool srq[PLAN_CONTEXTS]; /* buffers 0: there is no SRQ */
	char fault_out[128], fault_in[128]; /* or empty */
};

enum plan_faults { PLAN_FAULTS_NONE, PLAN_FAULTS_LIGHT, PLAN_FAULTS_HEAVY };

struct plan {
	uint64_t seed;
	unsigned hosts, pairs;
	bool is_ip6;
	enum plan_faults faults;
	uint32_t mtu, window_packets;
	unsigned dead_host;         /* NO_INDEX: none */
	uint64_t dead_ns;
	struct plan_host host[PLAN_HOSTS_MAX];
	struct plan_pair pair[PLAN_PAIRS_MAX];
};

/* What the command line fixes instead of the seed; 0: nothing. */
struct plan_fixed {
	unsigned qps; /* pairs */
	uint32_t mtu;
	const char *fault; /* on every cable, both ways; "none": none */
	bool no_mistakes;
	uint32_t steps; /* most of a side */
	uint64_t only;  /* the connections that there are, by their bits */
};

/* Ends are numbered as they lie in the plan. */
#define PLAN_ENDS_MAX (2 * PLAN_PAIRS_MAX)
#define PLAN_WAYS_MAX (PLAN_ENDS_MAX + PLAN_GROUPS)
static inline const struct plan_end *plan_end_of(const struct plan *p, uint32_t number)
{
	return &p->pair[number / 2].end[number % 2];
}
/* Where a step of end `from` goes. */
static inline uint32_t plan_target_of(uint32_t from, const struct step *s)
{
	return s->stray == NO_INDEX ? from ^ 1 : s->stray;
}
/* Whether end `to` is meant by it. */
static inline bool plan_is_for(const struct plan *p, uint32_t from, const struct step *s, uint32_t to)
{
	uint32_t target = plan_target_of(from, s);
	const struct plan_end *e = plan_end_of(p, to);
	return target < PLAN_ENDS_MAX ? target == to : e->is_member[target - PLAN_ENDS_MAX] && !(from == to && e->blocks_own);
}

/* Never NULL. */
struct plan *plan_new(uint64_t seed, const struct plan_fixed *fixed);
void plan_free(struct plan *p);
/* What is everywhere before the first WR. */
void plan_fill(uint64_t seed, uint8_t *to, uint32_t len);
void plan_print(const struct plan *p, bool is_long);

#endif
