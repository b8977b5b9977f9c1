/* SPDX-License-Identifier: BSD-3-Clause */
/* The inside of a server, for its files only: server.c owns the loop and who comes in, connection.c the dialogue with one client, connection_request.c its requests, connection_operator.c those of an operator, connection_end.c the end. Everything belongs to the
 * control thread, except a job while the builder works on it and a core_client while mail is on its way. */
#ifndef UROCE_SERVER_INSIDE_H
#define UROCE_SERVER_INSIDE_H

#include "engine.h"
#include "peers.h"
#include "quota.h"
#include "region.h"
#include "report.h"
#include "server.h"
#include "server_builder.h"
#include "server_life.h"
#include "server_path.h"
#include "socket.h"

/* What epoll knows: somebody to be told. */
struct watch {
	void (*run)(struct watch *w, uint32_t events);
};

enum connection_state {
	CONNECTION_HELLO,    /* it has to say HELLO, by the deadline */
	CONNECTION_BUILDING, /* the builder works for it; what it says meanwhile waits in its socket */
	CONNECTION_MAPPING,  /* it has to say MAPPED, by the deadline */
	CONNECTION_READY,    /* it may ask */
	CONNECTION_OPERATOR, /* it is an operator, and may ask as such */
	CONNECTION_ENDING,   /* its socket is closed; what it had goes */
	CONNECTION_STATES
};

struct connection {
	struct watch on_socket, on_death;
	struct server *server;
	struct connection *prev, *next;
	struct quota_user *user; /* NULL: an operator's, which has nothing that counts */
	struct ctl_peer peer;
	char program[CTL_PROGRAM_MAX];
	int socket, pidfd;
	enum connection_state state;
	uint64_t deadline_ns; /* 0: none */
	/* from HELLO on */
	uint32_t version;
	uint64_t features;
	struct engine_core *core;
	struct core_client *client;
	int wake_fd; /* the eventfd that wakes its engine core, watched by it; -1: none */
	bool is_attached;
	/* memory */
	struct job job;
	bool has_job;        /* posted, and not done */
	int job_err;
	void *base;          /* of the region that the job makes or seals */
	uint64_t bytes;
	int fd;
	bool is_orphan;      /* the region is not yet, or never was, given to the client */
	uint32_t arena;      /* its number */
	uint64_t grown_bytes; /* all regions beyond the first */
	/* the request under way */
	struct abi_req request;
	unsigned growths;
	struct core_usage used;
	struct peer_holds holds;
	struct connection *next_ending;
	/* of an operator */
	bool is_operator;            /* counted as one: it said so, or came when there was no room for another client */
	enum report_noun noun;       /* of the report that is being made */
};
#define OPERATORS_MAX 8u

struct server {
	struct watch on_listen, on_quit, on_built;
	struct server_config config;
	struct log log_copy;
	const struct log *log; /* NULL: nothing is written */
	struct engine *engine;
	struct server_path path;
	struct server_life life;
	struct builder builder;
	struct region_source regions;
	int epoll_fd, quit_fd;
	int spare_fd; /* given up to be able to refuse a client when there are no descriptors left */
	bool is_quitting;
	struct connection *clients; /* and operators */
	uint32_t n_clients, n_operators;
	struct connection *capturer; /* the operator whose capture runs, or NULL */
	uint32_t n_deadlines; /* clients that have one */
	uint64_t check_at_ns; /* when they are next looked at */
	struct connection *ending, **last_ending;
	struct quota quota;
	struct peers peers;
	_Atomic uint64_t count[SERVER_COUNTS]; /* written by the control thread, read by any */
	struct log_limit limit[SERVER_COUNTS];
};

/* server.c */
uint64_t server_now(void);
void server_count_up(struct server *s, enum server_count count);
/* The same, and writes a line about it unless there were too many of this kind just now. */
void server_note(struct server *s, enum server_count count, enum log_level level, const char *format, ...) __attribute__((format(printf, 4, 5)));
int server_watch(struct server *s, int fd, uint32_t events, struct watch *w);
/* Whether there is room for one more client of this user; false with one sentence. */
bool server_has_room(const struct server *s, uid_t uid, char text[CTL_TEXT_MAX]);

/* connection.c */
/* Takes the socket over, and the pidfd; is_operator: there is no room for a client. 0 or a negative errno: they stay the caller's. */
int connection_open(struct server *s, int socket, int pidfd, const struct ctl_peer *peer, bool is_operator);
void connection_check_deadline(struct connection *c, uint64_t now_ns);
/* Reads from its socket in that state and no other; a deadline of 0: none. */
void connection_enter(struct connection *c, enum connection_state state, uint64_t patience_ns);
const char *connection_state_name(enum connection_state state);
/* Sends; false: that ended the connection. */
bool connection_send(struct connection *c, enum ctl_type type, struct ctl_message *m, int fd);
/* The first message: takes its name and chooses the version; false: that ended the connection. */
bool connection_meet(struct connection *c, const struct ctl_hello *h);
/* Offers c->arena of the client to be mapped. */
void connection_offer_region(struct connection *c);
void connection_post_job(struct connection *c, bool (*start)(struct job *), void (*work)(struct job *), void (*done)(struct job *));
static inline struct connection *connection_of_job(struct job *j)
{
	return (struct connection *)((uint8_t *)j - offsetof(struct connection, job));
}

/* Whether it has not read all that it was sent. Who asks all the same is sent away: answers would pile up, descriptors in flight among them, which the kernel counts against this daemon. */
bool connection_has_unread(struct connection *c);

/* connection_request.c */
void connection_request(struct connection *c, const struct abi_req *req);
/* The request under way once more, after its memory has come. */
void connection_repeat_request(struct connection *c);

/* connection_operator.c */
/* Root, and the user that this daemon runs as. */
bool connection_may_operate(const struct ctl_peer *peer);
/* One message of an operator, or of who wants to be one; fd stays the caller's. */
void connection_operate(struct connection *c, const struct ctl_message *m, int fd);
/* It ends: so does its capture, and its place among the operators is free. */
void connection_operate_no_more(struct connection *c);

/* connection_end.c */
/* No more words with the client but BYE with this code and the text, which also goes into the log after the client's name; CTL_BYE_DONE: it is gone and is told nothing. Then all that it has goes, in pieces. Fine when
 * it is ending already. */
void connection_end(struct connection *c, enum server_count count, enum ctl_bye_code code, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Says BYE and closes the socket so that the client surely finds it. */
void connection_dismiss(int socket, enum ctl_bye_code code, const char *text);
/* It is none of its user's clients any more, and has nothing that counts as such. */
void connection_leave_user(struct connection *c);
/* A piece of the work for each that ends. Whether more is to be done at once. */
bool connection_end_pieces(struct server *s);

#endif
