/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. Eight bytes at offset 8i are mix(seed) + i * an odd constant: no two places of a message, and no two messages, agree except by rare chance. */
#include "pattern.h"

#include <string.h>

#define STEP UINT64_C(0x9e3779b97f4a7c15)

uint64_t pattern_seed(uint32_t qp, uint64_t number, unsigned direction)
{
	return number * UINT64_C(0xd1342543de82ef95) + ((uint64_t)qp << 1 | direction);
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

void pattern_fill(uint8_t *to, uint64_t len, uint64_t seed)
{
	uint64_t word = mix(seed), at = 0;
	for (; at + 8 <= len; at += 8, word += STEP)
		memcpy(to + at, &word, 8);
	memcpy(to + at, &word, len - at);
}

uint64_t pattern_check(const uint8_t *data, uint64_t len, uint64_t seed)
{
	uint64_t word = mix(seed), at = 0, found;
	for (; at + 8 <= len; at += 8, word += STEP) {
		memcpy(&found, data + at, 8);
		if (found != word)
			break;
	}
	for (unsigned i = 0; i < 8 && at + i < len; i++)
		if (data[at + i] != ((uint8_t *)&word)[i])
			return at + i;
	return PATTERN_FINE;
}

uint64_t pattern_check_guard(const uint8_t *data, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		if (data[i] != PATTERN_GUARD)
			return i;
	return PATTERN_FINE;
}
