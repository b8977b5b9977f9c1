/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "arp.h"
#include "frames.h"

/* Opcode, IP version, VLAN and payload of a frame of frames.h, and its line. */
static const struct row {
	uint8_t opcode, version;
	uint16_t vlan;
	uint32_t payload;
	const char *want;
} rows[] = {
	{ 0x0a, 4, VLAN_NONE, 5,
	  "10.1.2.3 > 10.4.5.6 RC RDMA WRITE ONLY qpn 0xabcdef psn 0x123456 pkey 0x7ffe ackreq solicited va 0x102030405060708 "
	  "rkey 0x11223344 len 1432778632 payload 5" },
	{ 0x11, 6, 7, 0,
	  "vlan 7 fd00::a:b > fd00::c:d RC ACKNOWLEDGE qpn 0xabcdef psn 0x123456 pkey 0x7ffe ackreq solicited "
	  "ack credits 31 (0x1f) msn 6636321" },
	{ 0x65, 6, VLAN_NONE, 0,
	  "fd00::a:b > fd00::c:d UD SEND ONLY WITH IMMEDIATE qpn 0xabcdef psn 0x123456 pkey 0x7ffe ackreq solicited "
	  "qkey 0x80010000 from 0xfedcba imm 0xd1d2d3d4 payload 0" },
	{ 0x17, 4, VLAN_NONE, 1,
	  "10.1.2.3 > 10.4.5.6 RC SEND ONLY WITH INVALIDATE qpn 0xabcdef psn 0x123456 pkey 0x7ffe ackreq solicited "
	  "invalidate 0xe1e2e3e4 payload 1" },
	{ 0x13, 4, VLAN_NONE, 0,
	  "10.1.2.3 > 10.4.5.6 RC COMPARE SWAP qpn 0xabcdef psn 0x123456 pkey 0x7ffe ackreq solicited "
	  "va 0x1112131415161718 rkey 0x99aabbcc swap/add 0x2122232425262728 compare 0x3132333435363738" },
	{ 0x1c, 4, VLAN_NONE, 0,
	  "10.1.2.3 > 10.4.5.6 RC FLUSH qpn 0xabcdef psn 0x123456 pkey 0x7ffe ackreq solicited "
	  "place 0xa of reserved va 0x102030405060708 rkey 0x11223344 len 1432778632" },
	{ 0x12, 4, VLAN_NONE, 0,
	  "10.1.2.3 > 10.4.5.6 RC ATOMIC ACKNOWLEDGE qpn 0xabcdef psn 0x123456 pkey 0x7ffe ackreq solicited "
	  "ack credits 31 (0x1f) msn 6636321 original 0x4142434445464748" },
};

static void test_lines(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t frame[FRAME_ROOM];
		char text[512];
		uint32_t len = frame_make(frame, opcode_of(rows[i].opcode), rows[i].version, rows[i].vlan, rows[i].payload);
		assert_int_equal(packet_print(text, sizeof(text), frame, len, VLAN_NONE), strlen(rows[i].want));
		assert_string_equal(text, rows[i].want);
	}
}

/* AETH syndromes of each kind, and the words for them. */
static void test_syndromes(void **state)
{
	static const struct {
		uint8_t syndrome;
		const char *want;
	} syndromes[] = {
		{ 0x00, "ack credits 0 (0x00)" },
		{ 0x1f, "ack credits 31 (0x1f)" },
		{ 0x20, "rnr nak delay 655.36 ms (0x20)" },
		{ 0x21, "rnr nak delay 0.01 ms (0x21)" },
		{ 0x3f, "rnr nak delay 491.52 ms (0x3f)" },
		{ 0x60, "nak PSN sequence error (0x60)" },
		{ 0x61, "nak invalid request (0x61)" },
		{ 0x62, "nak remote access error (0x62)" },
		{ 0x63, "nak remote operational error (0x63)" },
		{ 0x65, "nak reserved (0x65)" },
		{ 0x40, "reserved syndrome (0x40)" },
		{ 0xff, "reserved syndrome (0xff)" },
	};
	for (size_t i = 0; i < sizeof(syndromes) / sizeof(syndromes[0]); i++) {
		uint8_t frame[FRAME_ROOM];
		char text[512];
		uint32_t len = frame_make(frame, opcode_of(0x11), 4, VLAN_NONE, 0);
		frame[14 + 20 + 8 + 12] = syndromes[i].syndrome;
		frame_mend(frame + 14);
		packet_print(text, sizeof(text), frame, len, VLAN_NONE);
		assert_non_null(strstr(text, syndromes[i].want));
	}
}

/* What was decoded before the reason is there, and then the reason. */
static void test_drops(void **state)
{
	uint8_t frame[FRAME_ROOM];
	char text[512], want[128];
	uint32_t len = frame_make(frame, opcode_of(0x04), 4, VLAN_NONE, 4);

	packet_print(text, sizeof(text), frame, 13, VLAN_NONE);
	snprintf(want, sizeof(want), "13 bytes dropped: %s", drop_name(DROP_FRAME_RUNT));
	assert_string_equal(text, want);

	packet_print(text, sizeof(text), frame, 20, VLAN_NONE);
	snprintf(want, sizeof(want), "52:54:00:00:00:01 > 52:54:00:00:00:02 type 0x0800 dropped: %s", drop_name(DROP_IP_RUNT));
	assert_string_equal(text, want);

	frame[42] = 0xff;
	frame_mend(frame + 14);
	packet_print(text, sizeof(text), frame, len, VLAN_NONE);
	snprintf(want, sizeof(want), "10.1.2.3 > 10.4.5.6 opcode 0xff dropped: %s", drop_name(DROP_OPCODE));
	assert_string_equal(text, want);

	len = frame_make(frame, opcode_of(0x04), 4, VLAN_NONE, 4);
	frame[len - 1] ^= 1;
	packet_print(text, sizeof(text), frame, len, VLAN_NONE);
	assert_non_null(strstr(text, " icrc bad"));

	len = frame_make(frame, opcode_of(0x11), 4, VLAN_NONE, 0);
	frame[43] |= 0x10;
	frame_mend(frame + 14);
	packet_print(text, sizeof(text), frame, len, VLAN_NONE);
	snprintf(want, sizeof(want), " dropped: %s", drop_name(DROP_PAD));
	assert_non_null(strstr(text, want));
	assert_non_null(strstr(text, "RC ACKNOWLEDGE"));
}

