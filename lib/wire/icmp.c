/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP echo of both versions, and telling ND messages from the rest of ICMPv6. Owns the ICMP checksum; what ND says is in
 * nd.c, whether an address is ours is addr's business.
 * RFC 792, RFC 4443, RFC 4861 (the message types). */
#include "icmp.h"

#include "arp.h"
#include "protocol.h"

enum { REPLY_TTL = 64 };

static enum drop parse_icmp4(struct packet *p, const uint8_t *icmp, uint32_t len)
{
	if (checksum_fold(checksum_add(0, icmp, len)) != 0xffff)
		return DROP_ICMP_MALFORMED;
	if (icmp[0] != ICMP_ECHO_REQUEST)
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
	if (icmp[0] != ICMP6_ECHO_REQUEST)
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
	if (len < ICMP_LEN)
		return DROP_ICMP_MALFORMED;
	p->payload = icmp + ICMP_LEN;
	p->payload_len = len - ICMP_LEN;
	return p->ip_version == 4 ? parse_icmp4(p, icmp, len) : parse_icmp6(p, icmp, len);
}

uint32_t echo_write_reply(uint8_t *frame, uint32_t room, const uint8_t smac[6], const struct packet *p)
{
	bool is_ip4 = p->kind == PACKET_ECHO4;
	uint32_t icmp_len = ICMP_LEN + p->payload_len;
	uint32_t len = ETHERNET_LEN + (p->vlan == VLAN_NONE ? 0 : VLAN_LEN) + p->l3_header_len + icmp_len;
	struct ip_fields ip = { p->tos, REPLY_TTL, is_ip4 ? PROTOCOL_ICMP : PROTOCOL_ICMP6, 0, (uint16_t)icmp_len, &p->dst, &p->src };

	if (len > room || p->is_multicast)
		return 0;
	uint8_t *l3 = ethernet_write(frame, p->smac, smac, p->vlan, is_ip4 ? ETHERTYPE_IP4 : ETHERTYPE_IP6);
	uint8_t *icmp = is_ip4 ? ip4_write(l3, &ip) : ip6_write(l3, &ip);
	/* Identifier, sequence number and payload go back as they came. */
	memcpy(icmp, p->bth, icmp_len);
	icmp[0] = is_ip4 ? ICMP_ECHO_REPLY : ICMP6_ECHO_REPLY;
	put_be16(icmp + 2, 0);
	if (is_ip4) {
		checksum_store(l3 + 10, checksum_add(0, l3, IP4_LEN));
		checksum_store(icmp + 2, checksum_add(0, icmp, icmp_len));
	} else {
		checksum_store(icmp + 2, checksum_add(checksum_pseudo(l3 + 8, 32, PROTOCOL_ICMP6, icmp_len), icmp, icmp_len));
	}
	return len;
}
