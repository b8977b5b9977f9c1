/* SPDX-License-Identifier: BSD-3-Clause */
/* The control thread: its start and end, its loop, and who may come in. Owns the socket, the list of clients and the counters; what is said with a client is connection.c's.
 * Invariant: a connection that ends in a turn of the loop is freed in a later one at the earliest, so an event of the same turn never meets freed memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "server_inside.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

#define EVENTS 64
#define ACCEPTS_A_TURN 8
#define CHECK_NS 100000000u /* how exact deadlines are */
#define FDS_A_CLIENT 6u     /* socket, pidfd, eventfd of doorbells, two ends of a channel of events, one region on its way */
#define FDS_OF_OURS 64u

static const char *const count_names[SERVER_COUNTS] = {
	[SERVER_ACCEPTED] = "accepted",
	[SERVER_ATTACHED] = "attached",
	[SERVER_ENDED_BYE] = "ended_bye",
	[SERVER_ENDED_DEATH] = "ended_death",
	[SERVER_ENDED_PROTOCOL] = "ended_protocol",
	[SERVER_ENDED_UNREAD] = "ended_unread",
	[SERVER_ENDED_SILENT] = "ended_silent",
	[SERVER_ENDED_FAILED] = "ended_failed",
	[SERVER_ENDED_KILLED] = "ended_killed",
	[SERVER_ENDED_SHUTDOWN] = "ended_shutdown",
	[SERVER_REFUSED_LIMIT] = "refused_limit",
	[SERVER_REFUSED_VERSION] = "refused_version",
	[SERVER_REFUSED_QUOTA] = "refused_quota",
	[SERVER_REFUSED_PEER] = "refused_peer",
	[SERVER_REFUSED_OPERATOR] = "refused_operator",
	[SERVER_REFUSED_STATE] = "refused_state",
	[SERVER_OPERATED] = "operated",
	[SERVER_REFUSED_MESSAGE + CTL_OK] = "refused_message_none",
	[SERVER_REFUSED_MESSAGE + CTL_SHORT] = "refused_message_short",
	[SERVER_REFUSED_MESSAGE + CTL_UNKNOWN] = "refused_message_unknown",
	[SERVER_REFUSED_MESSAGE + CTL_LENGTH] = "refused_message_length",
	[SERVER_REFUSED_MESSAGE + CTL_FDS] = "refused_message_descriptors",
	[SERVER_REFUSED_MESSAGE + CTL_DIRECTION] = "refused_message_direction",
};

const char *server_count_name(enum server_count c)
{
	return (unsigned)c < SERVER_COUNTS ? count_names[c] : "?";
}

uint64_t server_count(const struct server *s, enum server_count c)
{
	return (unsigned)c < SERVER_COUNTS ? atomic_load_explicit(&s->count[c], memory_order_relaxed) : 0;
}

uint32_t server_clients(const struct server *s)
{
	return s->n_clients;
}

uint64_t server_now(void)
{
	return clock_monotonic();
}

void server_count_up(struct server *s, enum server_count count)
{
	atomic_fetch_add_explicit(&s->count[count], 1, memory_order_relaxed);
}

void server_note(struct server *s, enum server_count count, enum log_level level, const char *format, ...)
{
	char line[400];
	va_list args;
	server_count_up(s, count);
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log_limited(s->log, &s->limit[count], server_now(), level, "%s", line);
}

