/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the frames of a capture and the list of fields in which two stacks may differ: free_bytes, and what golden_compare says of the BTH. */
#include "capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icrc.h"
#include "../pcap_file.h"

#define FRAMES_MAX 4096u
#define RULES_MAX 4u
#define QPN_MAD 1u

/* What was dropped before a side saw it. */
struct drop_rule {
	uint8_t opcode;
	bool has_psn, is_once;
	uint32_t psn;
};

static unsigned read_rules(const char *path, const char *ending, struct drop_rule *rule)
{
	char name[4096], line[256];
	unsigned n = 0, opcode;
	snprintf(name, sizeof(name), "%.*s%s", (int)(strlen(path) - 5), path, ending);
	FILE *f = fopen(name, "re");
	while (f && n < RULES_MAX && fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, "@th,64,8 "), *psn = strstr(line, "@th,136,24 ");
		if (!at || !strstr(line, " drop") || sscanf(at + 9, "%x", &opcode) != 1)
			continue;
		rule[n] = (struct drop_rule){ .opcode = (uint8_t)opcode, .is_once = strstr(line, "numgen") != NULL };
		rule[n].has_psn = psn && sscanf(psn + 11, "%x", &rule[n].psn) == 1;
		n++;
	}
	if (f)
		fclose(f);
	return n;
}

static void mark_lost(struct golden *g, const char *path)
{
	static const char *const endings[2] = { ".p1", ".p2" };
	struct drop_rule rule[RULES_MAX];
	for (unsigned side = 0; side < 2; side++) {
		unsigned n = read_rules(path, endings[side], rule);
		for (unsigned r = 0; r < n; r++) {
			bool is_done = false;
			for (unsigned i = 0; i < g->frames && !is_done; i++) {
				struct golden_frame *f = &g->frame[i];
				if (f->side == side || f->p.op->byte != rule[r].opcode || (rule[r].has_psn && f->p.psn.v != rule[r].psn))
					continue;
				f->is_lost = true;
				is_done = rule[r].is_once;
			}
		}
	}
}

static bool is_same_flow(const struct packet *a, const struct packet *b)
{
	return gid_is_equal(&a->src, &b->src) && gid_is_equal(&a->dst, &b->dst) && a->dqpn == b->dqpn;
}

static bool is_opposite(const struct packet *a, const struct packet *b)
{
	return gid_is_equal(&a->src, &b->dst) && gid_is_equal(&a->dst, &b->src);
}

/* Whether a request of one flow was answered in the other. */
static bool is_answered(const struct golden *g, const struct packet *request, const struct packet *answer)
{
	for (unsigned i = 0; i < g->frames; i++) {
		const struct packet *p = &g->frame[i].p;
		if (!is_same_flow(p, request) || !(p->op->flags & OPCODE_REQUEST))
			continue;
		for (unsigned k = i; k < g->frames; k++) {
			const struct packet *q = &g->frame[k].p;
			if (is_same_flow(q, answer) && q->op->flags & OPCODE_RESPONSE && psn_is_equal(q->psn, p->psn))
				return true;
		}
	}
	return false;
}

/* The flow the other way, by a packet of it: captures do not say which QPNs belong together, but PSNs do. NULL: there is none. */
static const struct packet *find_opposite(const struct golden *g, const struct packet *first)
{
	for (unsigned i = 0; i < g->frames; i++) {
		const struct packet *p = &g->frame[i].p;
		if (is_opposite(p, first) && (is_answered(g, first, p) || is_answered(g, p, first)))
			return p;
	}
	return NULL;
}

/* A NIC put the time into the source address: others, that follow from the hosts'. */
static void make_macs(uint8_t *frame, const struct packet *p)
{
	memcpy(frame, (uint8_t[2]){ 2, 0 }, 2);
	memcpy(frame + 2, p->dst.b + 12, 4);
	memcpy(frame + 6, (uint8_t[2]){ 2, 0 }, 2);
	memcpy(frame + 8, p->src.b + 12, 4);
}

static const char *add_frame(struct golden *g, const struct pcap_frame *from, uint64_t start_ns, unsigned services)
{
	struct golden_frame *f = &g->frame[g->frames];
	struct packet p;
	if (packet_parse(&p, from->bytes, from->len, VLAN_NONE, NULL) != DROP_NONE || p.kind != PACKET_ROCE || !(services & 1u << p.op->service) || p.dqpn == QPN_MAD)
		return NULL;
	if (!packet_is_icrc_ok(&p))
		return "has packets with a wrong ICRC";
	if (g->frames == FRAMES_MAX)
		return "is too long";
	*f = (struct golden_frame){ .bytes = malloc(from->len), .len = from->len, .time_ns = from->time_ns - start_ns };
	memcpy(f->bytes, from->bytes, from->len);
	if (strstr(g->path, "/derived/"))
		make_macs(f->bytes, &p);
	packet_parse(&f->p, f->bytes, f->len, VLAN_NONE, NULL);
	g->frames++;
	return NULL;
}

