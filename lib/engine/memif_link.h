/* SPDX-License-Identifier: BSD-3-Clause */
/* Between a net_memif port and its peer: the control socket of the memif protocol passes through here. The driver handles that socket on a thread of its own, where it unmaps the rings as soon as the peer is gone, even
 * under a burst; and as a client it connects once, when it is started. Here the peer is met by the thread that drives the port, between bursts: the driver hears of its end only then, a client waits for
 * its server and finds it again, and who left a socket file behind does not stop us. One queue pair: only one thread drives. */
#ifndef UROCE_MEMIF_LINK_H
#define UROCE_MEMIF_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log.h"

struct memif_link;

struct memif_link_config {
	const char *text;     /* for log lines: what the user called the port */
	const char *path;     /* of the socket: a file, or with is_abstract a name of the network namespace */
	bool is_abstract, is_server;
	uint32_t frame_max;   /* largest frame that we send: a client with smaller buffers is turned away */
	const struct log *log;
};

/* Before the device is made. `inner` is the socket that the driver has to be given, always with the is_abstract of memif_link_is_abstract. 0; after one log line -EINVAL, -EADDRINUSE or another negative errno. */
int memif_link_open(struct memif_link **out, const struct memif_link_config *config);
const char *memif_link_inner(const struct memif_link *l);
bool memif_link_is_abstract(const struct memif_link *l);
/* The device is there, and started. */
void memif_link_begin(struct memif_link *l, uint16_t port_id);
/* By the thread that drives the port, between bursts, every millisecond or so. */
void memif_link_poll(struct memif_link *l, uint64_t now_ns);
bool memif_link_is_connected(const struct memif_link *l);
/* Before the port is stopped. l may be NULL. */
void memif_link_close(struct memif_link *l);

#endif
