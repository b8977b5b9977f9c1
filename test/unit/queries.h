/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of routers for multicast groups, for the tests of IGMP and MLD. */
#ifndef UROCE_TEST_QUERIES_H
#define UROCE_TEST_QUERIES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "protocol.h"

static const uint8_t query_mac[6] = { 2, 0, 0, 0, 0, 9 };

static inline struct gid query_gid(const char *text)
{
	struct gid g = { { 0 } };
	gid_parse(text, &g);
	return g;
}

struct query {
	const char *group;  /* NULL: of all */
	uint32_t len;       /* of the message */
	uint16_t code;      /* IGMP: one byte */
	uint8_t robustness, ttl;
	bool has_alert;     /* IGMP; MLD always has it */
	const char *src, *dst;
};

static inline uint32_t query_write(uint8_t *frame, const struct query *q, bool is_ip4)
{
	static const uint8_t alert6[8] = { PROTOCOL_ICMP6, 0, 1, 0, 5, 2, 0, 0 }; /* the padding first */
	struct gid src = query_gid(q->src), dst = query_gid(q->dst);
	struct ip_fields f = { 0, q->ttl, PROTOCOL_IGMP, 0, (uint16_t)q->len, &src, &dst };
	uint8_t mac[6], *ip, *m;
	gid_group_mac(&dst, mac);
	ip = ethernet_write(frame, mac, query_mac, VLAN_NONE, is_ip4 ? ETHERTYPE_IP4 : ETHERTYPE_IP6);
	if (is_ip4) {
		uint32_t header = q->has_alert ? 24 : 20;
		m = ip4_write(ip, &f) + header - 20;
		if (q->has_alert)
			memcpy(m - 4, (const uint8_t[4]){ 0x94, 4, 0, 0 }, 4);
		ip[0] = (uint8_t)(0x40 | header / 4);
		put_be16(ip + 2, (uint16_t)(header + q->len));
		checksum_store(ip + 10, checksum_add(0, ip, header));
	} else {
		f.protocol = PROTOCOL_HOP_BY_HOP;
		f.payload_len = (uint16_t)(q->len + 8);
		m = ip6_write(ip, &f);
		memcpy(m, alert6, 8);
		m += 8;
	}
	memset(m, 0, q->len);
	m[0] = is_ip4 ? 0x11 : 130;
	if (is_ip4)
		m[1] = (uint8_t)q->code;
	else
		put_be16(m + 4, q->code);
	if (q->group) {
		struct gid g = query_gid(q->group);
		memcpy(m + (is_ip4 ? 4 : 8), g.b + (is_ip4 ? 12 : 0), is_ip4 ? 4 : 16);
	}
	if (q->len > (is_ip4 ? 8u : 24u))
		m[is_ip4 ? 8 : 24] = (uint8_t)(0x08 | q->robustness); /* with the S flag */
	checksum_store(m + 2, checksum_add(is_ip4 ? 0 : checksum_pseudo(ip + 8, 32, PROTOCOL_ICMP6, q->len), m, q->len));
	return (uint32_t)(m + q->len - frame);
}

#endif
