/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting, sharing and stopping engines. Owns the process's list of engines (under its lock), and of each engine the port with what is in front of it, the holds, and the cores (engine_core.c).
 * Invariant: a line of the engine's goes to its oldest hold, and none to a hold that was given up. */
#include "engine.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "eal.h"
#include "engine_core.h"
#include "gid_index.h"
#include "handover.h"
#include "multicast.h"
#include "port.h"
#include "region.h"
#include "steer.h"
#include "telemetry.h"

#define HOLDS_MAX 64u

struct engine {
	struct engine *next;
	struct device_string device;
	struct log log;             /* what cores and parts write to: passes on to hold[0] */
	pthread_mutex_t log_lock;   /* over hold[0]: any thread of the engine's writes lines */
	struct log hold[HOLDS_MAX];
	unsigned holds;
	struct port *port;
	struct steer *steer;        /* or NULL: the port does not sort by QPN */
	struct handover *handover;  /* NULL: one core */
	struct multicast *multicast;
	struct gid_index *gid_index; /* NULL: addresses are our own */
	struct region_source regions;
	struct core_hooks hooks;
	unsigned cores;
	struct engine_core *core[ENGINE_CORES_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct engine *engines;

static void pass_line_on(void *arg, enum log_level level, const char *line)
{
	struct engine *e = arg;
	pthread_mutex_lock(&e->log_lock);
	log_write(&e->hold[0], level, "%s", line);
	pthread_mutex_unlock(&e->log_lock);
}

/* ---- parts ---- */

static int make_cores(struct engine *e)
{
	struct engine_core_config config = { .device = &e->device, .port = e->port, .hooks = &e->hooks, .log = &e->log, .handover = e->handover, .multicast = e->multicast, .gid_index = e->gid_index };
	int err = 0;
	for (; config.index < e->device.cores && !err; config.index++) {
		err = engine_core_open(&e->core[config.index], &config);
		e->cores += !err;
	}
	if (e->device.mode == DEVICE_INLINE)
		return err;
	for (unsigned i = 0; i < e->cores && !err; i++)
		err = engine_core_start(e->core[i]);
	return err;
}

static int make_parts(struct engine *e)
{
	int err = port_open(&e->port, &e->device, &e->log);
	if (!err)
		err = multicast_open(&e->multicast, e->port, &e->device, &e->log);
	if (!err && e->device.cores > 1)
		err = handover_open(&e->handover, e->device.cores, &e->log);
	if (!err && e->device.ip_from_kernel)
		err = gid_index_open(&e->gid_index);
	if (err)
		return err;
	if (e->handover && !e->port->is_foreign) /* the rules of a foreign port are its owner's */
		steer_open(&e->steer, e->port, e->device.cores, e->device.vlan, &e->log);
	e->regions = (struct region_source){ .node = e->port->node, .log = &e->log };
	e->hooks = region_hooks(&e->regions);
	err = make_cores(e);
	multicast_settle(e->multicast); /* where neighbours look for their addresses */
	return err;
}

/* The last acknowledgements, without which a peer would retry in vain. */
static void run_out(struct engine *e)
{
	bool is_busy = true;
	for (unsigned round = 0; round < 64 && is_busy; round++) {
		is_busy = false;
		for (unsigned i = 0; i < e->cores; i++)
			is_busy |= engine_core_run_out(e->core[i]);
	}
}

static void free_parts(struct engine *e)
{
	telemetry_remove(e);
	for (unsigned i = 0; i < e->cores; i++)
		engine_core_stop(e->core[i]);
	run_out(e);
	for (unsigned i = 0; i < e->cores; i++)
		engine_core_close(e->core[i]);
	steer_close(e->steer);
	handover_close(e->handover);
	multicast_close(e->multicast);
	gid_index_close(e->gid_index);
	port_close(e->port);
	pthread_mutex_destroy(&e->log_lock);
	free(e);
	eal_put();
}

/* An engine that cannot be shown runs all the same. */
static void show(struct engine *e, const struct log *log)
{
	if (!eal_has_telemetry()) {
		log_write(log, LOG_WARN, "%s: telemetry=on: DPDK runs without telemetry in this process; the first device that is opened decides", e->port->text);
		return;
	}
	int err = telemetry_add(e);
	if (err)
		log_write(log, LOG_WARN, "%s: telemetry=on: cannot be shown: %s", e->port->text, strerror(-err));
}

static int start_engine(struct engine **out, const struct device_string *d, const struct log *log)
{
	struct eal_need need = { .memory_mib = d->memory_mib, .has_telemetry = d->has_telemetry, .pci = strchr(d->vdev, ':') ? d->vdev : NULL, .log = log };
	int err = eal_get(&need);
	if (err)
		return err;
	struct engine *e = calloc(1, sizeof(*e));
	if (!e) {
		eal_put();
		return -ENOMEM;
	}
	e->device = *d;
	e->hold[0] = *log;
	e->holds = 1;
	e->log = (struct log){ .sink = pass_line_on, .arg = e, .level = LOG_DEBUG };
	pthread_mutex_init(&e->log_lock, NULL);
	err = make_parts(e);
	if (err) {
		free_parts(e);
		return err;
	}
	if (d->has_telemetry)
		show(e, log);
	*out = e;
	return 0;
}

/* ---- holds ---- */

static int attach(struct engine *e, const struct device_string *d, const struct log *log)
{
	if (d->mode != e->device.mode) {
		log_write(log, LOG_ERROR, "%s: runs in this process already, %s; open it with that mode", e->port->text, device_mode_name(e->device.mode));
		return -EBUSY;
	}
	if (e->holds == HOLDS_MAX) {
		log_write(log, LOG_ERROR, "%s: has %u contexts in this process, the most there can be", e->port->text, HOLDS_MAX);
		return -EMFILE;
	}
	log_write(log, LOG_INFO, "%s: runs already; its settings stay as they were first given", e->port->text);
	e->hold[e->holds++] = *log;
	return 0;
}

static bool is_queue_taken(const struct device_string *d, const struct log *log)
{
	for (const struct engine *e = engines; e; e = e->next) {
		if (!device_string_shares_queue(&e->device, d))
			continue;
		log_write(log, LOG_ERROR, "port=%d: queues %u to %u are those of another engine of this process", d->port, e->device.queue, e->device.queue + e->device.cores - 1);
		return true;
	}
	return false;
}

int engine_open(struct engine **out, const char *device, const struct log *log)
{
	struct device_string d;
	int err = device_string_parse(device, &d, log);
	if (err)
		return err;
	pthread_mutex_lock(&lock);
	struct engine *e = engines;
	while (e && !device_string_is_same_port(&e->device, &d))
		e = e->next;
	if (e) {
		err = attach(e, &d, log);
	} else if (is_queue_taken(&d, log)) {
		err = -EBUSY;
	} else {
		err = start_engine(&e, &d, log);
		if (!err) {
			e->next = engines;
			engines = e;
		}
	}
	pthread_mutex_unlock(&lock);
	if (!err)
		*out = e;
	return err;
}

void engine_close(struct engine *e, const struct log *log)
{
	pthread_mutex_lock(&lock);
	unsigned i = 0;
	while (i + 1 < e->holds && (e->hold[i].sink != log->sink || e->hold[i].arg != log->arg))
		i++;
	if (e->holds > 1) {
		pthread_mutex_lock(&e->log_lock);
		memmove(&e->hold[i], &e->hold[i + 1], (e->holds - i - 1) * sizeof(e->hold[0]));
		e->holds--;
		pthread_mutex_unlock(&e->log_lock);
	} else {
		struct engine **at = &engines;
		while (*at != e)
			at = &(*at)->next;
		*at = e->next;
		free_parts(e);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- its cores ---- */

unsigned engine_cores(const struct engine *e)
{
	return e->cores;
}

struct engine_core *engine_core_at(struct engine *e, unsigned i)
{
	return e->core[i];
}

struct engine_core *engine_core_choose(struct engine *e)
{
	pthread_mutex_lock(&lock);
	struct engine_core *least = e->core[0];
	for (unsigned i = 1; i < e->cores; i++)
		if (engine_core_clients(e->core[i]) < engine_core_clients(least))
			least = e->core[i];
	engine_core_enter(least);
	pthread_mutex_unlock(&lock);
	return least;
}

struct multicast *engine_multicast(const struct engine *e)
{
	return e->multicast;
}

const struct port *engine_port(const struct engine *e)
{
	return e->port;
}

bool engine_has_kernel_addresses(const struct engine *e)
{
	return e->device.ip_from_kernel;
}

const struct log *engine_log(const struct engine *e)
{
	return &e->log;
}

enum device_mode engine_mode(const struct engine *e)
{
	return e->device.mode;
}
