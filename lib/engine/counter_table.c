/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the table. A row says where in a look its value is. Names of what QPs count are those that programs know (strings.c), and a drop reason has its name and sentence from drop.c. Invariant: names are unique. */
#include "counter_table.h"

#include <stddef.h>

#include "uroce.h"

enum source { FROM_CORE, FROM_QP, FROM_DROPS };

static const struct row {
	const char *name; /* FROM_CORE alone */
	enum source source;
	size_t at;        /* FROM_CORE: offset of a uint64_t in struct core_stats; else an index */
	const char *text;
} rows[] = {
	{ "tx_packets", FROM_CORE, offsetof(struct core_stats, tx_packets), "Packets sent on the wire." },
	{ "rx_packets", FROM_CORE, offsetof(struct core_stats, rx_packets), "Packets received from the wire, dropped ones too." },
	{ "tx_bytes", FROM_CORE, offsetof(struct core_stats, tx_bytes), "Bytes of frames sent on the wire." },
	{ "rx_bytes", FROM_CORE, offsetof(struct core_stats, rx_bytes), "Bytes of frames received from the wire." },
	{ "loopback_packets", FROM_CORE, offsetof(struct core_stats, loopback_packets), "Packets between QPs of this port, which never were on the wire." },

	/* requester */
	{ NULL, FROM_QP, QP_RETRANSMITTED_PACKETS, "Request packets sent again." },
	{ NULL, FROM_QP, QP_LOCAL_ACK_TIMEOUT_ERR, "Timeouts of requesters: nothing was acknowledged for too long." },
	{ NULL, FROM_QP, QP_PACKET_SEQ_ERR, "Sequence NAKs received: a request was lost on the way." },
	{ NULL, FROM_QP, QP_IMPLIED_NAK_SEQ_ERR, "READ or atomic responses that were lost, seen by what came after them." },
	{ NULL, FROM_QP, QP_RNR_NAK_RETRY_ERR, "RNR NAKs received: the peer had no receive posted." },
	{ NULL, FROM_QP, QP_TAIL_PROBES, "Packets sent again early, to find out whether the end of a flight was lost." },
	{ NULL, FROM_QP, QP_TX_UNREACHABLE, "Messages of UC and UD lost, since nobody answers for the next hop." },
	{ NULL, FROM_DROPS, DROP_RESPONSE_AHEAD, NULL },
	{ NULL, FROM_DROPS, DROP_RESPONSE_UNEXPECTED, NULL },
	{ NULL, FROM_DROPS, DROP_RESPONSE_BAD, NULL },
	{ NULL, FROM_DROPS, DROP_NAK_STALE, NULL },
	{ NULL, FROM_DROPS, DROP_ACK_OLD, NULL },
	{ NULL, FROM_DROPS, DROP_ACK_GHOST, NULL },
	{ NULL, FROM_DROPS, DROP_ACK_RESERVED, NULL },

	/* responder */
	{ NULL, FROM_QP, QP_OUT_OF_SEQUENCE, "Requests beyond a gap in the PSNs." },
	{ NULL, FROM_QP, QP_DUPLICATE_REQUEST, "Requests seen before: answered again, not executed again." },
	{ NULL, FROM_QP, QP_RNR_NAK_SENT, "RNR NAKs sent." },
	{ NULL, FROM_QP, QP_NAKS_SENT, "Other NAKs sent." },
	{ NULL, FROM_DROPS, DROP_RNR, NULL },
	{ NULL, FROM_DROPS, DROP_LOCAL_LENGTH, NULL },
	{ NULL, FROM_DROPS, DROP_INVALID_REQUEST, NULL },
	{ NULL, FROM_DROPS, DROP_REMOTE_ACCESS, NULL },
	{ NULL, FROM_DROPS, DROP_REMOTE_OPERATION, NULL },
	{ NULL, FROM_DROPS, DROP_DUPLICATE_UNKNOWN, NULL },
	{ NULL, FROM_DROPS, DROP_PSN_FAR, NULL },
	{ NULL, FROM_DROPS, DROP_MESSAGE_INCOMPLETE, NULL },
	{ NULL, FROM_DROPS, DROP_MESSAGE_OLD, NULL },

	/* both */
	{ NULL, FROM_DROPS, DROP_ICRC, NULL },
	{ NULL, FROM_DROPS, DROP_CNP, NULL },
	{ NULL, FROM_DROPS, DROP_QP_UNKNOWN, NULL },
	{ NULL, FROM_DROPS, DROP_GROUP_UNKNOWN, NULL },
	{ NULL, FROM_DROPS, DROP_QP_STATE, NULL },
	{ NULL, FROM_DROPS, DROP_SOURCE, NULL },
	{ NULL, FROM_DROPS, DROP_PKEY, NULL },
	{ NULL, FROM_DROPS, DROP_QKEY, NULL },
	{ NULL, FROM_QP, QP_NP_ECN_MARKED_ROCE_PACKETS, "Packets of QPs that came marked by ECN: there was congestion on their way." },
	{ NULL, FROM_QP, QP_SOURCE_PORT_CHANGES, "Packets of a peer with another UDP source port than the last accepted one." },
	{ "group_copies", FROM_CORE, offsetof(struct core_stats, group_copies), "Copies of multicast datagrams that QPs took." },
	{ "group_copies_dropped", FROM_CORE, offsetof(struct core_stats, group_copies_dropped), "Copies of multicast datagrams that a QP of the group refused." },
	{ "group_queries", FROM_CORE, offsetof(struct core_stats, group_queries), "IGMP and MLD queries taken." },
	{ "group_reports", FROM_CORE, offsetof(struct core_stats, group_reports), "IGMP and MLD reports sent." },
	{ "cq_overruns", FROM_CORE, offsetof(struct core_stats, cq_overruns), "CQs that overran: their programs polled too late." },
	{ "bad_wqes", FROM_CORE, offsetof(struct core_stats, bad_wqes), "WQEs that cannot be carried out." },
	{ "lost_events", FROM_CORE, offsetof(struct core_stats, lost_events), "Asynchronous events for which there was no room, and any whose program had shut its end." },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

bool counter_describe(unsigned i, const char **name, const char **text)
{
	if (i >= ROWS)
		return false;
	*name = rows[i].source == FROM_CORE ? rows[i].name : rows[i].source == FROM_QP ? uroce_qp_counter_name((unsigned)rows[i].at) : drop_name((enum drop)rows[i].at);
	*text = rows[i].text ? rows[i].text : drop_text((enum drop)rows[i].at);
	return true;
}

static uint64_t from_core(const struct engine_look *look, size_t at)
{
	return *(const uint64_t *)(const void *)((const uint8_t *)&look->core + at);
}

static uint64_t from_qp(const struct engine_look *look, size_t at)
{
	return look->qp[at];
}

static uint64_t from_drops(const struct engine_look *look, size_t at)
{
	return look->drops.count[at];
}

uint64_t counter_value(unsigned i, const struct engine_look *look)
{
	static uint64_t (*const from[])(const struct engine_look *look, size_t at) = { [FROM_CORE] = from_core, [FROM_QP] = from_qp, [FROM_DROPS] = from_drops };
	return i < ROWS ? from[rows[i].source](look, rows[i].at) : 0;
}
