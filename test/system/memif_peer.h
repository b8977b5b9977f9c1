/* SPDX-License-Identifier: BSD-3-Clause */
/* A memif client without a driver, for what a driver never does. */
#ifndef UROCE_TEST_MEMIF_PEER_H
#define UROCE_TEST_MEMIF_PEER_H

#include <sys/socket.h>
#include <sys/un.h>

/* Connects to a server, floods it with small frames for so many milliseconds, and leaves while it goes on flooding. */
void memif_peer_flood(const struct sockaddr_un *server, socklen_t len, unsigned ms);

#endif
