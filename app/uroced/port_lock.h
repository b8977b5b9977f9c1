/* SPDX-License-Identifier: BSD-3-Clause */
/* One daemon a port: a name that the kernel gives to one process of a network namespace, and takes back when that process ends, however it ends. */
#ifndef UROCED_PORT_LOCK_H
#define UROCED_PORT_LOCK_H

#include "device_string.h"
#include "log.h"

/* Takes the name of the device's interface or PCI address, until *fd is closed. *fd is -1 when the port cannot be anybody else's (net_ring, net_memif). 0; -EBUSY: another uroced serves the port; each error after one log line. */
int port_lock(const struct device_string *d, const struct log *log, int *fd);

#endif
