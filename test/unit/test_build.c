/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "frames.h"

/* Whole frames, written by hand from the layouts of the standards. Both are an RC ACK. */
static const uint8_t ack_ip4[] = {
	0x52, 0x54, 0, 0, 0, 2, 0x52, 0x54, 0, 0, 0, 1, 0x08, 0x00,
	0x45, 0x6a, 0, 48, 0, 0, 0x40, 0, 63, 17, 0x20, 0x46, 10, 1, 2, 3, 10, 4, 5, 6,
	0xd0, 0x0d, 0x12, 0xb7, 0, 28, 0, 0,
	0x11, 0xc0, 0x7f, 0xfe, 0, 0xab, 0xcd, 0xef, 0x80, 0x12, 0x34, 0x56,
	0x1f, 0x65, 0x43, 0x21,
};
static const uint8_t ack_ip6_tagged[] = {
	0x52, 0x54, 0, 0, 0, 2, 0x52, 0x54, 0, 0, 0, 1, 0x81, 0x00, 0x60, 0x07, 0x86, 0xdd,
	0x66, 0xa5, 0x43, 0x21, 0, 28, 17, 63, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0, 0x0b,
	0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0c, 0, 0x0d,
	0xd0, 0x0d, 0x12, 0xb7, 0, 28, 0, 0,
	0x11, 0xc0, 0x7f, 0xfe, 0, 0xab, 0xcd, 0xef, 0x80, 0x12, 0x34, 0x56,
	0x1f, 0x65, 0x43, 0x21,
};

static void test_whole_frames(void **state)
{
	uint8_t frame[FRAME_ROOM];
	const struct opcode *ack = opcode_find(SERVICE_RC, MESSAGE_ACKNOWLEDGE, 0);
	assert_int_equal(frame_make(frame, ack, 4, VLAN_NONE, 0), sizeof(ack_ip4) + 4);
	assert_memory_equal(frame, ack_ip4, sizeof(ack_ip4));
	assert_int_equal(frame_make(frame, ack, 6, 7, 0), sizeof(ack_ip6_tagged) + 4);
	assert_memory_equal(frame, ack_ip6_tagged, sizeof(ack_ip6_tagged));
}

static void test_template_lengths(void **state)
{
	static const struct {
		unsigned version;
		uint16_t vlan;
		uint8_t len, l3_offset;
	} rows[] = { { 4, VLAN_NONE, 42, 14 }, { 4, 1, 46, 18 }, { 6, VLAN_NONE, 62, 14 }, { 6, 4094, 66, 18 } };
	for (size_t i = 0; i < 4; i++) {
		struct template t;
		frame_template(&t, rows[i].version, rows[i].vlan);
		assert_int_equal(t.len, rows[i].len);
		assert_int_equal(t.l3_offset, rows[i].l3_offset);
		assert_int_equal(t.ip_version, rows[i].version);
		assert_true(t.len <= TEMPLATE_MAX);
	}
}

static void test_set_dmac(void **state)
{
	struct template a, b;
	static const uint8_t mac[6] = { 1, 2, 3, 4, 5, 6 };
	frame_template(&a, 4, VLAN_NONE);
	b = a;
	template_set_dmac(&b, mac);
	assert_memory_equal(b.b, mac, 6);
	assert_memory_equal(b.b + 6, a.b + 6, TEMPLATE_MAX - 6);
}

/* Values wider than their field must not spill into the next one. */
static void test_fields_are_cut(void **state)
{
	struct template_fields f = { .vlan = 0x7fff & ~0xf000, .priority = 0xff, .tos = 0xff, .flow_label = 0xffffffff };
	struct template t;
	gid_parse("fd00::1", &f.src);
	gid_parse("fd00::2", &f.dst);
	template_build(&t, &f);
	assert_int_equal(get_be16(t.b + 14), 0xe000 | 0xfff);
	assert_int_equal(get_be32(t.b + 18), 0x6fffffff);

	uint8_t aeth[4], bth[BTH_LEN];
	aeth_write(aeth, 0x60, 0xff000001);
	assert_int_equal(get_be32(aeth), 0x60000001);
	bth_write(bth, &(struct bth){ .op = opcode_of(0x04), .dqpn = 0xffffff, .psn = psn_make(0xffffffff) }, 0);
	assert_int_equal(get_be32(bth + 8), 0x00ffffff);
}

