/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP side of a connection: both ends send one greeting, their endpoints, and leave the socket open. When it closes the other end is gone, whatever has become of it. */
#ifndef KV_GREETING_H
#define KV_GREETING_H

#include <stdbool.h>
#include <stdint.h>

#include <uroce.h>

/* As it is on the wire; numbers are in network order. */
struct greeting {
	char magic[8];
	uint8_t gid[16];
	uint32_t qpn, psn, mtu, rd_atomic;
};

void greeting_pack(struct greeting *g, const struct uroce_endpoint *e);
/* false: it is none. */
bool greeting_unpack(const struct greeting *g, struct uroce_endpoint *e);

/* "[HOST:]PORT"; a non-blocking socket that listens, or -1 after a line on standard error. */
int greeting_listen(const char *at);
/* "HOST[:PORT]"; a connected socket, or -1 after a line. */
int greeting_connect(const char *to);
/* Sends ours and waits for theirs, some seconds at most. false: no greeting came. */
bool greeting_exchange(int fd, const struct greeting *ours, struct greeting *theirs);

#endif
