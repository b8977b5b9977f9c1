/* SPDX-License-Identifier: BSD-3-Clause */
/* What a responder may find of a request packet. What each finding means, for the peer and for us, depends on the service: the table `verdicts`. */
#ifndef UROCE_VERDICT_H
#define UROCE_VERDICT_H

#include "qp.h"

enum verdict {
	EXECUTE, /* nothing is wrong with it */
	WRONG_QKEY,
	DUPLICATE_REQUEST,
	PSN_GAP,
	PSN_GAP_KNOWN,
	PSN_IMPLAUSIBLE,
	PSN_OLD,
	MESSAGE_INCOMPLETE,
	RECEIVER_NOT_READY,
	RECEIVER_WAITING,
	OPCODE_SEQUENCE,
	OPCODE_DISABLED,
	WRONG_LENGTH,
	TOO_MANY_REQUESTS,
	MISALIGNED,
	FLUSH_UNKNOWN,
	REMOTE_ACCESS,
	RECEIVE_TOO_SHORT,
	RECEIVE_BAD_KEY,
	INVALIDATE_REFUSED,
	RECEIVE_BROKEN,
	VERDICT_COUNT
};

struct verdict_row {
	uint8_t drop;           /* enum drop */
	uint8_t nak;            /* AETH syndrome, 0: none */
	bool is_fatal;          /* the QP goes to ERR */
	uint8_t event;          /* enum abi_event, when fatal */
	struct failure failure; /* of the receive in progress, when fatal */
};
/* The column is an enum abi_service. A verdict that a service never comes to has an empty row. */
extern const struct verdict_row verdicts[VERDICT_COUNT][ABI_SERVICES];

#endif
