/* SPDX-License-Identifier: BSD-3-Clause */
/* The dialogue with one client (ctl.h): a table says what may be said in which state; what the builder has finished takes the dialogue on. Owns the client's socket, pidfd and wake-up eventfd.
 * Invariant: at most one message or finished job is handled at a time, and in state BUILDING none is read: so the client's memory and the request under way have one writer. */
#include <ctype.h>
#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "server_inside.h"

#define HELLO_PATIENCE_NS 2000000000u
#define MAPPED_PATIENCE_NS 5000000000u

static const char *const state_names[CONNECTION_STATES] = { "hello", "building", "mapping", "ready", "operator", "ending" };

const char *connection_state_name(enum connection_state state)
{
	return state_names[state];
}

void connection_enter(struct connection *c, enum connection_state state, uint64_t patience_ns)
{
	struct epoll_event e = { .events = state == CONNECTION_BUILDING ? 0 : EPOLLIN, .data.ptr = &c->on_socket };
	c->server->n_deadlines += (patience_ns != 0) - (c->deadline_ns != 0);
	c->deadline_ns = patience_ns ? server_now() + patience_ns : 0;
	if (state != CONNECTION_ENDING && (state == CONNECTION_BUILDING) != (c->state == CONNECTION_BUILDING))
		epoll_ctl(c->server->epoll_fd, EPOLL_CTL_MOD, c->socket, &e);
	c->state = state;
}

void connection_check_deadline(struct connection *c, uint64_t now_ns)
{
	if (c->deadline_ns && now_ns >= c->deadline_ns)
		connection_end(c, SERVER_ENDED_SILENT, CTL_BYE_PROTOCOL, "it did not say %s in time", c->state == CONNECTION_HELLO ? "HELLO" : "MAPPED");
}

bool connection_send(struct connection *c, enum ctl_type type, struct ctl_message *m, int fd)
{
	int err = ctl_send(c->socket, type, m, fd);
	if (err == -EAGAIN)
		connection_end(c, SERVER_ENDED_UNREAD, CTL_BYE_PROTOCOL, "it does not read what it asked for");
	else if (err == -EPIPE || err == -ECONNRESET)
		connection_end(c, SERVER_ENDED_BYE, CTL_BYE_DONE, "has closed its socket");
	else if (err)
		connection_end(c, SERVER_ENDED_FAILED, CTL_BYE_FAILED, "%s cannot be sent to it: %s", ctl_rows[type].name, strerror(-err));
	return !err;
}

bool connection_has_unread(struct connection *c)
{
	int unread = 0;
	if (!ioctl(c->socket, SIOCOUTQ, &unread) && !unread)
		return false;
	connection_end(c, SERVER_ENDED_UNREAD, CTL_BYE_PROTOCOL, "it asks again before it has read the last answer");
	return true;
}

/* ---- jobs ---- */

void connection_post_job(struct connection *c, bool (*start)(struct job *), void (*work)(struct job *), void (*done)(struct job *))
{
	c->job.start = start;
	c->job.work = work;
	c->job.done = done;
	c->has_job = true;
	connection_enter(c, CONNECTION_BUILDING, 0);
	builder_post(&c->server->builder, &c->job, !c->is_attached && !c->is_operator); /* a client's first memory is little, a report may be long */
}

/* Takes the job back; false: the client has gone meanwhile, and its end goes on by itself. */
static bool take_back(struct job *j, struct connection **c)
{
	*c = connection_of_job(j);
	(*c)->has_job = false;
	return (*c)->state != CONNECTION_ENDING;
}

/* ---- HELLO ---- */

static bool choose_version(const struct ctl_hello *h, uint32_t *version)
{
	*version = h->version_max < CTL_VERSION_MAX ? h->version_max : CTL_VERSION_MAX;
	return h->version_min <= h->version_max && *version >= h->version_min && *version >= CTL_VERSION_MIN;
}

