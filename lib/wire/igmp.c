/* SPDX-License-Identifier: BSD-3-Clause */
/* IGMP and MLD as a host speaks them. Owns layouts, checksums and the router alert option; which groups there are, and when what is sent, is addr/membership.c's.
 * Invariant: every byte is covered by a length that was compared first; packet_parse hands on only messages with a right checksum.
 * RFC 3376, 4 (messages), 4.1.1 (codes), 7.1 (versions of queries); RFC 2236, 2; RFC 3810, 5, 5.1.14 (the senders of queries), 8.1; RFC 2710, 3; RFC 2113 and RFC 2711 (router alert). */
#include "igmp.h"

#include "protocol.h"

enum {
	IGMP_LEN = 8, IGMP3_QUERY_LEN = 12, IGMP_QUERY = 0x11, IGMP2_REPORT = 0x16, IGMP2_LEAVE = 0x17, IGMP3_REPORT = 0x22,
	MLD_QUERY_LEN = 24, MLD2_QUERY_LEN = 28, MLD_QUERY = 130, MLD1_REPORT = 131, MLD1_DONE = 132, MLD2_REPORT = 143,
	IP4_ALERT_LEN = IP4_LEN + 4, HOP_BY_HOP_LEN = 8, OPTION_PAD1 = 0, OPTION_ALERT = 5,
	RECORD4_LEN = 8, RECORD6_LEN = 20, REPORT_LEN = 8,
	TOS_CONTROL = 0xc0, /* RFC 3376, 4: internetwork control */
};

/* ---- reading ---- */

/* The header before the message, of header_len bytes, has been found right. */
static enum drop take_message(struct packet *p, const uint8_t *ip, uint32_t header_len, uint32_t len, uint8_t version)
{
	p->ip_version = version;
	p->l3_header_len = (uint8_t)header_len;
	p->l3_len = header_len + len;
	p->bth = ip + header_len;
	p->payload = p->bth + IGMP_LEN;
	p->payload_len = len - IGMP_LEN;
	p->kind = PACKET_QUERY;
	return DROP_NONE;
}

enum drop igmp_parse_ip4(struct packet *p, const uint8_t *ip, uint32_t room)
{
	uint32_t header_len = (ip[0] & 0xfu) * 4, len = get_be16(ip + 2);
	if (len > room || len < header_len)
		return DROP_IP_LENGTH;
	if (checksum_fold(checksum_add(0, ip, header_len)) != 0xffff)
		return DROP_IP_CHECKSUM;
	p->tos = ip[1];
	p->ttl = ip[8];
	p->src = gid_from_ip4(ip + 12);
	p->dst = gid_from_ip4(ip + 16);
	p->is_multicast = (ip[16] & 0xf0) == 0xe0;
	if (get_be16(ip + 6) & IP4_FRAGMENT)
		return DROP_IP_FRAGMENT;
	if (gid_is_multicast(&p->src))
		return DROP_IP_SOURCE;
	len -= header_len;
	if (len < IGMP_LEN || checksum_fold(checksum_add(0, ip + header_len, len)) != 0xffff)
		return DROP_GROUP_MALFORMED;
	return ip[header_len] == IGMP_QUERY ? take_message(p, ip, header_len, len, 4) : DROP_GROUP_IGNORED;
}

/* Whether the options say router alert for MLD; at: behind the two bytes of next header and length. */
static bool has_alert(const uint8_t *at, uint32_t len)
{
	while (len) {
		uint32_t n = at[0] == OPTION_PAD1 ? 1 : len < 2 ? len + 1 : at[1] + 2u;
		if (n > len)
			return false;
		if (at[0] == OPTION_ALERT)
			return n == 4 && get_be16(at + 2) == 0;
		at += n;
		len -= n;
	}
	return false;
}

