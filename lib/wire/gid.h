/* SPDX-License-Identifier: BSD-3-Clause */
/* A GID (IBA vol. 1, 4.1.1): on RoCEv2 an IPv6 address, or an IPv4 address mapped into ::ffff:0:0/96 (annex A17.4.1). Bytes
 * as on the wire. */
#ifndef UROCE_GID_H
#define UROCE_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct gid {
	_Alignas(8) uint8_t b[16];
};

#define GID_TEXT_MAX 46

static inline bool gid_is_equal(const struct gid *a, const struct gid *b)
{
	uint64_t x[2], y[2];
	memcpy(x, a->b, 16);
	memcpy(y, b->b, 16);
	return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
}

static inline bool gid_is_ip4(const struct gid *g)
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	return !memcmp(g->b, mapped, 12);
}

/* Of the GID and a number beside it. It has no secret: who chooses GIDs can choose many that have the same. */
static inline uint32_t gid_hash(const struct gid *g, uint32_t with)
{
	const uint64_t spread = 0x9e3779b97f4a7c15u;
	uint64_t x[2];
	memcpy(x, g->b, 16);
	uint64_t h = (x[0] ^ with) * spread;
	/* The last byte of an address is the highest of x[1]; a product spreads only upwards. */
	h = (h ^ h >> 32 ^ x[1] ^ x[1] >> 32) * spread;
	return (uint32_t)(h >> 32);
}

/* From four bytes in wire order. */
static inline struct gid gid_from_ip4(const uint8_t ip[4])
{
	struct gid g = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ip[0], ip[1], ip[2], ip[3] } };
	return g;
}

bool gid_is_zero(const struct gid *g);
bool gid_is_multicast(const struct gid *g);  /* 224.0.0.0/4 or ff00::/8 */
bool gid_is_link_local(const struct gid *g); /* fe80::/10 */
/* The Ethernet address of a multicast group: 01:00:5e and 23 bits, or 33:33 and 32 bits (RFC 1112, 6.4; RFC 2464, 7). */
void gid_group_mac(const struct gid *group, uint8_t mac[6]);
/* "10.0.0.1" or "fd00::1" (also "::ffff:10.0.0.1"); -EINVAL. */
int gid_parse(const char *text, struct gid *g);
/* IPv4-mapped ones as dotted quads. Returns text. */
const char *gid_format(const struct gid *g, char text[GID_TEXT_MAX]);
/* fe80::/64 with the modified EUI-64 of a MAC. */
struct gid gid_link_local(const uint8_t mac[6]);
/* The group in which neighbours look for an IPv6 address: ff02::1:ff00:0/104 with its last 24 bits (RFC 4291, 2.7.1). */
struct gid gid_solicited_node(const struct gid *address);

#endif
