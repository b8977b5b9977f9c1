/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets as a script writes them: built, for the peer; compared, for ours. The names of opcodes are those of the opcode table without "RC" and "RDMA", NAKs have names of their own. */
#include "packet.h"

#include <stdio.h>
#include <string.h>

#include "build.h"
#include "world.h"

/* An ACKNOWLEDGE by its syndrome. */
static const struct {
	const char *name;
	uint8_t syndrome;
} acknowledges[] = {
	{ "ACK", 0x1f }, { "RNR", 0x20 }, { "NAK_SEQ", 0x60 }, { "NAK_INV", 0x61 }, { "NAK_ACC", 0x62 }, { "NAK_OP", 0x63 }, { "NAK_RD", 0x64 },
};

/* "RC RDMA WRITE LAST WITH IMMEDIATE" to "WRITE_LAST_IMM", "RC ATOMIC ACKNOWLEDGE" to "ATOMIC_ACK", other services keep theirs: "UC_SEND_ONLY". */
static void shorten(const char *name, char *to)
{
	static const char *const left_out[] = { "RC ", "RDMA ", "WITH ", "NOWLEDGE", "EDIATE", "ALIDATE" };
	while (*name) {
		size_t skip = 0;
		for (unsigned i = 0; i < sizeof(left_out) / sizeof(left_out[0]) && !skip; i++)
			if (!strncmp(name, left_out[i], strlen(left_out[i])))
				skip = strlen(left_out[i]);
		if (skip) {
			name += skip;
			continue;
		}
		*to++ = *name == ' ' ? '_' : *name;
		name++;
	}
	*to = 0;
}

/* *syndrome: what the name says, -1 when it says nothing. */
static const struct opcode *find_opcode(const char *name, int *syndrome)
{
	char text[64];
	*syndrome = -1;
	for (unsigned i = 0; i < sizeof(acknowledges) / sizeof(acknowledges[0]); i++)
		if (!strcmp(name, acknowledges[i].name)) {
			*syndrome = acknowledges[i].syndrome;
			return opcode_find(SERVICE_RC, MESSAGE_ACKNOWLEDGE, 0);
		}
	for (unsigned i = 0; i < 256; i++) {
		const struct opcode *op = opcode_of((uint8_t)i);
		if (!op)
			continue;
		shorten(op->name, text);
		if (!strcmp(text, name))
			return op;
	}
	fail("no opcode %s", name);
}

static uint64_t va_word(struct line *l, const char *key, uint64_t fallback)
{
	const char *text = line_text(l, key);
	return text ? world_va(text) : fallback;
}

static uint8_t read_syndrome(struct line *l, int named)
{
	uint64_t base = line_number(l, "syn", named < 0 ? 0x1f : (uint64_t)named);
	return (uint8_t)(base | line_number(l, "code", 0));
}

/* ---- building ---- */

static void lay_template(const struct world *w, struct template *t, struct line *l)
{
	struct template_fields f = { .dmac = { 2, 0, 0, 0, 0, 1 }, .smac = { 2, 0, 0, 0, 0, 2 }, .vlan = VLAN_NONE, .ttl = 64, .udp_src_port = 0xc000 };
	const char *src = line_text(l, "src");
	const char *dst = line_text(l, "dst");
	if (gid_parse(src ? src : world_address(w, 1), &f.src) || gid_parse(dst ? dst : world_address(w, 0), &f.dst))
		fail("no such address");
	f.flow_label = 0x12345;
	f.tos = (uint8_t)line_number(l, "tos", 0);
	f.udp_src_port = (uint16_t)line_number(l, "sport", f.udp_src_port);
	template_build(t, &f);
}

