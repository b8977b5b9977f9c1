/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair. It belongs to one core. Its parts are written by their own files only: `flight` by req.c, `req` by sq.c and req.c, `comp` by comp.c, `resp` by resp.c, `out` by reply.c,
 * `retry` by retry.c, `rq` by recv.c, `ud` by ud_ah.c, `local` by local.c; the rest by qp.c and modify.c. They tell each other what happened (on_...). */
#ifndef UROCE_QP_H
#define UROCE_QP_H

#include <stdbool.h>
#include <stdint.h>

#include "addr.h"
#include "cause.h"
#include "counters.h"
#include "env.h"
#include "handles.h"
#include "inflight.h"
#include "msg.h"
#include "mw.h"
#include "replay.h"
#include "sg.h"

/* Requester: takes WQEs and turns them into packets. */
struct req {
	struct abi_ring *sq;      /* hostile */
	const uint8_t *slots;
	uint32_t mask, slot_bytes;
	uint32_t taken;           /* SQ index of the next WQE to take */
	uint32_t retired;         /* what engine_index says */
	uint32_t flush_end;       /* in RTS, while is_flushing: WQEs before it were posted in SQE */
	uint32_t segment_psns;    /* a READ is requested in pieces of so many responses, a power of two */
	uint32_t rd_atomic;       /* how many */
	uint32_t max_bytes;       /* of one message */
	uint8_t max_sge;
	bool is_signal_all;
	bool is_probe_due;        /* tail-loss probe */
	uint16_t max_inline;
};

/* Completer: turns answers into completions. */
struct comp {
	bool has_credits;         /* the peer counts its receive WQEs */
	uint32_t lsn;             /* limit sequence number, 24 bits */
	bool has_loss;            /* the last repair began at lost_psn, at lost_at */
	struct psn lost_psn;
	struct psn lost_seen;     /* the PSN that showed it, or came since */
	uint64_t lost_at;
};

/* Responder: executes requests. */
struct resp {
	struct psn epsn;          /* expected */
	struct psn ack_psn;       /* of the last SEND or WRITE packet: what an ACK says, so that it covers no READ or atomic after it */
	uint32_t msn;
	uint8_t message;          /* enum message in progress, valid with in_message */
	bool in_message;
	bool is_gap_known;        /* a NAK for epsn was decided: no other until epsn comes */
	bool is_rnr;              /* an RNR NAK for epsn was decided */
	bool is_established;      /* COMM_EST was raised */
	uint32_t rkey;            /* WRITE in progress */
	uint64_t va;
	uint32_t left;            /* bytes of it still to come */
	uint32_t received;        /* bytes of the message placed */
	struct recv_wr *recv;     /* receive WQE of the message in progress */
	struct sg sg;
};

/* What the responder has to send, in PSN order: answers to READs and atomics, then the NAK, or the ACK. */
struct out {
	struct replay replay;
	bool is_ack_due;
	uint32_t ack_round;       /* round of sending in which it became due */
	bool is_nak_due;
	bool is_last;             /* the NAK ends the QP: nothing comes after it */
	uint8_t nak_syndrome;
	uint8_t in_a_row;         /* packets of the kind that goes first, since the other had its chance */
	struct psn nak_psn;
};

struct retry {
	struct timer timer;
	uint64_t rto_ns;          /* 0: no timeout */
	uint64_t rto_at;          /* 0: not running */
	uint64_t probe_at;
	uint64_t rnr_until;
	uint64_t armed_for;
	uint64_t sampled_at;      /* 0: no RTT sample under way */
	uint32_t srtt_ns, rttvar_ns;
	struct psn sample_psn;
	struct psn probe_psn;     /* what the last probe carried, with is_probe_out */
	uint32_t progress;        /* how often something was found to have arrived */
	uint8_t timeouts, rnrs;   /* used without progress */
	uint8_t max_timeouts, max_rnrs;
	bool is_probed;           /* this flight had its probe */
	bool is_probe_out;
	uint8_t probes_alone;     /* running: what a probe carried was acknowledged, and nothing after it */
};

