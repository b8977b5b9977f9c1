/* SPDX-License-Identifier: BSD-3-Clause */
/* What ends a poll core's sleep: a byte in its own pipe, or in the pipe of a client that it watches. */
#ifndef UROCE_WAKEUP_H
#define UROCE_WAKEUP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct wakeup {
	int watch_fd; /* epoll; its members tell each arrival once, so that one that is never read empty does not keep the core awake */
	int pipe[2];
	pthread_mutex_t lock; /* held while reported members are read: none goes meanwhile */
};

/* 0 or a negative errno; wakeup_close is called in either case. */
int wakeup_open(struct wakeup *w);
void wakeup_close(struct wakeup *w);
/* Any thread. */
void wakeup_ring(struct wakeup *w);
/* fd is the reading end of a pipe, non-blocking. Any thread. 0 or a negative errno. */
int wakeup_watch(struct wakeup *w, int fd);
/* Afterwards fd is not touched any more. Any thread. */
void wakeup_unwatch(struct wakeup *w, int fd);
/* Sleeps until one of them rings, at most ns, and reads away what was written, bounded. By one thread at a time. */
void wakeup_wait(struct wakeup *w, uint64_t ns);

#endif
