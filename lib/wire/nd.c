/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbour solicitation and advertisement. Owns the checks that RFC 4861 demands of a valid message; no table, and nothing
 * of routers or redirects, which count as ignored.
 * RFC 4861, 4.3, 4.4, 4.6.1 (layouts), 7.1.1, 7.1.2 (validation), 7.2.2, 7.2.4 (sending); RFC 4291, 2.7.1 (solicited-node
 * group); RFC 2464, 7. */
#include "nd.h"

#include "protocol.h"

enum {
	TARGET_LEN = 16, OPTION_SOURCE_MAC = 1, OPTION_TARGET_MAC = 2, OPTION_UNIT = 8, HOP_LIMIT = 255,
	FLAG_SOLICITED = 0x40, FLAG_OVERRIDE = 0x20,
	MESSAGE_LEN = ICMP_LEN + TARGET_LEN,
};

/* Looks for the option of this type; false when the options are malformed. */
static bool read_options(struct neighbour_message *m, const uint8_t *at, uint32_t len, uint8_t type)
{
	while (len) {
		if (len < OPTION_UNIT || at[1] == 0 || at[1] * OPTION_UNIT > len)
			return false;
		if (at[0] == type && at[1] == 1) {
			if (!nd_is_host_mac(at + 2))
				return false;
			memcpy(m->mac, at + 2, 6);
			m->has_mac = true;
		}
		len -= at[1] * OPTION_UNIT;
		at += at[1] * OPTION_UNIT;
	}
	return true;
}

static bool is_solicitation_sound(const struct neighbour_message *m, const struct packet *p)
{
	struct gid group = gid_solicited_node(&m->target);
	return !m->is_probe || (!m->has_mac && gid_is_equal(&p->dst, &group));
}

static bool is_advertisement_sound(const struct neighbour_message *m, const struct packet *p)
{
	return !m->is_probe && !(p->is_multicast && m->solicited);
}

enum drop nd_parse(struct neighbour_message *m, const struct packet *p)
{
	const uint8_t *icmp = p->bth;
	bool is_ask = icmp[0] == ICMP6_NEIGHBOUR_SOLICITATION;

	if (!is_ask && icmp[0] != ICMP6_NEIGHBOUR_ADVERTISEMENT)
		return DROP_ND_IGNORED;
	if (p->ttl != HOP_LIMIT || icmp[1] || p->payload_len < TARGET_LEN)
		return DROP_ND_MALFORMED;
	*m = (struct neighbour_message){ .kind = is_ask ? NEIGHBOUR_ASK : NEIGHBOUR_TELL, .sender = p->src };
	memcpy(m->target.b, p->payload, TARGET_LEN);
	m->is_probe = gid_is_zero(&p->src);
	if (!is_ask) {
		m->solicited = icmp[4] & FLAG_SOLICITED;
		m->override = icmp[4] & FLAG_OVERRIDE;
	}
	if (gid_is_multicast(&m->target) || gid_is_ip4(&m->target) || gid_is_zero(&m->target))
		return DROP_ND_MALFORMED;
	if (!read_options(m, p->payload + TARGET_LEN, p->payload_len - TARGET_LEN, is_ask ? OPTION_SOURCE_MAC : OPTION_TARGET_MAC))
		return DROP_ND_MALFORMED;
	return (is_ask ? is_solicitation_sound(m, p) : is_advertisement_sound(m, p)) ? DROP_NONE : DROP_ND_MALFORMED;
}

/* One message behind its Ethernet header at ip, with the option of this type unless 0. Returns the byte behind it. */
static uint8_t *write_message(uint8_t *ip, const struct gid *src, const struct gid *dst, uint8_t type, uint8_t flags,
			      const struct gid *target, uint8_t option, const uint8_t mac[6])
{
	uint16_t len = MESSAGE_LEN + (option ? OPTION_UNIT : 0);
	struct ip_fields f = { 0, HOP_LIMIT, PROTOCOL_ICMP6, 0, len, src, dst };
	uint8_t *icmp = ip6_write(ip, &f);
	memset(icmp, 0, ICMP_LEN);
	icmp[0] = type;
	icmp[4] = flags;
	memcpy(icmp + ICMP_LEN, target->b, TARGET_LEN);
	if (option) {
		icmp[MESSAGE_LEN] = option;
		icmp[MESSAGE_LEN + 1] = 1;
		memcpy(icmp + MESSAGE_LEN + 2, mac, 6);
	}
	checksum_store(icmp + 2, checksum_add(checksum_pseudo(ip + 8, 32, PROTOCOL_ICMP6, len), icmp, len));
	return icmp + len;
}

uint32_t nd_write_ask(uint8_t *frame, const uint8_t smac[6], const uint8_t *dmac, uint16_t vlan, const struct gid *src,
		      const struct gid *target)
{
	uint8_t group_mac[6] = { 0x33, 0x33, 0xff, target->b[13], target->b[14], target->b[15] };
	struct gid group = gid_solicited_node(target);
	uint8_t option = gid_is_zero(src) ? 0 : OPTION_SOURCE_MAC;
	uint8_t *ip = ethernet_write(frame, dmac ? dmac : group_mac, smac, vlan, ETHERTYPE_IP6);
	return (uint32_t)(write_message(ip, src, dmac ? target : &group, ICMP6_NEIGHBOUR_SOLICITATION, 0, target, option, smac) - frame);
}

uint32_t nd_write_tell(uint8_t *frame, const uint8_t smac[6], const uint8_t dmac[6], uint16_t vlan, const struct gid *target,
		       const struct gid *dst)
{
	uint8_t flags = FLAG_OVERRIDE | (gid_is_multicast(dst) ? 0 : FLAG_SOLICITED);
	uint8_t *ip = ethernet_write(frame, dmac, smac, vlan, ETHERTYPE_IP6);
	return (uint32_t)(write_message(ip, target, dst, ICMP6_NEIGHBOUR_ADVERTISEMENT, flags, target, OPTION_TARGET_MAC, smac) - frame);
}
