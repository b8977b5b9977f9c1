/* SPDX-License-Identifier: BSD-3-Clause */
/* From the Ethernet header to the UDP header. Owns the order of the checks and the lengths; transport headers are in bth.c,
 * ICMP in icmp.c, IGMP and MLD in igmp.c, and whose address or QP it is comes later. Invariant: each function has `len` bytes at its pointer and
 * hands on a part of them, cut by the IP header's own length, so that Ethernet padding ends here.
 * IEEE 802.3, 802.1Q; RFC 791, 8200, 768; annex A17.3.1 (no options, no fragments), A17.3.2 (UDP port 4791, checksum 0
 * allowed on both). */
#include "packet.h"

#include "bth.h"
#include "icmp.h"
#include "igmp.h"
#include "icrc.h"
#include "protocol.h"

/* IPv6 extension headers (RFC 8200, 4) by protocol number. */
static const uint8_t ip6_extension_drop[256] = {
	[0] = DROP_IP_OPTIONS, [43] = DROP_IP_OPTIONS, [44] = DROP_IP_FRAGMENT, [50] = DROP_IP_OPTIONS, [51] = DROP_IP_OPTIONS,
	[60] = DROP_IP_OPTIONS, [135] = DROP_IP_OPTIONS, [139] = DROP_IP_OPTIONS, [140] = DROP_IP_OPTIONS,
};

static bool has_good_udp_checksum(const struct packet *p, const uint8_t *udp, uint32_t len)
{
	const uint8_t *addresses = p->l3 + (p->ip_version == 4 ? 12 : 8);
	uint64_t sum = checksum_pseudo(addresses, p->ip_version == 4 ? 8 : 32, PROTOCOL_UDP, len);
	return checksum_fold(checksum_add(sum, udp, len)) == 0xffff;
}

static inline enum drop parse_udp(struct packet *p, const uint8_t *udp, uint32_t len)
{
	if (len < UDP_LEN || get_be16(udp + 4) != len)
		return DROP_UDP_LENGTH;
	p->udp_src_port = get_be16(udp);
	if (get_be16(udp + 2) != ROCE_UDP_PORT)
		return DROP_UDP_PORT;
	if (get_be16(udp + 6) && !has_good_udp_checksum(p, udp, len))
		return DROP_UDP_CHECKSUM;
	p->kind = PACKET_ROCE;
	return bth_parse(p, udp + UDP_LEN, len - UDP_LEN);
}

/* Only IGMP has options (RFC 3376, 4). */
static enum drop parse_unusual_ip4(struct packet *p, const uint8_t *ip, uint32_t room)
{
	if (ip[0] >> 4 != 4)
		return DROP_IP_VERSION;
	if ((ip[0] & 0xf) < 5)
		return DROP_IP_RUNT;
	return ip[9] == PROTOCOL_IGMP ? igmp_parse_ip4(p, ip, room) : DROP_IP_OPTIONS;
}

/* 0/8, groups and the limited broadcast never send. */
static inline bool is_bad_ip4_source(const uint8_t *ip)
{
	return ip[0] == 0 || (ip[0] & 0xf0) == 0xe0 || get_be32(ip) == 0xffffffff;
}

static inline enum drop parse_ip4(struct packet *p, const uint8_t *ip, uint32_t room)
{
	uint32_t len;
	p->l3 = ip;
	if (room < IP4_LEN)
		return DROP_IP_RUNT;
	if (ip[0] != 0x45)
		return parse_unusual_ip4(p, ip, room);
	len = get_be16(ip + 2);
	if (len < IP4_LEN || len > room)
		return DROP_IP_LENGTH;
	if (checksum_fold(checksum_add(0, ip, IP4_LEN)) != 0xffff)
		return DROP_IP_CHECKSUM;
	p->ip_version = 4;
	p->l3_header_len = IP4_LEN;
	p->l3_len = len;
	p->tos = ip[1];
	p->ttl = ip[8];
	p->src = gid_from_ip4(ip + 12);
	p->dst = gid_from_ip4(ip + 16);
	p->is_multicast = (ip[16] & 0xf0) == 0xe0;
	if (get_be16(ip + 6) & IP4_FRAGMENT)
		return DROP_IP_FRAGMENT;
	if (is_bad_ip4_source(ip + 12) && (ip[9] != PROTOCOL_IGMP || ip[12])) /* a switch that queries may have no address (RFC 4541, 2.1.1) */
		return DROP_IP_SOURCE;
	if (ip[9] == PROTOCOL_UDP)
		return parse_udp(p, ip + IP4_LEN, len - IP4_LEN);
	if (ip[9] == PROTOCOL_ICMP)
		return icmp_parse(p, ip + IP4_LEN, len - IP4_LEN);
	return ip[9] == PROTOCOL_IGMP ? igmp_parse_ip4(p, ip, room) : DROP_IP_PROTOCOL;
}

