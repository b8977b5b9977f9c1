/* SPDX-License-Identifier: BSD-3-Clause */
/* A session with a daemon: the client's half of the dialogue of ctl.h. Owns every descriptor that came over the socket, and
 * the mappings of the daemon's memory. It knows no request but those of completion channels, which come with a descriptor;
 * what a request means is context.c's and its callers'.
 * Invariant: a message is taken only in a step that expects it; else the session ends. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memfd.h"
#include "talk.h"

#define ARENAS_MAX 4096u

/* A request may need memory, which the daemon has to clear first. */
const struct served_patience served_patience = { .step_ms = 5000, .reply_ms = 30000 };

enum step { STEP_WELCOME, STEP_WAKE, STEP_ASYNC, STEP_ARENA, STEP_READY, STEP_IDLE, STEP_REPLY, STEP_CHANNEL, STEPS };

#define ONE(type) (1u << CTL_##type)
/* What may come in each step, one bit for each enum ctl_type. BYE may always. */
static const uint32_t expected[STEPS] = {
	[STEP_WELCOME] = ONE(WELCOME),
	[STEP_WAKE] = ONE(WAKE),
	[STEP_ASYNC] = ONE(ASYNC),
	[STEP_ARENA] = ONE(REGION),
	[STEP_READY] = ONE(READY),
	[STEP_IDLE] = 0,
	[STEP_REPLY] = ONE(REGION) | ONE(REPLY),
	[STEP_CHANNEL] = ONE(REGION) | ONE(CHANNEL) | ONE(REPLY),
};

struct arena {
	void *base;
	uint64_t bytes;
};

struct held_channel {
	uint32_t handle;
	int fd;
};

struct served {
	struct talk talk;
	struct served_patience patience;
	enum step step;
	int wake_fd, async_fd;
	int channel_fd; /* came with CHANNEL, its REPLY is still to come */
	struct arena *arenas;
	uint32_t arenas_n;
	struct held_channel *channels;
	uint32_t channels_n;
	const struct abi_req *req; /* of the call that is going on */
	struct abi_rep *rep;
};

/* ---- what comes ---- */

static int take_welcome(struct served *s, const struct ctl_message *m, int *fd)
{
	const struct ctl_welcome *w = &m->welcome;
	void *life;
	int err;
	if (w->version < CTL_VERSION_MIN || w->version > CTL_VERSION_MAX)
		return talk_end(&s->talk, -EPROTONOSUPPORT, "chose version %u of the control protocol, this library speaks %u to %u",
			w->version, CTL_VERSION_MIN, CTL_VERSION_MAX);
	if (w->features & ~CTL_FEATURES)
		return talk_end(&s->talk, -EPROTO, "chose features 0x%llx, which were not offered", (unsigned long long)w->features);
	err = ctl_memfd_map(*fd, CTL_LIFE_BYTES, false, &life);
	if (err)
		return talk_end(&s->talk, err, "sent a life page that cannot be mapped: %s", strerror(-err));
	s->talk.life = life;
	s->step = STEP_WAKE;
	return 0;
}

/* Takes over a descriptor of the kind that is meant and of no other, which could block, or be one of the user's. */
static int take_file(struct served *s, int *fd, bool is_right, const char *kind, int flags, int *to)
{
	if (!is_right)
		return talk_end(&s->talk, -EPROTO, "sent another file than %s", kind);
	if (fcntl(*fd, F_SETFL, flags))
		return talk_end(&s->talk, -errno, "sent %s that cannot be set up: %s", kind, strerror(errno));
	*to = *fd;
	*fd = -1;
	return 0;
}

/* Linux does not tell an eventfd from its other files without a name; none of them takes eight bytes for anything but a number. */
static int take_wake(struct served *s, const struct ctl_message *m, int *fd)
{
	struct stat st;
	bool is_right = !fstat(*fd, &st) && !(st.st_mode & S_IFMT);
	s->step = STEP_ASYNC;
	return take_file(s, fd, is_right, "an eventfd", O_NONBLOCK, &s->wake_fd);
}

static bool has_option(int fd, int option, int value)
{
	int is = -1;
	socklen_t len = sizeof(is);
	return !getsockopt(fd, SOL_SOCKET, option, &is, &len) && is == value;
}

/* Whether its reads block is the program's to choose: at first they do. */
static int take_events(struct served *s, int *fd, int *to)
{
	bool is_right = has_option(*fd, SO_DOMAIN, AF_UNIX) && has_option(*fd, SO_TYPE, SOCK_SEQPACKET);
	return take_file(s, fd, is_right, "the end of a channel of events", 0, to);
}

