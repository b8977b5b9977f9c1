/* SPDX-License-Identifier: BSD-3-Clause */
/* Private copies of WQEs. A WQE leaves its ring once, is checked as a copy, and everything after that, retransmission above all, works on the copy: what the client does
 * to the ring later has no effect. */
#ifndef UROCE_WR_H
#define UROCE_WR_H

#include <stdbool.h>
#include <stdint.h>

#include "cqe.h"
#include "opcode.h"
#include "psn.h"
#include "wqe.h"

#define WR_SMALL_BODY 56u /* bytes of SGEs or inline data that a small one holds */
#define MESSAGE_MAX_BYTES 0x80000000u /* 2^31 (IBA vol. 1, 9.7.4.1.5) */

/* A send WQE from the moment it is taken until it retires. */
struct wr {
	struct wr *next;       /* the one posted after it */
	uint64_t wr_id;
	union {
		uint64_t remote_addr;
		struct { /* UD */
			uint32_t ah; /* handle; looked up for each try, since it may go at any time */
			uint32_t remote_qpn;
		};
	};
	union {
		uint64_t compare;
		struct abi_flush flush;
	};
	uint64_t swap_or_add;
	union {
		uint32_t rkey;
		uint32_t remote_qkey; /* UD */
	};
	uint32_t imm;          /* or the key to invalidate */
	uint32_t length;       /* bytes of the message */
	uint32_t psns;         /* how many PSNs it takes: packets, for a READ those of its responses, for what sends nothing none */
	struct psn first;
	uint32_t ssn;          /* send sequence number of its last request message (IBA vol. 1, 9.7.7.2.5), 24 bits */
	uint8_t opcode;        /* enum abi_opcode */
	uint8_t flags;         /* enum abi_send_flag */
	uint8_t num_sge;
	bool is_large;
	uint8_t error_status;  /* enum abi_status, not 0: it fails when it is the oldest, and nothing behind it is sent */
	uint8_t error_cause;   /* enum wc_cause */
	bool is_carried_out;   /* of what sends nothing: it waits for those before it to complete */
	uint8_t padding;
	union {
		struct abi_sge sge[WR_SMALL_BODY / sizeof(struct abi_sge)]; /* num_sge of them */
		uint8_t inline_data[WR_SMALL_BODY];
		struct abi_bind bind;
	};
};
_Static_assert(sizeof(struct wr) == 128, "two cache lines");

#define WR_LARGE_BYTES (sizeof(struct wr) - WR_SMALL_BODY + ABI_MAX_INLINE)
_Static_assert(ABI_MAX_INLINE == ABI_MAX_SGE * sizeof(struct abi_sge), "one large class serves both");

/* What each opcode of a WQE means. */
struct wr_kind {
	const char *name;
	uint8_t message;       /* enum message */
	uint8_t wc_opcode;     /* enum abi_wc_opcode */
	uint8_t services;      /* that have it, a bit 1 << enum service each */
	bool has_imm;
	bool has_invalidate;   /* of a key of the peer's */
	bool has_payload;      /* carries bytes from the requester */
	bool has_response;     /* READ, atomic, ATOMIC WRITE or FLUSH: completed by a response, limited by max_rd_atomic */
	bool takes_receive;    /* takes a receive WQE of the peer's: end-to-end credits apply */
	bool is_local;         /* sends nothing: local.c carries it out */
};
extern const struct wr_kind wr_kinds[ABI_OP_COUNT];

static inline const struct wr_kind *wr_kind_of(const struct wr *w)
{
	return &wr_kinds[w->opcode];
}

static inline bool wr_is_atomic(const struct wr *w)
{
	return w->opcode == ABI_OP_COMPARE_SWAP || w->opcode == ABI_OP_FETCH_ADD;
}

/* Bytes that its READ responses bring: those of an ATOMIC WRITE and a FLUSH are empty (annex A19). */
static inline uint32_t wr_response_bytes(const struct wr *w)
{
	return w->opcode == ABI_OP_READ ? w->length : 0;
}

static inline struct psn wr_end(const struct wr *w)
{
	return psn_add(w->first, w->psns);
}

/* A receive WQE from the moment a message takes it until its completion. */
struct recv_wr {
	struct recv_wr *next;  /* when it was returned to its source */
	uint64_t wr_id;
	uint64_t room;         /* sum of its SGEs */
	uint32_t index;        /* of its WQE in the ring */
	uint8_t num_sge;
	bool is_large;
	struct abi_sge sge[3];
};
_Static_assert(sizeof(struct recv_wr) <= sizeof(struct wr), "shares the slab of small WRs");
_Static_assert(ABI_MAX_SGE * sizeof(struct abi_sge) + 32 <= WR_LARGE_BYTES, "and of large ones");

#endif
