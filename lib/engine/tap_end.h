/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's end of a net_tap port: an interface that the driver makes, or takes over when it exists, with an MTU of 1500 and the port's address. Here it keeps or gets an MTU of its own, and the two ends of
 * the wire between kernel and us have an address each. */
#ifndef UROCE_TAP_END_H
#define UROCE_TAP_END_H

#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "log.h"

#define TAP_QUEUES_MAX 16u

struct rte_eth_rxtx_callback;

struct tap_end {
	const char *text; /* for log lines: what the user called the port */
	char name[IF_NAMESIZE];
	uint32_t index, mtu;
	uint8_t mac[6];   /* of the interface: the driver has to be given it */
	uint16_t queues;
	const struct rte_eth_rxtx_callback *shortened[TAP_QUEUES_MAX];
};

/* Before the device is made. t->mac holds an address, name is that of iface=, "" when the kernel is to choose; mtu and address are for an interface that is not there yet. 0; after one log line -ENODEV, -EPERM, -EBUSY or -EINVAL: there can be no such tap. */
int tap_end_look(struct tap_end *t, const char *text, const char *name, uint32_t mtu, const struct log *log);
/* As soon as the device has been made: the interface is found, and its MTU put right. 0 or a negative errno after one log line. */
int tap_end_restore(struct tap_end *t, uint16_t port_id, const struct log *log);
/* After the port has been started: it carries frames of that MTU. The same. */
int tap_end_settle(struct tap_end *t, uint16_t port_id, uint16_t queues, const struct log *log);
/* Takes out of a set to be blocked the real-time signals that have a handler: the driver is told by one of them that frames have come, and some thread has to take it. */
void tap_end_let_through(sigset_t *blocked);
/* Before the port is stopped. t may be NULL. */
void tap_end_leave(struct tap_end *t, uint16_t port_id);

#endif
