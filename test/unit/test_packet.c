/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "frames.h"

static const unsigned versions[] = { 4, 6 };
static const uint16_t vlans[] = { VLAN_NONE, 100 };

/* Parses a copy in a heap block that ends with the frame, so that a sanitizer sees any read beyond it. *is_ok: the ICRC, for
 * an accepted frame. */
static enum drop parse_exact(const uint8_t *frame, uint32_t len, bool *is_ok)
{
	struct packet p;
	uint8_t *copy = malloc(len ? len : 1);
	if (len)
		memcpy(copy, frame, len);
	enum drop d = packet_parse(&p, copy, len, VLAN_NONE, NULL);
	if (is_ok)
		*is_ok = d == DROP_NONE && p.kind == PACKET_ROCE && packet_is_icrc_ok(&p);
	free(copy);
	return d;
}

static void check_fields(const struct packet *p, const struct opcode *op)
{
	assert_int_equal(p->kind, PACKET_ROCE);
	assert_ptr_equal(p->op, op);
	assert_int_equal(p->dqpn, FRAME_DQPN);
	assert_int_equal(p->psn.v, FRAME_PSN);
	assert_int_equal(p->pkey, FRAME_PKEY);
	assert_true(p->solicited && p->ack_request && p->mig_request);
	assert_int_equal(p->tos, FRAME_TOS);
	assert_int_equal(p->ttl, FRAME_TTL);
	assert_int_equal(p->udp_src_port, FRAME_UDP_PORT);
	assert_memory_equal(p->smac, frame_smac, 6);
	assert_memory_equal(p->dmac, frame_dmac, 6);
	assert_false(p->is_multicast);
	if (op->flags & OPCODE_FETH)
		assert_true(p->feth.placement == frame_feth.placement && p->feth.selectivity == frame_feth.selectivity);
	if (op->flags & OPCODE_RETH)
		assert_true(p->reth.va == frame_reth.va && p->reth.rkey == frame_reth.rkey && p->reth.len == frame_reth.len);
	if (op->flags & OPCODE_AETH)
		assert_true(p->aeth.syndrome == FRAME_SYNDROME && p->aeth.msn == FRAME_MSN);
	if (op->flags & OPCODE_DETH)
		assert_true(p->deth.qkey == frame_qkey && p->deth.src_qpn == FRAME_SRC_QPN);
	if (op->flags & OPCODE_ATOMIC)
		assert_true(p->atomic.va == frame_atomic.va && p->atomic.rkey == frame_atomic.rkey &&
			    p->atomic.swap_or_add == frame_atomic.swap_or_add && p->atomic.compare == frame_atomic.compare);
	if (op->flags & OPCODE_ATOMIC_ACK)
		assert_true(p->atomic_original == frame_original);
	if (op->flags & OPCODE_IMMEDIATE)
		assert_memory_equal(&p->immediate, frame_immediate, 4);
	if (op->flags & OPCODE_INVALIDATE)
		assert_int_equal(p->invalidate_rkey, frame_invalidate);
}

static void check_one(const struct opcode *op, unsigned version, uint16_t vlan, uint32_t payload_len)
{
	uint8_t frame[FRAME_ROOM];
	struct packet p;
	struct gid src, dst;
	uint32_t len = frame_make(frame, op, version, vlan, payload_len), l3 = vlan == VLAN_NONE ? 14 : 18;
	memset(&p, 0x5a, sizeof(p));
	assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, NULL), DROP_NONE);
	assert_true(packet_is_icrc_ok(&p));
	check_fields(&p, op);
	assert_int_equal(p.vlan, vlan);
	assert_int_equal(p.ip_version, version);
	assert_int_equal(p.l3_header_len, version == 4 ? 20 : 40);
	assert_int_equal(p.l3_len, len - l3);
	assert_ptr_equal(p.frame, frame);
	assert_ptr_equal(p.l3, frame + l3);
	assert_ptr_equal(p.bth, p.l3 + p.l3_header_len + 8);
	gid_parse(version == 4 ? "10.1.2.3" : "fd00::a:b", &src);
	gid_parse(version == 4 ? "10.4.5.6" : "fd00::c:d", &dst);
	assert_true(gid_is_equal(&p.src, &src) && gid_is_equal(&p.dst, &dst));
	if (!(op->flags & OPCODE_PAYLOAD))
		payload_len = 0;
	assert_int_equal(p.pad, -payload_len & 3);
	assert_int_equal(p.payload_len, payload_len);
	assert_ptr_equal(p.payload, p.bth + op->header_len);
	for (uint32_t i = 0; i < payload_len; i++)
		assert_int_equal(p.payload[i], frame_byte(i));
}

