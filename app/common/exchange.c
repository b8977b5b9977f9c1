/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the socket between the ends and the lines on it; knows nothing of what they mean. Invariant: text[0, have) is what came after the last line that was taken. */
#include "exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "reason.h"

#define LINE_MAX_BYTES (64u << 20)
#define LOOK_EVERY 1024u   /* rounds of an engine between two looks at the socket */
#define LOOK_MS 100        /* between two looks at whether a wait was interrupted */
#define CONNECT_MS 5000    /* for so long a server is looked for */
#define DIAL_MS 1000       /* and for so long at one address: a name may have several, and nobody at the first */

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool is_interrupted(const struct exchange *x)
{
	return x->is_interrupted && x->is_interrupted();
}

/* Whether to go on with a wait that has begun then. */
static bool has_patience(const struct exchange *x, uint64_t since_ms)
{
	return !is_interrupted(x) && (!x->patience_s || now_ms() - since_ms < UINT64_C(1000) * x->patience_s);
}

/* A moment, or until the socket is ready. */
static void wait_a_little(int fd, short events)
{
	poll(&(struct pollfd){ .fd = fd, .events = events }, 1, LOOK_MS);
}

/* HOST, HOST:PORT, PORT (is_server), [V6]:PORT. host is "" when there is none. */
static bool split(const char *text, bool is_server, const char *usual_port, char host[256], char port[16])
{
	const char *colon = strrchr(text, ':'), *end = text + strlen(text);
	snprintf(port, 16, "%s", usual_port);
	host[0] = 0;
	if (*text == '[') {
		const char *close = strchr(text, ']');
		if (!close || (close[1] && close[1] != ':'))
			return false;
		colon = close[1] ? close + 1 : NULL;
		end = close;
		text++;
	} else if (colon && strchr(text, ':') != colon) {
		colon = NULL; /* an IPv6 address without a port */
	} else if (colon) {
		end = colon;
	} else if (is_server && *text && strspn(text, "0123456789") == strlen(text)) {
		end = text;
		colon = text - 1;
	}
	if (end - text > 255 || (colon && (!colon[1] || strlen(colon + 1) > 15)))
		return false;
	memcpy(host, text, (size_t)(end - text));
	host[end - text] = 0;
	if (colon)
		strcpy(port, colon + 1);
	return true;
}

static struct addrinfo *resolve(const char *text, bool is_server, const char *usual_port, int *err)
{
	char host[256], port[16];
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = is_server ? AI_PASSIVE : 0 }, *list = NULL;
	if (!split(text, is_server, usual_port, host, port)) {
		fprintf(stderr, "%s: \"%s\" is no address: expected %s\n", program_invocation_short_name, text, is_server ? "[HOST:]PORT" : "HOST[:PORT]");
		*err = -1;
		return NULL;
	}
	*err = getaddrinfo(host[0] ? host : NULL, port, &hints, &list);
	if (*err)
		fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, text, gai_strerror(*err));
	return list;
}

void exchange_init(struct exchange *x, int fd)
{
	int on = 1;
	*x = (struct exchange){ .fd = fd, .is_interrupted = x->is_interrupted, .patience_s = x->patience_s };
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* refused by a pair inside the process, where it is not needed */
}

/* Somebody's connection; -1: interrupted. */
static int take_client(const struct exchange *x, int listener)
{
	int fd = -1;
	while (fd < 0 && !is_interrupted(x)) {
		if (poll(&(struct pollfd){ .fd = listener, .events = POLLIN }, 1, LOOK_MS) > 0)
			fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	}
	return fd;
}

static int open_listener(const struct addrinfo *at)
{
	int on = 1, off = 0, err, fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (at->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (!bind(fd, at->ai_addr, at->ai_addrlen) && !listen(fd, 1))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

static bool is_any6(const struct addrinfo *a)
{
	return a->ai_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)a->ai_addr)->sin6_addr);
}

/* Any address of IPv6 takes IPv4, too, and so goes first. */
static int open_first_listener(const struct addrinfo *list)
{
	int fd = -1;
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
		if (is_any6(a))
			fd = open_listener(a);
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
		fd = open_listener(a);
	return fd;
}

