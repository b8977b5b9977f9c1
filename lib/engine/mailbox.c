/* SPDX-License-Identifier: BSD-3-Clause */
/* A list under a mutex, and a condition for those who wait. Invariant: has_mail is set, under the lock, exactly while the list is not empty; so a driver that reads it late only does the work a loop later. */
#include "mailbox.h"

void mailbox_init(struct mailbox *b)
{
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->done, NULL);
	b->first = NULL;
	b->last = &b->first;
	atomic_init(&b->has_mail, false);
}

void mailbox_destroy(struct mailbox *b)
{
	pthread_cond_destroy(&b->done);
	pthread_mutex_destroy(&b->lock);
}

void mailbox_post(struct mailbox *b, struct mail *m)
{
	pthread_mutex_lock(&b->lock);
	m->next = NULL;
	m->is_done = false;
	*b->last = m;
	b->last = &m->next;
	atomic_store_explicit(&b->has_mail, true, memory_order_relaxed);
	pthread_mutex_unlock(&b->lock);
}

void mailbox_wait(struct mailbox *b, struct mail *m)
{
	pthread_mutex_lock(&b->lock);
	while (!m->is_done)
		pthread_cond_wait(&b->done, &b->lock);
	pthread_mutex_unlock(&b->lock);
}

bool mailbox_is_done(struct mailbox *b, struct mail *m)
{
	pthread_mutex_lock(&b->lock);
	bool is_done = m->is_done;
	pthread_mutex_unlock(&b->lock);
	return is_done;
}

unsigned mailbox_serve(struct mailbox *b, uint64_t now_ns)
{
	unsigned n = 0;
	pthread_mutex_lock(&b->lock);
	struct mail *next = b->first;
	b->first = NULL;
	b->last = &b->first;
	atomic_store_explicit(&b->has_mail, false, memory_order_relaxed);
	for (struct mail *m; (m = next); n++) {
		next = m->next; /* once it is done it is gone */
		pthread_mutex_unlock(&b->lock);
		m->run(m, now_ns);
		pthread_mutex_lock(&b->lock);
		m->is_done = true;
		pthread_cond_broadcast(&b->done);
	}
	pthread_mutex_unlock(&b->lock);
	return n;
}
