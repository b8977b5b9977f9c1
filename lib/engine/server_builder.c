/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread, one job in its hands. Invariant: `current` goes from NULL to a job by the control thread only, and back by it only; the thread between them sets is_finished and touches the job no more. */
#include "server_builder.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void *run_jobs(void *arg)
{
	struct builder *b = arg;
	pthread_mutex_lock(&b->lock);
	for (;;) {
		while (!b->is_stopping && (!b->current || b->is_finished))
			pthread_cond_wait(&b->handed_over, &b->lock);
		if (b->is_stopping)
			break;
		struct job *j = b->current;
		pthread_mutex_unlock(&b->lock);
		j->work(j);
		pthread_mutex_lock(&b->lock);
		b->is_finished = true;
		eventfd_write(b->event_fd, 1);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

int builder_start(struct builder *b)
{
	sigset_t all, old;
	*b = (struct builder){ .event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	b->urgent.last = &b->urgent.first;
	b->others.last = &b->others.first;
	if (b->event_fd < 0)
		return -errno;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->handed_over, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old); /* the program's signals are the program's */
	int err = -pthread_create(&b->thread, NULL, run_jobs, b);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		close(b->event_fd);
	else
		pthread_setname_np(b->thread, "uroce-memory");
	return err;
}

void builder_stop(struct builder *b)
{
	pthread_mutex_lock(&b->lock);
	b->is_stopping = true;
	pthread_cond_signal(&b->handed_over);
	pthread_mutex_unlock(&b->lock);
	pthread_join(b->thread, NULL);
	pthread_cond_destroy(&b->handed_over);
	pthread_mutex_destroy(&b->lock);
	close(b->event_fd);
}

static void hand_over(struct builder *b, struct job *j)
{
	pthread_mutex_lock(&b->lock);
	b->current = j;
	b->is_finished = false;
	pthread_cond_signal(&b->handed_over);
	pthread_mutex_unlock(&b->lock);
}

static struct job *take_first(struct job_queue *q)
{
	struct job *j = q->first;
	if (!j)
		return NULL;
	q->first = j->next;
	if (!q->first)
		q->last = &q->first;
	return j;
}

static bool remove_from(struct job_queue *q, struct job *j)
{
	struct job **at = &q->first;
	while (*at && *at != j)
		at = &(*at)->next;
	if (!*at)
		return false;
	*at = j->next;
	if (!*at)
		q->last = at;
	return true;
}

/* Only this thread sets current, so it may read it without the lock. */
static void start_next(struct builder *b)
{
	while (!b->current) {
		b->was_urgent = b->urgent.first && !(b->others.first && b->was_urgent);
		struct job *j = take_first(b->was_urgent ? &b->urgent : &b->others);
		if (!j)
			return;
		if (!j->start || j->start(j))
			hand_over(b, j);
	}
}

void builder_post(struct builder *b, struct job *j, bool is_urgent)
{
	struct job_queue *q = is_urgent ? &b->urgent : &b->others;
	j->next = NULL;
	atomic_store_explicit(&j->is_cancelled, false, memory_order_relaxed);
	*q->last = j;
	q->last = &j->next;
	start_next(b);
}

bool builder_cancel(struct builder *b, struct job *j)
{
	if (remove_from(&b->urgent, j) || remove_from(&b->others, j))
		return true;
	atomic_store_explicit(&j->is_cancelled, true, memory_order_relaxed);
	return false;
}

void builder_on_event(struct builder *b)
{
	eventfd_t n;
	eventfd_read(b->event_fd, &n);
	pthread_mutex_lock(&b->lock);
	struct job *j = b->is_finished ? b->current : NULL;
	if (j) {
		b->current = NULL;
		b->is_finished = false;
	}
	pthread_mutex_unlock(&b->lock);
	if (j)
		j->done(j);
	start_next(b);
}
