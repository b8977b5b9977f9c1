/* SPDX-License-Identifier: BSD-3-Clause */
/* Templates: everything of a packet that is the same for all packets to one address, written once. The rest of building is
 * inline in build.h. Owns no state. Annex A17.3.1 and A17.3.2 (IP and UDP headers of RoCEv2), RFC 6864 (identification of an
 * atomic datagram), IEEE 802.1Q. */
#include "build.h"

enum { ETHERTYPE_IP4 = 0x0800, ETHERTYPE_IP6 = 0x86dd, ETHERTYPE_VLAN = 0x8100, PROTOCOL_UDP = 17, IP4_DF = 0x4000 };

static void write_ip4(struct template *t, const struct template_fields *f)
{
	uint8_t *ip = t->b + t->l3_offset;
	ip[0] = 0x45;
	ip[1] = f->tos;
	put_be16(ip + 6, IP4_DF);
	ip[8] = f->ttl;
	ip[9] = PROTOCOL_UDP;
	memcpy(ip + 12, f->src.b + 12, 4);
	memcpy(ip + 16, f->dst.b + 12, 4);
	t->ip4_sum = 0;
	for (unsigned i = 0; i < 20; i += 2)
		t->ip4_sum += get_be16(ip + i);
}

static void write_ip6(struct template *t, const struct template_fields *f)
{
	uint8_t *ip = t->b + t->l3_offset;
	put_be32(ip, 6u << 28 | (uint32_t)f->tos << 20 | (f->flow_label & 0xfffff));
	ip[6] = PROTOCOL_UDP;
	ip[7] = f->ttl;
	memcpy(ip + 8, f->src.b, 16);
	memcpy(ip + 24, f->dst.b, 16);
}

void template_build(struct template *t, const struct template_fields *f)
{
	bool is_ip4 = gid_is_ip4(&f->dst);
	unsigned at = 12;

	memset(t, 0, sizeof(*t));
	memcpy(t->b, f->dmac, 6);
	memcpy(t->b + 6, f->smac, 6);
	if (f->vlan != VLAN_NONE) {
		put_be16(t->b + at, ETHERTYPE_VLAN);
		put_be16(t->b + at + 2, (uint16_t)((f->priority & 7) << 13 | (f->vlan & 0xfff)));
		at += 4;
	}
	put_be16(t->b + at, is_ip4 ? ETHERTYPE_IP4 : ETHERTYPE_IP6);
	t->l3_offset = (uint8_t)(at + 2);
	t->ip_version = is_ip4 ? 4 : 6;
	if (is_ip4)
		write_ip4(t, f);
	else
		write_ip6(t, f);
	at = t->l3_offset + (is_ip4 ? 20 : 40);
	put_be16(t->b + at, f->udp_src_port);
	put_be16(t->b + at + 2, ROCE_UDP_PORT);
	t->len = (uint8_t)(at + 8);
}

void template_set_dmac(struct template *t, const uint8_t dmac[6])
{
	memcpy(t->b, dmac, 6);
}
