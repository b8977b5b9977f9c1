/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint between two programs: ["GID in hex", QPN, PSN, MTU, READs and atomics]. What comes is a peer's, and may be anything. */
#include "endpoint_json.h"

#include <stdio.h>
#include <string.h>

json_t *endpoint_pack(const struct uroce_endpoint *p)
{
	char gid[33];
	for (unsigned b = 0; b < 16; b++)
		snprintf(gid + 2 * b, 3, "%02x", p->gid.raw[b]);
	return json_pack("[s, i, i, i, i]", gid, (int)p->qpn, (int)p->psn, (int)p->mtu, (int)p->rd_atomic);
}

bool endpoint_unpack(json_t *item, struct uroce_endpoint *p)
{
	const char *gid;
	int qpn, psn, mtu, rd_atomic;
	if (json_unpack(item, "[s, i, i, i, i]", &gid, &qpn, &psn, &mtu, &rd_atomic) || strlen(gid) != 32)
		return false;
	for (unsigned b = 0; b < 16; b++)
		if (sscanf(gid + 2 * b, "%2hhx", &p->gid.raw[b]) != 1)
			return false;
	p->qpn = (uint32_t)qpn;
	p->psn = (uint32_t)psn;
	p->mtu = (uint32_t)mtu;
	p->rd_atomic = (uint32_t)rd_atomic;
	return true;
}
