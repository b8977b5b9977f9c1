/* SPDX-License-Identifier: BSD-3-Clause */
/* A frame as one line for a person. Owns the wording only: what it knows it has from packet_parse, so it reads no byte that the
 * parser did not vouch for, and it prints what was decoded before a check failed, then the reason.
 * IBA vol. 1, 9.7.5.2 (AETH syndromes), table 45 (RNR NAK timer). */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "arp.h"
#include "igmp.h"
#include "packet.h"
#include "protocol.h"

struct line {
	char *text;
	uint32_t room; /* with the terminator */
	uint32_t len;  /* what the whole line needs */
};

__attribute__((format(printf, 2, 3))) static void append(struct line *l, const char *format, ...)
{
	bool has_room = l->len < l->room;
	va_list args;
	va_start(args, format);
	int n = vsnprintf(has_room ? l->text + l->len : NULL, has_room ? l->room - l->len : 0, format, args);
	va_end(args);
	l->len += n > 0 ? (uint32_t)n : 0;
}

static void append_gid(struct line *l, const struct gid *g)
{
	char text[GID_TEXT_MAX];
	append(l, "%s", gid_format(g, text));
}

static void append_mac(struct line *l, const uint8_t *m)
{
	append(l, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
}

/* Tens of microseconds by RNR timer code. */
static const uint32_t rnr_delay[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};
static const char *const nak_text[32] = {
	"PSN sequence error", "invalid request", "remote access error", "remote operational error", "invalid RD request",
};

static void print_aeth(struct line *l, const struct aeth *a)
{
	unsigned value = a->syndrome & 0x1f;
	switch (a->syndrome >> 5) {
	case 0:
		append(l, " ack credits %u", value);
		break;
	case 1:
		append(l, " rnr nak delay %" PRIu32 ".%02" PRIu32 " ms", rnr_delay[value] / 100, rnr_delay[value] % 100);
		break;
	case 3:
		append(l, " nak %s", nak_text[value] ? nak_text[value] : "reserved");
		break;
	default:
		append(l, " reserved syndrome");
	}
	append(l, " (0x%02x) msn %" PRIu32, a->syndrome, a->msn);
}

static void print_extensions(struct line *l, const struct packet *p)
{
	unsigned flags = p->op->flags;
	if (flags & OPCODE_DETH)
		append(l, " qkey 0x%" PRIx32 " from 0x%06" PRIx32, p->deth.qkey, p->deth.src_qpn);
	if (flags & OPCODE_FETH)
		append(l, " place 0x%x of %s", p->feth.placement, p->feth.selectivity == FLUSH_RANGE ? "range" : p->feth.selectivity == FLUSH_WHOLE_MR ? "mr" : "reserved");
	if (flags & OPCODE_RETH)
		append(l, " va 0x%" PRIx64 " rkey 0x%" PRIx32 " len %" PRIu32, p->reth.va, p->reth.rkey, p->reth.len);
	if (flags & OPCODE_AETH)
		print_aeth(l, &p->aeth);
	if (flags & OPCODE_ATOMIC)
		append(l, " va 0x%" PRIx64 " rkey 0x%" PRIx32 " swap/add 0x%" PRIx64 " compare 0x%" PRIx64, p->atomic.va, p->atomic.rkey,
		       p->atomic.swap_or_add, p->atomic.compare);
	if (flags & OPCODE_ATOMIC_ACK)
		append(l, " original 0x%" PRIx64, p->atomic_original);
	if (flags & OPCODE_IMMEDIATE)
		append(l, " imm 0x%08" PRIx32, get_be32((const uint8_t *)&p->immediate));
	if (flags & OPCODE_INVALIDATE)
		append(l, " invalidate 0x%" PRIx32, p->invalidate_rkey);
}

static void print_roce(struct line *l, const struct packet *p, enum drop drop)
{
	if (drop == DROP_OPCODE)
		append(l, " opcode 0x%02x", p->bth[0]);
	if (!p->op)
		return;
	append(l, " %s qpn 0x%06" PRIx32 " psn 0x%06" PRIx32, p->op->name, p->dqpn, p->psn.v);
	if (p->pkey != 0xffff)
		append(l, " pkey 0x%04x", p->pkey);
	append(l, "%s%s%s", p->ack_request ? " ackreq" : "", p->solicited ? " solicited" : "", packet_is_ce(p) ? " ce" : "");
	print_extensions(l, p);
	if (drop != DROP_NONE)
		return;
	if (p->op->flags & OPCODE_PAYLOAD)
		append(l, " payload %" PRIu32, p->payload_len);
	if (!packet_is_icrc_ok(p))
		append(l, " icrc bad");
}

static void print_neighbour(struct line *l, const struct packet *p, enum drop drop)
{
	struct neighbour_message m;
	if (drop != DROP_NONE || neighbour_parse(&m, p) != DROP_NONE) {
		append(l, " %s", p->kind == PACKET_ARP ? "ARP" : "ND");
		return;
	}
	append(l, m.kind == NEIGHBOUR_ASK ? " who has " : " ");
	append_gid(l, &m.target);
	if (m.kind == NEIGHBOUR_TELL)
		append(l, " is at ");
	else if (m.has_mac)
		append(l, ", asks ");
	if (m.has_mac)
		append_mac(l, m.mac);
}

static void print_query(struct line *l, const struct packet *p, enum drop drop)
{
	struct group_query q;
	if (drop != DROP_NONE || group_query_parse(&q, p) != DROP_NONE)
		return;
	append(l, " membership query v%u", q.version);
	if (!gid_is_zero(&q.group)) {
		append(l, " of ");
		append_gid(l, &q.group);
	}
	append(l, " within %" PRIu32 " ms", q.max_delay_ms);
}

static void print_echo(struct line *l, const struct packet *p, enum drop drop)
{
	append(l, " echo request id 0x%04x seq %u payload %" PRIu32, get_be16(p->bth + 4), get_be16(p->bth + 6), p->payload_len);
}

/* By what a frame was recognised as; nothing more is known of one that was dropped earlier. */
static void (*const print_of[PACKET_KIND_COUNT])(struct line *, const struct packet *, enum drop) = {
	[PACKET_ROCE] = print_roce,     [PACKET_ARP] = print_neighbour, [PACKET_ND] = print_neighbour,
	[PACKET_QUERY] = print_query,   [PACKET_ECHO4] = print_echo,    [PACKET_ECHO6] = print_echo,
};

static void print_addresses(struct line *l, const struct packet *p)
{
	if (p->ip_version) {
		append_gid(l, &p->src);
		append(l, " > ");
		append_gid(l, &p->dst);
		return;
	}
	append_mac(l, p->smac);
	append(l, " > ");
	append_mac(l, p->dmac);
	append(l, " type 0x%04x", get_be16(p->frame + 12));
}

int packet_print(char *text, uint32_t len, const uint8_t *frame, uint32_t frame_len, uint16_t vlan_tci)
{
	struct line l = { text, len, 0 };
	struct packet p = { .kind = PACKET_KIND_COUNT, .vlan = VLAN_NONE };
	enum drop drop = packet_parse(&p, frame, frame_len, vlan_tci, NULL);

	if (len)
		text[0] = 0;
	if (p.smac) {
		if (p.vlan != VLAN_NONE)
			append(&l, "vlan %u ", p.vlan);
		print_addresses(&l, &p);
	} else {
		append(&l, "%" PRIu32 " bytes", frame_len);
	}
	if (p.kind < PACKET_KIND_COUNT)
		print_of[p.kind](&l, &p, drop);
	/* What packet_parse leaves to others counts as a reason too. */
	if (drop == DROP_NONE && (p.kind == PACKET_ARP || p.kind == PACKET_ND)) {
		struct neighbour_message m;
		drop = neighbour_parse(&m, &p);
	} else if (drop == DROP_NONE && p.kind == PACKET_QUERY) {
		struct group_query q;
		drop = group_query_parse(&q, &p);
	}
	if (drop != DROP_NONE)
		append(&l, " dropped: %s", drop_name(drop));
	return (int)l.len;
}
