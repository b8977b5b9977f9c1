/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames for tests: one of any opcode, every header filled with a value of its own, so that a field taken from the wrong
 * place shows. */
#ifndef UROCE_TEST_FRAMES_H
#define UROCE_TEST_FRAMES_H

#include <string.h>

#include "build.h"

#define FRAME_ROOM 9216u

enum {
	FRAME_DQPN = 0xabcdef, FRAME_PSN = 0x123456, FRAME_PKEY = 0x7ffe, FRAME_MSN = 0x654321, FRAME_SYNDROME = 0x1f,
	FRAME_SRC_QPN = 0xfedcba,
	FRAME_TOS = 0x6a, FRAME_TTL = 63, FRAME_FLOW = 0x54321, FRAME_UDP_PORT = 0xd00d,
};
static const uint8_t frame_dmac[6] = { 0x52, 0x54, 0, 0, 0, 2 }, frame_smac[6] = { 0x52, 0x54, 0, 0, 0, 1 };
static const struct feth frame_feth = { 0xa, 3 };
static const struct reth frame_reth = { 0x0102030405060708, 0x11223344, 0x55667788 };
static const struct atomic_eth frame_atomic = { 0x1112131415161718, 0x99aabbcc, 0x2122232425262728, 0x3132333435363738 };
static const uint64_t frame_original = 0x4142434445464748;
static const uint8_t frame_immediate[4] = { 0xd1, 0xd2, 0xd3, 0xd4 };
static const uint32_t frame_qkey = 0x80010000, frame_invalidate = 0xe1e2e3e4;

static inline void frame_template(struct template *t, unsigned ip_version, uint16_t vlan)
{
	struct template_fields f = { .vlan = vlan, .priority = 3, .tos = FRAME_TOS, .ttl = FRAME_TTL, .flow_label = FRAME_FLOW,
				     .udp_src_port = FRAME_UDP_PORT };
	memcpy(f.dmac, frame_dmac, 6);
	memcpy(f.smac, frame_smac, 6);
	gid_parse(ip_version == 4 ? "10.1.2.3" : "fd00::a:b", &f.src);
	gid_parse(ip_version == 4 ? "10.4.5.6" : "fd00::c:d", &f.dst);
	template_build(t, &f);
}

/* Byte i of a payload. */
static inline uint8_t frame_byte(uint32_t i)
{
	return (uint8_t)(i * 7 + 0x80);
}

static inline uint8_t *frame_extensions(uint8_t *at, const struct opcode *op)
{
	uint32_t imm;
	memcpy(&imm, frame_immediate, 4);
	if (op->flags & OPCODE_DETH)
		at = deth_write(at, frame_qkey, FRAME_SRC_QPN);
	if (op->flags & OPCODE_XRCETH)
		at = ieth_write(at, 0x00777777);
	if (op->flags & OPCODE_FETH)
		at = feth_write(at, &frame_feth);
	if (op->flags & OPCODE_RETH)
		at = reth_write(at, frame_reth.va, frame_reth.rkey, frame_reth.len);
	if (op->flags & OPCODE_AETH)
		at = aeth_write(at, FRAME_SYNDROME, FRAME_MSN);
	if (op->flags & OPCODE_ATOMIC)
		at = atomic_eth_write(at, &frame_atomic);
	if (op->flags & OPCODE_ATOMIC_ACK)
		at = atomic_ack_write(at, frame_original);
	if (op->flags & OPCODE_IMMEDIATE)
		at = immediate_write(at, imm);
	if (op->flags & OPCODE_INVALIDATE)
		at = ieth_write(at, frame_invalidate);
	if (op->service == SERVICE_CNP) {
		memset(at, 0, 16);
		at += 16;
	}
	return at;
}

/* payload_len is ignored for an opcode without payload. Returns the frame's length. */
static inline uint32_t frame_make(uint8_t *frame, const struct opcode *op, unsigned ip_version, uint16_t vlan, uint32_t payload_len)
{
	struct template t;
	frame_template(&t, ip_version, vlan);
	if (!(op->flags & OPCODE_PAYLOAD))
		payload_len = 0;
	unsigned pad = -payload_len & 3;
	struct bth b = { op, FRAME_DQPN, { FRAME_PSN }, FRAME_PKEY, true, true };
	uint8_t *at = frame_extensions(bth_write(template_lay(frame, &t), &b, pad), op);
	for (uint32_t i = 0; i < payload_len; i++)
		*at++ = frame_byte(i);
	memset(at, 0, pad);
	return packet_finish(frame, &t, at + pad);
}

/* Makes IPv4 checksum and ICRC right again after a change; the IP length must be right. */
static inline void frame_mend(uint8_t *l3)
{
	unsigned version = l3[0] >> 4;
	uint32_t len = version == 4 ? get_be16(l3 + 2) : 40u + get_be16(l3 + 4);
	if (version == 4) {
		uint32_t sum = 0;
		put_be16(l3 + 10, 0);
		for (unsigned i = 0; i < 20; i += 2)
			sum += get_be16(l3 + i);
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		put_be16(l3 + 10, (uint16_t)~sum);
	}
	if (len >= (version == 4 ? 44u : 64u))
		icrc_store(l3 + len - ICRC_LEN, icrc_compute(l3, version, len - ICRC_LEN));
}

#endif
