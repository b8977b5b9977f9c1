/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that both the command line and commands take. Each: whether the whole text is one. */
#ifndef TESTROCE_VALUES_H
#define TESTROCE_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "grammar.h"

#define VALUE_BYTES_MAX (16u << 20)
#define VALUE_BYTES "bytes, from 0 to 16M: 64, 4K, 1M"
#define VALUE_COUNT_MAX 4096u
#define VALUE_COUNT "a number from 1 to 4096"

bool value_bytes(const char *text, uint64_t *bytes);
bool value_count(const char *text, uint32_t *count);
bool value_seconds(const char *text, double *seconds);

/* The kinds of values in patterns of commands (grammar.h). */
extern const struct kind value_kinds[];

#endif
