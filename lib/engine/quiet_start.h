/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting an ethdev port without letting it touch the kernel interface behind it. */
#ifndef UROCE_QUIET_START_H
#define UROCE_QUIET_START_H

#include <stdint.h>

/* As rte_eth_dev_start, for af_packet: the interface's flags and MAC stay as they are, and CAP_NET_ADMIN is not needed. 0 or a negative errno. */
int quiet_start(uint16_t port_id);

#endif
