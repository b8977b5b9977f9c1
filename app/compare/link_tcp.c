/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel TCP, NODELAY. The receiver takes what is there, up to a buffer of several messages. Invariant: byte n of the stream is at in[n % room], and a message never wraps. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "meet.h"
#include "sockets.h"

#define READ_BYTES (256u << 10)

struct tcp {
	uint64_t came, taken; /* bytes of the stream */
	size_t room;
};

static int accept_peer(struct link *l)
{
	int port, listener = exchange_offer(l->exchange, SOCK_STREAM, &port);
	if (listener < 0)
		return link_fail(l, "cannot listen");
	if (!link_say(l, json_pack("{s:i}", "port", port)))
		l->fd = meet_accept(listener);
	else
		close(listener);
	return l->fd < 0 ? link_fail(l, "nobody connects") : 0;
}

static int dial(struct link *l)
{
	int port = 0;
	json_t *offer = link_hear(l);
	if (!offer)
		return -1;
	l->fd = json_unpack(offer, "{s:i}", "port", &port) ? -1 : exchange_dial(l->exchange, SOCK_STREAM, port);
	json_decref(offer);
	return l->fd < 0 ? link_fail(l, "no TCP connection to port %d of the other end", port) : 0;
}

static int open_tcp(struct link *l)
{
	int on = 1, err = l->is_client ? dial(l) : accept_peer(l);
	struct tcp *t = l->own = calloc(1, sizeof(*t));
	if (!t)
		return link_fail(l, "no memory");
	t->room = l->size < READ_BYTES ? READ_BYTES / l->size * l->size : l->size;
	if (!err)
		err = sockets_prepare(l, t->room);
	if (!err)
		setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return err;
}

static int send_tcp(struct link *l, struct mark m)
{
	mark_put(l->out, m.number, m.is_last);
	for (size_t at = 0; at < l->size;) {
		ssize_t n = sockets_send(l, l->out + at, l->size - at);
		if (n < 0 || (!n && link_wait_for_room(l)))
			return -1;
		at += (size_t)n;
	}
	return 0;
}

static int receive_tcp(struct link *l, struct mark *m)
{
	struct tcp *t = l->own;
	uint32_t more;
	while (t->came - t->taken < l->size) {
		size_t at = t->came % t->room, free_bytes = t->room - (size_t)(t->came - t->taken);
		ssize_t n = sockets_receive(l, l->in + at, free_bytes < t->room - at ? free_bytes : t->room - at);
		if (n <= 0)
			return (int)n;
		t->came += (uint64_t)n;
	}
	mark_get(l->in + t->taken % t->room, &m->number, &more);
	m->is_last = more;
	t->taken += l->size;
	return 1;
}

enum { EVERY_WORK = (1 << WORKS) - 1, ONLY_PINGPONG = 1 << WORK_PINGPONG };
const struct transport link_tcp = { "tcp", "kernel TCP, NODELAY; receivers sleep until something comes", EVERY_WORK, .open = open_tcp, .send = send_tcp, .receive = receive_tcp, .close = sockets_close };
const struct transport link_tcp_spin = { "tcp-spin", "kernel TCP, receivers asking all the time (MSG_DONTWAIT)", ONLY_PINGPONG, .is_spinning = true, .open = open_tcp, .send = send_tcp, .receive = receive_tcp,
	.close = sockets_close };