static void test_every_opcode(void **state)
{
	static const uint32_t lens[] = { 0, 1, 2, 3, 4, 5, 8, 255, 256, 1024, 4096 };
	for (unsigned byte = 0; byte < 256; byte++)
		for (unsigned i = 0; opcode_of((uint8_t)byte) && i < 4; i++)
			for (unsigned l = 0; l < sizeof(lens) / sizeof(lens[0]); l++)
				check_one(opcode_of((uint8_t)byte), versions[i & 1], vlans[i >> 1], lens[l]);
}

/* What the specification says of a UDP payload of len bytes with this opcode and pad, written apart from the parser. */
static enum drop expect_bth(unsigned byte, unsigned pad, uint32_t len)
{
	const struct opcode *op = opcode_of((uint8_t)byte);
	if (len < 16)
		return DROP_BTH_RUNT;
	if (!op)
		return DROP_OPCODE;
	if (len < op->header_len + 4u)
		return DROP_HEADERS_RUNT;
	if (!(op->flags & OPCODE_PAYLOAD))
		return pad || len != op->header_len + 4u ? DROP_PAD : DROP_NONE;
	if ((len - op->header_len) % 4)
		return DROP_PAD;
	return len < op->header_len + pad + 4u ? DROP_HEADERS_RUNT : DROP_NONE;
}

/* known-bugs: 21 22 23 32 */
static void test_every_opcode_and_length(void **state)
{
	static const uint32_t qpns[] = { 0, 1, 0xffffff };
	uint8_t frame[FRAME_ROOM];
	struct template t;
	uint32_t accepted = 0;
	for (unsigned v = 0; v < 2; v++) {
		frame_template(&t, versions[v], VLAN_NONE);
		for (unsigned byte = 0; byte < 256; byte++)
			for (unsigned pad = 0; pad < 4; pad++)
				for (uint32_t len = 0; len <= 80; len++) {
					uint8_t *at = template_lay(frame, &t), *ip = frame + 14;
					struct opcode fake = { .byte = (uint8_t)byte };
					memset(at, 0x5a, 80);
					bth_write(at, &(struct bth){ .op = &fake, .dqpn = qpns[(byte + len) % 3] }, pad);
					put_be16(ip + t.len - 14 - 8 + 4, (uint16_t)(8 + len));
					put_be16(ip + (v ? 4 : 2), (uint16_t)(t.len - 14 + len - (v ? 40 : 0)));
					frame_mend(ip);
					bool is_ok;
					enum drop want = expect_bth(byte, pad, len), got = parse_exact(frame, t.len + len, &is_ok);
					assert_int_equal(got, want);
					assert_int_equal(is_ok, want == DROP_NONE);
					accepted += is_ok;
				}
	}
	assert_true(accepted > 1000);
}

/* known-bugs: 21 23 */
static void test_every_truncation(void **state)
{
	uint8_t frame[FRAME_ROOM];
	for (unsigned byte = 0; byte < 256; byte++)
		for (unsigned i = 0; opcode_of((uint8_t)byte) && i < 4; i++) {
			uint32_t len = frame_make(frame, opcode_of((uint8_t)byte), versions[i & 1], vlans[i >> 1], 9);
			for (uint32_t cut = 0; cut < len; cut++)
				assert_int_not_equal(parse_exact(frame, cut, NULL), DROP_NONE);
			assert_int_equal(parse_exact(frame, len, NULL), DROP_NONE);
		}
}

