/* SPDX-License-Identifier: BSD-3-Clause */
/* A round of verified messages: which bytes each of them has, in which slot, and looking at them where they lie. Both ends know all of it from the number of a message. */
#ifndef PERF_ROUND_H
#define PERF_ROUND_H

#include "end.h"

enum direction { TO_PEER, FROM_PEER, JUNK };

struct round {
	uint64_t first; /* number of the first message, of each QP */
	uint32_t count; /* of each QP */
};

/* Whether message first + i of a QP belongs into slot i of the server. SENDs go wherever the next receive is: that is their slot only if none gets lost and the QP has receives of its own. */
bool round_has_slots(const struct end *e);

/* What a word has before and after an atomic, by its number; what the client gives it. */
uint64_t round_word_before(uint32_t q, uint64_t number);
uint64_t round_word_after(const struct operation *o, uint32_t q, uint64_t number);
void round_set_operands(struct uroce_send_wr *wr, uint32_t q, uint64_t number);

/* Each 0, or -EIO with e->error: the bytes at data are those of message `number`; so are those of a slot; nobody wrote beyond a slot's message; a slot's word has this value. */
int round_check_data(struct end *e, uint32_t q, const uint8_t *data, uint64_t number, enum direction d);
int round_check_slot(struct end *e, uint32_t q, uint32_t slot, uint64_t number, enum direction d);
int round_check_guard(struct end *e, uint32_t q, uint32_t slot);
int round_check_word(struct end *e, uint32_t q, uint32_t slot, uint64_t number, uint64_t wanted);
/* Of a WRITE that may have got lost, wholly or in part: each byte is the message's, or what was there before. *is_whole: it is there. */
int round_check_mixed(struct end *e, uint32_t q, uint32_t slot, uint64_t number, bool *is_whole);

#endif