/* What a packet that others follow carries; else the smallest that is enough, from 1024. */
static uint32_t find_mtu(const struct golden *g)
{
	uint32_t mtu = 1024;
	for (unsigned i = 0; i < g->frames; i++) {
		const struct packet *p = &g->frame[i].p;
		if (p->op->flags & OPCODE_PAYLOAD && !(p->op->flags & OPCODE_LAST))
			return p->payload_len;
		while (p->payload_len > mtu)
			mtu *= 2;
	}
	return mtu;
}

const char *golden_load(struct golden *g, const char *path, unsigned services)
{
	struct pcap_file file;
	struct pcap_frame frame;
	const char *why = NULL;
	uint64_t start_ns = 0;
	*g = (struct golden){ .frame = calloc(FRAMES_MAX, sizeof(*g->frame)), .path = path };
	if (pcap_file_open(&file, path))
		return "cannot be read";
	while (!why && pcap_file_next(&file, &frame)) {
		start_ns = start_ns ? start_ns : frame.time_ns;
		if (file.link_type == PCAP_ETHERNET)
			why = add_frame(g, &frame, start_ns, services);
	}
	pcap_file_close(&file);
	return why ? why : g->frames ? NULL : "has no such packets";
}

/* The first frame of connection number `index`. */
static const struct packet *find_connection(const struct golden *all, unsigned index, const struct packet **opposite)
{
	for (unsigned i = 0; i < all->frames; i++) {
		const struct packet *p = &all->frame[i].p;
		bool is_first = true;
		for (unsigned k = 0; k < i && is_first; k++) {
			const struct packet *before = find_opposite(all, &all->frame[k].p);
			is_first = !is_same_flow(&all->frame[k].p, p) && !(before && is_same_flow(before, p));
		}
		*opposite = is_first ? find_opposite(all, p) : NULL;
		if (*opposite && !index--)
			return p;
	}
	return NULL;
}

bool golden_pick(struct golden *g, const struct golden *all, unsigned index)
{
	const struct packet *other, *first = find_connection(all, index, &other);
	if (!first)
		return false;
	*g = (struct golden){ .frame = calloc(all->frames, sizeof(*g->frame)), .is_borrowed = true, .path = all->path };
	for (unsigned i = 0; i < all->frames; i++) {
		const struct golden_frame *f = &all->frame[i];
		bool is_other = is_same_flow(&f->p, other);
		if (!is_other && !is_same_flow(&f->p, first))
			continue;
		g->frame[g->frames] = *f;
		g->frame[g->frames++].side = is_other;
	}
	g->mtu = find_mtu(g);
	mark_lost(g, all->path);
	return true;
}

/* The first frame of flow number `index`. */
static const struct packet *find_flow(const struct golden *all, unsigned index)
{
	for (unsigned i = 0; i < all->frames; i++) {
		bool is_first = true;
		for (unsigned k = 0; k < i && is_first; k++)
			is_first = !is_same_flow(&all->frame[k].p, &all->frame[i].p);
		if (is_first && !index--)
			return &all->frame[i].p;
	}
	return NULL;
}

bool golden_pick_flow(struct golden *g, const struct golden *all, unsigned index)
{
	const struct packet *first = find_flow(all, index);
	if (!first)
		return false;
	*g = (struct golden){ .frame = calloc(all->frames, sizeof(*g->frame)), .is_borrowed = true, .path = all->path };
	for (unsigned i = 0; i < all->frames; i++)
		if (is_same_flow(&all->frame[i].p, first))
			g->frame[g->frames++] = all->frame[i];
	g->mtu = find_mtu(g);
	return true;
}

void golden_free(struct golden *g)
{
	for (unsigned i = 0; i < g->frames && !g->is_borrowed; i++)
		free(g->frame[i].bytes);
	free(g->frame);
}

uint32_t golden_psns(const struct golden *g, const struct packet *p)
{
	return p->op->message == MESSAGE_READ_REQUEST && p->reth.len ? (p->reth.len + g->mtu - 1) / g->mtu : 1;
}

bool golden_is_repeated(const struct golden *g, unsigned frame)
{
	const struct golden_frame *f = &g->frame[frame];
	for (unsigned i = 0; i < frame; i++) {
		const struct golden_frame *e = &g->frame[i];
		if (e->side == f->side && e->p.op->flags & OPCODE_REQUEST && psn_is_before(f->p.psn, psn_add(e->p.psn, golden_psns(g, &e->p))))
			return true;
	}
	return false;
}

/* ---- rewriting ---- */

static uint8_t *in_frame(uint8_t *frame, const struct packet *p, const uint8_t *at)
{
	return frame + (at - p->frame);
}

static void put24(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 16);
	at[1] = (uint8_t)(v >> 8);
	at[2] = (uint8_t)v;
}

void golden_set_qpn(uint8_t *frame, const struct packet *p, uint32_t qpn)
{
	put24(in_frame(frame, p, p->bth) + 5, qpn);
}