/* The headers' lengths count, not the frame's: Ethernet padding and garbage behind the packet change nothing. */
/* known-bugs: 23 */
static void test_trailing_bytes(void **state)
{
	uint8_t frame[FRAME_ROOM];
	for (unsigned i = 0; i < 4; i++) {
		uint32_t len = frame_make(frame, opcode_of(0x11), versions[i & 1], vlans[i >> 1], 0);
		for (uint32_t extra = 1; extra < 64; extra++) {
			bool is_ok;
			memset(frame + len, (int)(extra * 37), extra);
			assert_int_equal(parse_exact(frame, len + extra, &is_ok), DROP_NONE);
			assert_true(is_ok);
		}
	}
}

/* known-bugs: 23 */
static void test_udp_length_must_be_that_of_ip(void **state)
{
	uint8_t frame[FRAME_ROOM];
	for (unsigned v = 0; v < 2; v++)
		for (int change = -40; change <= 40; change++) {
			uint32_t len = frame_make(frame, opcode_of(0x04), versions[v], VLAN_NONE, 32);
			uint8_t *udp = frame + 14 + (versions[v] == 4 ? 20 : 40);
			put_be16(udp + 4, (uint16_t)(get_be16(udp + 4) + change));
			frame_mend(frame + 14);
			memset(frame + len, 0, 64);
			assert_int_equal(parse_exact(frame, len + 64, NULL), change ? DROP_UDP_LENGTH : DROP_NONE);
		}
}

/* Whether a flip of this bit leaves a frame that must be accepted: MACs, VLAN id and priority, which no CRC of ours covers,
 * and the variant fields that no other checksum covers. */
static bool is_free_bit(unsigned version, uint16_t vlan, uint32_t bit)
{
	uint32_t byte = bit / 8, l3 = vlan == VLAN_NONE ? 14 : 18;
	if (byte < 12 || (l3 == 18 && (byte == 14 || byte == 15)))
		return true;
	if (byte < l3)
		return false;
	byte -= l3;
	if (version == 4)
		return byte == 32;
	return (byte == 0 && bit % 8 < 4) || (byte >= 1 && byte <= 3) || byte == 7 || byte == 52;
}

/* known-bugs: 32 */
static void test_every_bit_flipped(void **state)
{
	uint8_t frame[FRAME_ROOM];
	for (unsigned byte = 0; byte < 256; byte++)
		for (unsigned i = 0; opcode_of((uint8_t)byte) && i < 4; i++) {
			unsigned version = versions[i & 1];
			uint16_t vlan = vlans[i >> 1];
			uint32_t len = frame_make(frame, opcode_of((uint8_t)byte), version, vlan, 13);
			for (uint32_t bit = 0; bit < len * 8; bit++) {
				bool is_ok;
				frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
				enum drop d = parse_exact(frame, len, &is_ok);
				bool is_accepted = d == DROP_NONE && is_ok;
				assert_int_equal(is_accepted, is_free_bit(version, vlan, bit));
				frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
			}
		}
}

/* What a router or switch may change on the way, checksum mended as it would: the ICRC holds. */
/* known-bugs: 32 */
static void test_variant_fields_changed_on_the_way(void **state)
{
	uint8_t frame[FRAME_ROOM];
	uint32_t len = frame_make(frame, opcode_of(0x0a), 4, VLAN_NONE, 100);
	uint8_t icrc[4], *ip = frame + 14;
	memcpy(icrc, frame + len - 4, 4);
	for (unsigned value = 0; value < 256; value++) {
		bool is_ok;
		ip[1] = (uint8_t)value;
		ip[8] = (uint8_t)(value + 77);
		ip[32] = (uint8_t)~value;
		frame_mend(ip);
		assert_memory_equal(frame + len - 4, icrc, 4);
		assert_int_equal(parse_exact(frame, len, &is_ok), DROP_NONE);
		assert_true(is_ok);
	}
}