/* What a program calls itself goes into lines of a log and of a report: no spaces, nothing that a terminal obeys. */
static void take_name(struct connection *c, const struct ctl_hello *h)
{
	for (unsigned i = 0; i < sizeof(c->program) - 1 && h->program[i]; i++)
		c->program[i] = isascii(h->program[i]) && isgraph((unsigned char)h->program[i]) ? h->program[i] : '_';
	if (!c->program[0])
		strcpy(c->program, "-");
}

static void work_client(struct job *j)
{
	struct connection *c = connection_of_job(j);
	c->job_err = core_client_new(engine_core_stack(c->core), &c->client);
}

static bool open_wake(struct connection *c)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (fd < 0) {
		connection_end(c, SERVER_ENDED_FAILED, CTL_BYE_FAILED, "no eventfd can be had to wake its engine core: %s", strerror(errno));
		return false;
	}
	int err = engine_core_watch(c->core, fd);
	if (!err) {
		c->wake_fd = fd;
		return true;
	}
	close(fd);
	connection_end(c, SERVER_ENDED_FAILED, CTL_BYE_FAILED, "its engine core cannot watch another eventfd: %s", strerror(-err));
	return false;
}

static void on_client_made(struct job *j)
{
	struct connection *c;
	struct ctl_message m;
	if (!take_back(j, &c))
		return;
	if (c->job_err) {
		connection_end(c, SERVER_ENDED_FAILED, CTL_BYE_FAILED, "memory for it cannot be had: %s", strerror(-c->job_err));
		return;
	}
	if (!open_wake(c))
		return;
	memset(&m, 0, sizeof(m));
	m.welcome = (struct ctl_welcome){ .version = c->version, .core = engine_core_index(c->core), .features = c->features };
	if (connection_send(c, CTL_WELCOME, &m, c->server->life.fd) && connection_send(c, CTL_WAKE, &m, c->wake_fd) && connection_send(c, CTL_ASYNC, &m, core_client_async_fd(c->client)))
		connection_offer_region(c);
}

bool connection_meet(struct connection *c, const struct ctl_hello *h)
{
	if (h->magic != CTL_MAGIC) {
		connection_end(c, SERVER_ENDED_PROTOCOL, CTL_BYE_PROTOCOL, "its HELLO has another magic number: it is no client of uroce");
		return false;
	}
	take_name(c, h);
	if (choose_version(h, &c->version))
		return true;
	connection_end(c, SERVER_REFUSED_VERSION, CTL_BYE_VERSION, "it speaks versions %u to %u of the control protocol, the daemon %u to %u", h->version_min, h->version_max, CTL_VERSION_MIN, CTL_VERSION_MAX);
	return false;
}

/* It came when there was room for an operator only. */
static bool find_room(struct connection *c)
{
	struct server *s = c->server;
	char text[CTL_TEXT_MAX];
	if (!server_has_room(s, c->peer.uid, text)) {
		connection_end(c, SERVER_REFUSED_LIMIT, CTL_BYE_LIMIT, "%s", text);
		return false;
	}
	c->user = quota_join(&s->quota, c->peer.uid);
	if (!c->user) {
		connection_end(c, SERVER_ENDED_FAILED, CTL_BYE_FAILED, "the daemon is out of memory");
		return false;
	}
	c->is_operator = false;
	s->n_operators--;
	s->n_clients++;
	return true;
}

static void on_hello(struct connection *c, const struct ctl_message *m, int fd)
{
	const struct ctl_hello *h = &m->hello;
	if ((c->is_operator && !find_room(c)) || !connection_meet(c, h))
		return;
	c->features = h->features & CTL_FEATURES;
	c->core = engine_core_choose(c->server->engine);
	connection_post_job(c, NULL, work_client, on_client_made);
}

/* ---- MAPPED ---- */