enum drop igmp_parse_ip6(struct packet *p, const uint8_t *ip, uint32_t room)
{
	uint32_t len = get_be16(ip + 4);
	if (len > room - IP6_LEN)
		return DROP_IP_LENGTH;
	if (len < HOP_BY_HOP_LEN || ip[IP6_LEN] != PROTOCOL_ICMP6)
		return DROP_IP_OPTIONS;
	uint32_t options = (ip[IP6_LEN + 1] + 1u) * 8;
	if (options > 128 || options > len || !has_alert(ip + IP6_LEN + 2, options - 2))
		return DROP_IP_OPTIONS;
	p->tos = (uint8_t)(get_be32(ip) >> 20);
	p->ttl = ip[7];
	memcpy(p->src.b, ip + 8, 16);
	memcpy(p->dst.b, ip + 24, 16);
	p->is_multicast = ip[24] == 0xff;
	const uint8_t *icmp = ip + IP6_LEN + options;
	len -= options;
	if (len < IGMP_LEN || checksum_fold(checksum_add(checksum_pseudo(ip + 8, 32, PROTOCOL_ICMP6, len), icmp, len)) != 0xffff)
		return DROP_GROUP_MALFORMED;
	return icmp[0] == MLD_QUERY ? take_message(p, ip, IP6_LEN + options, len, 6) : DROP_GROUP_IGNORED;
}

/* A number of `bits` bits from 2^(bits + 3) on has 3 bits of exponent and a mantissa with a hidden bit (RFC 3376, 4.1.1; RFC 3810, 5.1.3). */
static uint32_t decode_delay(uint32_t code, unsigned bits)
{
	if (code < 1u << (bits + 3))
		return code;
	uint32_t mantissa = code & ((1u << bits) - 1), exponent = code >> bits & 7;
	return (mantissa | 1u << bits) << (exponent + 3);
}

static enum drop parse_igmp(struct group_query *q, const struct packet *p, uint32_t len)
{
	static const uint8_t any[4];
	if (len > IGMP_LEN && len < IGMP3_QUERY_LEN) /* of no version (RFC 3376, 7.1) */
		return DROP_GROUP_MALFORMED;
	q->is_older = len < IGMP3_QUERY_LEN;
	q->version = q->is_older ? 2 : 3;
	q->max_delay_ms = 100 * (q->is_older ? p->bth[1] : decode_delay(p->bth[1], 4));
	if (q->is_older && !p->bth[1]) /* RFC 2236, 4: of an IGMPv1 router, which means 10 s */
		q->max_delay_ms = 10000;
	if (!q->is_older)
		q->robustness = p->bth[8] & 7;
	if (memcmp(p->bth + 4, any, 4))
		q->group = gid_from_ip4(p->bth + 4);
	return p->ttl == 1 ? DROP_NONE : DROP_GROUP_IGNORED;
}

static enum drop parse_mld(struct group_query *q, const struct packet *p, uint32_t len)
{
	uint32_t code = get_be16(p->bth + 4);
	if (len < MLD_QUERY_LEN || (len > MLD_QUERY_LEN && len < MLD2_QUERY_LEN) || p->bth[1]) /* or of no version (RFC 3810, 8.1) */
		return DROP_GROUP_MALFORMED;
	q->is_older = len < MLD2_QUERY_LEN;
	q->version = q->is_older ? 1 : 2;
	q->max_delay_ms = q->is_older ? code : decode_delay(code, 12);
	if (!q->is_older)
		q->robustness = p->bth[24] & 7;
	memcpy(q->group.b, p->bth + 8, 16);
	return p->ttl == 1 && gid_is_link_local(&p->src) ? DROP_NONE : DROP_GROUP_IGNORED;
}

enum drop group_query_parse(struct group_query *q, const struct packet *p)
{
	*q = (struct group_query){ .version = 0 };
	uint32_t len = p->payload_len + IGMP_LEN;
	enum drop drop = p->ip_version == 4 ? parse_igmp(q, p, len) : parse_mld(q, p, len);
	if (drop == DROP_NONE && !gid_is_zero(&q->group) && (!gid_is_multicast(&q->group) || gid_is_ip4(&q->group) != (p->ip_version == 4)))
		return DROP_GROUP_MALFORMED;
	return drop;
}

/* ---- writing ---- */