/* known-bugs: 31 */
static void test_mig_request_and_reserved_bits(void **state)
{
	uint8_t frame[FRAME_ROOM];
	for (unsigned mig = 0; mig < 2; mig++)
		for (unsigned reserved = 0; reserved < 256; reserved++) {
			uint32_t len = frame_make(frame, opcode_of(0x04), 4, VLAN_NONE, 4);
			uint8_t *bth = frame + 42;
			struct packet p;
			bth[1] = (uint8_t)(mig << 6);
			bth[4] = (uint8_t)reserved;                /* FECN, BECN and six reserved bits */
			bth[8] = (uint8_t)(0x80 | reserved >> 1); /* AckReq and seven reserved bits */
			frame_mend(frame + 14);
			assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, NULL), DROP_NONE);
			assert_true(packet_is_icrc_ok(&p));
			assert_int_equal(p.mig_request, mig);
			assert_false(p.solicited);
			assert_true(p.ack_request);
			assert_int_equal(p.dqpn, FRAME_DQPN);
			assert_int_equal(p.psn.v, FRAME_PSN);
		}
}

/* The reserved byte of a DETH is not part of the QP number. */
static void test_reserved_byte_of_deth(void **state)
{
	uint8_t frame[FRAME_ROOM];
	struct packet p;
	uint32_t len = frame_make(frame, opcode_of(0x64), 4, VLAN_NONE, 4);
	frame[14 + 20 + 8 + 12 + 4] = 0xff;
	frame_mend(frame + 14);
	assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, NULL), DROP_NONE);
	assert_true(packet_is_icrc_ok(&p));
	assert_int_equal(p.deth.src_qpn, FRAME_SRC_QPN);
}

/* Each solitary change of a good frame, and the reason it must be dropped for. at: from the IP header. */
static const struct change {
	const char *name;
	uint8_t version, at, and, or;
	enum drop want;
} changes[] = {
	{ "no change", 4, 0, 0xff, 0, DROP_NONE },
	{ "no change", 6, 0, 0xff, 0, DROP_NONE },
	{ "version 6 in an IPv4 frame", 4, 0, 0x0f, 0x60, DROP_IP_VERSION },
	{ "version 4 in an IPv6 frame", 6, 0, 0x0f, 0x40, DROP_IP_VERSION },
	{ "IHL 4", 4, 0, 0xf0, 4, DROP_IP_RUNT },
	{ "IHL 6", 4, 0, 0xf0, 6, DROP_IP_OPTIONS },
	{ "IHL 15", 4, 0, 0xf0, 15, DROP_IP_OPTIONS },
	{ "total length 16", 4, 3, 0, 16, DROP_IP_LENGTH },
	{ "total length beyond the frame", 4, 2, 0, 1, DROP_IP_LENGTH },
	{ "payload length beyond the frame", 6, 4, 0, 1, DROP_IP_LENGTH },
	{ "more fragments", 4, 6, 0xff, 0x20, DROP_IP_FRAGMENT },
	{ "fragment offset, low", 4, 7, 0xff, 1, DROP_IP_FRAGMENT },
	{ "fragment offset, high", 4, 6, 0xff, 0x10, DROP_IP_FRAGMENT },
	{ "DF clear", 4, 6, 0, 0, DROP_NONE },
	{ "source 0.1.2.3", 4, 12, 0, 0, DROP_IP_SOURCE },
	{ "source 224.1.2.3", 4, 12, 0, 224, DROP_IP_SOURCE },
	{ "source 239.1.2.3", 4, 12, 0, 239, DROP_IP_SOURCE },
	{ "source ff00::", 6, 8, 0, 0xff, DROP_IP_SOURCE },
	{ "TCP", 4, 9, 0, 6, DROP_IP_PROTOCOL },
	{ "TCP", 6, 6, 0, 6, DROP_IP_PROTOCOL },
	{ "no next header", 6, 6, 0, 59, DROP_IP_PROTOCOL },
	{ "hop-by-hop options", 6, 6, 0, 0, DROP_IP_OPTIONS },
	{ "routing header", 6, 6, 0, 43, DROP_IP_OPTIONS },
	{ "fragment header", 6, 6, 0, 44, DROP_IP_FRAGMENT },
	{ "ESP", 6, 6, 0, 50, DROP_IP_OPTIONS },
	{ "AH", 6, 6, 0, 51, DROP_IP_OPTIONS },
	{ "destination options", 6, 6, 0, 60, DROP_IP_OPTIONS },
	{ "UDP port 4790", 4, 23, 0, 0xb6, DROP_UDP_PORT },
	{ "UDP port 4790", 6, 43, 0, 0xb6, DROP_UDP_PORT },
	{ "UDP checksum", 4, 27, 0, 1, DROP_UDP_CHECKSUM },
	{ "UDP checksum", 6, 47, 0, 1, DROP_UDP_CHECKSUM },
	{ "TVer 1", 4, 29, 0xff, 1, DROP_BTH_VERSION },
	{ "TVer 8", 6, 49, 0xff, 8, DROP_BTH_VERSION },
	{ "reserved opcode", 4, 28, 0, 0xff, DROP_OPCODE },
	{ "reliable datagram", 4, 28, 0, 0x44, DROP_OPCODE },
	{ "RESYNC", 6, 48, 0, 0x15, DROP_OPCODE },
	{ "an opcode of longer headers", 4, 28, 0, 0x13, DROP_HEADERS_RUNT },
	{ "an opcode without payload", 4, 28, 0, 0x11, DROP_PAD },
	{ "destination 224.4.5.6", 4, 16, 0, 224, DROP_NONE },
	{ "destination ff00::", 6, 24, 0, 0xff, DROP_NONE },
};

