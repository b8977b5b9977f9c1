/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP echo of both versions, and telling ND messages from the rest of ICMPv6. Owns the ICMP checksum; what ND says is in
 * nd.c, whether an address is ours is addr's business. RFC 792, RFC 4443, RFC 4861 (the message types). */
#include "icmp.h"

#include "arp.h"
#include "bytes.h"
#include "checksum.h"

enum {
	PROTOCOL_ICMP = 1, PROTOCOL_ICMP6 = 58,
	ECHO_REQUEST = 8, ECHO_REPLY = 0, ECHO6_REQUEST = 128, ECHO6_REPLY = 129,
	HEADER_LEN = 8, REPLY_TTL = 64,
	ETHERTYPE_IP4 = 0x0800, ETHERTYPE_IP6 = 0x86dd, ETHERTYPE_VLAN = 0x8100,
};

static enum drop parse_icmp4(struct packet *p, const uint8_t *icmp, uint32_t len)
{
	if (checksum_fold(checksum_add(0, icmp, len)) != 0xffff)
		return DROP_ICMP_MALFORMED;
	if (icmp[0] != ECHO_REQUEST)
		return DROP_ICMP_IGNORED;
	if (icmp[1])
		return DROP_ICMP_MALFORMED;
	p->kind = PACKET_ECHO4;
	return DROP_NONE;
}

static enum drop parse_icmp6(struct packet *p, const uint8_t *icmp, uint32_t len)
{
	bool is_nd = icmp[0] >= ICMP6_ROUTER_SOLICITATION && icmp[0] <= ICMP6_REDIRECT;
	if (checksum_fold(checksum_add(checksum_pseudo(p->l3 + 8, 32, PROTOCOL_ICMP6, len), icmp, len)) != 0xffff)
		return is_nd ? DROP_ND_MALFORMED : DROP_ICMP_MALFORMED;
	if (is_nd) {
		p->kind = PACKET_ND;
		return DROP_NONE;
	}
	if (icmp[0] != ECHO6_REQUEST)
		return DROP_ICMP_IGNORED;
	if (icmp[1])
		return DROP_ICMP_MALFORMED;
	/* Nobody is there to be answered. */
	if (gid_is_zero(&p->src))
		return DROP_IP_SOURCE;
	p->kind = PACKET_ECHO6;
	return DROP_NONE;
}

enum drop icmp_parse(struct packet *p, const uint8_t *icmp, uint32_t len)
{
	p->bth = icmp;
	if (len < HEADER_LEN)
		return DROP_ICMP_MALFORMED;
	p->payload = icmp + HEADER_LEN;
	p->payload_len = len - HEADER_LEN;
	return p->ip_version == 4 ? parse_icmp4(p, icmp, len) : parse_icmp6(p, icmp, len);
}
