/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing but the patterns' directions. Invariant: message n of a QP is in slot n - first of the round that begins with first, where a message has a slot (round_has_slots). */
#include "round.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"

bool round_has_slots(const struct end *e)
{
	const struct operation *o = e->trial.op;
	bool is_send = o->takes_recv && o->opcode != UROCE_OP_WRITE_WITH_IMM;
	return !is_send || (!e->srq && !end_may_lose(e));
}

/* ---- bytes ---- */

int round_check_data(struct end *e, uint32_t q, const uint8_t *data, uint64_t number, enum direction d)
{
	uint64_t at = pattern_check(data, e->trial.size, pattern_seed(q, number, d));
	if (at == PATTERN_FINE)
		return 0;
	return end_fail(e, "WRONG DATA: QP %u, message %" PRIu64 " of %" PRIu64 " bytes: byte %" PRIu64 " is 0x%02x", q, number, e->trial.size, at,
		data[at]);
}

int round_check_slot(struct end *e, uint32_t q, uint32_t slot, uint64_t number, enum direction d)
{
	return round_check_data(e, q, end_slot(e, q, slot), number, d);
}

int round_check_guard(struct end *e, uint32_t q, uint32_t slot)
{
	uint64_t size = e->trial.size + (e->is_client ? 0 : e->headroom);
	uint64_t at = pattern_check_guard(end_slot(e, q, slot) + size, e->stride - size);
	if (at == PATTERN_FINE)
		return 0;
	return end_fail(e, "WRONG DATA: QP %u: byte %" PRIu64 " beyond a message of %" PRIu64 " bytes was written", q, at, size);
}

int round_check_mixed(struct end *e, uint32_t q, uint32_t slot, uint64_t number, bool *is_whole)
{
	const uint8_t *data = end_slot(e, q, slot);
	uint64_t size = e->trial.size, seed = pattern_seed(q, number, TO_PEER), at = 0;
	*is_whole = pattern_check(data, size, seed) == PATTERN_FINE;
	if (*is_whole)
		return 0;
	uint8_t *both = malloc(2 * size);
	if (!both)
		return end_fail(e, "no memory");
	pattern_fill(both, size, seed);
	pattern_fill(both + size, size, pattern_seed(q, number, JUNK));
	while (at < size && (data[at] == both[at] || data[at] == both[size + at]))
		at++;
	free(both);
	return at == size ? 0 : round_check_data(e, q, data, number, TO_PEER);
}

/* ---- words of atomics ---- */

static uint64_t get_word(const uint8_t *at)
{
	uint64_t v;
	memcpy(&v, at, 8);
	return v;
}

static bool cas_matches(uint64_t number)
{
	return number % 3 != 2; /* every third one compares with what is not there */
}

uint64_t round_word_before(uint32_t q, uint64_t number)
{
	return pattern_seed(q, number, FROM_PEER);
}

uint64_t round_word_after(const struct operation *o, uint32_t q, uint64_t number)
{
	uint64_t before = round_word_before(q, number), given = pattern_seed(q, number, TO_PEER);
	if (o->opcode == UROCE_OP_FETCH_ADD)
		return before + given;
	return cas_matches(number) ? given : before;
}

void round_set_operands(struct uroce_send_wr *wr, uint32_t q, uint64_t number)
{
	uint64_t given = pattern_seed(q, number, TO_PEER), before = round_word_before(q, number);
	wr->compare_add = wr->opcode == UROCE_OP_FETCH_ADD ? given : cas_matches(number) ? before : before + 1;
	wr->swap = given;
}

int round_check_word(struct end *e, uint32_t q, uint32_t slot, uint64_t number, uint64_t wanted)
{
	uint64_t found = get_word(end_slot(e, q, slot));
	if (found == wanted)
		return 0;
	return end_fail(e, "WRONG DATA: QP %u, %s %" PRIu64 ": 0x%" PRIx64 " instead of 0x%" PRIx64, q, e->trial.op->name, number, found, wanted);
}