/* A receive source: an RQ, or the RQ inside an SRQ. */
struct recv_queue {
	struct abi_ring *ring;    /* hostile; NULL: the QP has no RQ but an SRQ */
	const uint8_t *slots;
	uint32_t mask, slot_bytes;
	struct srq *srq;          /* whose it is, NULL: a QP's own */
	uint32_t taken;
	uint32_t retired;         /* what engine_index says: completed, in the order in which they were taken */
	uint8_t max_sge;
	const struct pd *pd;      /* whose keys its SGEs are */
	uint32_t returned_n;
	struct recv_wr *returned; /* taken, and given back by a message that came to nothing */
};

/* What a UD QP has instead of a path. */
struct ud {
	const struct handles *ahs;   /* of its client: struct ud_ah each */
	struct ud_ah *waits_for;     /* NULL: for none */
	struct qp *next, **at;       /* among those that wait for it */
};

/* WRs that send nothing. */
struct local {
	uint16_t done;            /* carried out since the core looked last: work without a frame to show for it */
	uint8_t waiting;          /* carried out, and not complete before those posted before them are */
	bool has_more;            /* more can be carried out, in the next round */
};

struct qp {
	/* scheduling */
	struct circle ready;        /* first: its place among those of its group that are ready */
	struct qp_group *group;   /* whose share of the sending it uses */
	uint8_t turn;             /* the core's: packets sent in this turn, which may take several calls */
	bool is_looking;          /* SQ: no doorbell needed */
	bool is_lingering;        /* idle, and looked at all the same for a while */
	uint8_t state;            /* enum abi_qp_state */
	uint8_t service;          /* enum service: RC, UC, UD */
	uint8_t mtu_log2;
	bool is_flushing;         /* ERR, SQE and after it: something posted is to be flushed */
	uint16_t pkey;
	uint16_t peer_port;       /* UDP source port of the last packet accepted, 0: none yet */
	struct local local;
	uint32_t qpn, dest_qpn;
	struct qp_env *env;
	struct inflight flight;
	struct req req;
	struct comp comp;
	struct retry retry;
	struct resp resp;
	struct out out;
	struct pd *pd;
	struct cq *send_cq, *recv_cq;
	bool has_ah;              /* never with UD */
	bool is_draining;         /* SQD, with WRs in flight */
	_Alignas(ABI_CACHE_LINE) struct ah ah; /* its template is copied into every packet */
	uint64_t counter[QP_COUNTER_COUNT];
	struct recv_queue *source; /* where its receives come from: &rq, or an SRQ's */
	struct recv_queue rq;
	/* cold */
	struct abi_qp_attr attr;  /* as modified; state and the PSNs live elsewhere */
	struct abi_qp_cap cap;
	struct abi_qp_error error;
	uint64_t cookie;
	struct ud ud;
	struct mw_list windows;   /* of type 2B that are bound on it; mem/mw.c's */
	bool blocks_own_multicast; /* UD: what it sends to a group that it is in does not come back to it */
	void *owner;              /* the core's */
	uint32_t handle, doorbell;
	uint32_t quiet_rounds;    /* the core's: looks at an empty SQ */
	uint32_t counted_bytes;   /* what env->qp_bytes has of it */
};

struct qp_init {
	struct qp_env *env;
	struct qp_group *group; /* outlives the QP */
	struct pd *pd;
	struct cq *send_cq, *recv_cq;
	enum abi_service service;
	uint32_t qpn;
	struct abi_qp_cap cap;
	struct abi_ring *sq, *rq;
	const uint8_t *sq_slots, *rq_slots;
	uint32_t sq_n, rq_n, sq_slot_bytes, rq_slot_bytes;
	const struct handles *ahs; /* of its client */
	struct srq *srq; /* NULL: rq, rq_slots and so on are its own */
	bool signal_all, blocks_own_multicast;
	uint64_t cookie;
};

/* In RESET. Takes references to PD and CQs. */
int qp_new(struct qp **out, const struct qp_init *init);
/* Drops whatever is under way without completions. */
void qp_destroy(struct qp *q);
/* Engine-side bytes of the QP, records included, rings not. */
uint64_t qp_bytes(const struct qp *q);
/* They have changed. */
void qp_count_bytes(struct qp *q);

