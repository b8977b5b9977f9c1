/* SPDX-License-Identifier: BSD-3-Clause */
/* See fake_daemon.h. Written from ctl.h alone, never from the client's sources. */
#include "fake_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "memfd.h"
#include "socket.h"

/* In a thread of its own a failed assertion has nowhere to go. */
static void insist(bool is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "fake daemon: %s\n", what);
	abort();
}

/* ---- the end ---- */

void fake_daemon_die(struct fake_daemon *d, bool is_whole)
{
	atomic_store(&d->life->word, CTL_LIFE_DEAD);
	if (!is_whole)
		return;
	for (unsigned i = 0; i < d->f->channels; i++) {
		close(d->f->channel[i][1]);
		d->f->channel[i][1] = -1;
	}
	close(d->f->async[1]);
	close(d->wake);
	d->f->async[1] = d->wake = -1;
	shutdown(d->socket, SHUT_RDWR);
}

static void say_bye(struct fake_daemon *d, int code)
{
	struct ctl_message m = { .bye.code = (uint32_t)code };
	memset(m.bye.text, 'x', sizeof(m.bye.text)); /* without an end */
	memcpy(m.bye.text, "that is why ", 12);
	ctl_send(d->socket, CTL_BYE, &m, -1);
}

/* ---- mischief ---- */

static int open_other_file(struct fake_daemon *d, int which)
{
	int fd[2] = { -1, -1 };
	switch ((enum other_file)which) {
	case FILE_ON_DISK:
		return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	case FILE_READING_END:
	case FILE_WRITING_END:
		insist(!pipe2(fd, O_CLOEXEC), "pipe");
		close(fd[which == FILE_READING_END]);
		return fd[which != FILE_READING_END];
	case FILE_SOCKET:
		return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	case FILE_DATAGRAM:
	case FILE_EVENTS:
		insist(!socketpair(AF_UNIX, (which == FILE_EVENTS ? SOCK_SEQPACKET : SOCK_DGRAM) | SOCK_CLOEXEC, 0, fd), "socketpair");
		close(fd[1]);
		return fd[0];
	case FILE_EVENTFD:
		return eventfd(0, EFD_CLOEXEC);
	default:
		fd[0] = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		insist(!ftruncate(fd[0], 64), "ftruncate");
		return fd[0];
	}
}

static void send_with_other_file(struct fake_daemon *d, enum ctl_type type, struct ctl_message *m, int which)
{
	int fd = open_other_file(d, which);
	insist(fd >= 0, "another file");
	insist(!ctl_send(d->socket, type, m, fd), "sending another file");
	close(fd);
}

static void send_other(struct fake_daemon *d, enum ctl_type type)
{
	struct ctl_message m = { 0 };
	if (ctl_rows[type].has_fd)
		send_with_other_file(d, type, &m, FILE_EVENTFD);
	else
		insist(!ctl_send(d->socket, type, &m, -1), "sending another message");
}

static void send_no_message(struct fake_daemon *d, int fds)
{
	char control[CMSG_SPACE(20 * sizeof(int))] = { 0 };
	struct iovec iov = { control, 5 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN((size_t)fds * sizeof(int)) };
	memcpy(control, &header, sizeof(header));
	for (int i = 0; i < fds; i++)
		memcpy(control + CMSG_LEN((size_t)i * sizeof(int)), &d->life_fd, sizeof(int));
	if (fds) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE((size_t)fds * sizeof(int));
	}
	insist(sendmsg(d->socket, &msg, MSG_NOSIGNAL) == 5, "sending no message");
}

/* false: it has nothing more to say. */
static bool misbehave(struct fake_daemon *d, enum ctl_type type, struct ctl_message *m, int fd)
{
	switch (d->how) {
	case SEND_OTHER:
		send_other(d, (enum ctl_type)d->arg);
		return true;
	case SEND_OTHER_FILE:
		send_with_other_file(d, type, m, d->arg);
		return true;
	case SEND_NO_MESSAGE:
		send_no_message(d, d->arg);
		return true;
	case SEND_TWISTED:
		d->twist(d, m);
		insist(!ctl_send(d->socket, type, m, fd), "sending");
		return true;
	case SAY_BYE:
		say_bye(d, d->arg);
		break;
	case HANG_UP:
		shutdown(d->socket, SHUT_RDWR);
		break;
	case STAY_SILENT:
		break;
	case DIE:
	case DIE_IN_PART:
		fake_daemon_die(d, d->how == DIE);
		break;
	case LET_GO:
		atomic_store(&d->f->page->dead, 1);
		break;
	case LET_GO_BYE:
		atomic_store(&d->f->page->dead, 1);
		usleep(30000);
		say_bye(d, CTL_BYE_KILLED);
		break;
	}
	return false;
}

/* ---- the dialogue ---- */

static bool say(struct fake_daemon *d, enum ctl_type type, struct ctl_message *m, int fd)
{
	int err;
	if (d->sent++ == d->at)
		return misbehave(d, type, m, fd);
	err = ctl_send(d->socket, type, m, fd);
	insist(!err || err == -EPIPE || err == -ECONNRESET, "sending");
	return !err;
}