static void test_congestion_and_vlan_of_the_port(void **state)
{
	uint8_t frame[FRAME_ROOM];
	char text[512];
	uint32_t len = frame_make(frame, opcode_of(0x04), 4, VLAN_NONE, 4);
	frame[15] |= 3;
	frame_mend(frame + 14);
	packet_print(text, sizeof(text), frame, len, 0x6005);
	assert_int_equal(strncmp(text, "vlan 5 10.1.2.3", 15), 0);
	assert_non_null(strstr(text, " ce "));
}

static void test_neighbours(void **state)
{
	uint8_t frame[NEIGHBOUR_FRAME_MAX];
	char text[256];
	struct gid a, b, zero = { { 0 } };
	gid_parse("fd00::1", &a);
	gid_parse("fd00::2", &b);
	packet_print(text, sizeof(text), frame, neighbour_write_ask(frame, frame_smac, NULL, VLAN_NONE, &a, &b), VLAN_NONE);
	assert_string_equal(text, "fd00::1 > ff02::1:ff00:2 who has fd00::2, asks 52:54:00:00:00:01");
	packet_print(text, sizeof(text), frame, neighbour_write_ask(frame, frame_smac, NULL, VLAN_NONE, &zero, &b), VLAN_NONE);
	assert_string_equal(text, ":: > ff02::1:ff00:2 who has fd00::2");
	gid_parse("10.0.0.1", &a);
	gid_parse("10.0.0.2", &b);
	packet_print(text, sizeof(text), frame, neighbour_write_tell(frame, frame_smac, frame_dmac, 3, &a, &b), VLAN_NONE);
	assert_string_equal(text, "vlan 3 10.0.0.1 > 10.0.0.2 10.0.0.1 is at 52:54:00:00:00:01");
	frame[18] ^= 1;
	packet_print(text, sizeof(text), frame, 60, VLAN_NONE);
	assert_non_null(strstr(text, "ARP dropped: "));
}

/* Any room: never beyond it, always terminated, the same length told, the same beginning written. */
static void test_any_room(void **state)
{
	uint8_t frame[FRAME_ROOM];
	char whole[512];
	uint32_t len = frame_make(frame, opcode_of(0x0a), 6, 7, 5);
	int n = packet_print(whole, sizeof(whole), frame, len, VLAN_NONE);
	for (uint32_t room = 0; room <= (uint32_t)n + 2; room++) {
		char *text = malloc(room + 1);
		text[room] = 0x7e;
		assert_int_equal(packet_print(text, room, frame, len, VLAN_NONE), n);
		assert_int_equal(text[room], 0x7e);
		if (room) {
			assert_int_equal(strlen(text), room - 1 < (uint32_t)n ? room - 1 : (uint32_t)n);
			assert_memory_equal(text, whole, strlen(text));
		}
		free(text);
	}
}

static void print_exact(const uint8_t *frame, uint32_t len)
{
	char text[512];
	uint8_t *copy = malloc(len + 1);
	memcpy(copy + 1, frame, len);
	int n = packet_print(text, sizeof(text), copy + 1, len, VLAN_NONE);
	assert_in_range(n, 1, sizeof(text) - 1);
	assert_int_equal(strlen(text), n);
	for (int i = 0; i < n; i++)
		assert_in_range(text[i], 0x20, 0x7e);
	free(copy);
}

static void test_every_opcode_and_truncation(void **state)
{
	uint8_t frame[FRAME_ROOM];
	for (unsigned byte = 0; byte < 256; byte++)
		for (unsigned i = 0; opcode_of((uint8_t)byte) && i < 4; i++) {
			uint32_t len = frame_make(frame, opcode_of((uint8_t)byte), i & 1 ? 6 : 4, i & 2 ? 9 : VLAN_NONE, 3);
			for (uint32_t cut = 0; cut <= len; cut++)
				print_exact(frame, cut);
		}
}

static void test_garbage(void **state)
{
	static const uint16_t types[] = { 0x0800, 0x86dd, 0x0806, 0x8100, 0x8915 };
	uint8_t frame[128];
	srand(5);
	for (unsigned i = 0; i < 50000; i++) {
		uint32_t len = (uint32_t)rand() % sizeof(frame);
		for (uint32_t k = 0; k < len; k++)
			frame[k] = (uint8_t)rand();
		if (len >= 15) {
			put_be16(frame + 12, types[i % 5]);
			frame[14] = i % 5 == 1 ? 0x60 : 0x45;
		}
		/* Some that pass for what they are not. */
		if (i % 5 == 1 && len >= 54 + 24) {
			put_be16(frame + 18, (uint16_t)(len - 54));
			frame[20] = 58;
			frame[54] = (uint8_t)(128 + i / 5 % 10);
		}
		print_exact(frame, len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_syndromes),
		cmocka_unit_test(test_drops),
		cmocka_unit_test(test_congestion_and_vlan_of_the_port),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_any_room),
		cmocka_unit_test(test_every_opcode_and_truncation),
		cmocka_unit_test(test_garbage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