static void test_every_reason(void **state)
{
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		const struct change *c = &changes[i];
		uint8_t frame[FRAME_ROOM];
		struct packet p;
		uint32_t len = frame_make(frame, opcode_of(0x04), c->version, VLAN_NONE, 8);
		uint8_t *at = frame + 14 + c->at;
		*at = (*at & c->and) | c->or;
		if (c->version == 4 && frame[14] == 0x45 && get_be16(frame + 16) == len - 14)
			frame_mend(frame + 14);
		enum drop got = packet_parse(&p, frame, len, VLAN_NONE, NULL);
		if (got != c->want)
			print_message("%s, IPv%u\n", c->name, c->version);
		assert_int_equal(got, c->want);
		if (got == DROP_NONE)
			assert_int_equal(p.is_multicast, gid_is_multicast(&p.dst));
	}
}

static void test_ip4_checksum(void **state)
{
	uint8_t frame[FRAME_ROOM];
	uint32_t len = frame_make(frame, opcode_of(0x04), 4, VLAN_NONE, 8);
	for (unsigned bit = 0; bit < 160; bit++) {
		frame[14 + bit / 8] ^= (uint8_t)(1 << bit % 8);
		enum drop d = parse_exact(frame, len, NULL);
		if (bit >= 32) /* behind version, IHL and length, which are looked at first */
			assert_int_equal(d, DROP_IP_CHECKSUM);
		else
			assert_int_not_equal(d, DROP_NONE);
		frame[14 + bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

/* IPv4 255.255.255.255 and IPv6 :: need more than one byte to change; and an IPv4 GID must not come in by way of IPv6. */
static void test_whole_addresses(void **state)
{
	uint8_t frame[FRAME_ROOM];
	static const uint8_t mapped[16] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3 };
	uint32_t len = frame_make(frame, opcode_of(0x04), 4, VLAN_NONE, 8);
	memset(frame + 14 + 12, 0xff, 4);
	frame_mend(frame + 14);
	assert_int_equal(parse_exact(frame, len, NULL), DROP_IP_SOURCE);

	len = frame_make(frame, opcode_of(0x04), 6, VLAN_NONE, 8);
	memset(frame + 14 + 8, 0, 16);
	assert_int_equal(parse_exact(frame, len, NULL), DROP_IP_SOURCE);
	memcpy(frame + 14 + 8, mapped, 16);
	assert_int_equal(parse_exact(frame, len, NULL), DROP_IP_SOURCE);

	len = frame_make(frame, opcode_of(0x04), 6, VLAN_NONE, 8);
	memcpy(frame + 14 + 24, mapped, 16);
	assert_int_equal(parse_exact(frame, len, NULL), DROP_IP_NOT_OURS);
}

/* A UDP checksum that is not zero is checked, and the right one accepted, of odd length too; every other test has none. Flags of the port about it are not looked at. */
/* known-bugs: 60 */
static void test_udp_checksum(void **state)
{
	uint8_t frame[FRAME_ROOM];
	for (unsigned v = 0; v < 2; v++)
		for (uint32_t payload = 0; payload < 70; payload += 3) {
			uint32_t len = frame_make(frame, opcode_of(0x04), versions[v], VLAN_NONE, payload);
			uint8_t *ip = frame + 14, *udp = ip + (versions[v] == 4 ? 20 : 40);
			uint32_t udp_len = get_be16(udp + 4), sum = 17 + udp_len;
			for (uint8_t *a = versions[v] == 4 ? ip + 12 : ip + 8; a < udp; a += 2)
				sum += get_be16(a);
			for (uint32_t i = 0; i < udp_len; i += 2)
				sum += get_be16(udp + i);
			while (sum >> 16)
				sum = (sum & 0xffff) + (sum >> 16);
			uint16_t right = (uint16_t)~sum ? (uint16_t)~sum : 0xffff;
			bool is_ok;
			put_be16(udp + 6, right);
			assert_int_equal(parse_exact(frame, len, &is_ok), DROP_NONE);
			assert_true(is_ok);
			for (unsigned bit = 0; bit < 16; bit++) {
				put_be16(udp + 6, (uint16_t)(right ^ 1u << bit));
				if (get_be16(udp + 6))
					assert_int_equal(parse_exact(frame, len, NULL), DROP_UDP_CHECKSUM);
			}
		}
}

/* tag: TCI in the frame; port: TCI that the port stripped. */
static const struct vlan_row {
	uint16_t tag, port, vlan;
	enum drop want;
} vlan_rows[] = {
	{ VLAN_NONE, VLAN_NONE, VLAN_NONE, DROP_NONE },
	{ VLAN_NONE, 100, 100, DROP_NONE },
	{ VLAN_NONE, 0x6064, 100, DROP_NONE },
	{ VLAN_NONE, 0x6000, VLAN_NONE, DROP_NONE },
	{ 0x6064, VLAN_NONE, 100, DROP_NONE },
	{ 0xe000, VLAN_NONE, VLAN_NONE, DROP_NONE },
	{ 0x0064, 100, 0, DROP_VLAN_NESTED },
	{ 0x0064, 0, 0, DROP_VLAN_NESTED },
};

static void test_vlan(void **state)
{
	for (size_t i = 0; i < sizeof(vlan_rows) / sizeof(vlan_rows[0]); i++) {
		const struct vlan_row *r = &vlan_rows[i];
		uint8_t frame[FRAME_ROOM];
		struct packet p;
		uint32_t len = frame_make(frame, opcode_of(0x04), 4, r->tag == VLAN_NONE ? VLAN_NONE : 1, 8);
		if (r->tag != VLAN_NONE)
			put_be16(frame + 14, r->tag);
		assert_int_equal(packet_parse(&p, frame, len, r->port, NULL), r->want);
		if (r->want == DROP_NONE)
			assert_int_equal(p.vlan, r->vlan);
	}
}

static void test_ethertypes(void **state)
{
	static const struct {
		uint16_t outer, inner;
		enum drop want;
	} rows[] = {
		{ 0x8915, 0, DROP_ETHERTYPE }, /* RoCEv1 */
		{ 0x88a8, 0x0800, DROP_ETHERTYPE },
		{ 0x0040, 0, DROP_ETHERTYPE }, /* a length: 802.3 */
		{ 0x8100, 0x8915, DROP_ETHERTYPE },
		{ 0x8100, 0x8100, DROP_VLAN_NESTED },
		{ 0x8100, 0x88a8, DROP_VLAN_NESTED },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t frame[FRAME_ROOM];
		uint32_t len = frame_make(frame, opcode_of(0x04), 4, 5, 8);
		put_be16(frame + 12, rows[i].outer);
		put_be16(frame + 16, rows[i].inner);
		assert_int_equal(parse_exact(frame, len, NULL), rows[i].want);
	}
}

static void test_filter(void **state)
{
	static const uint8_t other[6] = { 0x52, 0x54, 0, 0, 0, 9 }, group[6] = { 1, 0, 0x5e, 0, 0, 1 };
	struct packet_filter ours = { .promiscuous = false }, all;
	uint8_t frame[FRAME_ROOM];
	struct packet p;
	uint32_t len = frame_make(frame, opcode_of(0x04), 4, VLAN_NONE, 8);
	memcpy(ours.mac, frame_dmac, 6);
	all = ours;
	all.promiscuous = true;
	assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, &ours), DROP_NONE);
	for (unsigned i = 0; i < 6; i++) {
		frame[i] ^= 2;
		assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, &ours), DROP_FRAME_NOT_OURS);
		assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, &all), DROP_NONE);
		assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, NULL), DROP_NONE);
		frame[i] ^= 2;
	}
	memcpy(frame, group, 6);
	assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, &ours), DROP_NONE);
	memset(frame, 0xff, 6);
	assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, &ours), DROP_NONE);
	memcpy(frame + 6, frame_dmac, 6);
	assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, &ours), DROP_FRAME_OWN_SOURCE);
	assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, &all), DROP_FRAME_OWN_SOURCE);
	memcpy(frame, other, 6);
	assert_int_equal(packet_parse(&p, frame, len, VLAN_NONE, &ours), DROP_FRAME_NOT_OURS);
}

