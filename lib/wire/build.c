/* SPDX-License-Identifier: BSD-3-Clause */
/* Templates: everything of a packet that is the same for all packets to one address, written once. The rest of building is
 * inline in build.h. Owns no state. Annex A17.3.1 and A17.3.2 (IP and UDP headers of RoCEv2), RFC 6864 (identification of an
 * atomic datagram), IEEE 802.1Q. */
#include "build.h"

#include "protocol.h"

void template_build(struct template *t, const struct template_fields *f)
{
	struct ip_fields ip = { f->tos, f->ttl, PROTOCOL_UDP, f->flow_label, 0, &f->src, &f->dst };
	bool is_ip4 = gid_is_ip4(&f->dst);
	uint16_t tci = f->vlan == VLAN_NONE ? VLAN_NONE : (uint16_t)((f->priority & 7) << 13 | (f->vlan & 0xfff));

	memset(t, 0, sizeof(*t));
	uint8_t *l3 = ethernet_write(t->b, f->dmac, f->smac, tci, is_ip4 ? ETHERTYPE_IP4 : ETHERTYPE_IP6);
	uint8_t *udp = is_ip4 ? ip4_write(l3, &ip) : ip6_write(l3, &ip);
	put_be16(udp, f->udp_src_port);
	put_be16(udp + 2, ROCE_UDP_PORT);
	t->len = (uint8_t)(udp + UDP_LEN - t->b);
	t->l3_offset = (uint8_t)(l3 - t->b);
	t->ip_version = is_ip4 ? 4 : 6;
	if (is_ip4) {
		put_be16(l3 + 2, 0);
		for (unsigned i = 0; i < IP4_LEN; i += 2)
			t->ip4_sum += get_be16(l3 + i);
	}
}

void template_set_dmac(struct template *t, const uint8_t dmac[6])
{
	memcpy(t->b, dmac, 6);
}
