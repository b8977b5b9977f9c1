/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the sockets' calls and the form of a greeting. Nothing of it is on the data path. */
#include "greeting.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "protocol.h"

#define CONNECT_TRIES 50 /* of 100 ms */

static const char magic[8] = { 'u', 'r', 'o', 'c', 'e', 'k', 'v', '1' };

void greeting_pack(struct greeting *g, const struct uroce_endpoint *e)
{
	memcpy(g->magic, magic, sizeof(magic));
	memcpy(g->gid, e->gid.raw, sizeof(g->gid));
	g->qpn = htonl(e->qpn);
	g->psn = htonl(e->psn);
	g->mtu = htonl(e->mtu);
	g->rd_atomic = htonl(e->rd_atomic);
}

bool greeting_unpack(const struct greeting *g, struct uroce_endpoint *e)
{
	memcpy(e->gid.raw, g->gid, sizeof(g->gid));
	e->qpn = ntohl(g->qpn);
	e->psn = ntohl(g->psn);
	e->mtu = ntohl(g->mtu);
	e->rd_atomic = ntohl(g->rd_atomic);
	return !memcmp(g->magic, magic, sizeof(magic));
}

/* Cuts "HOST:PORT" or "[IPV6]:PORT", of which one half may be missing: a server then means the port, a client the host. */
static bool split(const char *text, bool is_server, char host[256], char port[16])
{
	const char *close = *text == '[' ? strchr(text, ']') : NULL, *colon = strrchr(close ? close : text, ':');
	if (!close && colon != strchr(text, ':'))
		colon = NULL; /* all of them are an IPv6 address's */
	const char *from = close ? text + 1 : text, *end = close ? close : colon ? colon : text + strlen(text);
	const char *rest = colon ? colon + 1 : KV_PORT;
	if (is_server && !strchr(text, ':')) {
		rest = text;
		end = text;
	}
	if (end - from > 255 || !*rest || strlen(rest) > 15)
		return false;
	memcpy(host, from, (size_t)(end - from));
	host[end - from] = 0;
	strcpy(port, rest);
	return true;
}

static struct addrinfo *resolve(const char *text, bool is_server)
{
	char host[256], port[16];
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = is_server ? AI_PASSIVE : 0 }, *list = NULL;
	if (!split(text, is_server, host, port)) {
		fprintf(stderr, "\"%s\" is no address: expected %s\n", text, is_server ? "[HOST:]PORT" : "HOST[:PORT]");
		return NULL;
	}
	int err = getaddrinfo(host[0] ? host : NULL, port, &hints, &list);
	if (err)
		fprintf(stderr, "%s: %s\n", text, gai_strerror(err));
	return list;
}

int greeting_listen(const char *at)
{
	int on = 1;
	struct addrinfo *list = resolve(at, true);
	if (!list)
		return -1;
	int fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, list->ai_addr, list->ai_addrlen) || listen(fd, 64)) {
		fprintf(stderr, "cannot listen at %s: %s\n", at, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	return fd;
}

/* One try, at each of these addresses. */
static int dial(const struct addrinfo *list)
{
	int err = 0;
	for (const struct addrinfo *to = list; to; to = to->ai_next) {
		int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && !connect(fd, to->ai_addr, to->ai_addrlen))
			return fd;
		if (err != -ECONNREFUSED) /* there is a host: its server may be about to start */
			err = -errno;
		if (fd >= 0)
			close(fd);
	}
	return err;
}

int greeting_connect(const char *to)
{
	struct addrinfo *list = resolve(to, false);
	if (!list)
		return -1;
	int fd = dial(list);
	for (int i = 0; fd == -ECONNREFUSED && i < CONNECT_TRIES; i++) { /* it may be about to start */
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		fd = dial(list);
	}
	freeaddrinfo(list);
	if (fd < 0)
		fprintf(stderr, "nobody answers at %s: %s (expected: kv-server there)\n", to, strerror(-fd));
	return fd < 0 ? -1 : fd;
}

bool greeting_exchange(int fd, const struct greeting *ours, struct greeting *theirs)
{
	struct timeval patience = { .tv_sec = 5 };
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return send(fd, ours, sizeof(*ours), MSG_NOSIGNAL) == sizeof(*ours) && recv(fd, theirs, sizeof(*theirs), MSG_WAITALL) == sizeof(*theirs);
}
