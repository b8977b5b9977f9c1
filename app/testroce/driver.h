/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that runs the engines of inline ports, and the traffic. Ports are there from its start to its end; a flow is handed over, and is the prompt's again when driver.flow is NULL. */
#ifndef TESTROCE_DRIVER_H
#define TESTROCE_DRIVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct flow;
struct station;

struct driver {
	pthread_t thread;
	bool has_thread;
	_Atomic bool is_ending;
	_Atomic(struct flow *) flow;
	const struct station *station;
	unsigned stations;
};

/* 0, or a negative errno after a line on standard error. */
int driver_start(struct driver *d, const struct station *station, unsigned stations);
void driver_stop(struct driver *d);
/* The flow runs from now on. None does. */
void driver_give(struct driver *d, struct flow *f);
/* Ends it and waits until it is over; a signal makes an end of what is still on its way. */
void driver_take_back(struct driver *d, struct flow *f);

#endif
