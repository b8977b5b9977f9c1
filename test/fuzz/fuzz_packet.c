/* SPDX-License-Identifier: BSD-3-Clause */
/* Any frame at all: the parser reads nothing outside it, says nothing that is not so, and the printer ends its line. The first two bytes of the input are the VLAN tag and flags, the rest the frame.
 * known-bugs: 21 22 23 29 */
#include <stdlib.h>
#include <string.h>

#include "arp.h"
#include "icmp.h"
#include "icrc.h"
#include "igmp.h"
#include "packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_true)
{
	if (!is_true)
		abort();
}

static bool is_inside(const struct packet *p, const uint8_t *at, uint64_t n, uint32_t len)
{
	return at >= p->frame && n <= (uint64_t)(p->frame + len - at);
}

/* What packet.h promises of an accepted packet. */
static void check_packet(const struct packet *p, uint32_t len)
{
	require(p->kind < PACKET_KIND_COUNT);
	require(is_inside(p, p->l3, p->l3_len, len));
	if (p->kind != PACKET_ROCE)
		return;
	require(p->op && p->op->name);
	require(is_inside(p, p->bth, p->op->header_len, len));
	require(is_inside(p, p->payload, (uint64_t)p->payload_len + p->pad + ICRC_LEN, len));
	require(p->payload + p->payload_len + p->pad + ICRC_LEN == p->l3 + p->l3_len);
	require(p->psn.v <= PSN_MASK && p->dqpn <= 0xffffff);
	bool is_right = packet_is_icrc_ok(p);
	uint32_t icrc = icrc_compute(p->l3, p->ip_version, p->l3_len - ICRC_LEN);
	uint8_t stored[ICRC_LEN];
	icrc_store(stored, icrc);
	require(is_right == !memcmp(stored, p->l3 + p->l3_len - ICRC_LEN, ICRC_LEN));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > 10000)
		return 0;
	uint16_t tci = data[1] & 1 ? (uint16_t)(data[0] << 4 | data[1] >> 4) : VLAN_NONE;
	uint32_t len = (uint32_t)(size - 2);
	uint8_t *frame = malloc(len ? len : 1); /* its own block: a byte too far is seen */
	memcpy(frame, data + 2, len);
	struct packet p;
	struct neighbour_message m;
	struct group_query q;
	enum drop d = packet_parse(&p, frame, len, tci, NULL);
	require(d < DROP_COUNT);
	if (d == DROP_NONE) {
		check_packet(&p, len);
		if (p.kind == PACKET_ARP || p.kind == PACKET_ND)
			require(neighbour_parse(&m, &p) < DROP_COUNT);
		if (p.kind == PACKET_QUERY)
			require(group_query_parse(&q, &p) < DROP_COUNT);
	}
	char text[256], little[8];
	int n = packet_print(text, sizeof(text), frame, len, tci);
	require(n >= 0 && memchr(text, 0, sizeof(text)));
	require(packet_print(little, sizeof(little), frame, len, tci) == n && memchr(little, 0, sizeof(little)));
	free(frame);
	return 0;
}
