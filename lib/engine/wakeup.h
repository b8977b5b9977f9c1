/* SPDX-License-Identifier: BSD-3-Clause */
/* What ends a poll core's sleep: its own eventfd, or that of a client, which it watches. */
#ifndef UROCE_WAKEUP_H
#define UROCE_WAKEUP_H

#include <stdint.h>

struct wakeup {
	int watch_fd; /* epoll; its members tell each arrival once, so that one that is never read does not keep the core awake */
	int ring_fd;
};

/* 0 or a negative errno; wakeup_close is called in either case. */
int wakeup_open(struct wakeup *w);
void wakeup_close(struct wakeup *w);
/* Any thread. */
void wakeup_ring(struct wakeup *w);
/* fd is an eventfd that others write to. Any thread. 0 or a negative errno. */
int wakeup_watch(struct wakeup *w, int fd);
/* Any thread. */
void wakeup_unwatch(struct wakeup *w, int fd);
/* Sleeps until one of them is written to, at most ns. By one thread at a time. */
void wakeup_wait(struct wakeup *w, uint64_t ns);

#endif
