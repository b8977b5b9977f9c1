/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a client: greeting, QP, end. Invariant: a QP is destroyed only after it has gone to ERR, said that it takes no more of the SRQ, and the CQ was empty. A QP that is destroyed earlier takes its unpolled completions with it, and so the receives
 * that it had taken: the SRQ would run dry, one client's end after the other. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server.h"

void connections_init(struct server *s)
{
	s->drained = 0;
	for (unsigned i = 0; i < CONNECTIONS; i++)
		s->connections[i] = (struct connection){ .fd = -1 };
}

struct connection *connection_find(struct server *s, uint32_t qpn)
{
	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (s->connections[i].qp && s->connections[i].qpn == qpn)
			return &s->connections[i];
	return NULL;
}

static struct connection *find_place(struct server *s)
{
	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (s->connections[i].fd < 0 && !s->connections[i].qp)
			return &s->connections[i];
	return NULL;
}

/* The one that has waited longest for a greeting, too long: or NULL. */
static struct connection *find_silent(struct server *s)
{
	struct connection *silent = NULL;
	uint64_t since_ns = server_now() - GREETING_NS;
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		struct connection *c = &s->connections[i];
		if (!c->qp && c->accepted_ns < since_ns) {
			since_ns = c->accepted_ns;
			silent = c;
		}
	}
	return silent;
}

void connection_accept(struct server *s, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), on = 1;
	struct connection *c = find_place(s);
	if (fd < 0)
		return;
	if (!c && (c = find_silent(s)))
		connection_end(s, c, "has not greeted in time, and another one needs its place");
	if (!c) {
		s->stats.refused++;
		close(fd);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)); /* a host that dies does not close its sockets */
	*c = (struct connection){ .fd = fd, .accepted_ns = server_now(), .free_replies = ALL_REPLIES };
}

static void close_socket(struct connection *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

void connection_end(struct server *s, struct connection *c, const char *why)
{
	struct uroce_qp_attr to_err = { .state = UROCE_QP_ERR };
	if (c->is_ending)
		return;
	c->is_ending = true;
	if (why) {
		s->stats.failed++;
		fprintf(stderr, "kv-server: client %d: %s\n", (int)(c - s->connections), why);
	}
	close_socket(c);
	for (unsigned i = 0; i < c->waits; i++)
		receive_give_back(s, c->waiting[i]);
	c->waits = 0;
	if (c->qp && uroce_qp_modify(c->qp, &to_err, UROCE_QP_STATE))
		connection_drained(s, c); /* refused: its engine is gone */
}

void connection_drained(struct server *s, struct connection *c)
{
	s->drained += !c->is_drained;
	c->is_drained = true;
}

void connection_sweep(struct server *s)
{
	for (unsigned i = 0; s->drained && i < CONNECTIONS; i++) {
		struct connection *c = &s->connections[i];
		if (!c->is_drained)
			continue;
		uint64_t counters[64];
		int n = uroce_qp_counters(c->qp, counters, 64);
		for (int k = 0; k < n && k < 64; k++)
			if (!strcmp(uroce_qp_counter_name((unsigned)k), "retransmitted_packets"))
				s->stats.retransmitted += counters[k];
		uroce_qp_destroy(c->qp);
		s->drained--;
		*c = (struct connection){ .fd = -1 };
	}
}

/* The greeting is whole: makes a QP for it and answers with where that is. */
static const char *begin(struct server *s, struct connection *c)
{
	struct uroce_qp_init init = { .service = UROCE_RC, .send_cq = s->cq, .recv_cq = s->cq, .srq = s->srq, .cap = { .max_send_wr = REPLIES } };
	struct uroce_qp_attr attr = { .access = 0, .rnr_retry = 7 };
	struct uroce_endpoint ours, theirs;
	struct greeting answer;
	if (!greeting_unpack(&c->hello, &theirs))
		return "what came is no greeting";
	if (uroce_qp_create(s->pd, &init, &c->qp))
		return "no QP for it";
	c->qpn = uroce_qp_num(c->qp);
	/* Requests are SENDs: the peer needs no right to our memory, so it gets none. */
	if (uroce_qp_endpoint(c->qp, 0, &ours) || uroce_qp_connect(c->qp, &ours, &theirs, &attr, UROCE_QP_ACCESS_FLAGS | UROCE_QP_RNR_RETRY))
		return "cannot be connected to";
	greeting_pack(&answer, &ours);
	if (send(c->fd, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
		return "went away";
	s->stats.connections++;
	return NULL;
}

void connection_read(struct server *s, struct connection *c)
{
	char *to = (char *)&c->hello + c->hello_len, more;
	size_t room = sizeof(c->hello) - c->hello_len;
	const char *wrong = NULL;
	ssize_t n = recv(c->fd, room ? to : &more, room ? room : 1, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) { /* closed: before the greeting an error, after it how a client leaves */
		connection_end(s, c, c->qp ? NULL : "left without a greeting");
		return;
	}
	if (!room)
		wrong = "talks after its greeting";
	c->hello_len += room ? (size_t)n : 0;
	if (!wrong && c->hello_len == sizeof(c->hello))
		wrong = begin(s, c);
	if (wrong)
		connection_end(s, c, wrong);
}
