/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and sentences for people: completion statuses, causes, counters. Tables in the order of the enums they explain;
 * nothing else. */
#include "cause.h"
#include "client.h"
#include "counters.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char *const statuses[] = {
	[ABI_WC_SUCCESS] = "success",
	[ABI_WC_LOC_LEN_ERR] = "local length error",
	[ABI_WC_LOC_QP_OP_ERR] = "local QP operation error",
	[ABI_WC_LOC_EEC_OP_ERR] = "local EEC operation error",
	[ABI_WC_LOC_PROT_ERR] = "local protection error",
	[ABI_WC_WR_FLUSH_ERR] = "work request flushed",
	[ABI_WC_MW_BIND_ERR] = "memory window bind error",
	[ABI_WC_BAD_RESP_ERR] = "bad response",
	[ABI_WC_LOC_ACCESS_ERR] = "local access error",
	[ABI_WC_REM_INV_REQ_ERR] = "remote invalid request",
	[ABI_WC_REM_ACCESS_ERR] = "remote access error",
	[ABI_WC_REM_OP_ERR] = "remote operational error",
	[ABI_WC_RETRY_EXC_ERR] = "retry exceeded",
	[ABI_WC_RNR_RETRY_EXC_ERR] = "RNR retry exceeded",
	[ABI_WC_FATAL_ERR] = "fatal error",
	[ABI_WC_RESP_TIMEOUT_ERR] = "response timeout",
	[ABI_WC_GENERAL_ERR] = "general error",
};

const char *uroce_wc_status_str(enum uroce_wc_status status)
{
	return (unsigned)status < COUNT(statuses) && statuses[status] ? statuses[status] : "unknown status";
}

/* text: for a completion. sentence: for a QP, whose peer and tries are known; NULL: the text says it all. */
static const struct {
	const char *text;
	const char *sentence;
} causes[CAUSE_COUNT] = {
	[CAUSE_NONE] = { "no cause given", NULL },
	[CAUSE_FLUSHED] = { "the QP was in ERR, or went there because of another work request", "it was moved to ERR" },
	[CAUSE_ACK_TIMEOUT] = { "no answer within the retries allowed", "no ACK from {peer} after {sent} transmissions" },
	[CAUSE_SEQUENCE_NAKS] = { "sequence NAKs without progress used up the retries",
		"{peer} reported a gap again and again, through {sent} transmissions" },
	[CAUSE_IMPLIED_NAKS] = { "lost READ or atomic responses used up the retries",
		"responses of {peer} to a READ or atomic were lost in each of {sent} transmissions" },
	[CAUSE_NEIGHBOUR] = { "the MAC address of the peer or its gateway could not be resolved",
		"the MAC address of {peer} or of the gateway to it could not be resolved" },
	[CAUSE_NO_ROUTE] = { "there is no route to the peer", "there is no route to {peer}" },
	[CAUSE_RNR] = { "the peer had no receive posted within the RNR retries allowed",
		"{peer} had no receive posted at any of {rnr_sent} transmissions" },
	[CAUSE_NAK_INVALID_REQUEST] = { "the peer answered: invalid request", "{peer} answered: invalid request" },
	[CAUSE_NAK_REMOTE_ACCESS] = { "the peer answered: rkey, address, length or right not granted",
		"{peer} does not grant that rkey, address, length or right" },
	[CAUSE_NAK_REMOTE_OPERATION] = { "the peer answered: it could not carry out the operation",
		"{peer} could not carry out the operation" },
	[CAUSE_NAK_RESERVED] = { "the peer answered with a reserved NAK code", "{peer} answered with a reserved NAK code" },
	[CAUSE_BAD_RESPONSE] = { "a response of the wrong kind or length", "{peer} sent a response of the wrong kind or length" },
	[CAUSE_LOCAL_KEY] = { "an lkey is unknown or of another PD", NULL },
	[CAUSE_LOCAL_RANGE] = { "an SGE runs out of its memory region", NULL },
	[CAUSE_LOCAL_RIGHTS] = { "an SGE needs local write and its memory region does not grant it", NULL },
	[CAUSE_WQE_OPCODE] = { "a work request has an opcode or flag that does not exist", NULL },
	[CAUSE_WQE_SGE_COUNT] = { "a work request has more SGEs than the QP was created for", NULL },
	[CAUSE_WQE_INLINE] = { "a work request has more inline bytes than the QP was created for", NULL },
	[CAUSE_WQE_LENGTH] = { "a work request has a length that its operation does not take", NULL },
	[CAUSE_WQE_ALIGNMENT] = { "the address of an atomic or ATOMIC WRITE is not a multiple of 8", NULL },
	[CAUSE_WQE_RD_ATOMIC] = { "a READ, atomic, ATOMIC WRITE or FLUSH, and the QP's max_rd_atomic is 0", NULL },
	[CAUSE_RECEIVE_TOO_SHORT] = { "a message longer than its receive", "{peer} sent a message longer than its receive" },
	[CAUSE_PEER_REQUEST] = { "the peer sent an invalid request", "{peer} sent an invalid request" },
	[CAUSE_CQ_OVERRUN] = { "its CQ was full",
		"its CQ was full: create it with room for every completion that can be outstanding" },
	[CAUSE_WQE_SERVICE] = { "a work request has an operation that the QP's service does not have", NULL },
	[CAUSE_WQE_AH] = { "a datagram names an AH that is gone or of another PD, or no QP number", NULL },
	[CAUSE_WQE_FLUSH] = { "a FLUSH for nothing, or with a placement or level that there is not", NULL },
	[CAUSE_BIND_TARGET] = { "a bind whose rkey names no memory window (REG_MR: no MR of uroce_mr_alloc) of the QP's PD", NULL },
	[CAUSE_BIND_NOT_FREE] = { "a bind of what is bound already: invalidate it first", NULL },
	[CAUSE_BIND_MR] = { "a bind whose lkey names no MR of the QP's PD", NULL },
	[CAUSE_BIND_RIGHTS] = { "a bind with rights that it cannot have, or to an MR without the bind right, or without local write for what is to be written", NULL },
	[CAUSE_BIND_RANGE] = { "a bind of no bytes, or of a range that runs out of its memory region", NULL },
	[CAUSE_BIND_TOO_MANY] = { "too many memory windows are bound on the QP", NULL },
	[CAUSE_INVALIDATE_KEY] = { "a key that cannot be invalidated through the QP: only windows of type 2 bound on it, and MRs of uroce_mr_alloc, can be",
		NULL },
	[CAUSE_RING_INDEX] = { "the ring's index was overwritten with an impossible value", NULL },
	[CAUSE_ENGINE_GONE] = { "the engine ended before the work request did", NULL },
};

