/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that follow from the number of a message: what was not moved, moved twice, or put in the wrong place shows. */
#ifndef APP_PATTERN_H
#define APP_PATTERN_H

#include <stdint.h>

#define PATTERN_FINE UINT64_MAX
#define PATTERN_GUARD 0xa5 /* fills what lies between messages */

/* One number for message `number` of QP `qp` in a direction (0, 1). */
uint64_t pattern_seed(uint32_t qp, uint64_t number, unsigned direction);
void pattern_fill(uint8_t *to, uint64_t len, uint64_t seed);
/* The offset of the first wrong byte, or PATTERN_FINE. */
uint64_t pattern_check(const uint8_t *data, uint64_t len, uint64_t seed);
/* The same for bytes that nobody may write. */
uint64_t pattern_check_guard(const uint8_t *data, uint64_t len);

#endif
