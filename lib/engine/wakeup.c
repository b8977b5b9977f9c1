/* SPDX-License-Identifier: BSD-3-Clause */
/* A poll core's sleep. Owns an epoll set and the engine's own pipe; the other members are whoever's watched them. Invariant: a descriptor is read only while it is a member, under the lock.
 * Linux 5.5 to 5.13 tell only of bytes in a pipe that was empty before: whoever writes more than is read here at once then wakes the core no more, and waits for the end of its sleep. */
#include "wakeup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define REPORTS_MAX 32
#define NS_IN_S 1000000000u

int wakeup_open(struct wakeup *w)
{
	*w = (struct wakeup){ .watch_fd = epoll_create1(EPOLL_CLOEXEC), .pipe = { -1, -1 } };
	pthread_mutex_init(&w->lock, NULL);
	if (w->watch_fd < 0 || pipe2(w->pipe, O_NONBLOCK | O_CLOEXEC))
		return -errno;
	return wakeup_watch(w, w->pipe[0]);
}

void wakeup_close(struct wakeup *w)
{
	const int fds[] = { w->pipe[0], w->pipe[1], w->watch_fd };
	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	pthread_mutex_destroy(&w->lock);
}

void wakeup_ring(struct wakeup *w)
{
	ssize_t n = write(w->pipe[1], "", 1); /* full: it has been rung */
	(void)n;
}

int wakeup_watch(struct wakeup *w, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = fd };
	return epoll_ctl(w->watch_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void wakeup_unwatch(struct wakeup *w, int fd)
{
	pthread_mutex_lock(&w->lock);
	epoll_ctl(w->watch_fd, EPOLL_CTL_DEL, fd, NULL);
	pthread_mutex_unlock(&w->lock);
}

static void read_reported(struct wakeup *w)
{
	struct epoll_event reported[REPORTS_MAX];
	char bytes[4096];
	pthread_mutex_lock(&w->lock);
	int n = epoll_wait(w->watch_fd, reported, REPORTS_MAX, 0);
	for (int i = 0; i < n; i++) {
		ssize_t got = read(reported[i].data.fd, bytes, sizeof(bytes));
		(void)got;
	}
	pthread_mutex_unlock(&w->lock);
}

void wakeup_wait(struct wakeup *w, uint64_t ns)
{
	struct pollfd fd = { .fd = w->watch_fd, .events = POLLIN };
	struct timespec wait = { (time_t)(ns / NS_IN_S), (long)(ns % NS_IN_S) };
	if (ppoll(&fd, 1, &wait, NULL) > 0)
		read_reported(w);
}
