/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is in which multicast group, between hosts and routers: IGMP for IPv4 (RFC 3376; RFC 2236 for older routers), MLD for IPv6 (RFC 3810; RFC 2710). Queries are read from a packet_parse result, reports written as whole frames. */
#ifndef UROCE_IGMP_H
#define UROCE_IGMP_H

#include <stdbool.h>
#include <stdint.h>

#include "packet.h"

struct group_query {
	struct gid group;      /* zero: of all groups */
	uint32_t max_delay_ms; /* answers come at a random time up to so late */
	uint8_t robustness;    /* how often reports are to be sent; 0: not said */
	uint8_t version;       /* of IGMP: 2 (1 counts as 2) or 3; of MLD: 1 or 2 */
	bool is_older;         /* asks for reports of the version before the last */
};

/* p->kind is PACKET_QUERY. DROP_GROUP_MALFORMED, DROP_GROUP_IGNORED: none that a host on this link would answer. */
enum drop group_query_parse(struct group_query *q, const struct packet *p);

/* What a record says of its group; none names sources. */
enum group_record_type { GROUP_IS_EXCLUDE = 2, GROUP_TO_INCLUDE = 3, GROUP_TO_EXCLUDE = 4 }; /* a member; no more; newly one */
struct group_record {
	struct gid group;
	uint8_t type; /* enum group_record_type */
};

#define GROUP_FRAME_MAX 340u   /* any report fits: the path MTU of 256 that every port carries makes longer frames */
#define GROUP_RECORDS_MAX 36u  /* of either family in one frame of GROUP_FRAME_MAX */
/* How many records a report of room bytes holds, at most GROUP_RECORDS_MAX; at least one in NEIGHBOUR_FRAME_MAX (arp.h). */
unsigned group_report_holds(uint32_t room, bool is_ip4);
/* An IGMPv3 or MLDv2 report with these records, 1 <= n <= group_report_holds, all of one family. src: our address there, or zero. Returns the frame's length. */
uint32_t group_report_write(uint8_t *frame, const uint8_t smac[6], uint16_t vlan, const struct gid *src, const struct group_record *records, unsigned n);
/* What an older router understands: IGMPv2 or MLDv1, one group a frame; GROUP_TO_INCLUDE leaves. */
uint32_t group_report_write_older(uint8_t *frame, const uint8_t smac[6], uint16_t vlan, const struct gid *src, const struct group_record *record);

/* Inside wire/, for packet_parse: an IPv4 packet of protocol IGMP, with options or without, and an IPv6 packet that begins with hop-by-hop options, of which only MLD is taken. room: bytes from ip to the frame's end, at least the
 * fixed header. */
enum drop igmp_parse_ip4(struct packet *p, const uint8_t *ip, uint32_t room);
enum drop igmp_parse_ip6(struct packet *p, const uint8_t *ip, uint32_t room);

#endif
