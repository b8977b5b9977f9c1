/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside wire/, and for core/steer.c, which looks at frames that nobody has parsed: the numbers that IEEE and IANA assigned, and the headers below UDP as they are written. */
#ifndef UROCE_PROTOCOL_H
#define UROCE_PROTOCOL_H

#include <stdint.h>
#include <string.h>

#include "bytes.h"
#include "checksum.h"
#include "gid.h"
#include "packet.h"

enum {
	ETHERNET_LEN = 14, ETHERNET_MIN = 60, VLAN_LEN = 4, ARP_LEN = 28, IP4_LEN = 20, IP6_LEN = 40, UDP_LEN = 8, ICMP_LEN = 8,

	ETHERTYPE_IP4 = 0x0800, ETHERTYPE_ARP = 0x0806, ETHERTYPE_VLAN = 0x8100, ETHERTYPE_IP6 = 0x86dd, ETHERTYPE_QINQ = 0x88a8,

	PROTOCOL_HOP_BY_HOP = 0, PROTOCOL_ICMP = 1, PROTOCOL_IGMP = 2, PROTOCOL_UDP = 17, PROTOCOL_ICMP6 = 58,

	IP4_DF = 0x4000, IP4_FRAGMENT = 0x3fff, /* more fragments, or an offset */

	ICMP_ECHO_REPLY = 0, ICMP_ECHO_REQUEST = 8, ICMP6_ECHO_REQUEST = 128, ICMP6_ECHO_REPLY = 129,
	ICMP6_ROUTER_SOLICITATION = 133, ICMP6_NEIGHBOUR_SOLICITATION = 135, ICMP6_NEIGHBOUR_ADVERTISEMENT = 136, ICMP6_REDIRECT = 137,
};

/* Ethernet header, tagged unless tci is VLAN_NONE. Returns the byte behind it. */
static inline uint8_t *ethernet_write(uint8_t *frame, const uint8_t dmac[6], const uint8_t smac[6], uint16_t tci, uint16_t ethertype)
{
	uint8_t *at = frame + 12;
	memcpy(frame, dmac, 6);
	memcpy(frame + 6, smac, 6);
	if (tci != VLAN_NONE) {
		put_be16(at, ETHERTYPE_VLAN);
		put_be16(at + 2, tci);
		at += VLAN_LEN;
	}
	put_be16(at, ethertype);
	return at + 2;
}

/* What the two IP headers are written from. */
struct ip_fields {
	uint8_t tos, ttl, protocol;
	uint32_t flow_label;
	uint16_t payload_len;
	const struct gid *src, *dst;
};

/* DF set, identification 0 (RFC 6864: an atomic datagram), checksum 0. */
static inline uint8_t *ip4_write(uint8_t *ip, const struct ip_fields *f)
{
	memset(ip, 0, IP4_LEN);
	ip[0] = 0x45;
	ip[1] = f->tos;
	put_be16(ip + 2, (uint16_t)(IP4_LEN + f->payload_len));
	put_be16(ip + 6, IP4_DF);
	ip[8] = f->ttl;
	ip[9] = f->protocol;
	memcpy(ip + 12, f->src->b + 12, 4);
	memcpy(ip + 16, f->dst->b + 12, 4);
	return ip + IP4_LEN;
}

static inline uint8_t *ip6_write(uint8_t *ip, const struct ip_fields *f)
{
	put_be32(ip, 6u << 28 | (uint32_t)f->tos << 20 | (f->flow_label & 0xfffff));
	put_be16(ip + 4, f->payload_len);
	ip[6] = f->protocol;
	ip[7] = f->ttl;
	memcpy(ip + 8, f->src->b, 16);
	memcpy(ip + 24, f->dst->b, 16);
	return ip + IP6_LEN;
}

#endif