/* ---- from the core ---- */
/* UD, which has these in place of qp_tx, in two steps. To whom its next packet goes, and to which QP there; NULL: it has none to send now. */
const struct ah *qp_next_ah(struct qp *q, uint32_t *dest_qpn);
/* Writes that packet; nothing else has been done since qp_next_ah gave ah. Its length; 0: as qp_tx. */
uint32_t qp_tx_to(struct qp *q, const struct ah *ah, uint8_t *frame);
/* A parsed packet with a right ICRC whose DQPN is this QP, or QPN_MULTICAST and its address a group that this QP is in. */
enum drop qp_rx(struct qp *q, const struct packet *p);
/* RC, UC: writes one packet, returns its length; 0: nothing to send now (the QP is then not ready until something happens, or until the next round: qp_has_late_ack). */
uint32_t qp_tx(struct qp *q, uint8_t *frame);
/* An ACK waits for so many rounds of sending: it then covers more, and what the program answers leaves before it. */
#define ACK_ROUNDS 1u
static inline bool qp_has_late_ack(const struct qp *q)
{
	return q->out.is_ack_due && q->env->round - q->out.ack_round < ACK_ROUNDS;
}
/* While q->is_flushing: completes a piece of what is posted, so that a long queue keeps nobody waiting. How many; fewer than QP_FLUSH_PIECE: nothing is left. */
#define QP_FLUSH_PIECE 32u
uint32_t qp_flush(struct qp *q);
/* Its SQ has, or may have, new WQEs. */
void qp_on_doorbell(struct qp *q);
void qp_on_cq_overrun(struct qp *q);

/* ---- among the parts ---- */
/* Something out of the ordinary, counted for the QP and for its core. */
static inline void qp_count(struct qp *q, enum qp_counter i)
{
	q->counter[i]++;
	q->env->qp_counter[i]++;
}
static inline bool qp_can_send(const struct qp *q)
{
	return q->state == ABI_QP_RTS || q->state == ABI_QP_SQD;
}
static inline struct qp *qp_of_ready(const struct circle *ready)
{
	return (struct qp *)ready;
}
/* It has something to send: puts it among those of its group. */
static inline void qp_wake(struct qp *q)
{
	struct qp_group *g = q->group;
	if (circle_is_in(&q->ready))
		return;
	circle_append(&g->ready, &q->ready);
	if (!circle_is_in(&g->turn))
		group_wait(&q->env->groups, g);
}

/* The UDP source port of a flow, of which `flow` has 20 bits, folded the way Linux does. */
static inline uint16_t qp_source_port(uint32_t flow)
{
	return (uint16_t)(((flow & 0x3fff) ^ (flow >> 14 & 0x3f)) | 0xc000);
}

/* Why a WR or QP fails. */
struct failure {
	uint8_t status; /* enum abi_status */
	uint8_t cause;  /* enum wc_cause */
};
/* RESET: forgets everything, returns the rings to empty. */
void qp_reset(struct qp *q);
/* The requester failed: the oldest WR completes with f, everything else of the SQ is flushed, the QP goes to ERR; a UC QP to SQE, where receives go on. */
__attribute__((cold)) void qp_fail_send(struct qp *q, struct failure f);
/* The responder failed: the receive in progress, if any, completes with f (flushed when f.status is 0); the QP goes to ERR with this async event. */
__attribute__((cold)) void qp_fail_receive(struct qp *q, struct failure f, enum abi_event event);
/* To ERR without a culprit. */
__attribute__((cold)) void qp_enter_error(struct qp *q);
/* A send WR is done. Its slot is free and it is back in the slab; on success the CQE appears only if it is signaled. */
void qp_complete_send(struct qp *q, struct wr *w, struct failure f);
/* op: the packet that ended the message (immediate and solicited event come from it); NULL on failure. */
void qp_complete_receive(struct qp *q, struct recv_wr *r, struct failure f, const struct packet *last, uint32_t byte_len);
struct wr *wr_alloc(struct qp_env *env, uint32_t body_bytes);
void wr_free(struct qp_env *env, void *w, bool is_large);

#endif