int server_watch(struct server *s, int fd, uint32_t events, struct watch *w)
{
	struct epoll_event e = { .events = events, .data.ptr = w };
	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

void server_defaults(struct server_config *c)
{
	static const struct core_usage client = {
		.pds = 1024, .qps = 16384, .cqs = 16384, .srqs = 4096, .ahs = 16384, .mrs = 65536, .mws = 65536, .channels = 256, .attachments = 64, .registered_bytes = 4ull << 30, .ring_bytes = 512ull << 20, .pool_bytes = 1ull << 30,
	};
	static const struct core_usage uid = {
		.pds = 4096, .qps = 32768, .cqs = 32768, .srqs = 8192, .ahs = 32768, .mrs = 131072, .mws = 131072, .channels = 1024, .attachments = 192, .registered_bytes = 8ull << 30, .ring_bytes = 1ull << 30, .pool_bytes = 2ull << 30,
	};
	*c = (struct server_config){ .path = "/run/uroce/uroce0.sock", .mode = 0660, .group = (gid_t)-1, .max_clients = 1024, .max_clients_per_uid = 512, .client = client, .uid = uid, .node = -1 };
}

/* ---- who comes in ---- */

__attribute__((format(printf, 5, 6))) static void turn_away(struct server *s, int socket, enum server_count count, enum ctl_bye_code code, const char *format, ...)
{
	char text[CTL_TEXT_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	server_note(s, count, LOG_WARN, "turned away: %s", text);
	connection_dismiss(socket, code, text);
}

/* Refers to the process that connected, even if its number has another owner by now; an older kernel can only be asked by number. */
static int open_pidfd(int socket, pid_t pid)
{
	int fd;
	socklen_t len = sizeof(fd);
	if (!getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &len))
		return fd;
	fd = errno == ENOPROTOOPT ? pidfd_open(pid, 0) : -1;
	if (fd >= 0)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool server_has_room(const struct server *s, uid_t uid, char text[CTL_TEXT_MAX])
{
	uint32_t of_user = quota_clients(&s->quota, uid);
	if (s->n_clients >= s->config.max_clients)
		snprintf(text, CTL_TEXT_MAX, "the daemon serves %u clients, as many as it may", s->n_clients);
	else if (of_user >= s->config.max_clients_per_uid)
		snprintf(text, CTL_TEXT_MAX, "user %u has %u clients, as many as one user may have", uid, of_user);
	else
		return true;
	return false;
}

static void admit(struct server *s, int socket)
{
	struct ctl_peer peer;
	char text[CTL_TEXT_MAX];
	int err = ctl_peer_of(socket, &peer);
	if (err || peer.pid <= 0) {
		turn_away(s, socket, SERVER_ENDED_FAILED, CTL_BYE_FAILED, "the client's process cannot be seen from here: it is in a PID namespace that is not below this daemon's");
		return;
	}
	bool has_room = server_has_room(s, peer.uid, text);
	/* Who may be an operator comes in all the same, to see why and to make some. */
	if (!has_room && !(connection_may_operate(&peer) && s->n_operators < OPERATORS_MAX)) {
		turn_away(s, socket, SERVER_REFUSED_LIMIT, CTL_BYE_LIMIT, "%s", text);
		return;
	}
	ctl_allow_fds(socket, connection_may_operate(&peer)); /* only an operator has something to pass */
	int pidfd = open_pidfd(socket, peer.pid);
	if (pidfd == -ESRCH || pidfd == -EINVAL) { /* it came and went */
		server_note(s, SERVER_ENDED_DEATH, LOG_INFO, "client pid %ld: had ended before it was let in", (long)peer.pid);
		close(socket);
		return;
	}
	err = pidfd < 0 ? pidfd : connection_open(s, socket, pidfd, &peer, !has_room);
	if (!err)
		return;
	if (pidfd >= 0)
		close(pidfd);
	turn_away(s, socket, SERVER_ENDED_FAILED, CTL_BYE_FAILED, "the daemon cannot take another client: %s", strerror(-err));
}

/* Without descriptors the connection would wait for ever, and the loop be woken for it again and again. */
static void refuse_for_want_of_descriptors(struct server *s)
{
	if (s->spare_fd >= 0)
		close(s->spare_fd);
	int fd = accept4(s->path.listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		turn_away(s, fd, SERVER_REFUSED_LIMIT, CTL_BYE_LIMIT, "the daemon has no descriptors left");
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void on_listen(struct watch *w, uint32_t events)
{
	struct server *s = (struct server *)((uint8_t *)w - offsetof(struct server, on_listen));
	for (unsigned i = 0; i < ACCEPTS_A_TURN; i++) {
		int fd = accept4(s->path.listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			admit(s, fd);
		else if (errno == EMFILE || errno == ENFILE)
			refuse_for_want_of_descriptors(s);
		else if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

/* ---- the loop ---- */

static void on_quit(struct watch *w, uint32_t events)
{
	struct server *s = (struct server *)((uint8_t *)w - offsetof(struct server, on_quit));
	eventfd_t n;
	if (!eventfd_read(s->quit_fd, &n))
		s->is_quitting = true;
}

static void on_built(struct watch *w, uint32_t events)
{
	builder_on_event(&((struct server *)((uint8_t *)w - offsetof(struct server, on_built)))->builder);
}

static void check_deadlines(struct server *s)
{
	uint64_t now_ns = server_now();
	if (!s->n_deadlines || now_ns < s->check_at_ns)
		return;
	s->check_at_ns = now_ns + CHECK_NS;
	for (struct connection *c = s->clients; c; c = c->next)
		connection_check_deadline(c, now_ns);
}

static void run_turn(struct server *s)
{
	struct epoll_event events[EVENTS];
	bool has_pieces = connection_end_pieces(s);
	int n = epoll_wait(s->epoll_fd, events, EVENTS, has_pieces ? 0 : s->n_deadlines ? (int)(CHECK_NS / 1000000u) : -1);
	for (int i = 0; i < n; i++) {
		struct watch *w = events[i].data.ptr;
		w->run(w, events[i].events);
	}
	check_deadlines(s);
}

void server_run(struct server *s)
{
	for (s->is_quitting = false; !s->is_quitting;)
		run_turn(s);
}

void server_quit(struct server *s)
{
	eventfd_write(s->quit_fd, 1);
}

/* ---- start and stop ---- */

static int start_loop(struct server *s)
{
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->quit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (s->epoll_fd < 0 || s->quit_fd < 0 || s->spare_fd < 0)
		return -errno;
	s->on_listen.run = on_listen;
	s->on_quit.run = on_quit;
	s->on_built.run = on_built;
	int err = server_watch(s, s->path.listen_fd, EPOLLIN, &s->on_listen);
	if (!err)
		err = server_watch(s, s->quit_fd, EPOLLIN, &s->on_quit);
	if (!err)
		err = server_watch(s, s->builder.event_fd, EPOLLIN, &s->on_built);
	return err;
}

static void stop_loop(struct server *s)
{
	const int fds[] = { s->epoll_fd, s->quit_fd, s->spare_fd };
	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void warn_of_few_descriptors(const struct server *s)
{
	struct rlimit limit;
	uint64_t wanted = FDS_OF_OURS + (uint64_t)s->config.max_clients * FDS_A_CLIENT + 2 * (uint64_t)s->config.uid.channels;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < wanted)
		log_write(s->log, LOG_WARN, "%llu descriptors are allowed, and %u clients can need %llu (LimitNOFILE, ulimit -n): then some will be refused", (unsigned long long)limit.rlim_cur,
			s->config.max_clients, (unsigned long long)wanted);
}

/* Everything that does not depend on a client; each error after one line. */
static int start_parts(struct server *s)
{
	int err = server_path_take(&s->path, s->config.path, s->config.mode, s->config.group, s->log);
	if (err)
		return err;
	err = server_life_begin(&s->life);
	if (!err)
		err = builder_start(&s->builder);
	if (!err) {
		err = start_loop(s);
		if (err)
			builder_stop(&s->builder);
	}
	if (err)
		log_write(s->log, LOG_ERROR, "socket %s: cannot be served: %s", s->config.path, strerror(-err));
	return err;
}

static void free_server(struct server *s)
{
	stop_loop(s);
	server_life_end(&s->life);
	server_path_leave(&s->path);
	free(s);
}

int server_start(struct server **out, struct engine *e, const struct server_config *config)
{
	struct server *s = calloc(1, sizeof(*s));
	if (!s) {
		log_write(config->log, LOG_ERROR, "socket %s: out of memory", config->path);
		return -ENOMEM;
	}
	s->config = *config;
	if (config->log) {
		s->log_copy = *config->log;
		s->log = &s->log_copy;
	}
	s->engine = e;
	s->epoll_fd = s->quit_fd = s->spare_fd = -1;
	s->life.fd = -1;
	s->last_ending = &s->ending;
	s->regions = (struct region_source){ .node = config->node, .log = s->log };
	int err = start_parts(s);
	if (err) {
		free_server(s);
		return err;
	}
	s->config.path = s->path.address.sun_path;
	warn_of_few_descriptors(s);
	*out = s;
	return 0;
}

void server_stop(struct server *s, enum ctl_bye_code code, const char *text)
{
	server_path_close(&s->path);
	for (struct connection *c = s->clients; c; c = c->next)
		connection_end(c, SERVER_ENDED_SHUTDOWN, code, "%s", text);
	while (s->clients)
		run_turn(s);
	builder_stop(&s->builder);
	free_server(s);
}
