/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the descriptor and the buffers of a link over sockets. Each message is handed over by itself: one send call for a message that a call takes whole. */
#include "sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static ssize_t judge(struct link *l, ssize_t n, const char *what)
{
	if (n >= 0) {
		l->empty = 0;
		return n;
	}
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ECONNREFUSED)
		return 0;
	return link_fail(l, "%s: %s", what, strerror(errno));
}

ssize_t sockets_send(struct link *l, const uint8_t *data, size_t len)
{
	ssize_t n;
	do
		n = send(l->fd, data, len, MSG_NOSIGNAL | (l->transport->is_spinning ? MSG_DONTWAIT : 0));
	while (n < 0 && errno == EINTR);
	return judge(l, n, "send");
}

ssize_t sockets_receive(struct link *l, uint8_t *data, size_t len)
{
	ssize_t n;
	do
		n = recv(l->fd, data, len, l->transport->is_spinning ? MSG_DONTWAIT : 0);
	while (n < 0 && errno == EINTR);
	if (!n)
		return link_fail(l, "the other end has closed the connection");
	return judge(l, n, "recv");
}

int sockets_prepare(struct link *l, size_t in_bytes)
{
	struct timeval patience = { .tv_usec = 1000 * SOCKETS_PATIENCE_MS };
	l->in = malloc(in_bytes);
	l->out = calloc(1, l->size);
	if (!l->in || !l->out)
		return link_fail(l, "no memory for messages");
	memset(l->in, 0, in_bytes);
	if (setsockopt(l->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) || setsockopt(l->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)))
		return link_fail(l, "socket: %s", strerror(errno));
	return 0;
}

void sockets_close(struct link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	free(l->in);
	free(l->out);
	free(l->own);
	l->in = l->out = l->own = NULL;
}
