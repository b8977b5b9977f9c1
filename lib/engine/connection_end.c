/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a client, whoever wants it: first the words, then its objects in pieces on its poll core, then its memory in the background. One turn of the loop does one piece for each client that ends, so that thousands of QPs
 * hold up nobody: not the poll core, not the other clients' requests, not another one's end.
 * Invariant: memory is freed only after the core knows nothing of the client any more and no job has it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server_inside.h"

#define DETACH_OBJECTS 64u
#define PIECES_A_TURN 16u
#define UNREAD_MAX 4096u /* records; the sender's buffer holds far fewer */

/* ---- words ---- */

/* A socket that is closed with something unread in it gives its peer an error in place of our last message. So nothing more is taken in, and what has come is thrown away, the descriptors in it by the kernel. */
void connection_dismiss(int socket, enum ctl_bye_code code, const char *text)
{
	struct ctl_message m;
	char byte;
	memset(&m, 0, sizeof(m));
	m.bye.code = code;
	snprintf(m.bye.text, sizeof(m.bye.text), "%s", text);
	ctl_send(socket, CTL_BYE, &m, -1);
	shutdown(socket, SHUT_RD);
	for (unsigned i = 0; i < UNREAD_MAX && recv(socket, &byte, 1, MSG_DONTWAIT) > 0; i++)
		;
	close(socket);
}

struct end_mail {
	struct mail mail;
	struct core_client *client;
	bool is_detached;
};

static void run_mark_dead(struct mail *mail, uint64_t now_ns)
{
	core_client_mark_dead(((struct end_mail *)mail)->client);
}

/* Its page is written only when it is sealed: before that, the client may have cut the memory under it away. */
static void say_bye(struct connection *c, enum ctl_bye_code code, const char *text)
{
	if (c->is_attached) {
		struct end_mail m = { .mail.run = run_mark_dead, .client = c->client };
		engine_carry_out(c->core, &m.mail);
	}
	connection_dismiss(c->socket, code, text);
}

void connection_end(struct connection *c, enum server_count count, enum ctl_bye_code code, const char *format, ...)
{
	struct server *s = c->server;
	char text[CTL_TEXT_MAX];
	va_list args;
	if (c->state == CONNECTION_ENDING)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	server_note(s, count, code != CTL_BYE_DONE && code != CTL_BYE_SHUTDOWN ? LOG_WARN : c->is_operator ? LOG_DEBUG : LOG_INFO, "%s pid %ld uid %u %s: %s", c->is_operator ? "operator" : "client",
		(long)c->peer.pid, c->peer.uid, c->program, text);
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, c->socket, NULL);
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, c->pidfd, NULL);
	if (code == CTL_BYE_DONE)
		close(c->socket);
	else
		say_bye(c, code, text);
	close(c->pidfd);
	c->socket = c->pidfd = -1;
	connection_enter(c, CONNECTION_ENDING, 0);
	connection_operate_no_more(c);
	if (c->has_job && builder_cancel(&s->builder, &c->job))
		c->has_job = false;
	*s->last_ending = c;
	s->last_ending = &c->next_ending;
}

/* ---- objects and memory ---- */

static void run_detach(struct mail *mail, uint64_t now_ns)
{
	struct end_mail *m = (struct end_mail *)mail;
	m->is_detached = core_client_detach(m->client, DETACH_OBJECTS);
}

static void detach_piece(struct connection *c)
{
	struct end_mail m = { .mail.run = run_detach, .client = c->client };
	engine_carry_out(c->core, &m.mail);
	if (!m.is_detached)
		return;
	c->is_attached = false;
	peers_release_all(&c->server->peers, &c->holds);
	quota_update(c->user, &c->used, &(struct core_usage){ 0 });
	c->used = (struct core_usage){ 0 };
}

static void unlink_client(struct connection *c)
{
	if (c->next)
		c->next->prev = c->prev;
	if (c->prev)
		c->prev->next = c->next;
	else
		c->server->clients = c->next;
}

void connection_leave_user(struct connection *c)
{
	c->user->grown_bytes -= c->grown_bytes;
	quota_leave(&c->server->quota, c->user);
	c->user = NULL;
	c->server->n_clients--;
}

static void free_connection(struct connection *c)
{
	struct server *s = c->server;
	unlink_client(c);
	if (c->core)
		engine_core_leave(c->core);
	if (c->user)
		connection_leave_user(c);
	else
		s->n_operators--;
	free(c);
}

static void work_free(struct job *j)
{
	struct connection *c = connection_of_job(j);
	if (c->is_orphan)
		region_free(c->base, c->bytes, c->fd);
	core_client_free(c->client);
}

static void on_freed(struct job *j)
{
	free_connection(connection_of_job(j));
}

/* Detached, and no job has its memory. */
static void free_memory(struct connection *c)
{
	if (c->wake_fd >= 0) {
		engine_core_unwatch(c->core, c->wake_fd);
		close(c->wake_fd);
	}
	if (!c->client) {
		free_connection(c);
		return;
	}
	c->job.start = NULL;
	c->job.work = work_free;
	c->job.done = on_freed;
	builder_post(&c->server->builder, &c->job, true);
}

bool connection_end_pieces(struct server *s)
{
	unsigned pieces = 0;
	struct connection **at = &s->ending;
	while (*at && pieces < PIECES_A_TURN) {
		struct connection *c = *at;
		if (c->is_attached) {
			detach_piece(c);
			pieces++;
		}
		if (c->is_attached || c->has_job) {
			at = &c->next_ending;
			continue;
		}
		*at = c->next_ending;
		if (!*at)
			s->last_ending = at;
		pieces += !c->client; /* it is gone at once: no job's end will wake the loop, which server_stop waits for */
		free_memory(c);
	}
	return pieces;
}
