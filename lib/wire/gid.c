/* SPDX-License-Identifier: BSD-3-Clause */
/* GIDs as text and by kind. Owns no state; which GID a port has is addr's business.
 * IBA vol. 1, 4.1.1 and annex A17.4.1; RFC 4291 for the kinds and the modified EUI-64 (appendix A). */
#include "gid.h"

#include <arpa/inet.h>
#include <errno.h>

bool gid_is_zero(const struct gid *g)
{
	static const struct gid zero;
	return gid_is_equal(g, &zero);
}

bool gid_is_multicast(const struct gid *g)
{
	return g->b[0] == 0xff || (gid_is_ip4(g) && (g->b[12] & 0xf0) == 0xe0);
}

bool gid_is_link_local(const struct gid *g)
{
	return g->b[0] == 0xfe && (g->b[1] & 0xc0) == 0x80;
}

void gid_group_mac(const struct gid *group, uint8_t mac[6])
{
	static const uint8_t start4[3] = { 0x01, 0x00, 0x5e }, start6[2] = { 0x33, 0x33 };
	memcpy(mac + 2, group->b + 12, 4);
	if (!gid_is_ip4(group)) {
		memcpy(mac, start6, 2);
		return;
	}
	memcpy(mac, start4, 3);
	mac[3] &= 0x7f;
}

int gid_parse(const char *text, struct gid *g)
{
	uint8_t ip[16];
	if (inet_pton(AF_INET, text, ip) == 1) {
		*g = gid_from_ip4(ip);
		return 0;
	}
	if (inet_pton(AF_INET6, text, ip) != 1)
		return -EINVAL;
	memcpy(g->b, ip, 16);
	return 0;
}

const char *gid_format(const struct gid *g, char text[GID_TEXT_MAX])
{
	/* Neither call can fail: the family is known and the buffer holds the longest text. */
	if (gid_is_ip4(g))
		inet_ntop(AF_INET, g->b + 12, text, GID_TEXT_MAX);
	else
		inet_ntop(AF_INET6, g->b, text, GID_TEXT_MAX);
	return text;
}

struct gid gid_link_local(const uint8_t mac[6])
{
	struct gid g = { { 0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5] } };
	return g;
}

struct gid gid_solicited_node(const struct gid *address)
{
	struct gid g = { { 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, address->b[13], address->b[14], address->b[15] } };
	return g;
}
