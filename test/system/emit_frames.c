/* SPDX-License-Identifier: BSD-3-Clause */
/* emit_frames FILE: writes frames of every RC, UC and UD opcode, the CNP, ARP and ND messages, over IPv4 and IPv6, with and
 * without VLAN tag, to a pcapng file, each with a comment "opcode payload_len" (or "other\n") for the program that checks them.
 * The comments end with a newline because scapy leaves out others. Values of the fields are those of test/unit/frames.h. */
#include <stdio.h>
#include <string.h>

#include "arp.h"
#include "frames.h"
#include "pcapng.h"

/* Shorter ones are left out: a dissector takes the first bytes of a SEND for the header of another protocol. */
static const uint32_t payloads[] = { 13, 14, 15, 16, 1024 };

static uint64_t now_ns = 1700000000000000000u;

static int emit(FILE *file, const uint8_t *frame, uint32_t len, const char *comment)
{
	return pcapng_packet(file, now_ns++, frame, len, comment);
}

static int emit_roce(FILE *file, const struct opcode *op, unsigned version, uint16_t vlan)
{
	uint8_t frame[FRAME_ROOM];
	char comment[32];
	int rc = 0;
	unsigned n = op->flags & OPCODE_PAYLOAD ? sizeof(payloads) / sizeof(payloads[0]) : 1;
	for (unsigned i = 0; i < n && !rc; i++) {
		uint32_t payload = op->flags & OPCODE_PAYLOAD ? payloads[i] : 0;
		snprintf(comment, sizeof(comment), "0x%02x %u\n", op->byte, payload);
		rc = emit(file, frame, frame_make(frame, op, version, vlan, payload), comment);
	}
	return rc;
}

static int emit_neighbour(FILE *file, const char *a_text, const char *b_text, uint16_t vlan)
{
	uint8_t frame[NEIGHBOUR_FRAME_MAX];
	struct gid a, b;
	gid_parse(a_text, &a);
	gid_parse(b_text, &b);
	int rc = emit(file, frame, neighbour_write_ask(frame, frame_smac, NULL, vlan, &a, &b), "other\n");
	return rc ? rc : emit(file, frame, neighbour_write_tell(frame, frame_smac, frame_dmac, vlan, &b, &a), "other\n");
}

int main(int argc, char **argv)
{
	FILE *file = argc == 2 ? fopen(argv[1], "wb") : NULL;
	int rc;
	if (!file) {
		fprintf(stderr, "usage: emit_frames FILE\n");
		return 2;
	}
	rc = pcapng_begin(file, "emit");
	for (unsigned i = 0; i < 4 && !rc; i++) {
		unsigned version = i & 1 ? 6 : 4;
		uint16_t vlan = i & 2 ? 100 : VLAN_NONE;
		for (unsigned byte = 0; byte < 256 && !rc; byte++)
			if (opcode_of((uint8_t)byte) && opcode_of((uint8_t)byte)->service != SERVICE_XRC)
				rc = emit_roce(file, opcode_of((uint8_t)byte), version, vlan);
		if (!rc)
			rc = version == 4 ? emit_neighbour(file, "10.0.0.1", "10.0.0.2", vlan) : emit_neighbour(file, "fd00::1", "fd00::2", vlan);
	}
	if (fclose(file) || rc) {
		fprintf(stderr, "emit_frames: cannot write %s\n", argv[1]);
		return 1;
	}
	return 0;
}
