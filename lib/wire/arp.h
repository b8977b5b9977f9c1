/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP (RFC 826) and the parts of Neighbour Discovery (RFC 4861) that resolve addresses, read from a packet_parse result and
 * written as whole frames. */
#ifndef UROCE_ARP_H
#define UROCE_ARP_H

#include <stdbool.h>
#include <stdint.h>

#include "packet.h"

#define NEIGHBOUR_FRAME_MAX 96u /* any frame below fits, VLAN included */

enum neighbour_kind { NEIGHBOUR_ASK, NEIGHBOUR_TELL }; /* ARP request / NS; ARP reply / NA */

/* One resolution message, of either protocol. */
struct neighbour_message {
	uint8_t kind;       /* enum neighbour_kind */
	bool has_mac;       /* mac is set: always by ARP, by ND when it carries the link-layer address option */
	bool solicited, override; /* NA flags; for an ARP reply both true */
	bool is_probe;      /* the sender has no address yet (duplicate address detection): answer, learn nothing */
	struct gid sender;  /* who speaks (zero in a probe) */
	struct gid target;  /* the address asked for, or told of */
	uint8_t mac[6];     /* ASK: the sender's; TELL: the target's */
};

/* p->kind is PACKET_ARP or PACKET_ND. DROP_ND_IGNORED for RS, RA and redirects. ND: hop limit 255, checksum, code and options
 * are checked; ARP: all fixed fields, and that the sender's MAC and address can be those of one host. */
enum drop neighbour_parse(struct neighbour_message *m, const struct packet *p);

/* ASK `target` from (smac, src): ARP broadcast, or NS to the solicited-node group; unicast when dmac is not NULL. src zero:
 * a probe for duplicates. Returns the frame's length. */
uint32_t neighbour_write_ask(uint8_t *frame, const uint8_t smac[6], const uint8_t *dmac, uint16_t vlan, const struct gid *src,
			     const struct gid *target);
/* TELL dst at dmac that `target` is at smac. ND: flags Solicited (unless dst is a group, such as all nodes) and Override. */
uint32_t neighbour_write_tell(uint8_t *frame, const uint8_t smac[6], const uint8_t dmac[6], uint16_t vlan,
			      const struct gid *target, const struct gid *dst);

/* The answer to an echo request (p->kind PACKET_ECHO4 or PACKET_ECHO6) with its payload, from smac back to where it came
 * from; our address is p->dst. frame does not overlap p's. Returns the frame's length, 0 when it does not fit into room
 * or the request went to a group. */
uint32_t echo_write_reply(uint8_t *frame, uint32_t room, const uint8_t smac[6], const struct packet *p);

#endif