static int take_async(struct served *s, const struct ctl_message *m, int *fd)
{
	s->step = STEP_ARENA;
	return take_events(s, fd, &s->async_fd);
}

static int take_channel(struct served *s, const struct ctl_message *m, int *fd)
{
	s->step = STEP_REPLY;
	return take_events(s, fd, &s->channel_fd);
}

static int map_arena(struct served *s, int fd, uint64_t bytes)
{
	struct arena *more = realloc(s->arenas, (s->arenas_n + 1) * sizeof(*more));
	int err;
	if (!more)
		return -ENOMEM;
	s->arenas = more;
	err = ctl_memfd_map(fd, bytes, true, &more[s->arenas_n].base);
	if (err)
		return err;
	more[s->arenas_n++].bytes = bytes;
	return ctl_memfd_seal(fd);
}

static int take_region(struct served *s, const struct ctl_message *m, int *fd)
{
	const struct ctl_region *r = &m->region;
	struct ctl_message mapped = { .mapped.arena = r->arena };
	int err;
	if (r->arena != s->arenas_n || r->arena >= ARENAS_MAX)
		return talk_end(&s->talk, -EPROTO, "sent arena %u, and the next one is %u", r->arena, s->arenas_n);
	if (r->bytes < CLIENT_DOORBELLS_OFFSET + sizeof(struct abi_doorbells))
		return talk_end(&s->talk, -EPROTO, "sent an arena of %llu bytes, too few", (unsigned long long)r->bytes);
	err = map_arena(s, *fd, r->bytes);
	if (err)
		return talk_end(&s->talk, err, "sent an arena of %llu bytes that cannot be mapped: %s", (unsigned long long)r->bytes,
			strerror(-err));
	if (s->step == STEP_ARENA) {
		s->talk.page = s->arenas[0].base;
		s->step = STEP_READY;
	}
	return talk_say(&s->talk, CTL_MAPPED, &mapped);
}

static int take_bye(struct served *s, const struct ctl_message *m, int *fd)
{
	return talk_on_bye(&s->talk, &m->bye);
}

static int take_ready(struct served *s, const struct ctl_message *m, int *fd)
{
	s->step = STEP_IDLE;
	return 0;
}

/* There is room for it: call saw to that. */
static void hold_channel(struct served *s, uint32_t handle)
{
	s->rep->channel.fd = s->channel_fd;
	s->channels[s->channels_n++] = (struct held_channel){ handle, s->channel_fd };
	s->channel_fd = -1;
}

static void drop_channel(struct served *s, uint32_t handle)
{
	for (uint32_t i = 0; i < s->channels_n; i++) {
		if (s->channels[i].handle != handle)
			continue;
		close(s->channels[i].fd);
		s->channels[i] = s->channels[--s->channels_n];
		return;
	}
}

static int take_reply(struct served *s, const struct ctl_message *m, int *fd)
{
	bool is_done = !m->reply.status;
	if (is_done && s->step == STEP_CHANNEL)
		return talk_end(&s->talk, -EPROTO, "made a completion channel and sent no descriptor for it");
	*s->rep = m->reply;
	if (is_done && s->channel_fd >= 0)
		hold_channel(s, m->reply.handle);
	if (is_done && s->req->type == ABI_DESTROY_CHANNEL)
		drop_channel(s, s->req->handle);
	s->step = STEP_IDLE;
	return 0;
}

/* By enum ctl_type. Each may keep the descriptor and then sets *fd to -1. */
static int (*const takers[CTL_TYPE_COUNT])(struct served *s, const struct ctl_message *m, int *fd) = {
	[CTL_WELCOME] = take_welcome,
	[CTL_WAKE] = take_wake,
	[CTL_ASYNC] = take_async,
	[CTL_REGION] = take_region,
	[CTL_READY] = take_ready,
	[CTL_CHANNEL] = take_channel,
	[CTL_REPLY] = take_reply,
	[CTL_BYE] = take_bye,
};

static int take_one(struct served *s, unsigned patience_ms)
{
	struct ctl_message m;
	int fd, err = talk_await(&s->talk, patience_ms, &m, &fd);
	if (err)
		return err;
	if (m.header.type == CTL_BYE || expected[s->step] >> m.header.type & 1)
		err = takers[m.header.type](s, &m, &fd);
	else
		err = talk_end(&s->talk, -EPROTO, "sent %s, which may not come now", ctl_rows[m.header.type].name);
	if (fd >= 0)
		close(fd);
	return err;
}

/* ---- the session ---- */

