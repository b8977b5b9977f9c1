/* SPDX-License-Identifier: BSD-3-Clause */
/* The conversation of the two ends of a measurement beside the measured traffic: one JSON object a line over a stream socket. Whoever waits for a line drives its engine meanwhile. */
#ifndef APP_EXCHANGE_H
#define APP_EXCHANGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct exchange {
	int fd;
	char *text; /* what came and was not taken */
	size_t have, room;
	bool is_closed;
	const char *why; /* the last message could not be sent or read: "is gone", as the end of a sentence about the peer; NULL: it was */
	json_t *unread; /* what exchange_read gives next; NULL: nothing */
	int (*pump)(void *arg); /* called while waiting; how much it did, or negative: nothing to be driven, so that waiting may block */
	void *arg;
	/* Set before listen or connect, and kept by them: */
	bool (*is_interrupted)(void); /* ends whatever waits, within a tenth of a second; NULL: nothing does */
	unsigned patience_s;          /* for how long the peer may be silent, or not read; 0: for ever */
};

/* Server: waits at "[HOST:]PORT" for one client; "": at the usual port. Client: "HOST[:PORT]", tried for some seconds. 0, or -1 after a line on standard error. */
int exchange_listen(struct exchange *x, const char *at, const char *usual_port);
int exchange_connect(struct exchange *x, const char *to, const char *usual_port);
#define EXCHANGE_PORT "7471"
/* Over a socket that there is already. */
void exchange_init(struct exchange *x, int fd);
void exchange_close(struct exchange *x);

/* Sends, and releases, a message. 0, or -1: the peer is gone. message may be NULL (no memory): -1. */
int exchange_send(struct exchange *x, json_t *message);
/* The next message, to be released by the caller; NULL: the peer is gone (is_closed), was silent for too long, says what is no JSON, or the wait was interrupted: x->why. */
json_t *exchange_read(struct exchange *x);
/* The next message, or NULL and the reason (reason.h): it tells of an error, or there is none. peer: as the reason calls it. */
json_t *exchange_hear(struct exchange *x, const char *peer, char *reason, size_t room);
/* Gives a message back (NULL: the peer is gone): the next exchange_read returns it. */
void exchange_unread(struct exchange *x, json_t *message);
/* Whether exchange_read would not wait. */
bool exchange_is_ready(struct exchange *x);

/* A socket of a type (SOCK_STREAM, SOCK_DGRAM) connected to a port of the exchange's peer; for a pair inside the process, of this host itself. -1: none. */
int exchange_dial(const struct exchange *x, int type, int port);
/* A socket on the exchange's own address, listening if it is a stream's, its port in *port. -1: none. */
int exchange_offer(const struct exchange *x, int type, int *port);
/* Connects a datagram socket to a port of the peer. 0 or -1. */
int exchange_connect_back(const struct exchange *x, int fd, int port);

#endif
