/* SPDX-License-Identifier: BSD-3-Clause */
/* Socket file and lock file. The lock, not the socket file, tells a living daemon from a dead one: the kernel drops it with its process.
 * Invariant: the socket file at the path is made and removed only by the holder of the lock. */
#include "server_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "socket.h"

#define BACKLOG 128

/* The daemon that locked the file before may have removed it since, and a third one made a new one: then ours is not the one at the path. */
static bool is_still_there(int fd, const char *path)
{
	struct stat ours, there;
	return !fstat(fd, &ours) && !lstat(path, &there) && ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

static int lock_file(const char *path)
{
	for (;;) {
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
		if (fd < 0)
			return -errno;
		int err = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
		if (!err && is_still_there(fd, path))
			return fd;
		close(fd);
		if (err)
			return err == -EWOULDBLOCK ? -EADDRINUSE : err;
	}
}

static int remove_leftover(const char *path)
{
	struct stat st;
	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	return unlink(path) ? -errno : 0;
}

/* Nobody can connect before listen, and by then the file is as it was wished. */
static int listen_at(struct server_path *p, mode_t mode, gid_t group)
{
	const char *path = p->address.sun_path;
	p->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (p->listen_fd < 0)
		return -errno;
	ctl_allow_fds(p->listen_fd, false);
	/* what bind gives the file, without the detour over this process's umask */
	if (fchmod(p->listen_fd, 0) || bind(p->listen_fd, (const struct sockaddr *)&p->address, sizeof(p->address))) {
		int err = -errno;
		close(p->listen_fd);
		p->listen_fd = -1;
		return err;
	}
	if ((group != (gid_t)-1 && lchown(path, (uid_t)-1, group)) || chmod(path, mode) || listen(p->listen_fd, BACKLOG))
		return -errno;
	return 0;
}

static const char *explain(int err)
{
	return err == -EADDRINUSE ? "another daemon serves it" : err == -EEXIST ? "a file that is no socket lies there" : strerror(-err);
}

int server_path_take(struct server_path *p, const char *path, mode_t mode, gid_t group, const struct log *log)
{
	*p = (struct server_path){ .address.sun_family = AF_UNIX, .lock_fd = -1, .listen_fd = -1 };
	if (!path[0] || strlen(path) >= sizeof(p->address.sun_path)) {
		log_write(log, LOG_ERROR, "socket \"%s\": a path of 1 to %zu characters is wanted", path, sizeof(p->address.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	memcpy(p->address.sun_path, path, strlen(path));
	snprintf(p->lock_path, sizeof(p->lock_path), "%s.lock", path);
	p->lock_fd = lock_file(p->lock_path);
	if (p->lock_fd < 0) {
		int err = p->lock_fd;
		p->lock_fd = -1;
		log_write(log, LOG_ERROR, "socket %s: %s", err == -EADDRINUSE ? path : p->lock_path, explain(err));
		return err;
	}
	int err = remove_leftover(path);
	if (!err)
		err = listen_at(p, mode, group);
	if (err) {
		log_write(log, LOG_ERROR, "socket %s: %s", path, explain(err));
		server_path_leave(p);
	}
	return err;
}

void server_path_close(struct server_path *p)
{
	if (p->listen_fd < 0)
		return;
	unlink(p->address.sun_path);
	close(p->listen_fd);
	p->listen_fd = -1;
}

void server_path_leave(struct server_path *p)
{
	server_path_close(p);
	if (p->lock_fd < 0)
		return;
	unlink(p->lock_path); /* before the lock goes: see is_still_there */
	close(p->lock_fd);
	p->lock_fd = -1;
}
