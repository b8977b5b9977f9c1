/* SPDX-License-Identifier: BSD-3-Clause */
/* Which core of an engine a frame belongs to, seen from its first bytes alone: a NIC that cannot steer by QPN gives a core the frames of others. Owns nothing and checks nothing: whether the frame is right
 * is for the core that takes it, so that each refusal is counted once, where it is made.
 * Invariant: nothing is read before the length that covers it was compared. */
#include "bytes.h"
#include "core.h"
#include "protocol.h"

/* A part of the frame that has not been looked at. */
struct rest {
	const uint8_t *at;
	uint32_t len;
};

#define CORE_OF_GROUPS 0 /* answers what routers ask of groups, for all cores */

static bool skip(struct rest *r, uint32_t n)
{
	if (r->len < n)
		return false;
	r->at += n;
	r->len -= n;
	return true;
}

/* QP 0 and 1 are no core's: such packets are refused where they come, and a flood of them crosses nothing. (When a connection manager answers on QP 1, it will live on core 0.) So are those to the multicast QP, unless they are for a
 * group. */
static int owner_of_qpn(uint32_t qpn, unsigned cores)
{
	uint32_t core = qpn & ((1u << CORE_INDEX_BITS) - 1);
	return qpn <= 1 || qpn == QPN_MULTICAST || core >= cores ? CORE_ANY : (int)core;
}

/* r begins at the UDP header. *group: the destination address. */
static int owner_of_udp(const struct rest *r, unsigned cores, const struct gid *group)
{
	if (r->len < UDP_LEN + 8 || get_be16(r->at + 2) != ROCE_UDP_PORT)
		return CORE_ANY;
	uint32_t qpn = get_be32(r->at + UDP_LEN + 4) & 0xffffff;
	return qpn == QPN_MULTICAST && gid_is_multicast(group) ? CORE_GROUP : owner_of_qpn(qpn, cores);
}

static int owner_of_ip4(struct rest *r, unsigned cores, struct gid *group)
{
	const uint8_t *ip = r->at;
	uint32_t header = r->len ? (ip[0] & 0xfu) * 4 : 0;
	if (header < IP4_LEN || ip[0] >> 4 != 4 || !skip(r, header))
		return CORE_ANY;
	if (ip[9] == PROTOCOL_IGMP)
		return CORE_OF_GROUPS;
	if (ip[9] != PROTOCOL_UDP || (get_be16(ip + 6) & IP4_FRAGMENT)) /* a later fragment has no headers, and the first is refused as well */
		return CORE_ANY;
	*group = gid_from_ip4(ip + 16);
	return owner_of_udp(r, cores, group);
}

static int owner_of_ip6(struct rest *r, unsigned cores, struct gid *group)
{
	const uint8_t *ip = r->at;
	if (!skip(r, IP6_LEN) || ip[0] >> 4 != 6)
		return CORE_ANY;
	if (ip[6] == PROTOCOL_UDP) {
		memcpy(group->b, ip + 24, 16);
		return owner_of_udp(r, cores, group);
	}
	if (ip[6] == PROTOCOL_HOP_BY_HOP)
		return CORE_OF_GROUPS;
	if (ip[6] != PROTOCOL_ICMP6 || !r->len)
		return CORE_ANY;
	return r->at[0] == ICMP6_NEIGHBOUR_SOLICITATION || r->at[0] == ICMP6_NEIGHBOUR_ADVERTISEMENT ? CORE_ALL : CORE_ANY;
}

int core_frame_owner(const uint8_t *frame, uint32_t len, unsigned cores, struct gid *group)
{
	struct rest r = { frame, len };
	if (!skip(&r, ETHERNET_LEN))
		return CORE_ANY;
	uint16_t ethertype = get_be16(r.at - 2);
	if (ethertype == ETHERTYPE_VLAN) {
		if (!skip(&r, VLAN_LEN))
			return CORE_ANY;
		ethertype = get_be16(r.at - 2);
	}
	if (ethertype == ETHERTYPE_IP4)
		return owner_of_ip4(&r, cores, group);
	if (ethertype == ETHERTYPE_IP6)
		return owner_of_ip6(&r, cores, group);
	return ethertype == ETHERTYPE_ARP ? CORE_ALL : CORE_ANY;
}