const char *uroce_wc_cause_str(uint32_t vendor_error)
{
	return vendor_error < CAUSE_COUNT && causes[vendor_error].text ? causes[vendor_error].text : "unknown cause";
}

const char *strings_cause_sentence(uint32_t cause)
{
	return cause < CAUSE_COUNT && causes[cause].sentence ? causes[cause].sentence : uroce_wc_cause_str(cause);
}

static const char *const counters[QP_COUNTER_COUNT] = {
	[QP_TX_PACKETS] = "tx_packets",
	[QP_TX_BYTES] = "tx_bytes",
	[QP_RX_PACKETS] = "rx_packets",
	[QP_RX_BYTES] = "rx_bytes",
	[QP_RETRANSMITTED_PACKETS] = "retransmitted_packets",
	[QP_LOCAL_ACK_TIMEOUT_ERR] = "local_ack_timeout_err",
	[QP_PACKET_SEQ_ERR] = "packet_seq_err",
	[QP_IMPLIED_NAK_SEQ_ERR] = "implied_nak_seq_err",
	[QP_RNR_NAK_RETRY_ERR] = "rnr_nak_retry_err",
	[QP_OUT_OF_SEQUENCE] = "out_of_sequence",
	[QP_DUPLICATE_REQUEST] = "duplicate_request",
	[QP_RNR_NAK_SENT] = "rnr_nak_sent",
	[QP_TAIL_PROBES] = "tail_probes",
	[QP_ACKS_SENT] = "acks_sent",
	[QP_NAKS_SENT] = "naks_sent",
	[QP_ACKS_RECEIVED] = "acks_received",
	[QP_COMPLETED_REQUESTS] = "completed_requests",
	[QP_COMPLETED_RECEIVES] = "completed_receives",
	[QP_DROPPED_PACKETS] = "dropped_packets",
	[QP_SOURCE_PORT_CHANGES] = "source_port_changes",
	[QP_TX_UNREACHABLE] = "tx_unreachable",
	[QP_NP_ECN_MARKED_ROCE_PACKETS] = "np_ecn_marked_roce_packets",
};

const char *uroce_qp_counter_name(unsigned i)
{
	return i < QP_COUNTER_COUNT ? counters[i] : NULL;
}
