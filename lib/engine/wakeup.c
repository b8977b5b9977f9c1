/* SPDX-License-Identifier: BSD-3-Clause */
/* A poll core's sleep. Owns an epoll set and the engine's own eventfd; the other members are whoever's watched them. Invariant: no member is ever read. An eventfd tells of each write, whatever it
 * holds already, and nothing that a client does with the one that it shares with us (fill it, take O_NONBLOCK off, have its page faults stand still) can so make the core wait. */
#include "wakeup.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define REPORTS_MAX 32
#define NS_IN_S 1000000000u

int wakeup_open(struct wakeup *w)
{
	*w = (struct wakeup){ .watch_fd = epoll_create1(EPOLL_CLOEXEC), .ring_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) };
	if (w->watch_fd < 0 || w->ring_fd < 0)
		return -errno;
	return wakeup_watch(w, w->ring_fd);
}

void wakeup_close(struct wakeup *w)
{
	if (w->ring_fd >= 0)
		close(w->ring_fd);
	if (w->watch_fd >= 0)
		close(w->watch_fd);
}

void wakeup_ring(struct wakeup *w)
{
	eventfd_write(w->ring_fd, 1); /* 2^64 rings are not to be had */
}

int wakeup_watch(struct wakeup *w, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	return epoll_ctl(w->watch_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void wakeup_unwatch(struct wakeup *w, int fd)
{
	epoll_ctl(w->watch_fd, EPOLL_CTL_DEL, fd, NULL);
}

void wakeup_wait(struct wakeup *w, uint64_t ns)
{
	struct pollfd fd = { .fd = w->watch_fd, .events = POLLIN };
	struct timespec wait = { (time_t)(ns / NS_IN_S), (long)(ns % NS_IN_S) };
	struct epoll_event reported[REPORTS_MAX];
	if (ppoll(&fd, 1, &wait, NULL) > 0)
		epoll_wait(w->watch_fd, reported, REPORTS_MAX, 0); /* what is reported does not end the next sleep */
}
