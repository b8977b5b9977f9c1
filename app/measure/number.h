/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of bytes as people write them: 8, 4K, 64M (powers of 1024); decimal, hexadecimal behind 0x. */
#ifndef APP_NUMBER_H
#define APP_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* A number with K, M or G, up to max. *end is what follows. false: it is none. */
bool number_take(const char *text, uint64_t max, const char **end, uint64_t *out);
/* The same with nothing behind it, and not less than min. */
bool number_take_all(const char *text, uint64_t min, uint64_t max, uint64_t *out);
/* The shortest way to write it. Returns text. */
const char *number_text(uint64_t bytes, char text[24]);
/* A list of SIZE and FROM:TO (powers of two), none above max: *count sizes, at most room. false: it is none. */
bool number_take_sizes(const char *text, uint64_t max, uint64_t *sizes, unsigned room, unsigned *count);

#endif