static bool say_empty(struct fake_daemon *d, enum ctl_type type, int fd)
{
	struct ctl_message m = { 0 };
	return say(d, type, &m, fd);
}

/* false: the client is gone. */
static bool hear(struct fake_daemon *d, struct ctl_message *m)
{
	enum ctl_refusal why;
	int fd, err = ctl_recv(d->socket, true, m, &fd, &why);
	if (err == -ECONNRESET)
		return false;
	insist(!err, "the client sent no message");
	insist(fd < 0, "the client sent a descriptor");
	if (m->header.type != CTL_BYE)
		return true;
	d->bye = m->bye;
	d->byes++;
	return false;
}

static bool send_region(struct fake_daemon *d, unsigned arena)
{
	struct ctl_message m = { .region = { .arena = arena, .bytes = arena ? FAKE_ARENA : FAKE_ARENA0 } };
	if (!say(d, CTL_REGION, &m, d->f->arena_fd[arena]) || !hear(d, &m))
		return false;
	insist(m.header.type == CTL_MAPPED && m.mapped.arena == arena, "the answer to REGION is not MAPPED");
	insist(ctl_memfd_is_sealed(d->f->arena_fd[arena]), "the client has not sealed the region");
	return true;
}

static bool attach(struct fake_daemon *d)
{
	struct ctl_message m;
	if (!hear(d, &m))
		return false;
	insist(m.header.type == CTL_HELLO && m.hello.magic == CTL_MAGIC, "the first message is not HELLO");
	d->hello = m.hello;
	m.welcome = (struct ctl_welcome){ .version = CTL_VERSION_MAX };
	return say(d, CTL_WELCOME, &m, d->life_fd) && say_empty(d, CTL_WAKE, d->wake) && say_empty(d, CTL_ASYNC, d->f->async[0])
		&& send_region(d, 0) && say_empty(d, CTL_READY, -1);
}

static bool needs_memory(uint32_t type)
{
	return type == ABI_CREATE_CQ || type == ABI_CREATE_QP || type == ABI_ALLOC_MEMORY;
}

static bool serve_one(struct fake_daemon *d)
{
	struct ctl_message m;
	struct abi_req req;
	if (!hear(d, &m))
		return false;
	insist(m.header.type == CTL_REQUEST, "another message than REQUEST");
	req = m.request;
	if (needs_memory(req.type) && !d->has_arena1) {
		d->has_arena1 = true;
		if (!send_region(d, 1))
			return false;
	}
	fake_answer(d->f, &req, &m.reply);
	if (req.type == ABI_CREATE_CHANNEL && !m.reply.status) {
		m.reply.channel.fd = -1;
		if (!say_empty(d, CTL_CHANNEL, d->f->channel[d->f->channels - 1][0]))
			return false;
	}
	return say(d, CTL_REPLY, &m, -1);
}

static void *serve(void *arg)
{
	struct fake_daemon *d = arg;
	struct ctl_message m;
	d->socket = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);
	if (d->socket < 0)
		return NULL; /* nobody came, see fake_daemon_wait */
	if (attach(d))
		while (serve_one(d))
			;
	while (!d->byes && hear(d, &m))
		;
	return NULL;
}

/* ---- coming and going ---- */

struct fake_daemon *fake_daemon_new(void)
{
	struct fake_daemon *d = calloc(1, sizeof(*d));
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	assert_non_null(d);
	d->f = fake_new();
	strcpy(d->dir, "/tmp/uroce-test-XXXXXX");
	assert_non_null(mkdtemp(d->dir));
	snprintf(d->path, sizeof(d->path), "%s/socket", d->dir);
	strcpy(at.sun_path, d->path);
	d->socket = -1;
	d->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(d->listener >= 0);
	assert_int_equal(bind(d->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(d->listener, 1), 0);
	d->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(d->wake >= 0);
	d->life_fd = memfd_create("life", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(d->life_fd, CTL_LIFE_BYTES), 0);
	d->life = mmap(NULL, CTL_LIFE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, d->life_fd, 0);
	assert_true(d->life != MAP_FAILED);
	assert_int_equal(fcntl(d->life_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	d->at = NEVER;
	return d;
}

void fake_daemon_serve(struct fake_daemon *d)
{
	assert_int_equal(pthread_create(&d->thread, NULL, serve, d), 0);
}

void fake_daemon_wait(struct fake_daemon *d)
{
	shutdown(d->listener, SHUT_RDWR);
	assert_int_equal(pthread_join(d->thread, NULL), 0);
}

void fake_daemon_free(struct fake_daemon *d)
{
	if (d->socket >= 0)
		close(d->socket);
	close(d->listener);
	close(d->wake);
	close(d->life_fd);
	munmap(d->life, CTL_LIFE_BYTES);
	unlink(d->path);
	rmdir(d->dir);
	fake_free(d->f);
	free(d);
}