/* RETH and AtomicETH begin with the address and the key, IETH is nothing but the key. */
void golden_set_rkey(uint8_t *frame, const struct packet *p, uint32_t rkey)
{
	uint8_t *at = in_frame(frame, p, p->bth) + 12 + (p->op->flags & OPCODE_INVALIDATE ? 0 : 8);
	at[0] = (uint8_t)(rkey >> 24);
	put24(at + 1, rkey & 0xffffff);
}

void golden_ask_ack(uint8_t *frame, const struct packet *p)
{
	in_frame(frame, p, p->bth)[8] |= 0x80;
}

void golden_set_msn(uint8_t *frame, const struct packet *p, uint32_t msn)
{
	put24(in_frame(frame, p, p->bth) + 13, msn);
}

void golden_seal(uint8_t *frame, const struct packet *p)
{
	uint8_t *l3 = in_frame(frame, p, p->l3);
	icrc_store(l3 + p->l3_len - ICRC_LEN, icrc_compute(l3, p->ip_version, p->l3_len - ICRC_LEN));
}

/* ---- comparing ---- */

enum base { BASE_ETHERNET, BASE_IP4, BASE_IP6, BASE_UDP, BASE_BTH, BASE_EXTENSIONS };

/* Bytes of a header that each stack fills as it likes. */
static const struct free_field {
	enum base base;
	uint8_t first, bytes;
	const char *why;
} free_bytes[] = {
	{ BASE_IP4, 4, 2, "identification: counts packets of a host" },
	{ BASE_IP4, 10, 2, "header checksum: covers the identification" },
	{ BASE_IP6, 1, 3, "flow label (with 4 bits of the traffic class, which is compared as a value): rxe sends none" },
	{ BASE_UDP, 0, 2, "source port: entropy for multipath" },
	{ BASE_UDP, 6, 2, "checksum: may be zero" },
	{ BASE_BTH, 4, 1, "FECN, BECN: masked by the ICRC" },
};

struct part {
	enum base base;
	const char *name;
	uint32_t from, len; /* in the frame */
};

static unsigned cut(const struct packet *p, struct part *part)
{
	uint32_t l3 = (uint32_t)(p->l3 - p->frame), bth = (uint32_t)(p->bth - p->frame), payload = (uint32_t)(p->payload - p->frame);
	part[0] = (struct part){ BASE_ETHERNET, "Ethernet", 0, l3 };
	part[1] = (struct part){ p->ip_version == 4 ? BASE_IP4 : BASE_IP6, "IP", l3, p->l3_header_len };
	part[2] = (struct part){ BASE_UDP, "UDP", bth - 8, 8 };
	part[3] = (struct part){ BASE_BTH, "BTH", bth, 12 };
	part[4] = (struct part){ BASE_EXTENSIONS, "extension headers", bth + 12, payload - bth - 12 };
	part[5] = (struct part){ BASE_EXTENSIONS, "payload or pad", payload, l3 + p->l3_len - ICRC_LEN - payload };
	return 6;
}

static uint8_t free_mask(const struct part *part, uint32_t at, const struct packet *theirs)
{
	const struct opcode *op = theirs->op;
	for (unsigned i = 0; i < sizeof(free_bytes) / sizeof(free_bytes[0]); i++)
		if (free_bytes[i].base == part->base && at >= free_bytes[i].first && at < (uint32_t)free_bytes[i].first + free_bytes[i].bytes)
			return 0xff;
	if (part->base == BASE_BTH && at == 1)
		return 0x40; /* MigReq: we send 1, rxe 0 */
	if (part->base == BASE_BTH && at == 8 && !(op->flags & OPCODE_LAST))
		return 0x80; /* AckReq within a message */
	if (part->base == BASE_EXTENSIONS && part->name[0] == 'e' && at == 0 && op->flags & OPCODE_AETH && !(theirs->aeth.syndrome & 0xe0))
		return 0x1f; /* credits of a positive acknowledgement */
	if (part->base == BASE_EXTENSIONS && part->name[0] == 'e' && at >= 5 && at < 8 && op->flags & OPCODE_DETH)
		return 0xff; /* the sending QP's number is ours */
	return 0;
}

const char *golden_compare(const struct packet *ours, const struct packet *theirs)
{
	static char text[96];
	struct part a[6], b[6];
	unsigned parts = cut(ours, a);
	cut(theirs, b);
	if (ours->tos != theirs->tos)
		return "traffic class";
	for (unsigned i = 0; i < parts; i++) {
		if (a[i].len != b[i].len)
			return a[i].name;
		for (uint32_t at = 0; at < a[i].len; at++) {
			uint8_t x = ours->frame[a[i].from + at], y = theirs->frame[b[i].from + at];
			if (!((x ^ y) & ~free_mask(&a[i], at, theirs)))
				continue;
			snprintf(text, sizeof(text), "%s byte %u: ours 0x%02x, theirs 0x%02x", a[i].name, at, x, y);
			return text;
		}
	}
	return NULL;
}