int exchange_listen(struct exchange *x, const char *at, const char *usual_port)
{
	int err, fd = -1;
	struct addrinfo *list = resolve(at, true, usual_port, &err);
	if (!list)
		return -1;
	int listener = open_first_listener(list);
	if (listener < 0)
		fprintf(stderr, "%s: cannot listen at %s: %s\n", program_invocation_short_name, at, strerror(errno));
	else
		fd = take_client(x, listener);
	freeaddrinfo(list);
	if (listener >= 0)
		close(listener);
	if (fd < 0)
		return -1;
	exchange_init(x, fd);
	return 0;
}

/* A connection, or -1 and why not: nobody may answer for long. */
static int dial(const struct exchange *x, const struct addrinfo *to, int *err)
{
	uint64_t end_ms = now_ms() + DIAL_MS;
	socklen_t len = sizeof(*err);
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	*err = fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen) ? errno : 0;
	while (*err == EINPROGRESS && now_ms() < end_ms && !is_interrupted(x))
		if (poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, LOOK_MS) > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, err, &len))
			*err = errno;
	if (!*err && !fcntl(fd, F_SETFL, 0))
		return fd;
	if (*err == EINPROGRESS)
		*err = ETIMEDOUT;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* One of these addresses, round and round: the server may be about to start. */
static int dial_any(const struct exchange *x, const struct addrinfo *list, int *err)
{
	uint64_t end_ms = now_ms() + CONNECT_MS;
	int fd = -1, last = 0;
	*err = 0;
	for (const struct addrinfo *a = list; fd < 0 && now_ms() < end_ms && !is_interrupted(x); a = a->ai_next ? a->ai_next : list) {
		fd = dial(x, a, &last);
		if (*err != ECONNREFUSED) /* it says more than what another address says: there is a host */
			*err = last;
		if (fd < 0 && !a->ai_next)
			nanosleep(&(struct timespec){ 0, LOOK_MS * 1000000 }, NULL);
	}
	return fd;
}

int exchange_connect(struct exchange *x, const char *to, const char *usual_port)
{
	int err;
	struct addrinfo *list = resolve(to, false, usual_port, &err);
	if (!list)
		return -1;
	int fd = dial_any(x, list, &err);
	freeaddrinfo(list);
	if (fd < 0 && is_interrupted(x))
		return -1;
	if (fd < 0) {
		fprintf(stderr, "%s: nobody answers at %s: %s (expected: a server there, such as %s --listen)\n", program_invocation_short_name, to, strerror(err), program_invocation_short_name);
		return -1;
	}
	exchange_init(x, fd);
	return 0;
}

void exchange_close(struct exchange *x)
{
	if (x->fd >= 0)
		close(x->fd);
	free(x->text);
	json_decref(x->unread);
	*x = (struct exchange){ .fd = -1 };
}

int exchange_send(struct exchange *x, json_t *message)
{
	char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	json_decref(message);
	x->why = text ? NULL : "cannot be told anything: no memory";
	if (!text)
		return -1;
	size_t len = strlen(text), sent = 0;
	text[len++] = '\n'; /* instead of the end */
	for (uint64_t since_ms = now_ms(); sent < len && has_patience(x, since_ms);) {
		ssize_t n = send(x->fd, text + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0)
			sent += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			wait_a_little(x->fd, POLLOUT);
		else if (!n || errno != EINTR)
			break;
	}
	free(text);
	if (sent < len)
		x->why = "is gone, or takes nothing";
	return sent == len ? 0 : -1;
}

/* Takes what is there now. */
static void receive(struct exchange *x)
{
	for (;;) {
		if (x->have + 4096 > x->room) {
			char *more = x->room < LINE_MAX_BYTES ? realloc(x->text, 2 * x->room + 8192) : NULL;
			if (!more) {
				x->is_closed = true;
				return;
			}
			x->text = more;
			x->room = 2 * x->room + 8192;
		}
		ssize_t n = recv(x->fd, x->text + x->have, x->room - x->have, MSG_DONTWAIT);
		if (n > 0)
			x->have += (size_t)n;
		else if (!n || (errno != EAGAIN && errno != EINTR))
			x->is_closed = true;
		if (n <= 0)
			return;
	}
}