static void test_congestion_experienced(void **state)
{
	for (unsigned tos = 0; tos < 256; tos++) {
		struct packet p = { .tos = (uint8_t)tos };
		assert_int_equal(packet_is_ce(&p), (tos & 3) == 3);
	}
}

/* Frames mangled in many places at once, in exact blocks: whatever is accepted lies within them. */
static void test_random_damage(void **state)
{
	uint8_t frame[FRAME_ROOM];
	srand(4);
	for (unsigned i = 0; i < 60000; i++) {
		const struct opcode *op = opcode_of((uint8_t)rand());
		uint32_t len = frame_make(frame, op ? op : opcode_of(0x0b), versions[i & 1], vlans[i >> 1 & 1], (uint32_t)(rand() % 40));
		for (int n = rand() % 6; n >= 0; n--)
			frame[(uint32_t)rand() % len] = (uint8_t)rand();
		len -= rand() % 4 ? 0 : (uint32_t)(rand() % 20);
		if (rand() & 1 && frame[14] == 0x45 && get_be16(frame + 16) == len - 14)
			frame_mend(frame + 14);
		uint8_t *copy = malloc(len);
		memcpy(copy, frame, len);
		struct packet p;
		if (packet_parse(&p, copy, len, VLAN_NONE, NULL) == DROP_NONE) {
			assert_true(p.l3 + p.l3_len <= copy + len);
			assert_true(p.payload >= p.bth && p.payload + p.payload_len <= p.l3 + p.l3_len);
			if (p.kind == PACKET_ROCE)
				(void)packet_is_icrc_ok(&p);
		}
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_opcode),
		cmocka_unit_test(test_every_opcode_and_length),
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_trailing_bytes),
		cmocka_unit_test(test_udp_length_must_be_that_of_ip),
		cmocka_unit_test(test_every_bit_flipped),
		cmocka_unit_test(test_variant_fields_changed_on_the_way),
		cmocka_unit_test(test_mig_request_and_reserved_bits),
		cmocka_unit_test(test_reserved_byte_of_deth),
		cmocka_unit_test(test_every_reason),
		cmocka_unit_test(test_ip4_checksum),
		cmocka_unit_test(test_whole_addresses),
		cmocka_unit_test(test_udp_checksum),
		cmocka_unit_test(test_vlan),
		cmocka_unit_test(test_ethertypes),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_congestion_experienced),
		cmocka_unit_test(test_random_damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