static inline enum drop parse_ip6(struct packet *p, const uint8_t *ip, uint32_t room)
{
	uint32_t start, len;
	p->l3 = ip;
	if (room < IP6_LEN)
		return DROP_IP_RUNT;
	start = get_be32(ip);
	if (start >> 28 != 6)
		return DROP_IP_VERSION;
	if (ip6_extension_drop[ip[6]])
		return ip[6] == PROTOCOL_HOP_BY_HOP ? igmp_parse_ip6(p, ip, room) : ip6_extension_drop[ip[6]];
	len = get_be16(ip + 4);
	if (len > room - IP6_LEN)
		return DROP_IP_LENGTH;
	p->ip_version = 6;
	p->l3_header_len = IP6_LEN;
	p->l3_len = IP6_LEN + len;
	p->tos = (uint8_t)(start >> 20);
	p->ttl = ip[7];
	memcpy(p->src.b, ip + 8, 16);
	memcpy(p->dst.b, ip + 24, 16);
	p->is_multicast = ip[24] == 0xff;
	/* A mapped address inside IPv6 would pass for an IPv4 peer (RFC 4291, 2.5.5.2: never on the wire). */
	if (ip[8] == 0xff || gid_is_ip4(&p->src))
		return DROP_IP_SOURCE;
	if (gid_is_ip4(&p->dst))
		return DROP_IP_NOT_OURS;
	/* Only ICMPv6 has messages from nobody: a probe for duplicate addresses (RFC 4861, 4.3). */
	if (ip[6] == PROTOCOL_ICMP6)
		return icmp_parse(p, ip + IP6_LEN, len);
	if (gid_is_zero(&p->src))
		return DROP_IP_SOURCE;
	return ip[6] == PROTOCOL_UDP ? parse_udp(p, ip + IP6_LEN, len) : DROP_IP_PROTOCOL;
}

/* Only the length; the fields are neighbour_parse's. */
static enum drop parse_arp(struct packet *p, const uint8_t *arp, uint32_t room)
{
	p->l3 = arp;
	if (room < ARP_LEN)
		return DROP_ARP_MALFORMED;
	p->kind = PACKET_ARP;
	p->ip_version = 4;
	p->l3_header_len = ARP_LEN;
	p->l3_len = ARP_LEN;
	p->tos = p->ttl = 0;
	p->is_multicast = false;
	p->src = gid_from_ip4(arp + 14);
	p->dst = gid_from_ip4(arp + 24);
	p->bth = p->payload = arp + ARP_LEN;
	p->payload_len = 0;
	return DROP_NONE;
}

static inline bool is_same_mac(const uint8_t *a, const uint8_t *b)
{
	uint32_t a4, b4;
	memcpy(&a4, a, 4);
	memcpy(&b4, b, 4);
	return ((a4 ^ b4) | (uint32_t)(get_be16(a + 4) ^ get_be16(b + 4))) == 0;
}

static inline enum drop check_macs(const struct packet *p, const struct packet_filter *filter)
{
	bool is_group = p->dmac[0] & 1;
	if (!filter->promiscuous && !is_group && !is_same_mac(p->dmac, filter->mac))
		return DROP_FRAME_NOT_OURS;
	return is_same_mac(p->smac, filter->mac) ? DROP_FRAME_OWN_SOURCE : DROP_NONE;
}

/* Moves *l3_offset behind a tag of the frame. A tag of VLAN 0 carries a priority only: untagged. */
static enum drop take_vlan(struct packet *p, uint16_t *ethertype, uint32_t *l3_offset, uint32_t len, uint16_t vlan_tci)
{
	if (vlan_tci != VLAN_NONE)
		return DROP_VLAN_NESTED;
	if (len < ETHERNET_LEN + VLAN_LEN)
		return DROP_FRAME_RUNT;
	vlan_tci = get_be16(p->frame + ETHERNET_LEN);
	p->vlan = vlan_tci & 0xfff ? vlan_tci & 0xfff : VLAN_NONE;
	p->priority = (uint8_t)(vlan_tci >> 13);
	*ethertype = get_be16(p->frame + ETHERNET_LEN + 2);
	*l3_offset += VLAN_LEN;
	return *ethertype == ETHERTYPE_VLAN || *ethertype == ETHERTYPE_QINQ ? DROP_VLAN_NESTED : DROP_NONE;
}

enum drop packet_parse(struct packet *p, const uint8_t *frame, uint32_t len, uint16_t vlan_tci, const struct packet_filter *filter)
{
	uint32_t l3 = ETHERNET_LEN;
	uint16_t ethertype;
	enum drop drop;

	p->frame = frame;
	if (len < ETHERNET_LEN)
		return DROP_FRAME_RUNT;
	p->dmac = frame;
	p->smac = frame + 6;
	if (filter && (drop = check_macs(p, filter)))
		return drop;
	ethertype = get_be16(frame + 12);
	p->vlan = vlan_tci != VLAN_NONE && (vlan_tci & 0xfff) ? vlan_tci & 0xfff : VLAN_NONE;
	p->priority = vlan_tci != VLAN_NONE ? (uint8_t)(vlan_tci >> 13) : 0;
	if (ethertype == ETHERTYPE_VLAN && (drop = take_vlan(p, &ethertype, &l3, len, vlan_tci)))
		return drop;
	if (ethertype == ETHERTYPE_IP4)
		return parse_ip4(p, frame + l3, len - l3);
	if (ethertype == ETHERTYPE_IP6)
		return parse_ip6(p, frame + l3, len - l3);
	return ethertype == ETHERTYPE_ARP ? parse_arp(p, frame + l3, len - l3) : DROP_ETHERTYPE;
}

bool packet_is_icrc_ok(const struct packet *p)
{
	uint8_t right[ICRC_LEN];
	icrc_store(right, icrc_compute(p->l3, p->ip_version, p->l3_len - ICRC_LEN));
	return !memcmp(right, p->l3 + p->l3_len - ICRC_LEN, ICRC_LEN);
}
