/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing but how long is waited. */
#include "meet.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ACCEPT_SECONDS 10
#define KEEP_ALIVE_S 10 /* between two questions whether the peer's host is there; three without an answer end the connection */

/* A host that died says nothing, and a peer that measures for hours does not either. */
static void keep_alive(int fd)
{
	static const struct {
		int level, option, value;
	} rows[] = { { SOL_SOCKET, SO_KEEPALIVE, 1 }, { IPPROTO_TCP, TCP_KEEPIDLE, KEEP_ALIVE_S }, { IPPROTO_TCP, TCP_KEEPINTVL, KEEP_ALIVE_S }, { IPPROTO_TCP, TCP_KEEPCNT, 3 } };
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		setsockopt(fd, rows[i].level, rows[i].option, &rows[i].value, sizeof(rows[i].value));
}

int meet_peer(struct exchange *x, const char *listen, const char *connect, const char *usual_port)
{
	x->patience_s = MEET_PATIENCE_S;
	if (listen)
		fprintf(stderr, "%s: waiting for a client at %s\n", program_invocation_short_name, listen[0] ? listen : usual_port);
	int err = listen ? exchange_listen(x, listen, usual_port) : exchange_connect(x, connect, usual_port);
	if (!err)
		keep_alive(x->fd);
	return err;
}

int meet_accept(int listener)
{
	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = ACCEPT_SECONDS }, sizeof(struct timeval));
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	if (fd >= 0)
		keep_alive(fd);
	return fd;
}
