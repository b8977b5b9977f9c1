/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the names and explanations of the drop reasons. Does not count (whoever dropped does, in its own struct drop_counters) and
 * does not decide.
 * Invariant: one row per reason, in the order of enum drop; names are unique, for they are the keys of counters that scripts read.
 * Where users of other adapters know a counter of the same meaning (Linux hw_counters, ethtool -S), it has that name. */
#include "drop.h"

static const struct {
	const char *name, *text;
} rows[DROP_COUNT] = {
	[DROP_NONE]                = { "accepted", "The packet was accepted." },

	[DROP_FRAME_RUNT]          = { "rx_runt_frames", "The frame is shorter than its Ethernet or VLAN header." },
	[DROP_FRAME_NOT_OURS]      = { "rx_frame_not_ours", "The destination MAC is not ours, not broadcast and no group of ours." },
	[DROP_FRAME_OWN_SOURCE]    = { "rx_frame_own_source", "The source MAC is our own: an echo of the port, or a loop in the network." },
	[DROP_ETHERTYPE]           = { "rx_ethertype_unknown", "The frame carries neither IPv4, IPv6 nor ARP." },
	[DROP_VLAN_NESTED]         = { "rx_vlan_nested", "The frame has more than one VLAN tag." },

	[DROP_IP_RUNT]             = { "rx_ip_runt", "The IP header does not fit the frame." },
	[DROP_IP_VERSION]          = { "rx_ip_version_errors", "The IP version does not match the Ethernet type." },
	[DROP_IP_OPTIONS]          = { "rx_ip_options", "The packet has IPv4 options or an IPv6 extension header." },
	[DROP_IP_LENGTH]           = { "rx_ip_length_errors", "The IP length reaches beyond the frame." },
	[DROP_IP_CHECKSUM]         = { "rx_ip_csum_errors", "The checksum of the IPv4 header is wrong." },
	[DROP_IP_FRAGMENT]         = { "rx_ip_fragments", "The packet is a fragment; RoCE is not reassembled." },
	[DROP_IP_SOURCE]           = { "rx_ip_source_errors", "The source address is multicast, broadcast or unspecified." },
	[DROP_IP_NOT_OURS]         = { "rx_ip_not_ours", "The destination address is none of our GIDs." },
	[DROP_IP_PROTOCOL]         = { "rx_ip_protocol_unknown", "The IP payload is neither UDP, ICMP nor IGMP." },

	[DROP_UDP_LENGTH]          = { "rx_udp_length_errors", "The UDP length is too short or is not that of the IP payload." },
	[DROP_UDP_PORT]            = { "rx_udp_port_unknown", "The UDP destination port is not 4791." },
	[DROP_UDP_CHECKSUM]        = { "rx_udp_csum_errors", "The UDP checksum is neither zero nor right." },

	[DROP_ARP_MALFORMED]       = { "rx_arp_malformed", "The ARP packet is too short or not Ethernet and IPv4." },
	[DROP_ARP_NOT_OURS]        = { "rx_arp_not_ours", "The ARP packet concerns none of our addresses." },
	[DROP_ND_MALFORMED]        = { "rx_nd_malformed", "The neighbour discovery message fails a check of RFC 4861." },
	[DROP_ND_IGNORED]          = { "rx_nd_ignored", "A neighbour discovery message that we do not use." },
	[DROP_GROUP_MALFORMED]     = { "rx_group_query_malformed", "An IGMP or MLD message that is too short, or whose checksum or sender is wrong." },
	[DROP_GROUP_IGNORED]       = { "rx_group_message_ignored", "An IGMP or MLD message that is no query, or none that concerns us." },
	[DROP_ICMP_MALFORMED]      = { "rx_icmp_malformed", "The ICMP message is too short or its checksum is wrong." },
	[DROP_ICMP_IGNORED]        = { "rx_icmp_ignored", "An ICMP message other than an echo request." },
	[DROP_REPLY_FULL]          = { "rx_reply_queue_full", "An answer was due, but the queue of replies had no room." },

	[DROP_BTH_RUNT]            = { "rx_bth_runt", "The UDP payload is shorter than BTH and ICRC." },
	[DROP_BTH_VERSION]         = { "rx_bth_version_errors", "The transport version of the BTH is not 0." },
	[DROP_OPCODE]              = { "rx_opcode_unknown", "The opcode is reserved or unknown." },
	[DROP_HEADERS_RUNT]        = { "rx_headers_runt", "The packet is shorter than its opcode's headers, pad and ICRC." },
	[DROP_PAD]                 = { "rx_pad_errors", "The packet has pad bytes, but its opcode carries no payload." },
	[DROP_ICRC]                = { "rx_icrc_errors", "The invariant CRC is wrong: damaged on the way, or rewritten." },

	[DROP_QP_RESERVED]         = { "rx_qp_reserved", "The packet names QP 0 or another number that no packet may name." },
	[DROP_QP_UNKNOWN]          = { "rx_qp_unknown", "There is no such QP: destroyed, or guessed." },
	[DROP_GROUP_UNKNOWN]       = { "rx_group_unknown", "A datagram to a multicast group that no QP is in." },
	[DROP_QP_STATE]            = { "rx_qp_state_errors", "The QP is in a state that does not take this packet." },
	[DROP_QP_SERVICE]          = { "rx_qp_service_errors", "The opcode belongs to another service than the QP's." },
	[DROP_PKEY]                = { "rx_pkey_violations", "The partition key does not match the QP's." },
	[DROP_QKEY]                = { "rx_qkey_violations", "A datagram whose Q_Key is not the QP's." },
	[DROP_SOURCE]              = { "rx_source_violations", "The source address is not the QP's peer: forged, or misrouted." },
	[DROP_DESTINATION]         = { "rx_destination_violations", "The destination address is ours, but not this QP's." },
	[DROP_CNP]                 = { "rp_cnp_ignored", "A congestion notification, and congestion control does not use it." },

	[DROP_PSN_AHEAD]           = { "out_of_sequence", "A request beyond a gap in the PSNs; one NAK asks for what is missing." },
	[DROP_PSN_FAR]             = { "psn_out_of_window", "The PSN is neither expected, a duplicate nor a plausible gap." },
	[DROP_DUPLICATE]           = { "duplicate_request", "A SEND or WRITE seen before: acknowledged again, not executed again." },
	[DROP_DUPLICATE_UNKNOWN]   = { "duplicate_unknown", "A repeated READ or atomic that is too old to be replayed." },
	[DROP_RNR]                 = { "out_of_buffer", "No receive WQE was posted; the requester is told to wait." },
	[DROP_INVALID_REQUEST]     = { "resp_invalid_request", "The request was answered by NAK invalid request." },
	[DROP_REMOTE_ACCESS]       = { "resp_remote_access_errors", "The key, range or rights do not allow the access; answered by a NAK." },
	[DROP_REMOTE_OPERATION]    = { "resp_remote_op_errors", "The request failed on our side; answered by NAK remote operational error." },
	[DROP_LOCAL_LENGTH]        = { "resp_local_length_error", "The SEND is longer than the receive WQE it met." },
	[DROP_MESSAGE_INCOMPLETE]  = { "uc_incomplete_message", "Part of an unreliable message that lacks an earlier part; the message is dropped." },
	[DROP_MESSAGE_OLD]         = { "uc_old_packets", "A packet of an unreliable connection from before what has come: late, or a duplicate." },

	[DROP_ACK_GHOST]           = { "ack_of_unsent", "The acknowledged PSN was never sent." },
	[DROP_ACK_OLD]             = { "ack_old", "The packet acknowledges nothing new." },
	[DROP_ACK_RESERVED]        = { "ack_reserved", "The AETH has a reserved syndrome or NAK code." },
	[DROP_NAK_STALE]           = { "nak_stale", "A NAK for a gap that is being repaired already." },
	[DROP_RESPONSE_UNEXPECTED] = { "response_unexpected", "A READ or atomic response that no request waits for." },
	[DROP_RESPONSE_BAD]        = { "req_bad_response", "A response of the wrong opcode or length for its place; the QP ends." },
	[DROP_RESPONSE_AHEAD]      = { "response_out_of_sequence", "A READ response beyond a gap; the rest is asked for again." },
};

const char *drop_name(enum drop d)
{
	return (unsigned)d < DROP_COUNT ? rows[d].name : "unknown";
}

const char *drop_text(enum drop d)
{
	return (unsigned)d < DROP_COUNT ? rows[d].text : "A reason that this version does not know.";
}
