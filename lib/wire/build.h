/* SPDX-License-Identifier: BSD-3-Clause */
/* Building packets: the L2-L4 template that an address handle keeps, and the transport headers behind it. Hot path: inline,
 * no checks; the caller has room (HEADERS_MAX + payload + 3 + ICRC_LEN). */
#ifndef UROCE_BUILD_H
#define UROCE_BUILD_H

#include <stdint.h>
#include <string.h>

#include "bytes.h"
#include "icrc.h"
#include "packet.h"

#define TEMPLATE_MAX 72u /* Ethernet 14, VLAN 4, IPv6 40, UDP 8, rounded up to 8 */
#define BTH_LEN 12u
#define EXTENSIONS_MAX 32u
#define HEADERS_MAX (TEMPLATE_MAX + BTH_LEN + EXTENSIONS_MAX)

/* Ethernet to UDP, complete but for the two lengths, the IPv4 checksum and the DMAC as long as it is unknown. */
struct template {
	uint8_t b[TEMPLATE_MAX];
	uint8_t len;
	uint8_t l3_offset;
	uint8_t ip_version;
	uint32_t ip4_sum; /* one's complement sum of the IPv4 header with length and checksum zero, not folded */
};

struct template_fields {
	uint8_t dmac[6], smac[6];
	uint16_t vlan;         /* VLAN_NONE: untagged */
	uint8_t priority;      /* 802.1Q PCP */
	struct gid src, dst;   /* both IPv4-mapped or neither */
	uint8_t tos, ttl;
	uint32_t flow_label;   /* IPv6 */
	uint16_t udp_src_port;
};
/* IPv4: DF set, identification 0 (RFC 6864: an atomic datagram), UDP checksum 0 on both (annex A17.3.2). */
void template_build(struct template *t, const struct template_fields *f);
void template_set_dmac(struct template *t, const uint8_t dmac[6]);

/* Fields of a BTH that differ between packets of a QP. */
struct bth {
	const struct opcode *op;
	uint32_t dqpn;
	struct psn psn;
	uint16_t pkey;
	bool solicited, ack_request;
};

/* Writes a BTH (MigReq 1, TVer 0, reserved bits 0, PadCnt from pad), returns the byte behind it. */
static inline uint8_t *bth_write(uint8_t *at, const struct bth *b, unsigned pad)
{
	at[0] = b->op->byte;
	at[1] = (uint8_t)((b->solicited ? 0x80 : 0) | 0x40 | pad << 4);
	put_be16(at + 2, b->pkey);
	put_be32(at + 4, b->dqpn);
	put_be32(at + 8, b->psn.v | (b->ack_request ? 0x80000000u : 0));
	return at + BTH_LEN;
}

static inline uint8_t *reth_write(uint8_t *at, uint64_t va, uint32_t rkey, uint32_t len)
{
	put_be64(at, va);
	put_be32(at + 8, rkey);
	put_be32(at + 12, len);
	return at + 16;
}

static inline uint8_t *feth_write(uint8_t *at, const struct feth *f)
{
	put_be32(at, (f->selectivity & 3u) << 4 | (f->placement & 0xfu));
	return at + 4;
}

static inline uint8_t *aeth_write(uint8_t *at, uint8_t syndrome, uint32_t msn)
{
	put_be32(at, (uint32_t)syndrome << 24 | (msn & 0xffffff));
	return at + 4;
}

static inline uint8_t *atomic_eth_write(uint8_t *at, const struct atomic_eth *a)
{
	put_be64(at, a->va);
	put_be32(at + 8, a->rkey);
	put_be64(at + 12, a->swap_or_add);
	put_be64(at + 20, a->compare);
	return at + 28;
}

static inline uint8_t *atomic_ack_write(uint8_t *at, uint64_t original)
{
	put_be64(at, original);
	return at + 8;
}

/* imm: four bytes as the program gave them. */
static inline uint8_t *immediate_write(uint8_t *at, uint32_t imm)
{
	memcpy(at, &imm, 4);
	return at + 4;
}

static inline uint8_t *ieth_write(uint8_t *at, uint32_t rkey)
{
	put_be32(at, rkey);
	return at + 4;
}

static inline uint8_t *deth_write(uint8_t *at, uint32_t qkey, uint32_t src_qpn)
{
	put_be32(at, qkey);
	put_be32(at + 4, src_qpn);
	return at + 8;
}

/* Lays the template at the start of frame; the BTH goes to the returned address. */
static inline uint8_t *template_lay(uint8_t *frame, const struct template *t)
{
	memcpy(frame, t->b, TEMPLATE_MAX);
	return frame + t->len;
}

/* Ends a packet: `end` is the byte behind the pad. Sets both lengths and the IPv4 checksum, appends the ICRC, returns the
 * frame's length. */
static inline uint32_t packet_finish(uint8_t *frame, const struct template *t, uint8_t *end)
{
	uint8_t *l3 = frame + t->l3_offset;
	uint32_t l3_len = (uint32_t)(end - l3) + ICRC_LEN;
	if (t->ip_version == 4) {
		uint32_t sum = t->ip4_sum + l3_len;
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		put_be16(l3 + 2, (uint16_t)l3_len);
		put_be16(l3 + 10, (uint16_t)~sum);
		put_be16(l3 + 24, (uint16_t)(l3_len - 20));
	} else {
		put_be16(l3 + 4, (uint16_t)(l3_len - 40));
		put_be16(l3 + 44, (uint16_t)(l3_len - 40));
	}
	icrc_store(end, icrc_compute(l3, t->ip_version, l3_len - ICRC_LEN));
	return (uint32_t)(end - frame) + ICRC_LEN;
}

#endif
