/* SPDX-License-Identifier: BSD-3-Clause */
/* Work that other threads want done by the thread that drives the engine: control calls, clients coming and going. Slow path; the driver pays one relaxed load a loop while it is empty. */
#ifndef UROCE_MAILBOX_H
#define UROCE_MAILBOX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Lives on its poster's stack until it is done. */
struct mail {
	void (*run)(struct mail *m, uint64_t now_ns);
	struct mail *next;
	bool is_done;
};

struct mailbox {
	pthread_mutex_t lock;
	pthread_cond_t done;
	struct mail *first, **last;
	_Atomic bool has_mail;
};

void mailbox_init(struct mailbox *b);
void mailbox_destroy(struct mailbox *b);
/* Any thread. The driver has to be woken afterwards if it may sleep. */
void mailbox_post(struct mailbox *b, struct mail *m);
/* Blocks until m has run. */
void mailbox_wait(struct mailbox *b, struct mail *m);
bool mailbox_is_done(struct mailbox *b, struct mail *m);
/* The driver: runs all that waits, in the order of posting; how many. What is posted meanwhile waits for the next time, so that posters who follow each other do not hold up the driver. */
unsigned mailbox_serve(struct mailbox *b, uint64_t now_ns);

static inline bool mailbox_has_mail(const struct mailbox *b)
{
	return atomic_load_explicit(&b->has_mail, memory_order_relaxed);
}

#endif
