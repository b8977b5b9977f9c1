/* SPDX-License-Identifier: BSD-3-Clause */
/* The opcode table of IBA vol. 1, 9.2.1 (table 38) with annexes A14 (XRC), A17 (CNP) and A19 (FLUSH, ATOMIC WRITE): what each opcode of RC, UC, UD, XRC
 * and the CNP is and which headers it carries. The rest of the stack asks the row; the raw byte stays in the parser and the
 * builder. */
#ifndef UROCE_OPCODE_H
#define UROCE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

enum service { SERVICE_RC, SERVICE_UC, SERVICE_UD, SERVICE_XRC, SERVICE_CNP, SERVICE_COUNT };

enum message {
	MESSAGE_SEND,
	MESSAGE_WRITE,
	MESSAGE_READ_REQUEST,
	MESSAGE_READ_RESPONSE,
	MESSAGE_ACKNOWLEDGE, /* ACK and every NAK */
	MESSAGE_ATOMIC_ACKNOWLEDGE,
	MESSAGE_COMPARE_SWAP,
	MESSAGE_FETCH_ADD,
	MESSAGE_FLUSH,
	MESSAGE_ATOMIC_WRITE,
	MESSAGE_CNP,
	MESSAGE_COUNT
};

/* Place of a packet in its message. ONLY is both first and last. */
enum opcode_flag {
	OPCODE_FIRST = 1 << 0,    /* begins a message */
	OPCODE_LAST = 1 << 1,     /* ends a message */
	OPCODE_RETH = 1 << 2,
	OPCODE_AETH = 1 << 3,
	OPCODE_ATOMIC = 1 << 4,   /* AtomicETH */
	OPCODE_ATOMIC_ACK = 1 << 5, /* AtomicAckETH */
	OPCODE_IMMEDIATE = 1 << 6,
	OPCODE_INVALIDATE = 1 << 7, /* IETH */
	OPCODE_DETH = 1 << 8,
	OPCODE_XRCETH = 1 << 9,
	OPCODE_PAYLOAD = 1 << 10, /* may carry payload */
	OPCODE_REQUEST = 1 << 11, /* goes to a responder */
	OPCODE_RESPONSE = 1 << 12, /* goes to a requester */
	OPCODE_FETH = 1 << 13,
};

struct opcode {
	const char *name;     /* as the specification spells it: "RC SEND FIRST"; NULL for a reserved opcode */
	uint8_t byte;         /* BTH opcode */
	uint8_t service;      /* enum service */
	uint8_t message;      /* enum message */
	uint8_t header_len;   /* BTH and all extension headers, bytes */
	uint16_t flags;       /* enum opcode_flag */
};

/* Row of a BTH opcode byte; NULL when it is reserved. */
extern const struct opcode opcode_table[256];
static inline const struct opcode *opcode_of(uint8_t byte)
{
	const struct opcode *o = &opcode_table[byte];
	return o->name ? o : 0;
}

/* The opcode byte of a packet to be sent: `flags` is a combination of FIRST, LAST, IMMEDIATE, INVALIDATE as they apply;
 * returns the row, NULL when the service has no such opcode. Constant time. */
const struct opcode *opcode_find(enum service service, enum message message, unsigned flags);

#endif
