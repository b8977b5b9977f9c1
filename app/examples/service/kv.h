/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's end of the service, as a program would have it: one engine, and connections that each have up to KV_DEPTH requests outstanding. One thread. */
#ifndef KV_CLIENT_H
#define KV_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <uroce.h>

#include "protocol.h"

#define CLIENT_CONNECTIONS 64u
#define REQUESTS (2 * KV_DEPTH) /* buffers of a connection: an answer may be here before the request is acknowledged, which then is not free yet */

struct client_connection {
	int fd;
	struct uroce_qp *qp;
	uint32_t qpn;
	struct kv_message *requests; /* REQUESTS of them, */
	struct kv_message *answers;  /* and KV_DEPTH receives */
	uint32_t free_requests;      /* a bit each */
	uint32_t ids;                /* requests sent */
	unsigned outstanding;        /* that were not answered */
};

struct client {
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_cq *cq;
	struct uroce_mr *mr;
	struct kv_message *memory;
	struct client_connection connections[CLIENT_CONNECTIONS];
	unsigned n;
};

/* Connects n times to a kv-server at "HOST[:PORT]", through the device of UROCE_DEVICE. 0, or -1 after a line on standard error; client_close is due either way. */
int client_open(struct client *c, const char *to, unsigned n);
void client_close(struct client *c);

/* Whether there is room for another request on a connection; it comes by receiving. */
bool client_can_send(const struct client *c, unsigned connection);
/* Sends a request whose answer will have the id that is returned; -1 after a line. */
int64_t client_send(struct client *c, unsigned connection, enum kv_op op, const char *key, size_t key_len, const void *value, size_t value_len);
/* Takes one answer that has come: *connection says of which; good until client_done. 0: none yet; 1: one; -1 after a line: no more will come. Does not wait. */
int client_receive(struct client *c, unsigned *connection, const struct kv_message **answer);
/* Waits for an answer, some seconds at most. 0, or -1 after a line. */
int client_wait(struct client *c, unsigned *connection, const struct kv_message **answer);
/* The answer may be overwritten. 0, or -1 after a line. */
int client_done(struct client *c, unsigned connection, const struct kv_message *answer);

#endif
