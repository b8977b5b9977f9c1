/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters of one QP, in the order in which ABI_QUERY_COUNTERS answers them. New ones go to the end: the order is part
 * of the contract. Their names are in lib/client/strings.c. */
#ifndef UROCE_ABI_COUNTERS_H
#define UROCE_ABI_COUNTERS_H

#include "msg.h"

enum qp_counter {
	QP_TX_PACKETS,
	QP_TX_BYTES,
	QP_RX_PACKETS,
	QP_RX_BYTES,
	QP_RETRANSMITTED_PACKETS,
	QP_LOCAL_ACK_TIMEOUT_ERR,
	QP_PACKET_SEQ_ERR,      /* sequence NAKs received */
	QP_IMPLIED_NAK_SEQ_ERR, /* lost READ or atomic responses, seen by what came after them */
	QP_RNR_NAK_RETRY_ERR,   /* RNR NAKs received */
	QP_OUT_OF_SEQUENCE,     /* responder: packets beyond a gap */
	QP_DUPLICATE_REQUEST,
	QP_RNR_NAK_SENT,
	QP_TAIL_PROBES,
	QP_ACKS_SENT,
	QP_NAKS_SENT,
	QP_ACKS_RECEIVED,
	QP_COMPLETED_REQUESTS,
	QP_COMPLETED_RECEIVES,
	QP_DROPPED_PACKETS,
	QP_SOURCE_PORT_CHANGES, /* packets of the peer's address with another UDP source port than the last accepted one */
	QP_TX_UNREACHABLE,      /* messages of UC and UD lost, since nobody answers for the next hop */
	QP_NP_ECN_MARKED_ROCE_PACKETS, /* packets of the peer whose IP header says congestion experienced */
	QP_COUNTER_COUNT
};
_Static_assert(QP_COUNTER_COUNT <= ABI_QP_COUNTERS, "more counters than the reply carries");

#endif
