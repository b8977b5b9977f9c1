/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared-memory contract, part 3: completion queue elements. The engine writes a CQE's body, then its phase with release: a client that reads the
 * phase of the pass it is in with acquire sees the whole body. */
#ifndef UROCE_ABI_CQE_H
#define UROCE_ABI_CQE_H

#include <stdatomic.h>
#include <stdint.h>

/* Values are those of enum ibv_wc_status. */
enum abi_status {
	ABI_WC_SUCCESS = 0,
	ABI_WC_LOC_LEN_ERR = 1,
	ABI_WC_LOC_QP_OP_ERR = 2,
	ABI_WC_LOC_EEC_OP_ERR = 3,
	ABI_WC_LOC_PROT_ERR = 4,
	ABI_WC_WR_FLUSH_ERR = 5,
	ABI_WC_MW_BIND_ERR = 6,
	ABI_WC_BAD_RESP_ERR = 7,
	ABI_WC_LOC_ACCESS_ERR = 8,
	ABI_WC_REM_INV_REQ_ERR = 9,
	ABI_WC_REM_ACCESS_ERR = 10,
	ABI_WC_REM_OP_ERR = 11,
	ABI_WC_RETRY_EXC_ERR = 12,
	ABI_WC_RNR_RETRY_EXC_ERR = 13,
	ABI_WC_FATAL_ERR = 19,
	ABI_WC_RESP_TIMEOUT_ERR = 20,
	ABI_WC_GENERAL_ERR = 21,
};

enum abi_wc_opcode {
	ABI_WC_SEND,
	ABI_WC_WRITE,
	ABI_WC_READ,
	ABI_WC_COMPARE_SWAP,
	ABI_WC_FETCH_ADD,
	ABI_WC_ATOMIC_WRITE,
	ABI_WC_FLUSH,
	ABI_WC_BIND_MW,
	ABI_WC_LOCAL_INV,
	ABI_WC_REG_MR,
	ABI_WC_RECV,
	ABI_WC_RECV_WRITE_WITH_IMM,
};

enum abi_wc_flag {
	ABI_WC_HAS_GRH = 1 << 0,
	ABI_WC_HAS_IMM = 1 << 1,
	ABI_WC_HAS_INVALIDATE = 1 << 2,
};

struct abi_cqe {
	uint64_t wr_id;
	uint8_t status;  /* enum abi_status */
	uint8_t opcode;  /* enum abi_wc_opcode; in error it only says which queue the WR was in: below ABI_WC_RECV the SQ */
	uint16_t flags;  /* enum abi_wc_flag */
	uint32_t byte_len;
	uint32_t qpn;
	uint32_t src_qpn;
	uint32_t imm;    /* or, with ABI_WC_HAS_INVALIDATE, the key that was invalidated */
	uint32_t vendor_error; /* enum wc_cause */
	uint16_t pkey_index;
	uint16_t vlan;
	uint8_t sl;
	uint8_t reserved[3];
	uint32_t index;  /* of the WQE in its SQ, RQ or SRQ, free running: with it a client knows what is still outstanding when the engine is gone */
	uint8_t reserved2[16];
	_Atomic uint32_t phase; /* 1 in the first pass over the ring, 0 in the second, and so on; the ring starts as zeroes */
};
_Static_assert(sizeof(struct abi_cqe) == 64, "layout");

#endif
