/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole-packet parser: a frame becomes a typed value or a drop reason, and everything above decides on the value. It
 * reads no byte outside [frame, frame + len), and packet_parse has checked every length that the value carries. All integers
 * are in host order. */
#ifndef UROCE_PACKET_H
#define UROCE_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include "drop.h"
#include "gid.h"
#include "opcode.h"
#include "psn.h"

#define VLAN_NONE 0xffffu
#define ROCE_UDP_PORT 4791u
#define ICRC_LEN 4u

#define QPN_MULTICAST 0xffffffu /* destination QP of every multicast datagram (IBA vol. 1, 10.5.2) */

enum packet_kind { PACKET_ROCE, PACKET_ARP, PACKET_ND, PACKET_QUERY, PACKET_ECHO4, PACKET_ECHO6, PACKET_KIND_COUNT }; /* QUERY: of IGMP or MLD */

struct reth {
	uint64_t va;
	uint32_t rkey;
	uint32_t len; /* bytes of the whole message */
};
struct atomic_eth {
	uint64_t va;
	uint32_t rkey;
	uint64_t swap_or_add;
	uint64_t compare;
};
/* What a FLUSH asks for (annex A19.4.2). Values are those of enum ib_placement_type and enum ib_selectivity_level of Linux. */
enum flush_placement { FLUSH_GLOBAL = 1 << 0, /* seen by everybody */ FLUSH_PERSISTENT = 1 << 1, FLUSH_PLACEMENTS = 3 };
enum flush_selectivity { FLUSH_RANGE, FLUSH_WHOLE_MR, FLUSH_SELECTIVITIES };
struct feth {
	uint8_t placement;   /* enum flush_placement, 4 bits of the peer's */
	uint8_t selectivity; /* enum flush_selectivity, 2 bits */
};
struct aeth {
	uint8_t syndrome;
	uint32_t msn; /* 24 bits */
};
struct deth {
	uint32_t qkey;
	uint32_t src_qpn;
};

struct packet {
	const uint8_t *frame;  /* borrowed from the caller of packet_parse */
	const uint8_t *l3;     /* IP header (PACKET_ARP: the ARP body) */
	const uint8_t *bth;    /* PACKET_ROCE: BTH; PACKET_ND, PACKET_ECHO*: the ICMP header; PACKET_QUERY: the IGMP or ICMP header */
	const uint8_t *payload;
	uint32_t payload_len;  /* bytes, without pad and ICRC */
	uint32_t l3_len;       /* bytes from the IP header to the end of the ICRC: the IP packet, without Ethernet padding */
	uint16_t vlan;         /* VLAN id, VLAN_NONE when untagged */
	uint8_t priority;      /* 802.1Q PCP, 0 when untagged */
	uint8_t kind;          /* enum packet_kind */
	uint8_t ip_version;    /* 4 or 6 */
	uint8_t l3_header_len; /* 20 or 40; of a query with its options, 255 at most */
	uint8_t tos;           /* IPv4 TOS or IPv6 traffic class */
	uint8_t ttl;
	bool is_multicast;     /* IP destination is a group */
	uint16_t udp_src_port;
	const uint8_t *smac, *dmac;
	struct gid src, dst;

	/* PACKET_ROCE only */
	const struct opcode *op;
	uint32_t dqpn;
	struct psn psn;
	uint16_t pkey;
	bool solicited, ack_request, mig_request;
	uint8_t pad;
	struct feth feth;
	struct reth reth;             /* valid when op->flags has OPCODE_RETH, and so on */
	struct atomic_eth atomic;
	struct aeth aeth;
	uint64_t atomic_original;
	struct deth deth;
	uint32_t immediate;           /* the four bytes as they came (no byte order is implied by the wire) */
	uint32_t invalidate_rkey;
};

/* What the parser needs to know of the port. */
struct packet_filter {
	uint8_t mac[6];
	bool promiscuous;   /* take frames to any MAC (captures, tests) */
};

/* vlan_tci: the tag that the port stripped, or VLAN_NONE. filter NULL: everything. Checks, in this order: Ethernet, VLAN,
 * IP, UDP (or ARP, ICMP), BTH, extension headers, pad, lengths. Not the ICRC (packet_is_icrc_ok), not whether an address or
 * QP is ours. RoCEv1 (0x8915) and other Ethertypes are DROP_ETHERTYPE; multicast MACs pass (the GID decides). */
enum drop packet_parse(struct packet *p, const uint8_t *frame, uint32_t len, uint16_t vlan_tci, const struct packet_filter *filter);

/* Whether the ICRC of a PACKET_ROCE is right (IBA vol. 1, 7.8.1 with annex A17.3.3). */
bool packet_is_icrc_ok(const struct packet *p);

/* Congestion experienced (RFC 3168). */
static inline bool packet_is_ce(const struct packet *p)
{
	return (p->tos & 3) == 3;
}

/* Writes one line, at most len bytes with its terminator, for any frame at all: decoded as far as it can be, then the drop
 * reason, if any. Returns what snprintf would. */
int packet_print(char *text, uint32_t len, const uint8_t *frame, uint32_t frame_len, uint16_t vlan_tci);

#endif
