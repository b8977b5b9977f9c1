/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside wire/: the IPv6 halves of the functions in arp.h. */
#ifndef UROCE_ND_H
#define UROCE_ND_H

#include "arp.h"

enum drop nd_parse(struct neighbour_message *m, const struct packet *p);
uint32_t nd_write_ask(uint8_t *frame, const uint8_t smac[6], const uint8_t *dmac, uint16_t vlan, const struct gid *src,
		      const struct gid *target);
uint32_t nd_write_tell(uint8_t *frame, const uint8_t smac[6], const uint8_t dmac[6], uint16_t vlan, const struct gid *target,
		       const struct gid *dst);

/* A MAC that one host can have: neither a group nor zero. */
static inline bool nd_is_host_mac(const uint8_t mac[6])
{
	return !(mac[0] & 1) && (mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5]);
}

#endif
