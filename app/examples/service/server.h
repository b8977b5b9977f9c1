/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's parts: server.c has the engine and the loop, connection.c the life of a client, request.c its requests. All of it runs on one thread, so nothing is locked. */
#ifndef KV_SERVER_H
#define KV_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include <uroce.h>

#include "greeting.h"
#include "protocol.h"
#include "store.h"

#define CONNECTIONS 64u
#define REPLIES KV_DEPTH                   /* answers of a connection under way; further requests wait for one to be acknowledged */
#define ALL_REPLIES ((1u << REPLIES) - 1)
#define BATCH 32u                           /* completions of one poll */
#define RECEIVES (CONNECTIONS * KV_DEPTH + BATCH) /* in the SRQ: as many as all clients together may send at once, and those of a batch that was answered and is not posted again yet */
#define COMPLETIONS (RECEIVES + CONNECTIONS * REPLIES) /* all that can be there unpolled, so that the CQ cannot overrun */

#define GREETING_NS UINT64_C(5000000000) /* time for a greeting; who has not greeted by then leaves when another one comes and there is no place */

struct connection {
	int fd;                  /* -1: this place is free */
	uint64_t accepted_ns;
	struct greeting hello;   /* what has come of it */
	size_t hello_len;
	struct uroce_qp *qp;     /* NULL: still greeting */
	uint32_t qpn;
	bool is_ending;          /* its QP goes, or went, to ERR */
	bool is_drained;         /* and takes no more receives; what it took has completed */
	uint32_t free_replies;   /* a bit each */
	uint32_t waiting[KV_DEPTH]; /* receives with requests that wait for a place for the answer, oldest first */
	unsigned waits;
};

struct statistics {
	uint64_t requests[KV_OPS], answers[KV_STATUSES];
	uint64_t connections, refused, failed, retransmitted, sleeps;
};

struct server {
	struct uroce_context *ctx;
	struct uroce_pd *pd;
	struct uroce_channel *channel;
	struct uroce_cq *cq;
	struct uroce_srq *srq;
	struct uroce_mr *mr;
	struct kv_message *receives; /* RECEIVES of them, */
	struct kv_message *replies;  /* and REPLIES for each connection, in one MR */
	bool is_inline;          /* the engine runs when this program calls it */
	bool is_engine_gone;
	bool is_broken;          /* what cannot happen, has */
	uint32_t lengths[RECEIVES];   /* of requests that wait */
	uint32_t give_back[RECEIVES]; /* receives to be posted again */
	unsigned gives_back;
	struct connection connections[CONNECTIONS];
	unsigned drained;        /* of them */
	struct store store;
	struct statistics stats;
};

/* server.c */
uint64_t server_now(void); /* ns */

/* connection.c */
void connection_accept(struct server *s, int listener);
/* Something came by its socket. */
void connection_read(struct server *s, struct connection *c);
struct connection *connection_find(struct server *s, uint32_t qpn); /* or NULL */
/* Begins its end; why: NULL when it is as it should be. It is over when its QP is drained. */
void connection_end(struct server *s, struct connection *c, const char *why);
/* Its QP has said that it takes no more. */
void connection_drained(struct server *s, struct connection *c);
/* Destroys what is drained. To be called when the CQ was found empty. */
void connection_sweep(struct server *s);
void connections_init(struct server *s);

/* request.c */
/* A completion of the CQ. */
void request_take(struct server *s, const struct uroce_wc *wc);
/* Posts the receives that were given back. */
void request_repost(struct server *s);
void receive_give_back(struct server *s, uint32_t receive);

#endif
