/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules in a NIC that put the packets of each core's QPs into its own queue. */
#ifndef UROCE_STEER_H
#define UROCE_STEER_H

#include <stdint.h>

#include "log.h"

struct port;
struct steer;

/* One set of rules for each of `cores` cores, the port's queues in their order. *out is NULL, after one line, where the port takes no such rules: its frames are then handed from core to core. vlan: VLAN_NONE, or what all our frames
 * are tagged with. */
void steer_open(struct steer **out, const struct port *p, unsigned cores, uint16_t vlan, const struct log *log);
/* Removes the rules. Before the port is closed; NULL is fine. */
void steer_close(struct steer *s);

#endif
