/* SPDX-License-Identifier: BSD-3-Clause */
/* A session with a daemon: the client's half of the dialogue of ctl.h. Owns every descriptor that came over the socket, and
 * the mappings of the daemon's memory. It knows no request but those of completion channels, which come with a descriptor;
 * what a request means is context.c's and its callers'.
 * Invariant: a message is taken only in a step that expects it; else the session ends. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

/* Takes one end of a pipe and nothing else: another kind of file could block, or be one of the user's. */
static int take_pipe(struct served *s, int *fd, int mode, int flags, int *to)
{
	struct stat st;
	int now = fcntl(*fd, F_GETFL);
	if (now < 0 || (now & O_ACCMODE) != mode || fstat(*fd, &st) || !S_ISFIFO(st.st_mode))
		return talk_end(&s->talk, -EPROTO, "sent another file than the %s end of a pipe", mode == O_RDONLY ? "reading" : "writing");
	if (fcntl(*fd, F_SETFL, flags))
		return talk_end(&s->talk, -errno, "sent a pipe that cannot be set up: %s", strerror(errno));
	*to = *fd;
	*fd = -1;
	return 0;
}

static int take_wake(struct served *s, const struct ctl_message *m, int *fd)
{
	s->step = STEP_ASYNC;
	return take_pipe(s, fd, O_WRONLY, O_NONBLOCK, &s->wake_fd);
}

static int take_async(struct served *s, const struct ctl_message *m, int *fd)
{
	s->step = STEP_ARENA;
	return take_pipe(s, fd, O_RDONLY, 0, &s->async_fd);
}

/* Whether its reads block is the program's to choose: at first they do. */
static int take_channel(struct served *s, const struct ctl_message *m, int *fd)
{
	s->step = STEP_REPLY;
	return take_pipe(s, fd, O_RDONLY, 0, &s->channel_fd);
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
	return 0;
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

static int call(void *session, const struct abi_req *req, struct abi_rep *rep)
{
	struct served *s = session;
	struct ctl_message m = { .request = *req };
	int err = 0;
	/* Between calls nobody looks at the socket: what the daemon said at the end waits there. */
	if (!s->talk.is_over && talk_is_broken(&s->talk))
		talk_take_leave(&s->talk);
	if (s->talk.is_over) {
		if (req->type == ABI_DESTROY_CHANNEL)
			drop_channel(s, req->handle);
		return -ENODEV;
	}
	if (req->type == ABI_CREATE_CHANNEL && !has_room_for_channel(s))
		return -ENOMEM;
	s->req = req;
	s->rep = rep;
	s->step = req->type == ABI_CREATE_CHANNEL ? STEP_CHANNEL : STEP_REPLY;
	err = talk_say(&s->talk, CTL_REQUEST, &m);
	while (!err && s->step != STEP_IDLE)
		err = take_one(s, s->patience.reply_ms);
	close_channel_fd(s); /* of a request that was refused */
	return err ? -ENODEV : 0;
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

/* A full pipe wakes as well as one more byte. A pipe whose daemon has gone must not end the program by a signal. */
static void wake(void *session)
{
	static const struct timespec at_once;
	const struct served *s = session;
	sigset_t broken_pipe, before;
	if (talk_is_broken(&s->talk))
		return;
	sigemptyset(&broken_pipe);
	sigaddset(&broken_pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
	if (write(s->wake_fd, "", 1) < 0 && errno == EPIPE)
		sigtimedwait(&broken_pipe, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
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