void connection_offer_region(struct connection *c)
{
	struct ctl_message m;
	memset(&m, 0, sizeof(m));
	if (core_client_region(c->client, c->arena, &c->base, &c->bytes, &c->fd)) {
		connection_end(c, SERVER_ENDED_FAILED, CTL_BYE_FAILED, "its arena %u is not there", c->arena);
		return;
	}
	m.region = (struct ctl_region){ .arena = c->arena, .bytes = c->bytes };
	if (connection_send(c, CTL_REGION, &m, c->fd))
		connection_enter(c, CONNECTION_MAPPING, MAPPED_PATIENCE_NS);
}

static void work_keep(struct job *j)
{
	struct connection *c = connection_of_job(j);
	c->job_err = region_keep(c->base, c->bytes, c->fd, &j->is_cancelled);
}

struct attach_mail {
	struct mail mail;
	struct core_client *client;
};

static void run_attach(struct mail *mail, uint64_t now_ns)
{
	core_client_attach(((struct attach_mail *)mail)->client);
}

static void attach(struct connection *c)
{
	struct attach_mail m = { .mail.run = run_attach, .client = c->client };
	struct core_who who = { .pid = c->peer.pid, .uid = c->peer.uid, .since_ns = server_now() };
	struct ctl_message ready; /* has no body */
	_Static_assert(sizeof(who.program) == sizeof(c->program), "it fits");
	memcpy(who.program, c->program, sizeof(who.program));
	core_client_introduce(c->client, &who);
	engine_carry_out(c->core, &m.mail);
	c->is_attached = true;
	connection_enter(c, CONNECTION_READY, 0);
	if (connection_send(c, CTL_READY, &ready, -1))
		server_note(c->server, SERVER_ATTACHED, LOG_INFO, "client pid %ld uid %u %s: is served by core %u", (long)c->peer.pid, c->peer.uid, c->program, engine_core_index(c->core));
}

static void on_kept(struct job *j)
{
	struct connection *c;
	if (!take_back(j, &c))
		return;
	if (c->job_err == -EPERM) {
		connection_end(c, SERVER_ENDED_PROTOCOL, CTL_BYE_PROTOCOL, "it says MAPPED of arena %u, which it has not sealed", c->arena);
		return;
	}
	if (c->job_err) {
		connection_end(c, SERVER_ENDED_FAILED, CTL_BYE_FAILED, "arena %u cannot be kept in memory: %s", c->arena, strerror(-c->job_err));
		return;
	}
	core_client_forget_fd(c->client, c->arena);
	close(c->fd);
	if (c->is_attached)
		connection_repeat_request(c);
	else
		attach(c);
}

static void on_mapped(struct connection *c, const struct ctl_message *m, int fd)
{
	if (m->mapped.arena == c->arena) {
		connection_post_job(c, NULL, work_keep, on_kept);
		return;
	}
	connection_end(c, SERVER_ENDED_PROTOCOL, CTL_BYE_PROTOCOL, "it says MAPPED of arena %u, and arena %u was sent", m->mapped.arena, c->arena);
}

/* ---- the table ---- */

static void on_request(struct connection *c, const struct ctl_message *m, int fd)
{
	connection_request(c, &m->request);
}

static void on_bye(struct connection *c, const struct ctl_message *m, int fd)
{
	connection_end(c, SERVER_ENDED_BYE, CTL_BYE_DONE, "says BYE");
}

typedef void message_fn(struct connection *c, const struct ctl_message *m, int fd);
static message_fn *const handlers[CONNECTION_STATES][CTL_TYPE_COUNT] = {
	[CONNECTION_HELLO] = { [CTL_HELLO] = on_hello, [CTL_OPERATOR] = connection_operate, [CTL_BYE] = on_bye },
	[CONNECTION_MAPPING] = { [CTL_MAPPED] = on_mapped, [CTL_BYE] = on_bye },
	[CONNECTION_READY] = { [CTL_REQUEST] = on_request, [CTL_BYE] = on_bye },
	[CONNECTION_OPERATOR] = { [CTL_SHOW] = connection_operate, [CTL_GID_ADD] = connection_operate, [CTL_GID_DEL] = connection_operate, [CTL_CLIENT_KILL] = connection_operate,
		[CTL_CAPTURE_START] = connection_operate, [CTL_CAPTURE_STOP] = connection_operate, [CTL_BYE] = on_bye },
};

