/* SPDX-License-Identifier: BSD-3-Clause */
/* Serves an engine to other processes: a unix socket, the clients that came by it, what each may have, and their end. One thread, the caller's of server_run; poll cores only ever get mail from it.
 * Nothing that a client sends, maps, fills or keeps is trusted or waited for. */
#ifndef UROCE_SERVER_H
#define UROCE_SERVER_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "core.h"
#include "socket.h"
#include "log.h"

struct engine;
struct server;

struct server_config {
	const char *path;         /* of the socket; its directory exists */
	mode_t mode;              /* of the socket file */
	gid_t group;              /* its group; (gid_t)-1: as it comes */
	uint32_t max_clients, max_clients_per_uid;
	struct core_usage client; /* most of one client; a member that is 0 allows none */
	struct core_usage uid;    /* most of all clients of one user together */
	int node;                 /* NUMA node of the memory of clients, -1: any */
	const struct log *log;
};
/* What is taken when nothing is configured. */
void server_defaults(struct server_config *c);

/* Takes the socket (a file beside it, locked for as long as the server lives, tells a living daemon from a dead one's leftovers) and the life page. The calling thread holds the life of the server: it must be the one that ends last.
 * 0; -EADDRINUSE: another daemon serves this path; other negative errno; each after one log line. */
int server_start(struct server **out, struct engine *e, const struct server_config *config);
/* Serves until server_quit. Same thread as server_start. */
void server_run(struct server *s);
/* Makes server_run return. Any thread, and signal handlers. */
void server_quit(struct server *s);
/* Says BYE with this code and text to every client, frees all, removes the socket. Same thread as server_start. */
void server_stop(struct server *s, enum ctl_bye_code code, const char *text);

enum server_count {
	SERVER_ACCEPTED,
	SERVER_ATTACHED,         /* were sent READY */
	SERVER_ENDED_BYE,        /* by the client's BYE or close */
	SERVER_ENDED_DEATH,      /* its process ended, as its pidfd told */
	SERVER_ENDED_PROTOCOL,   /* thrown out: see the refusals */
	SERVER_ENDED_UNREAD,     /* thrown out: it does not read what it asked for */
	SERVER_ENDED_SILENT,     /* thrown out: no HELLO or MAPPED in time */
	SERVER_ENDED_KILLED,     /* by an operator */
	SERVER_ENDED_FAILED,     /* thrown out: memory, descriptors or the like could not be had for it */
	SERVER_ENDED_SHUTDOWN,   /* by server_stop */
	SERVER_REFUSED_LIMIT,    /* too many clients */
	SERVER_REFUSED_VERSION,
	SERVER_REFUSED_QUOTA,    /* requests answered -EDQUOT */
	SERVER_REFUSED_PEER,     /* modify to RTR towards a peer QP that another user's QP has already (known-bugs N1) */
	SERVER_REFUSED_OPERATOR, /* who wanted to be an operator and may not, or one too many */
	SERVER_REFUSED_STATE,    /* a message that may not come now */
	SERVER_OPERATED,         /* what operators changed */
	SERVER_REFUSED_MESSAGE,  /* + enum ctl_refusal: not a message */
	SERVER_COUNTS = SERVER_REFUSED_MESSAGE + CTL_REFUSAL_COUNT
};
const char *server_count_name(enum server_count c);
/* Any thread. */
uint64_t server_count(const struct server *s, enum server_count c);
/* Clients that there are. Same thread as server_start. */
uint32_t server_clients(const struct server *s);
/* Everything an operator wants to know, as lines of text: the engine's cores and their loops, mbufs free, drops by name, refusals, and a line for each client with what it has. Same thread as server_start. */
void server_report(struct server *s, FILE *out);

#endif