static uint8_t *write_extensions(const struct world *w, struct line *l, const struct opcode *op, int named, uint32_t len, uint8_t *at)
{
	const char *key = line_text(l, "rkey"), *inv = line_text(l, "inv");
	uint32_t rkey = world_key(w, key ? key : "main", true);
	uint64_t va = va_word(l, "va", MEMORY_VA);
	if (op->flags & OPCODE_DETH)
		at = deth_write(at, (uint32_t)line_number(l, "qkey", QKEY), (uint32_t)line_number(l, "sqpn", PEER_QPN));
	if (op->flags & OPCODE_FETH) {
		struct feth f = { (uint8_t)line_number(l, "place", FLUSH_GLOBAL), (uint8_t)line_number(l, "sel", FLUSH_RANGE) };
		at = feth_write(at, &f);
	}
	if (op->flags & OPCODE_RETH)
		at = reth_write(at, va, rkey, (uint32_t)line_number(l, "dlen", len));
	if (op->flags & OPCODE_AETH)
		at = aeth_write(at, read_syndrome(l, named), (uint32_t)line_number(l, "msn", 0));
	if (op->flags & OPCODE_ATOMIC) {
		struct atomic_eth a = { va, rkey, line_number(l, "swap", line_number(l, "add", 0)), line_number(l, "compare", 0) };
		at = atomic_eth_write(at, &a);
	}
	if (op->flags & OPCODE_ATOMIC_ACK)
		at = atomic_ack_write(at, line_number(l, "orig", 0));
	if (op->flags & OPCODE_IMMEDIATE)
		at = immediate_write(at, (uint32_t)line_number(l, "imm", 0));
	if (op->flags & OPCODE_INVALIDATE)
		at = ieth_write(at, inv ? world_key(w, inv, true) : rkey);
	if (op->service == SERVICE_CNP) {
		memset(at, 0, 16);
		at += 16;
	}
	return at;
}

/* What other stacks may set in a BTH and we never do. */
static void spoil_bth(struct line *l, uint8_t *bth)
{
	if (!line_number(l, "mig", 1))
		bth[1] &= (uint8_t)~0x40;
	bth[1] |= (uint8_t)line_number(l, "tver", 0);
	if (line_has(l, "reserved")) { /* FECN, BECN and both reserved fields */
		bth[4] = 0xff;
		bth[8] |= 0x7f;
	}
}

void packet_inject(struct world *w, struct line *l)
{
	int named;
	const struct opcode *op = find_opcode(line_first(l), &named);
	uint32_t len = (uint32_t)line_number(l, "len", 0);
	struct template t;
	if (w->burst_n == BURST_MAX)
		fail("a burst has at most %u packets", BURST_MAX);
	uint8_t *frame = w->burst[w->burst_n];
	unsigned pad = op->flags & OPCODE_PAYLOAD ? -len & 3 : 0;
	struct bth b = {
		.op = op, .dqpn = (uint32_t)line_number(l, "qpn", w->qpn), .psn = psn_make((uint32_t)line_number(l, "psn", 0)), .pkey = (uint16_t)line_number(l, "pkey", 0xffff),
		.solicited = line_has(l, "se"), .ack_request = line_number(l, "ack", 0),
	};
	lay_template(w, &t, l);
	uint8_t *bth = template_lay(frame, &t), *at = write_extensions(w, l, op, named, len, bth_write(bth, &b, pad));
	spoil_bth(l, bth);
	if (op->flags & OPCODE_PAYLOAD) {
		memset(at, (int)line_number(l, "data", 0xa5), len);
		memset(at + len, 0, pad);
		at += len + pad;
	}
	w->burst_len[w->burst_n] = packet_finish(frame, &t, at);
	if (line_has(l, "corrupt"))
		frame[w->burst_len[w->burst_n] - 1] ^= 0x10;
	w->burst_n++;
}

/* ---- comparing ---- */

static void compare(struct line *l, const char *key, uint64_t got)
{
	const char *text = line_text(l, key);
	uint64_t want = text ? world_va(text) : got;
	if (want != got)
		fail("%s should be 0x%llx (%llu), is 0x%llx (%llu)", key, (unsigned long long)want, (unsigned long long)want, (unsigned long long)got, (unsigned long long)got);
}

