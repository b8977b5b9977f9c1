/* SPDX-License-Identifier: BSD-3-Clause */
/* A link carries messages of one size between the two ends, by one of the transports that are compared. What is done with it (work.h) is the same for all of them. Used by one thread. */
#ifndef COMPARE_LINK_H
#define COMPARE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "end.h"
#include "exchange.h"

enum work { WORK_PINGPONG, WORK_STREAM, WORK_SMALL, WORKS };

/* A message as its receiver sees it: the client numbers its messages from 1 up, an answer has the number of what it answers; the last of a phase says so. */
struct mark {
	uint32_t number;
	bool is_last;
};
#define MARK_BYTES 8u /* of a message (UDP: of each datagram), at its beginning; so the least size */

struct transport;
struct link {
	const struct transport *transport;
	struct exchange *exchange;
	struct end *end;    /* of the device; NULL: none is open */
	bool is_client, is_connected;
	enum work work;
	uint64_t size;
	uint32_t number;    /* client: of the last message sent */
	int fd;             /* sockets */
	uint8_t *in, *out;  /* sockets: messages that came, and the one that leaves */
	void *own;          /* of the transport */
	unsigned empty;     /* looks since something came */
	uint64_t quiet_since_ns;
	char note[160];     /* what is not as the size says, for the report; */
	const char *copying; /* and what else copies messages than system calls and the stack. NULL: nothing */
	char error[1024];   /* why it failed, "" if it did not */
};

struct transport {
	const char *name, *text;
	unsigned works; /* bits of enum work */
	bool has_device, is_spinning, may_lose;
	/* Connects: each end calls it and says to the other, on the exchange, what it has to know, the server first. */
	int (*open)(struct link *l);
	/* Hands over one message; waits while there is no room. */
	int (*send)(struct link *l, struct mark m);
	/* 1: the next message is here, whole; 0: not yet, or not for a tenth of a second if the transport sleeps. */
	int (*receive)(struct link *l, struct mark *m);
	/* Waits until what was sent is known to be at the peer, where the transport tells. NULL: it does not. */
	int (*settle)(struct link *l);
	/* Bytes of messages that were copied at this end so far, besides those that system calls copied. NULL: none. */
	uint64_t (*copied)(struct link *l);
	void (*close)(struct link *l);
};
/* NULL beyond the last. */
const struct transport *transport_at(unsigned i);
/* The number of the one with a name of len characters, or -1. */
int transport_find(const char *name, size_t len);
extern const struct transport link_tcp, link_tcp_spin, link_udp, link_udp_spin, link_uroce;

/* All calls: 0 or more, or a negative errno with l->error. */
int link_open(struct link *l);
void link_close(struct link *l);
__attribute__((format(printf, 2, 3))) int link_fail(struct link *l, const char *format, ...);
/* To be called whenever nothing came: 0: go on; 1 (server): the client has said something; negative: the server has, so it failed, or nothing has come for too long. */
int link_wait(struct link *l);
/* The same when there is no room for what is to be sent: 0 or negative. */
int link_wait_for_room(struct link *l);
/* The peer's next message on the exchange, or NULL after link_fail, also if it is {"error": ...}. */
json_t *link_hear(struct link *l);
int link_say(struct link *l, json_t *message);

/* Where the mark is in a message of sockets. */
void mark_put(uint8_t *at, uint32_t number, uint32_t more);
void mark_get(const uint8_t *at, uint32_t *number, uint32_t *more);

#endif