static void handle(struct connection *c, const struct ctl_message *m, int fd)
{
	message_fn *handler = handlers[c->state][m->header.type];
	if (handler) {
		handler(c, m, fd);
		return;
	}
	server_count_up(c->server, SERVER_REFUSED_STATE);
	connection_end(c, SERVER_ENDED_PROTOCOL, CTL_BYE_PROTOCOL, "it may not say %s in state %s", ctl_rows[m->header.type].name, state_names[c->state]);
}

static void take_message(struct connection *c)
{
	struct ctl_message m;
	enum ctl_refusal why;
	int fd, err = ctl_recv(c->socket, true, &m, &fd, &why);
	if (err == -EAGAIN)
		return;
	if (err == -EPROTO) {
		server_count_up(c->server, (enum server_count)(SERVER_REFUSED_MESSAGE + why));
		connection_end(c, SERVER_ENDED_PROTOCOL, CTL_BYE_PROTOCOL, "what it sent is no message: %s", ctl_refusal_name(why));
		return;
	}
	if (err) {
		connection_end(c, SERVER_ENDED_BYE, CTL_BYE_DONE, "has closed its socket");
		return;
	}
	handle(c, &m, fd);
	if (fd >= 0)
		close(fd);
}

/* ---- events ---- */

static void on_socket(struct watch *w, uint32_t events)
{
	struct connection *c = (struct connection *)((uint8_t *)w - offsetof(struct connection, on_socket));
	if (c->state == CONNECTION_ENDING)
		return;
	if (events & (EPOLLHUP | EPOLLERR)) /* what it may still have said, nobody waits for an answer to */
		connection_end(c, SERVER_ENDED_BYE, CTL_BYE_DONE, "has closed its socket");
	else if (events & EPOLLIN)
		take_message(c);
}

static void on_death(struct watch *w, uint32_t events)
{
	struct connection *c = (struct connection *)((uint8_t *)w - offsetof(struct connection, on_death));
	connection_end(c, SERVER_ENDED_DEATH, CTL_BYE_DONE, "its process has ended");
}

static void link_client(struct server *s, struct connection *c)
{
	c->next = s->clients;
	if (c->next)
		c->next->prev = c;
	s->clients = c;
	*(c->is_operator ? &s->n_operators : &s->n_clients) += 1;
	s->n_deadlines++;
}

int connection_open(struct server *s, int socket, int pidfd, const struct ctl_peer *peer, bool is_operator)
{
	struct connection *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = (struct connection){ .on_socket.run = on_socket, .on_death.run = on_death, .server = s, .peer = *peer, .program = "-", .socket = socket, .pidfd = pidfd, .wake_fd = -1,
		.deadline_ns = server_now() + HELLO_PATIENCE_NS, .is_operator = is_operator };
	if (!is_operator)
		c->user = quota_join(&s->quota, peer->uid);
	int err = c->user || is_operator ? server_watch(s, socket, EPOLLIN, &c->on_socket) : -ENOMEM;
	if (!err)
		err = server_watch(s, pidfd, EPOLLIN, &c->on_death);
	if (err) {
		if (c->user)
			quota_leave(&s->quota, c->user);
		free(c); /* closing the descriptors ends the watching */
		return err;
	}
	link_client(s, c);
	server_note(s, SERVER_ACCEPTED, LOG_DEBUG, "client pid %ld uid %u has connected", (long)peer->pid, peer->uid);
	return 0;
}
