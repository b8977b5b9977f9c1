/* SPDX-License-Identifier: BSD-3-Clause */
/* The Internet checksum (RFC 1071). Sums are taken over native 32-bit words, which only rotates the result in the way that
 * storing it natively rotates it back; so a folded sum is 0xffff for valid data in either byte order, and is stored with
 * memcpy. */
#ifndef UROCE_CHECKSUM_H
#define UROCE_CHECKSUM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "bytes.h"

static inline uint64_t checksum_add(uint64_t sum, const uint8_t *p, uint32_t len)
{
	uint32_t v;
	for (; len >= 4; len -= 4, p += 4) {
		memcpy(&v, p, 4);
		sum += v;
	}
	v = 0;
	for (uint32_t i = 0; i < len; i++)
		((uint8_t *)&v)[i] = p[i];
	return sum + v;
}

static inline uint16_t checksum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Sum of the pseudo header of UDP and ICMPv6 (RFC 768, RFC 8200, 8.1); addresses: source and destination, adjacent as in
 * either IP header. */
static inline uint64_t checksum_pseudo(const uint8_t *addresses, uint32_t addresses_len, uint8_t protocol, uint32_t len)
{
	uint8_t tail[8] = { 0 };
	put_be32(tail, len);
	tail[7] = protocol;
	return checksum_add(checksum_add(0, addresses, addresses_len), tail, 8);
}

/* Stores the checksum of a sum taken while the two bytes at `at` were zero. */
static inline void checksum_store(uint8_t *at, uint64_t sum)
{
	uint16_t v = (uint16_t)~checksum_fold(sum);
	memcpy(at, &v, 2);
}

#endif