/* What every packet of ours has, whatever the script says. */
static void check_always(const struct packet *p, uint32_t dqpn)
{
	if (!packet_is_icrc_ok(p))
		fail("its ICRC is wrong");
	if (p->dqpn != dqpn)
		fail("it goes to QP 0x%x", p->dqpn);
	if (!p->mig_request || p->bth[4] || p->bth[8] & 0x7f || p->pkey != 0xffff)
		fail("MigReq, reserved bits or P_Key of its BTH are wrong");
	for (unsigned i = 0; i < p->pad; i++)
		if (p->payload[p->payload_len + i])
			fail("its pad is not zero");
}

static void compare_payload(const struct world *w, struct line *l, const struct packet *p)
{
	const char *from = line_text(l, "from"), *data = line_text(l, "data");
	uint32_t offset = from ? (uint32_t)parse_number(from) : 0;
	for (uint32_t i = 0; i < p->payload_len; i++) {
		if (from && (offset + i >= MEMORY_BYTES || p->payload[i] != w->memory[offset + i]))
			fail("byte %u of the payload is not that of memory at 0x%x", i, offset + i);
		if (data && p->payload[i] != parse_number(data))
			fail("byte %u of the payload is 0x%02x", i, p->payload[i]);
	}
}

void packet_match(struct world *w, struct line *l, uint32_t len)
{
	struct packet p;
	char text[64];
	int named;
	const struct opcode *want = find_opcode(line_first(l), &named);
	enum drop d = packet_parse(&p, w->frame, len, VLAN_NONE, NULL);
	if (d != DROP_NONE || p.kind != PACKET_ROCE)
		fail("a frame that is no RoCE packet came instead: %s", drop_name(d));
	shorten(p.op->name, text);
	if (p.op != want)
		fail("%s came instead", text);
	check_always(&p, (uint32_t)line_number(l, "qpn", PEER_QPN));
	compare(l, "psn", p.psn.v);
	compare(l, "ack", p.ack_request);
	compare(l, "se", p.solicited);
	compare(l, "len", p.payload_len);
	compare(l, "tos", p.tos);
	if (p.op->flags & OPCODE_DETH) {
		compare(l, "qkey", p.deth.qkey);
		if (p.deth.src_qpn != w->qpn)
			fail("it says that it is from QP 0x%x", p.deth.src_qpn);
	}
	if (p.op->flags & OPCODE_FETH) {
		compare(l, "place", p.feth.placement);
		compare(l, "sel", p.feth.selectivity);
	}
	if (p.op->flags & OPCODE_RETH) {
		compare(l, "va", p.reth.va);
		compare(l, "rkey", p.reth.rkey);
		compare(l, "dlen", p.reth.len);
	}
	if (p.op->flags & OPCODE_AETH) {
		uint8_t syndrome = read_syndrome(l, named);
		if (p.aeth.syndrome != syndrome)
			fail("the syndrome should be 0x%02x, is 0x%02x", syndrome, p.aeth.syndrome);
		compare(l, "msn", p.aeth.msn);
	}
	if (p.op->flags & OPCODE_ATOMIC) {
		compare(l, "va", p.atomic.va);
		compare(l, "rkey", p.atomic.rkey);
		compare(l, "swap", p.atomic.swap_or_add);
		compare(l, "add", p.atomic.swap_or_add);
		compare(l, "compare", p.atomic.compare);
	}
	if (p.op->flags & OPCODE_ATOMIC_ACK)
		compare(l, "orig", p.atomic_original);
	if (p.op->flags & OPCODE_IMMEDIATE)
		compare(l, "imm", p.immediate);
	if (p.op->flags & OPCODE_INVALIDATE)
		compare(l, "inv", p.invalidate_rkey);
	compare_payload(w, l, &p);
}
