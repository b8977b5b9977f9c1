/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a completion failed, finer than its status: goes out as vendor_error of the WC and in abi_qp_error. */
#ifndef UROCE_ABI_CAUSE_H
#define UROCE_ABI_CAUSE_H

enum wc_cause {
	CAUSE_NONE,
	CAUSE_FLUSHED,             /* the QP was in ERR, or went there for another WR's sake */
	CAUSE_ACK_TIMEOUT,         /* no answer within retry_cnt retries */
	CAUSE_SEQUENCE_NAKS,       /* sequence NAKs without progress used up retry_cnt */
	CAUSE_IMPLIED_NAKS,        /* lost READ or atomic responses used up retry_cnt */
	CAUSE_NEIGHBOUR,           /* the peer's MAC address could not be resolved */
	CAUSE_NO_ROUTE,
	CAUSE_RNR,                 /* receiver not ready, rnr_retry used up */
	CAUSE_NAK_INVALID_REQUEST,
	CAUSE_NAK_REMOTE_ACCESS,
	CAUSE_NAK_REMOTE_OPERATION,
	CAUSE_NAK_RESERVED,
	CAUSE_BAD_RESPONSE,        /* response of the wrong kind or length */
	CAUSE_LOCAL_KEY,           /* lkey unknown, or of another PD */
	CAUSE_LOCAL_RANGE,
	CAUSE_LOCAL_RIGHTS,
	CAUSE_WQE_OPCODE,
	CAUSE_WQE_SGE_COUNT,
	CAUSE_WQE_INLINE,
	CAUSE_WQE_LENGTH,          /* message over 2^31 bytes, atomic not of 8 bytes, inline READ */
	CAUSE_WQE_ALIGNMENT,       /* address of an atomic or ATOMIC WRITE not a multiple of 8 */
	CAUSE_WQE_RD_ATOMIC,       /* READ, atomic, ATOMIC WRITE or FLUSH with max_rd_atomic 0 */
	CAUSE_RECEIVE_TOO_SHORT,   /* a SEND longer than the receive WQE */
	CAUSE_PEER_REQUEST,        /* the peer sent an invalid request */
	CAUSE_CQ_OVERRUN,
	CAUSE_RING_INDEX,          /* the client wrote an impossible index */
	CAUSE_ENGINE_GONE,         /* made by the client library: the engine ended before the WR did */
	CAUSE_WQE_SERVICE,         /* an operation that the QP's service does not have */
	CAUSE_WQE_AH,              /* a datagram to no AH of this QP's PD, or to a QP number that there cannot be */
	CAUSE_WQE_FLUSH,           /* a FLUSH for nothing, or with a placement or selectivity that there is not */
	CAUSE_BIND_TARGET,         /* a key that names no memory window (or MR for fast registration) of this PD */
	CAUSE_BIND_NOT_FREE,       /* it is bound already */
	CAUSE_BIND_MR,             /* an lkey that names no MR of this PD */
	CAUSE_BIND_RIGHTS,
	CAUSE_BIND_RANGE,
	CAUSE_BIND_TOO_MANY,       /* windows on one QP */
	CAUSE_INVALIDATE_KEY,      /* what it names cannot be invalidated through this QP */
	CAUSE_COUNT
};

#endif
