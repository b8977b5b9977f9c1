/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP for IPv4 over Ethernet, and the choice between it and ND. Owns no table: what is learned from a message is addr's business.
 * RFC 826 (layout), RFC 5227 (probes: a sender address of zero). */
#include "arp.h"

#include "nd.h"
#include "protocol.h"

enum { ARP_REQUEST = 1, ARP_REPLY = 2 };

/* Hardware Ethernet, protocol IPv4, and their address lengths. */
static const uint8_t arp_start[6] = { 0, 1, 0x08, 0, 6, 4 };

static bool is_host_ip4(const uint8_t ip[4])
{
	return ip[0] && (ip[0] & 0xf0) != 0xe0 && get_be32(ip) != 0xffffffff;
}

static enum drop parse_arp(struct neighbour_message *m, const struct packet *p)
{
	const uint8_t *arp = p->l3, *sha = arp + 8, *spa = arp + 14, *tpa = arp + 24;
	uint16_t operation = get_be16(arp + 6);
	bool is_probe = operation == ARP_REQUEST && get_be32(spa) == 0;

	if (memcmp(arp, arp_start, sizeof(arp_start)) || (operation != ARP_REQUEST && operation != ARP_REPLY))
		return DROP_ARP_MALFORMED;
	if (!nd_is_host_mac(sha) || (!is_probe && !is_host_ip4(spa)))
		return DROP_ARP_MALFORMED;
	*m = (struct neighbour_message){ .kind = operation == ARP_REQUEST ? NEIGHBOUR_ASK : NEIGHBOUR_TELL, .has_mac = true };
	m->solicited = m->override = operation == ARP_REPLY;
	m->is_probe = is_probe;
	if (!is_probe)
		m->sender = gid_from_ip4(spa);
	m->target = gid_from_ip4(operation == ARP_REQUEST ? tpa : spa);
	memcpy(m->mac, sha, 6);
	return DROP_NONE;
}

enum drop neighbour_parse(struct neighbour_message *m, const struct packet *p)
{
	return p->kind == PACKET_ARP ? parse_arp(m, p) : nd_parse(m, p);
}

static uint32_t write_arp(uint8_t *frame, uint16_t operation, const uint8_t smac[6], const uint8_t dmac[6], uint16_t vlan,
			  const struct gid *spa, const struct gid *tpa)
{
	uint8_t *arp = ethernet_write(frame, dmac, smac, vlan, ETHERTYPE_ARP);
	uint32_t len = (uint32_t)(arp - frame) + ARP_LEN;
	memcpy(arp, arp_start, sizeof(arp_start));
	put_be16(arp + 6, operation);
	memcpy(arp + 8, smac, 6);
	memcpy(arp + 14, spa->b + 12, 4);
	/* Whose MAC is asked for is not known; RFC 826 leaves the field open. */
	if (operation == ARP_REPLY)
		memcpy(arp + 18, dmac, 6);
	else
		memset(arp + 18, 0, 6);
	memcpy(arp + 24, tpa->b + 12, 4);
	/* Not every port pads to Ethernet's least length. */
	if (len < ETHERNET_MIN) {
		memset(frame + len, 0, ETHERNET_MIN - len);
		len = ETHERNET_MIN;
	}
	return len;
}

uint32_t neighbour_write_ask(uint8_t *frame, const uint8_t smac[6], const uint8_t *dmac, uint16_t vlan, const struct gid *src,
			     const struct gid *target)
{
	static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	if (!gid_is_ip4(target))
		return nd_write_ask(frame, smac, dmac, vlan, src, target);
	return write_arp(frame, ARP_REQUEST, smac, dmac ? dmac : broadcast, vlan, src, target);
}

uint32_t neighbour_write_tell(uint8_t *frame, const uint8_t smac[6], const uint8_t dmac[6], uint16_t vlan,
			      const struct gid *target, const struct gid *dst)
{
	if (!gid_is_ip4(target))
		return nd_write_tell(frame, smac, dmac, vlan, target, dst);
	return write_arp(frame, ARP_REPLY, smac, dmac, vlan, target, dst);
}
