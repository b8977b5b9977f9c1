/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariant CRC (IBA vol. 1, 7.8.1; for RoCEv2 annex A17.3.3): CRC-32 of eight bytes of ones and the IP packet with its
 * variant fields as ones. */
#ifndef UROCE_ICRC_H
#define UROCE_ICRC_H

#include <stdint.h>
#include <string.h>

/* l3: the IPv4 (20 bytes) or IPv6 (40 bytes) header, followed by UDP, BTH and the rest; len: bytes from l3 to the ICRC,
 * without it. Returns the value to be stored little-endian behind them. The bytes are not changed. */
uint32_t icrc_compute(const uint8_t *l3, unsigned ip_version, uint32_t len);

static inline void icrc_store(uint8_t *at, uint32_t icrc)
{
	at[0] = (uint8_t)icrc;
	at[1] = (uint8_t)(icrc >> 8);
	at[2] = (uint8_t)(icrc >> 16);
	at[3] = (uint8_t)(icrc >> 24);
}

#endif