static bool has_room_for_channel(struct served *s)
{
	struct held_channel *more = realloc(s->channels, (s->channels_n + 1) * sizeof(*more));
	if (more)
		s->channels = more;
	return more;
}

static void close_channel_fd(struct served *s)
{
	if (s->channel_fd >= 0)
		close(s->channel_fd);
	s->channel_fd = -1;
}

/* Who waits for an event is woken, and finds the end behind what is there: a daemon that hangs keeps its own ends open. Not
 * by a read with a timeout, which no signal handler restarts. */
static void end_events(const struct served *s)
{
	shutdown(s->async_fd, SHUT_RD);
	for (uint32_t i = 0; i < s->channels_n; i++)
		shutdown(s->channels[i].fd, SHUT_RD);
}

static void ask(struct served *s, const struct abi_req *req, struct abi_rep *rep)
{
	struct ctl_message m = { .request = *req };
	int err;
	s->req = req;
	s->rep = rep;
	s->step = req->type == ABI_CREATE_CHANNEL ? STEP_CHANNEL : STEP_REPLY;
	err = talk_say(&s->talk, CTL_REQUEST, &m);
	while (!err && s->step != STEP_IDLE)
		err = take_one(s, s->patience.reply_ms);
	close_channel_fd(s); /* of a request that was refused */
}

static int call(void *session, const struct abi_req *req, struct abi_rep *rep)
{
	struct served *s = session;
	/* Between calls nobody looks at the socket: what the daemon said at the end waits there. */
	if (!s->talk.is_over && talk_is_broken(&s->talk))
		talk_take_leave(&s->talk);
	if (!s->talk.is_over) {
		if (req->type == ABI_CREATE_CHANNEL && !has_room_for_channel(s))
			return -ENOMEM;
		ask(s, req, rep);
	}
	if (!s->talk.is_over)
		return 0;
	end_events(s);
	if (req->type == ABI_DESTROY_CHANNEL)
		drop_channel(s, req->handle);
	return -ENODEV;
}

static int region(void *session, uint32_t arena, void **base, uint64_t *bytes)
{
	const struct served *s = session;
	if (arena >= s->arenas_n)
		return -ENOENT;
	*base = s->arenas[arena].base;
	*bytes = s->arenas[arena].bytes;
	return 0;
}

static void wake(void *session)
{
	const struct served *s = session;
	if (!talk_is_broken(&s->talk))
		eventfd_write(s->wake_fd, 1);
}

static const _Atomic uint32_t *life(void *session)
{
	return &((const struct served *)session)->talk.life->word;
}

static int async_fd(void *session)
{
	return ((const struct served *)session)->async_fd;
}

static void close_session(void *session)
{
	struct served *s = session;
	if (!s->talk.is_over && talk_is_broken(&s->talk))
		talk_take_leave(&s->talk);
	talk_hang_up(&s->talk);
	while (s->channels_n)
		drop_channel(s, s->channels[0].handle);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	if (s->async_fd >= 0)
		close(s->async_fd);
	for (uint32_t i = 0; i < s->arenas_n; i++)
		munmap(s->arenas[i].base, s->arenas[i].bytes);
	if (s->talk.life)
		munmap((void *)s->talk.life, CTL_LIFE_BYTES);
	free(s->channels);
	free(s->arenas);
	free(s->talk.path);
	free(s);
}

static const struct session_ops served_ops = {
	.call = call, .region = region, .wake = wake, .life = life, .async_fd = async_fd, .close = close_session
};

static int attach(struct served *s)
{
	struct ctl_message m = { .hello = { CTL_MAGIC, CTL_VERSION_MIN, CTL_VERSION_MAX, CTL_FEATURES, "" } };
	int err;
	snprintf(m.hello.program, sizeof(m.hello.program), "%s", program_invocation_short_name);
	err = talk_say(&s->talk, CTL_HELLO, &m);
	while (!err && s->step != STEP_IDLE)
		err = take_one(s, s->patience.step_ms);
	return err;
}

int served_open(const struct client_log *log, const char *path, const struct served_patience *patience,
	const struct session_ops **ops, void **session)
{
	struct served *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;
	if (!s)
		return err;
	*s = (struct served){ .talk = { .path = strdup(path), .socket = -1 }, .patience = *patience, .wake_fd = -1, .async_fd = -1,
		.channel_fd = -1 };
	context_log_copy(&s->talk.log, log);
	if (s->talk.path)
		err = dial(&log->log, path, patience->step_ms, &s->talk.socket);
	if (!err)
		err = attach(s);
	else
		s->talk.is_over = true;
	if (err) {
		close_session(s);
		return err;
	}
	*ops = &served_ops;
	*session = s;
	return 0;
}
