/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a received packet was not accepted. Every such packet is counted under exactly one of these; DROP_NONE means accepted.
 * The order is that of the checks, from the outside of the packet inwards. drop.c holds name and explanation of each. */
#ifndef UROCE_DROP_H
#define UROCE_DROP_H

#include <stdint.h>

enum drop {
	DROP_NONE,
	/* frame */
	DROP_FRAME_RUNT,          /* shorter than its Ethernet (and VLAN) header */
	DROP_FRAME_NOT_OURS,      /* destination MAC neither ours, broadcast nor a group of ours */
	DROP_FRAME_OWN_SOURCE,    /* our own source MAC: af_packet's echo, or a loop */
	DROP_ETHERTYPE,           /* not IPv4, IPv6 or ARP */
	DROP_VLAN_NESTED,         /* more than one VLAN tag */
	/* IP */
	DROP_IP_RUNT,             /* the header does not fit the frame */
	DROP_IP_VERSION,
	DROP_IP_OPTIONS,          /* IPv4 options or an IPv6 extension header */
	DROP_IP_LENGTH,           /* total length beyond the frame */
	DROP_IP_CHECKSUM,
	DROP_IP_FRAGMENT,
	DROP_IP_SOURCE,           /* multicast, broadcast or unspecified as a source */
	DROP_IP_NOT_OURS,         /* destination is none of our GIDs */
	DROP_IP_PROTOCOL,         /* not UDP, ICMP or IGMP */
	/* UDP */
	DROP_UDP_LENGTH,          /* shorter than its header, or not the IP payload's length */
	DROP_UDP_PORT,            /* not 4791 */
	DROP_UDP_CHECKSUM,        /* non-zero and wrong */
	/* ARP, ND, IGMP, MLD, ICMP */
	DROP_ARP_MALFORMED,
	DROP_ARP_NOT_OURS,
	DROP_ND_MALFORMED,
	DROP_ND_IGNORED,          /* router solicitation and what we do not use */
	DROP_GROUP_MALFORMED,     /* IGMP and MLD */
	DROP_GROUP_IGNORED,       /* of these anything but a query that concerns us */
	DROP_ICMP_MALFORMED,
	DROP_ICMP_IGNORED,        /* anything but an echo request */
	DROP_REPLY_FULL,          /* no room in the queue of replies */
	/* BTH and extension headers */
	DROP_BTH_RUNT,            /* shorter than BTH and ICRC */
	DROP_BTH_VERSION,         /* TVer is not 0 */
	DROP_OPCODE,              /* reserved or unknown opcode */
	DROP_HEADERS_RUNT,        /* shorter than the opcode's headers, pad and ICRC */
	DROP_PAD,                 /* pad bytes where the opcode carries no payload */
	DROP_ICRC,
	/* QP */
	DROP_QP_RESERVED,         /* QP 0, or a QP number no packet may name */
	DROP_QP_UNKNOWN,
	DROP_GROUP_UNKNOWN,       /* to a multicast group that no QP is in */
	DROP_QP_STATE,            /* the QP's state does not take this packet */
	DROP_QP_SERVICE,          /* opcode of another service than the QP's */
	DROP_PKEY,
	DROP_QKEY,                /* UD: not the QP's Q_Key */
	DROP_SOURCE,              /* the source address is not the QP's peer */
	DROP_DESTINATION,         /* the destination address is not the QP's own */
	DROP_CNP,                 /* a CNP, and congestion control does not use it */
	/* responder */
	DROP_PSN_AHEAD,           /* beyond a gap: one NAK was or will be sent */
	DROP_PSN_FAR,             /* neither expected, a duplicate nor a plausible gap */
	DROP_DUPLICATE,           /* a duplicate SEND or WRITE: answered by an ACK, not executed */
	DROP_DUPLICATE_UNKNOWN,   /* a duplicate READ or atomic that no replay record knows */
	DROP_RNR,                 /* no receive WQE: answered by an RNR NAK, or waiting after one */
	DROP_INVALID_REQUEST,     /* answered by NAK invalid request */
	DROP_REMOTE_ACCESS,       /* answered by NAK remote access error */
	DROP_REMOTE_OPERATION,    /* answered by NAK remote operational error */
	DROP_LOCAL_LENGTH,        /* a SEND longer than its receive WQE */
	DROP_MESSAGE_INCOMPLETE,  /* UC: part of a message of which something is missing */
	DROP_MESSAGE_OLD,         /* UC: from before what has come already */
	/* requester */
	DROP_ACK_GHOST,           /* acknowledges what was never sent */
	DROP_ACK_OLD,             /* acknowledges nothing new */
	DROP_ACK_RESERVED,        /* reserved AETH syndrome or NAK code */
	DROP_NAK_STALE,           /* a NAK for a gap that is being repaired already */
	DROP_RESPONSE_UNEXPECTED, /* a READ or atomic response that nothing waits for */
	DROP_RESPONSE_BAD,        /* the wrong opcode or length for its place: ends the QP */
	DROP_RESPONSE_AHEAD,      /* a READ response beyond a gap */
	DROP_COUNT
};

struct drop_counters {
	uint64_t count[DROP_COUNT];
};

/* Short name of a reason ("rx_icrc_errors" style: lower case, underscores), for counters and logs. Never NULL. */
const char *drop_name(enum drop d);
/* One sentence for a person. Never NULL. */
const char *drop_text(enum drop d);

#endif
