/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside wire/: the transport half of packet_parse. */
#ifndef UROCE_BTH_H
#define UROCE_BTH_H

#include "packet.h"

/* udp_payload: BTH to ICRC, len bytes. Sets p->bth, and from p->op on what the packet carries. */
enum drop bth_parse(struct packet *p, const uint8_t *udp_payload, uint32_t len);

#endif
