/* SPDX-License-Identifier: BSD-3-Clause */
/* The same work by kernel TCP, as a baseline in the same table: a stream of writes of the message's size, and a ping-pong with both ends spinning on a non-blocking socket (the best that TCP does). A connection of its own for
 * each trial, NODELAY; the server's answer on the exchange ends a stream, so that what is measured has arrived. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure.h"
#include "meet.h"
#include "pattern.h"

#define READ_BYTES (256u << 10)

static int send_all(int fd, const uint8_t *data, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = send(fd, data + at, len - at, MSG_NOSIGNAL);
		if (n > 0)
			at += (size_t)n;
		else if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
	}
	return 0;
}

static int spin_recv(int fd, uint8_t *data, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = recv(fd, data + at, len - at, MSG_DONTWAIT);
		if (n > 0)
			at += (size_t)n;
		else if (!n)
			return -ECONNRESET;
		else if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
	return 0;
}

static int run_stream(struct exchange *x, int fd, const struct trial *t, uint8_t *data, struct result *r)
{
	uint64_t start_ns = end_now(), done = 0;
	do {
		for (unsigned i = 0; i < (t->size < 65536 && !t->iters ? 16 : 1); i++, done++) {
			int err = send_all(fd, data, t->size);
			if (err)
				return err;
		}
	} while (!trial_is_over(t, done, done * t->size, start_ns));
	shutdown(fd, SHUT_WR);
	json_t *answer = exchange_read(x); /* all has arrived */
	json_decref(answer);
	r->messages = done;
	r->bytes = done * t->size;
	r->seconds = (double)(end_now() - start_ns) * 1e-9;
	return answer ? 0 : -ECONNRESET;
}

static int run_latency(struct exchange *x, int fd, const struct trial *t, uint8_t *data, struct result *r)
{
	uint64_t start_ns = end_now(), before_ns = start_ns, done = 0;
	int err = 0;
	histogram_clear(&r->latency);
	do {
		err = send_all(fd, data, t->size);
		if (!err)
			err = spin_recv(fd, data, t->size);
		uint64_t now_ns = end_now();
		histogram_add(&r->latency, (now_ns - before_ns) / 2);
		before_ns = now_ns;
		done++;
	} while (!err && !trial_is_over(t, done, done * t->size, start_ns));
	shutdown(fd, SHUT_WR);
	json_t *answer = exchange_read(x);
	json_decref(answer);
	r->latency_of = "half round trip";
	r->messages = done;
	r->bytes = done * t->size;
	r->seconds = (double)(before_ns - start_ns) * 1e-9;
	return err ? err : answer ? 0 : -ECONNRESET;
}

static int run_verify(struct exchange *x, int fd, const struct trial *t, uint8_t *data, struct result *r)
{
	uint64_t start_ns = end_now(), done = 0;
	int err = 0;
	do {
		pattern_fill(data, t->size, pattern_seed(0, done++, 0));
		err = send_all(fd, data, t->size);
	} while (!err && !trial_is_over(t, done, done * t->size, start_ns));
	shutdown(fd, SHUT_WR);
	json_t *answer = exchange_read(x);
	json_int_t right = json_integer_value(json_object_get(answer, "right"));
	json_decref(answer);
	r->messages = done;
	r->bytes = done * t->size;
	r->seconds = (double)(end_now() - start_ns) * 1e-9;
	return err ? err : right == (json_int_t)done ? 0 : -EBADMSG;
}

int tcp_run(struct exchange *x, const struct trial *t, struct result *r, char *error, size_t room)
{
	static int (*const runs[TESTS])(struct exchange *, int, const struct trial *, uint8_t *, struct result *) = { run_stream, run_latency, run_verify };
	int port = 0, on = 1, err = -EPROTO;
	json_t *offer = exchange_send(x, trial_pack(t)) ? NULL : exchange_read(x);
	int fd = json_unpack(offer, "{s:i}", "port", &port) ? -1 : exchange_dial(x, SOCK_STREAM, port);
	json_decref(offer);
	uint8_t *data = calloc(1, t->size + 1);
	if (fd >= 0 && data) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		err = runs[t->test](x, fd, t, data, r);
	}
	if (err)
		snprintf(error, room, "TCP: %s", fd < 0 ? "no connection to the peer" : strerror(-err));
	free(data);
	if (fd >= 0)
		close(fd);
	return err;
}

/* Each returns how many messages it found right. */
static uint64_t serve_stream(int fd, uint8_t *data, size_t size)
{
	while (recv(fd, data, READ_BYTES, 0) > 0)
		;
	return 0;
}

static uint64_t serve_latency(int fd, uint8_t *data, size_t size)
{
	while (!spin_recv(fd, data, size) && !send_all(fd, data, size))
		;
	return 0;
}

static uint64_t serve_verify(int fd, uint8_t *data, size_t size)
{
	uint64_t right = 0;
	while (!spin_recv(fd, data, size) && pattern_check(data, size, pattern_seed(0, right, 0)) == PATTERN_FINE)
		right++;
	return right;
}

int tcp_serve(struct exchange *x, const struct trial *t)
{
	static uint64_t (*const serves[TESTS])(int, uint8_t *, size_t) = { serve_stream, serve_latency, serve_verify };
	uint64_t right = 0;
	int port, on = 1, listener = exchange_offer(x, SOCK_STREAM, &port);
	if (listener < 0)
		return exchange_send(x, json_pack("{s:s}", "error", "cannot listen"));
	int fd = -1;
	if (!exchange_send(x, json_pack("{s:i}", "port", port)))
		fd = meet_accept(listener);
	else
		close(listener);
	uint8_t *data = malloc(t->size > READ_BYTES ? t->size : READ_BYTES);
	if (fd >= 0 && data) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		right = serves[t->test](fd, data, t->size);
	}
	free(data);
	if (fd >= 0)
		close(fd);
	return exchange_send(x, json_pack("{s:b, s:I}", "done", 1, "right", (json_int_t)right));
}
