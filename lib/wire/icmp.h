/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside wire/: the ICMP and ICMPv6 part of packet_parse. */
#ifndef UROCE_ICMP_H
#define UROCE_ICMP_H

#include "packet.h"

/* icmp: behind the IP header, len bytes. Checks the checksum and sets kind, bth (the ICMP header), payload and payload_len
 * (behind its first 8 bytes). */
enum drop icmp_parse(struct packet *p, const uint8_t *icmp, uint32_t len);

#endif
