/* SPDX-License-Identifier: BSD-3-Clause */
/* Work that takes milliseconds a MiB, making, sealing and freeing the memory of clients, on a thread of its own, one job after another, so that the control thread waits for none of it. What is small, or gives memory
 * back, is urgent: it and the rest take turns, so that a client that wants a lot holds up others that want a lot, and nobody's coming or going for longer than one job. Everything here is for the control thread, unless it says otherwise. */
#ifndef UROCE_SERVER_BUILDER_H
#define UROCE_SERVER_BUILDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct job {
	bool (*start)(struct job *j); /* control thread, when its turn has come; false: it is not wanted any more, nothing follows. NULL: always wanted */
	void (*work)(struct job *j);  /* the builder's thread */
	void (*done)(struct job *j);  /* control thread; may post j again */
	_Atomic bool is_cancelled;    /* work ends early if it can; done is called all the same */
	struct job *next;
};

struct job_queue {
	struct job *first, **last;
};

struct builder {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t handed_over;
	struct job *current; /* under lock: in the thread's hands, or finished and not yet taken back */
	bool is_finished, is_stopping;
	int event_fd; /* readable: call builder_on_event */
	struct job_queue urgent, others; /* those that wait: the control thread's alone */
	bool was_urgent;                 /* the last one */
};

/* 0 or a negative errno. */
int builder_start(struct builder *b);
/* Nothing is under way and nothing waits. */
void builder_stop(struct builder *b);
void builder_post(struct builder *b, struct job *j, bool is_urgent);
/* true: it was still waiting, and nothing follows. false: it is under way, is_cancelled is set, done follows. */
bool builder_cancel(struct builder *b, struct job *j);
void builder_on_event(struct builder *b);

#endif