/* All up to the message, of `len` bytes: to this group, one hop far, and for routers to look at. Returns where the message goes. */
static uint8_t *write_headers(uint8_t *frame, const uint8_t smac[6], uint16_t vlan, const struct gid *src, const struct gid *dst, uint16_t len)
{
	static const uint8_t alert4[4] = { 0x94, 4, 0, 0 }, alert6[HOP_BY_HOP_LEN] = { PROTOCOL_ICMP6, 0, OPTION_ALERT, 2, 0, 0, 1, 0 };
	uint8_t dmac[6];
	bool is_ip4 = gid_is_ip4(dst);
	struct ip_fields f = { TOS_CONTROL, 1, PROTOCOL_IGMP, 0, len, src, dst };
	gid_group_mac(dst, dmac);
	uint8_t *ip = ethernet_write(frame, dmac, smac, vlan, is_ip4 ? ETHERTYPE_IP4 : ETHERTYPE_IP6);
	if (!is_ip4) {
		f.tos = 0;
		f.protocol = PROTOCOL_HOP_BY_HOP;
		f.payload_len = (uint16_t)(len + HOP_BY_HOP_LEN);
		memcpy(ip6_write(ip, &f), alert6, HOP_BY_HOP_LEN);
		return ip + IP6_LEN + HOP_BY_HOP_LEN;
	}
	ip4_write(ip, &f);
	ip[0] = 0x46;
	put_be16(ip + 2, (uint16_t)(IP4_ALERT_LEN + len));
	memcpy(ip + IP4_LEN, alert4, 4);
	checksum_store(ip + 10, checksum_add(0, ip, IP4_ALERT_LEN));
	return ip + IP4_ALERT_LEN;
}

/* Sets the checksum and pads to Ethernet's least length, which not every port does. */
static uint32_t finish(uint8_t *frame, uint8_t *message, uint16_t len, bool is_ip4)
{
	uint64_t sum = is_ip4 ? 0 : checksum_pseudo(message - HOP_BY_HOP_LEN - 32, 32, PROTOCOL_ICMP6, len);
	checksum_store(message + 2, checksum_add(sum, message, len));
	uint32_t whole = (uint32_t)(message + len - frame);
	if (whole >= ETHERNET_MIN)
		return whole;
	memset(frame + whole, 0, ETHERNET_MIN - whole);
	return ETHERNET_MIN;
}

static uint32_t record_len(bool is_ip4)
{
	return is_ip4 ? RECORD4_LEN : RECORD6_LEN;
}

unsigned group_report_holds(uint32_t room, bool is_ip4)
{
	uint32_t headers = ETHERNET_LEN + VLAN_LEN + REPORT_LEN + (is_ip4 ? IP4_ALERT_LEN : IP6_LEN + HOP_BY_HOP_LEN);
	uint32_t n = room < GROUP_FRAME_MAX ? room : GROUP_FRAME_MAX;
	n = n < headers ? 0 : (n - headers) / record_len(is_ip4);
	return n < GROUP_RECORDS_MAX ? n : GROUP_RECORDS_MAX;
}

uint32_t group_report_write(uint8_t *frame, const uint8_t smac[6], uint16_t vlan, const struct gid *src, const struct group_record *records, unsigned n)
{
	static const struct gid routers4 = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 224, 0, 0, 22 } };
	static const struct gid routers6 = { { 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x16 } };
	bool is_ip4 = gid_is_ip4(&records[0].group);
	uint16_t len = (uint16_t)(REPORT_LEN + n * record_len(is_ip4));
	uint8_t *message = write_headers(frame, smac, vlan, src, is_ip4 ? &routers4 : &routers6, len);
	memset(message, 0, len);
	message[0] = is_ip4 ? IGMP3_REPORT : MLD2_REPORT;
	put_be16(message + 6, (uint16_t)n);
	for (unsigned i = 0; i < n; i++) {
		uint8_t *record = message + REPORT_LEN + i * record_len(is_ip4);
		record[0] = records[i].type;
		memcpy(record + 4, records[i].group.b + (is_ip4 ? 12 : 0), is_ip4 ? 4 : 16);
	}
	return finish(frame, message, len, is_ip4);
}

uint32_t group_report_write_older(uint8_t *frame, const uint8_t smac[6], uint16_t vlan, const struct gid *src, const struct group_record *record)
{
	static const struct gid routers4 = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 224, 0, 0, 2 } };
	static const struct gid routers6 = { { 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2 } };
	bool is_ip4 = gid_is_ip4(&record->group), leaves = record->type == GROUP_TO_INCLUDE;
	uint16_t len = is_ip4 ? IGMP_LEN : MLD_QUERY_LEN;
	uint8_t *message = write_headers(frame, smac, vlan, src, !leaves ? &record->group : is_ip4 ? &routers4 : &routers6, len);
	memset(message, 0, len);
	message[0] = is_ip4 ? (leaves ? IGMP2_LEAVE : IGMP2_REPORT) : leaves ? MLD1_DONE : MLD1_REPORT;
	memcpy(message + (is_ip4 ? 4 : 8), record->group.b + (is_ip4 ? 12 : 0), is_ip4 ? 4 : 16);
	return finish(frame, message, len, is_ip4);
}