bool exchange_is_ready(struct exchange *x)
{
	if (!x->is_closed)
		receive(x);
	return x->is_closed || x->unread || (x->have && memchr(x->text, '\n', x->have));
}

void exchange_unread(struct exchange *x, json_t *message)
{
	x->unread = message;
}

json_t *exchange_read(struct exchange *x)
{
	json_t *message = x->unread;
	x->unread = NULL;
	x->why = NULL;
	if (message)
		return message;
	for (uint64_t since_ms = now_ms(); !exchange_is_ready(x);) {
		int did = 0;
		if (!has_patience(x, since_ms)) {
			x->why = is_interrupted(x) ? "was not waited for any longer" : "has said nothing for too long";
			return NULL;
		}
		for (unsigned round = 0; round < LOOK_EVERY && did >= 0; round++)
			did = x->pump ? x->pump(x->arg) : -1;
		if (did < 0)
			wait_a_little(x->fd, POLLIN);
	}
	char *end = x->have ? memchr(x->text, '\n', x->have) : NULL;
	message = end ? json_loadb(x->text, (size_t)(end - x->text), 0, NULL) : NULL;
	if (!message)
		x->why = x->have ? "speaks another language: expected lines of JSON" : "is gone";
	if (!end)
		return NULL;
	x->have -= (size_t)(end + 1 - x->text);
	memmove(x->text, end + 1, x->have);
	return message;
}

__attribute__((format(printf, 3, 4))) static void say_why(char *reason, size_t room, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	reason_keep(reason, room, format, args);
	va_end(args);
}

json_t *exchange_hear(struct exchange *x, const char *peer, char *reason, size_t room)
{
	json_t *answer = exchange_read(x);
	const char *why = json_string_value(json_object_get(answer, "error"));
	if (answer && !why)
		return answer;
	if (why)
		say_why(reason, room, "%s: %s", peer, why);
	else
		say_why(reason, room, "%s %s", peer, x->why);
	json_decref(answer);
	return NULL;
}

static socklen_t find_address(const struct exchange *x, bool is_peer, struct sockaddr_storage *a)
{
	socklen_t len = sizeof(*a);
	int err = is_peer ? getpeername(x->fd, (struct sockaddr *)a, &len) : getsockname(x->fd, (struct sockaddr *)a, &len);
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
	if (!err && a->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a6->sin6_addr)) { /* of an IPv4 connection to a listener of both */
		struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = a6->sin6_port };
		memcpy(&a4.sin_addr, a6->sin6_addr.s6_addr + 12, 4);
		memcpy(a, &a4, sizeof(a4));
		return sizeof(a4);
	}
	if (!err && (a->ss_family == AF_INET || a->ss_family == AF_INET6))
		return len;
	*(struct sockaddr_in *)a = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	return sizeof(struct sockaddr_in);
}

static void set_port(struct sockaddr_storage *a, int port)
{
	if (a->ss_family == AF_INET)
		((struct sockaddr_in *)a)->sin_port = htons((uint16_t)port);
	else
		((struct sockaddr_in6 *)a)->sin6_port = htons((uint16_t)port);
}

int exchange_connect_back(const struct exchange *x, int fd, int port)
{
	struct sockaddr_storage a;
	socklen_t len = find_address(x, true, &a);
	set_port(&a, port);
	return connect(fd, (struct sockaddr *)&a, len);
}

int exchange_dial(const struct exchange *x, int type, int port)
{
	struct sockaddr_storage a;
	find_address(x, true, &a);
	int fd = socket(a.ss_family, type | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !exchange_connect_back(x, fd, port))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

int exchange_offer(const struct exchange *x, int type, int *port)
{
	struct sockaddr_storage a;
	socklen_t len = find_address(x, false, &a);
	set_port(&a, 0);
	int fd = socket(a.ss_family, type | SOCK_CLOEXEC, 0);
	bool is_stream = type == SOCK_STREAM;
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) || (is_stream && listen(fd, 1)) || getsockname(fd, (struct sockaddr *)&a, &len)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	*port = ntohs(a.ss_family == AF_INET ? ((struct sockaddr_in *)&a)->sin_port : ((struct sockaddr_in6 *)&a)->sin6_port);
	return fd;
}
