/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared-memory contract, part 2: work queue elements. A WQE takes one slot of its ring; the slot's size is fixed per queue at creation from the most
 * SGEs and inline bytes. The engine copies a WQE once, checks the copy and never looks at the ring again. */
#ifndef UROCE_ABI_WQE_H
#define UROCE_ABI_WQE_H

#include <stdint.h>

#define ABI_MAX_SGE 32u
#define ABI_MAX_INLINE 512u
#define ABI_WQE_BODY 32u        /* offset of SGEs or inline data in a send WQE */
#define ABI_WQE_ATOMIC_BODY 48u /* of an atomic's SGE */

enum abi_opcode {
	ABI_OP_SEND,
	ABI_OP_SEND_WITH_IMM,
	ABI_OP_WRITE,
	ABI_OP_WRITE_WITH_IMM,
	ABI_OP_READ,
	ABI_OP_COMPARE_SWAP,
	ABI_OP_FETCH_ADD,
	ABI_OP_ATOMIC_WRITE,
	ABI_OP_FLUSH,
	ABI_OP_SEND_WITH_INV,
	ABI_OP_BIND_MW,   /* these three send nothing */
	ABI_OP_LOCAL_INV,
	ABI_OP_REG_MR,
	ABI_OP_COUNT
};

enum abi_send_flag {
	ABI_SEND_SIGNALED = 1 << 0,
	ABI_SEND_SOLICITED = 1 << 1,
	ABI_SEND_INLINE = 1 << 2,
	ABI_SEND_FENCE = 1 << 3,
};

struct abi_sge {
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
};
_Static_assert(sizeof(struct abi_sge) == 16, "layout");

/* Values are those of enum flush_placement and enum flush_selectivity of wire/packet.h. */
enum abi_flush_placement { ABI_FLUSH_GLOBAL = 1 << 0, ABI_FLUSH_PERSISTENT = 1 << 1, ABI_FLUSH_PLACEMENTS = 3 };
enum abi_flush_selectivity { ABI_FLUSH_RANGE, ABI_FLUSH_MR, ABI_FLUSH_SELECTIVITIES };
struct abi_flush {
	uint32_t len;        /* bytes from remote_addr on, when not the whole MR is meant */
	uint8_t placement;   /* enum abi_flush_placement, at least one */
	uint8_t selectivity; /* enum abi_flush_selectivity */
	uint16_t reserved;
};
_Static_assert(sizeof(struct abi_flush) == 8, "layout");

/* BIND_MW and REG_MR: what is bound. The WQE's rkey is the key that it gets: its upper 24 bits say which window (or MR) is meant, the lower 8 are the program's own. */
struct abi_bind {
	uint64_t addr, len; /* of the MR of lkey */
	uint32_t lkey;
	uint32_t access;    /* enum mem_access bits */
	uint64_t iova;      /* REG_MR: how the first byte is addressed */
};
_Static_assert(sizeof(struct abi_bind) == 32, "layout");

/* The first 64 bytes of a send WQE. num_sge SGEs, or length bytes of inline data, begin at ABI_WQE_BODY (ABI_WQE_ATOMIC_BODY for atomics) and may run on beyond the 64. */
struct abi_send_wqe {
	uint64_t wr_id;
	uint8_t opcode; /* enum abi_opcode */
	uint8_t flags;  /* enum abi_send_flag */
	uint16_t num_sge;
	uint32_t imm; /* immediate: four bytes as the program gave them; or the rkey to invalidate */
	union {
		uint64_t remote_addr;
		struct { /* UD */
			uint32_t ah; /* handle */
			uint32_t remote_qpn;
		};
	};
	union {
		uint32_t rkey;
		uint32_t remote_qkey; /* UD; with the highest bit set the QP's own is meant */
	};
	uint32_t inline_len; /* with ABI_SEND_INLINE */
	union {
		struct abi_sge sge[2];
		uint8_t inline_data[32];
		struct {
			uint64_t compare; /* compare-and-swap only */
			uint64_t swap_or_add;
			struct abi_sge sge;
		} atomic; /* compare-and-swap, fetch-and-add; an ATOMIC WRITE is laid out as a WRITE is */
		struct abi_flush flush; /* no SGEs */
		struct abi_bind bind;
	};
};
_Static_assert(sizeof(struct abi_send_wqe) == 64, "layout");

struct abi_recv_wqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t reserved;
	struct abi_sge sge[3]; /* num_sge of them, may run on */
};
_Static_assert(sizeof(struct abi_recv_wqe) == 64, "layout");

/* Bytes of a slot that holds so much. */
static inline uint32_t abi_send_slot_bytes(uint32_t max_sge, uint32_t max_inline)
{
	uint32_t body = max_sge * (uint32_t)sizeof(struct abi_sge);
	if (body < max_inline)
		body = max_inline;
	if (body < 32)
		body = 32;
	return (ABI_WQE_BODY + body + 63) & ~63u;
}
static inline uint32_t abi_recv_slot_bytes(uint32_t max_sge)
{
	return (16 + max_sge * (uint32_t)sizeof(struct abi_sge) + 63) & ~63u;
}

#endif
