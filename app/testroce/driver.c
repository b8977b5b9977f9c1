/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the thread. It gives its CPU away whenever a round found nothing, since engines, peers and the prompt may share it; without traffic it sleeps between looks. */
#include "driver.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "flow.h"
#include "interrupt.h"
#include "station.h"

#define LAZY_AFTER 2000u  /* empty rounds without traffic */
#define NAP_NS 100000

static int run_engines(const struct driver *d)
{
	int all = 0;
	for (unsigned i = 0; i < d->stations; i++) {
		int n = d->station[i].is_inline ? uroce_engine_poll(d->station[i].ctx) : 0;
		all += n > 0 ? n : 0; /* busy: the prompt's thread is in it */
	}
	return all;
}

static int run_flow(struct driver *d)
{
	struct flow *f = atomic_load_explicit(&d->flow, memory_order_acquire);
	if (!f)
		return 0;
	int n = flow_step(f);
	if (atomic_load_explicit(&f->state, memory_order_relaxed) != FLOW_RUNNING)
		atomic_store_explicit(&d->flow, NULL, memory_order_release);
	return n;
}

static void *run(void *arg)
{
	struct driver *d = arg;
	unsigned empty = 0;
	while (!atomic_load_explicit(&d->is_ending, memory_order_relaxed)) {
		int did = run_engines(d) + run_flow(d);
		bool has_flow = atomic_load_explicit(&d->flow, memory_order_relaxed) != NULL;
		empty = did || has_flow ? 0 : empty + 1;
		if (empty > LAZY_AFTER)
			nanosleep(&(struct timespec){ 0, NAP_NS }, NULL);
		else if (!did)
			sched_yield();
	}
	return NULL;
}

int driver_start(struct driver *d, const struct station *station, unsigned stations)
{
	*d = (struct driver){ .station = station, .stations = stations };
	int err = -pthread_create(&d->thread, NULL, run, d);
	if (err)
		fprintf(stderr, "cannot start a thread: %s\n", strerror(-err));
	else
		pthread_setname_np(d->thread, "testroce-drive");
	d->has_thread = !err;
	return err;
}

void driver_stop(struct driver *d)
{
	if (!d->has_thread)
		return;
	atomic_store_explicit(&d->is_ending, true, memory_order_relaxed);
	pthread_join(d->thread, NULL);
	d->has_thread = false;
}

void driver_give(struct driver *d, struct flow *f)
{
	f->started_ns = end_now();
	atomic_store_explicit(&f->state, FLOW_RUNNING, memory_order_relaxed);
	atomic_store_explicit(&d->flow, f, memory_order_release);
}

void driver_take_back(struct driver *d, struct flow *f)
{
	atomic_store_explicit(&f->is_stopping, true, memory_order_relaxed);
	while (atomic_load_explicit(&d->flow, memory_order_acquire) == f) {
		if (interrupt_is_there())
			atomic_store_explicit(&f->is_abandoned, true, memory_order_relaxed);
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	}
}
