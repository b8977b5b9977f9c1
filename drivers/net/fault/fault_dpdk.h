/* SPDX-License-Identifier: BSD-3-Clause */
/* A link with faults (fault.h) in front of an RX queue of a DPDK port: what rte_eth_rx_burst returns has been lost, changed and delayed before. The sender does not notice, since it is not the sending that
 * is changed. Frames that wait come out of later bursts, also when the port itself has none. DPDK 22.11 or later. */
#ifndef UROCE_FAULT_DPDK_H
#define UROCE_FAULT_DPDK_H

#include <stdbool.h>
#include <stdint.h>

#include "fault.h"

struct fault_port;

/* The port is configured. 0; -EINVAL with one line in why (len bytes, always ended): the specification, or no such port; -ENOMEM; -ENOTSUP: DPDK was built without callbacks. */
int fault_attach(struct fault_port **out, uint16_t port, uint16_t queue, const char *spec, char *why, uint32_t len);
/* Frees the frames that wait. No thread is in a burst on the queue, nor begins one meanwhile. p may be NULL. */
void fault_detach(struct fault_port *p);
/* Off: frames pass as they are. From the next burst on. Any thread. */
void fault_port_switch(struct fault_port *p, bool is_on);
/* Counters as they were after the last burst. Any thread. */
uint64_t fault_port_counter(const struct fault_port *p, enum fault_counter c);

#endif