/* The checksum of the header must come out right for any length and any field, the sum 0xffff and carries of carries included. */
static void test_ip4_checksum(void **state)
{
	uint8_t frame[FRAME_ROOM] = { 0 };
	for (uint32_t tos = 0; tos < 256; tos++)
		for (uint32_t ip = 0; ip < 64; ip++) {
			struct template_fields f = { .vlan = VLAN_NONE, .tos = (uint8_t)tos, .ttl = (uint8_t)(ip * 4) };
			f.src = gid_from_ip4((const uint8_t[]){ 255, (uint8_t)~ip, (uint8_t)(ip * 5), 255 });
			f.dst = gid_from_ip4((const uint8_t[]){ (uint8_t)(255 - ip), 255, 255, (uint8_t)(tos ^ ip) });
			struct template t;
			template_build(&t, &f);
			uint8_t *at = bth_write(template_lay(frame, &t), &(struct bth){ .op = opcode_of(0x24) }, 0);
			packet_finish(frame, &t, at + (tos & 63) * 4);
			uint32_t sum = 0;
			for (unsigned i = 0; i < 20; i += 2)
				sum += get_be16(frame + 14 + i);
			while (sum >> 16)
				sum = (sum & 0xffff) + (sum >> 16);
			assert_int_equal(sum, 0xffff);
		}
}

/* known-bugs: 31 */
static void test_reserved_bits_are_zero_and_mig_request_one(void **state)
{
	uint8_t bth[BTH_LEN];
	for (unsigned pad = 0; pad < 4; pad++)
		for (unsigned flags = 0; flags < 4; flags++) {
			struct bth b = { opcode_of(0x04), 0xffffff, { 0xffffff }, 0xffff, flags & 1, flags & 2 };
			memset(bth, 0xff, sizeof(bth));
			assert_ptr_equal(bth_write(bth, &b, pad), bth + BTH_LEN);
			assert_int_equal(bth[1], (flags & 1 ? 0x80 : 0) | 0x40 | pad << 4); /* TVer 0 */
			assert_int_equal(bth[4], 0);                                        /* FECN, BECN, reserved */
			assert_int_equal(bth[8], flags & 2 ? 0x80 : 0);                     /* AckReq, reserved */
		}
}

/* Every writer returns the byte behind what it wrote and writes nothing beyond. */
static void test_extension_headers(void **state)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		const struct opcode *op = opcode_of((uint8_t)byte);
		uint8_t at[BTH_LEN + EXTENSIONS_MAX + 1];
		if (!op)
			continue;
		memset(at, 0xee, sizeof(at));
		struct bth b = { .op = op };
		assert_ptr_equal(frame_extensions(bth_write(at, &b, 0), op), at + op->header_len);
		assert_int_equal(at[op->header_len], 0xee);
		assert_true(op->header_len <= BTH_LEN + EXTENSIONS_MAX);
	}
}

static void test_extension_bytes(void **state)
{
	uint8_t at[28];
	reth_write(at, 0x0102030405060708, 0x090a0b0c, 0x0d0e0f10);
	assert_memory_equal(at, "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20", 16);
	atomic_eth_write(at, &(struct atomic_eth){ 0x0102030405060708, 0x090a0b0c, 0x1112131415161718, 0x2122232425262728 });
	assert_memory_equal(at, "\1\2\3\4\5\6\7\10\11\12\13\14\x11\x12\x13\x14\x15\x16\x17\x18\x21\x22\x23\x24\x25\x26\x27\x28", 28);
	feth_write(at, &(struct feth){ FLUSH_PERSISTENT, FLUSH_WHOLE_MR });
	assert_memory_equal(at, "\0\0\0\x12", 4);
	deth_write(at, 0x80010000, 0x123456);
	assert_memory_equal(at, "\x80\1\0\0\0\x12\x34\x56", 8);
	atomic_ack_write(at, 0x0102030405060708);
	assert_memory_equal(at, "\1\2\3\4\5\6\7\10", 8);
	uint32_t imm;
	memcpy(&imm, "\1\2\3\4", 4);
	immediate_write(at, imm);
	assert_memory_equal(at, "\1\2\3\4", 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_frames),
		cmocka_unit_test(test_template_lengths),
		cmocka_unit_test(test_set_dmac),
		cmocka_unit_test(test_fields_are_cut),
		cmocka_unit_test(test_ip4_checksum),
		cmocka_unit_test(test_reserved_bits_are_zero_and_mig_request_one),
		cmocka_unit_test(test_extension_headers),
		cmocka_unit_test(test_extension_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
