/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel UDP. A message longer than what one packet of the path carries goes in as many datagrams as it takes; it has arrived when all of them have. Nothing is sent again and nobody slows the sender down: what is lost is counted.
 * Invariant: `number` is the message that datagrams are being counted of; one with a higher number ends it. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "number.h"
#include "sockets.h"

#define DATAGRAM_MAX 65507u
#define HEADERS4 28u /* IPv4, UDP */
#define HEADERS6 48u
#define BUFFER_BYTES (8 << 20) /* asked for; the kernel gives what it allows */

struct udp {
	uint32_t piece; /* bytes of a datagram */
	uint32_t pieces; /* of a message */
	uint32_t number, came; /* of the message being received */
};

static int local_port(int fd)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	if (getsockname(fd, (struct sockaddr *)&a, &len))
		return -1;
	return ntohs(a.ss_family == AF_INET ? ((struct sockaddr_in *)&a)->sin_port : ((struct sockaddr_in6 *)&a)->sin6_port);
}

/* What a packet of the path carries, as the kernel knows it. */
static uint32_t path_payload(int fd)
{
	int mtu = 0, family = AF_INET;
	socklen_t len = sizeof(mtu), family_len = sizeof(family);
	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &family_len);
	if (family == AF_INET ? getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len) : getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &len))
		mtu = 1280;
	uint32_t payload = (uint32_t)mtu - (family == AF_INET ? HEADERS4 : HEADERS6);
	return payload < DATAGRAM_MAX ? payload : DATAGRAM_MAX;
}

/* The server binds and tells its port; the client connects, and tells its own and the size of the datagrams. */
static int meet_client(struct link *l, struct udp *u)
{
	int port, peer = 0, piece = 0;
	l->fd = exchange_offer(l->exchange, SOCK_DGRAM, &port);
	if (l->fd < 0)
		return link_fail(l, "cannot bind a UDP socket");
	json_t *answer = link_say(l, json_pack("{s:i}", "port", port)) ? NULL : link_hear(l);
	int err = answer ? 0 : -1;
	if (answer && (json_unpack(answer, "{s:i, s:i}", "port", &peer, "piece", &piece) || piece < (int)MARK_BYTES || piece > (int)DATAGRAM_MAX))
		err = link_fail(l, "the other end's UDP port makes no sense");
	json_decref(answer);
	if (!err && exchange_connect_back(l->exchange, l->fd, peer))
		err = link_fail(l, "UDP: %s", strerror(errno));
	u->piece = (uint32_t)piece;
	return err;
}

static int meet_server(struct link *l, struct udp *u)
{
	int port = 0;
	json_t *offer = link_hear(l);
	if (!offer)
		return -1;
	l->fd = json_unpack(offer, "{s:i}", "port", &port) ? -1 : exchange_dial(l->exchange, SOCK_DGRAM, port);
	json_decref(offer);
	if (l->fd < 0)
		return link_fail(l, "no UDP socket for port %d of the other end", port);
	u->piece = path_payload(l->fd);
	return link_say(l, json_pack("{s:i, s:i}", "port", local_port(l->fd), "piece", (int)u->piece));
}

static int open_udp(struct link *l)
{
	char size[24];
	int bytes = BUFFER_BYTES;
	struct udp *u = l->own = calloc(1, sizeof(*u));
	if (!u)
		return link_fail(l, "no memory");
	int err = l->is_client ? meet_server(l, u) : meet_client(l, u);
	if (!err)
		err = sockets_prepare(l, DATAGRAM_MAX + 1);
	if (err)
		return err;
	setsockopt(l->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	while (l->size > u->piece && l->size % u->piece && l->size % u->piece < MARK_BYTES)
		u->piece -= MARK_BYTES; /* the last one, too, has room for the mark */
	u->pieces = (uint32_t)((l->size + u->piece - 1) / u->piece);
	if (u->pieces > 1)
		snprintf(l->note, sizeof(l->note), "a message of %s is sent as %u datagrams of up to %u bytes", number_text(l->size, size), u->pieces, u->piece);
	return 0;
}

static int send_udp(struct link *l, struct mark m)
{
	const struct udp *u = l->own;
	for (uint64_t at = 0; at < l->size;) {
		size_t len = l->size - at < u->piece ? (size_t)(l->size - at) : u->piece;
		mark_put(l->out + at, m.number, m.is_last);
		ssize_t n = sockets_send(l, l->out + at, len);
		if (n < 0 || (!n && link_wait_for_room(l)))
			return -1;
		at += n ? len : 0;
	}
	return 0;
}

static int receive_udp(struct link *l, struct mark *m)
{
	struct udp *u = l->own;
	uint32_t number, more;
	for (;;) {
		ssize_t n = sockets_receive(l, l->in, DATAGRAM_MAX + 1);
		if (n <= 0)
			return (int)n;
		if (n < (ssize_t)MARK_BYTES)
			continue;
		mark_get(l->in, &number, &more);
		u->came = number == u->number ? u->came + 1 : 1;
		u->number = number;
		if (u->came < u->pieces)
			continue;
		u->came = 0;
		*m = (struct mark){ number, more };
		return 1;
	}
}

enum { EVERY_WORK = (1 << WORKS) - 1, ONLY_PINGPONG = 1 << WORK_PINGPONG };
const struct transport link_udp = { "udp", "kernel UDP; receivers sleep until something comes; what is lost stays lost", EVERY_WORK, .may_lose = true, .open = open_udp, .send = send_udp, .receive = receive_udp,
	.close = sockets_close };
const struct transport link_udp_spin = { "udp-spin", "kernel UDP, receivers asking all the time (MSG_DONTWAIT)", ONLY_PINGPONG, .is_spinning = true, .may_lose = true, .open = open_udp, .send = send_udp,
	.receive = receive_udp, .close = sockets_close };
