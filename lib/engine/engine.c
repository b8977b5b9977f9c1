/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting, sharing and stopping engines. Owns the process's list of engines (under its lock) and each engine's parts; the loop is poller.c's, the protocol the core's.
 * Invariant: core, kernel and capture are touched only by the thread that owns the engine: before it starts the opener, then the poll core or whoever exchanged `owner` from 0, at last the closer. */
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "addr.h"
#include "capture.h"
#include "core.h"
#include "eal.h"
#include "fault_dpdk.h"
#include "kernel.h"
#include "poller.h"
#include "port.h"
#include "region.h"

#define HOLDS_MAX 64u

struct engine {
	struct engine *next;
	struct device_string device;
	struct log log;                    /* what core and parts write to: a copy of hold[0] */
	struct log hold[HOLDS_MAX];
	unsigned holds;
	struct port *port;
	struct core *core;
	struct kernel *kernel;             /* NULL: addresses are our own */
	struct capture *capture;           /* or NULL */
	struct fault_port *fault;          /* or NULL */
	struct mailbox mailbox;
	int wake_pipe[2];
	bool has_thread;
	pthread_t thread;
	_Atomic bool is_stopping;
	_Atomic int owner;                 /* inline: 1 while a thread is in a round */
	struct poller poller;
	struct region_source regions;
	struct core_hooks hooks;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct engine *engines;

static void on_tick(void *arg, uint64_t now_ns)
{
	struct engine *e = arg;
	if (e->kernel)
		kernel_poll(e->kernel, now_ns);
	if (e->capture)
		capture_flush(e->capture);
}

/* ---- addresses ---- */

static int add_own_address(struct engine *e, const struct device_ip *ip)
{
	uint32_t index;
	char text[GID_TEXT_MAX];
	int err = addr_gid_add(core_addr(e->core), &ip->gid, e->device.vlan, ip->prefix_len, &index);
	if (err)
		log_write(&e->log, LOG_ERROR, "%s: cannot use address %s: %s", e->port->text, gid_format(&ip->gid, text), strerror(-err));
	return err;
}

/* Routable addresses first, each kind in the order given. */
static int add_own_addresses(struct engine *e)
{
	for (int is_local = 0; is_local < 2; is_local++) {
		for (unsigned i = 0; i < e->device.ips; i++) {
			int err = gid_is_link_local(&e->device.ip[i].gid) == is_local ? add_own_address(e, &e->device.ip[i]) : 0;
			if (err)
				return err;
		}
	}
	return 0;
}

static int add_gateways(struct engine *e)
{
	static const uint8_t any4[4];
	for (unsigned i = 0; i < e->device.gateways; i++) {
		const struct gid *gateway = &e->device.gateway[i];
		struct gid network = gid_is_ip4(gateway) ? gid_from_ip4(any4) : (struct gid){ { 0 } };
		int err = addr_route_add(core_addr(e->core), &network, 0, gateway);
		if (err) {
			char text[GID_TEXT_MAX];
			log_write(&e->log, LOG_ERROR, "%s: cannot use gw=%s: %s", e->port->text, gid_format(gateway, text), strerror(-err));
			return err;
		}
	}
	return 0;
}

/* ---- parts ---- */

/* The largest path MTU that the core found for the port. */
static unsigned query_path_mtu(struct engine *e, uint64_t now_ns)
{
	struct abi_req req = { .type = ABI_QUERY_DEVICE };
	struct abi_rep rep = { .status = -ENODEV };
	struct core_client *k;
	if (core_client_new(e->core, &k))
		return 0;
	core_control(k, now_ns, &req, &rep);
	core_client_free(k);
	return rep.status ? 0 : 128u << rep.device.active_mtu;
}

static int check_mtu(struct engine *e, uint64_t now_ns)
{
	unsigned carried = query_path_mtu(e, now_ns);
	if (carried >= e->device.mtu)
		return 0;
	log_write(&e->log, LOG_ERROR, "%s: mtu=%u: the port carries frames of %u bytes, enough for a path MTU of %u%s%s%s", e->port->text, e->device.mtu, e->port->max_frame, carried,
		e->port->interface[0] ? "; raise the MTU of interface " : "", e->port->interface, e->port->interface[0] ? " to 4200 (and framesz= if given)" : "");
	return -EINVAL;
}

static int make_core(struct engine *e, uint64_t now_ns)
{
	const struct device_string *d = &e->device;
	const struct port *p = e->port;
	struct core_config config = {
		.mode = (uint8_t)d->mode,
		.addr = { .mode = d->ip_from_kernel ? ADDR_SHARED : ADDR_OWN },
		.max_frame = p->max_frame,
		.window_packets = d->window ? d->window : p->window_max && p->window_max < 256 ? p->window_max : 0,
		.seed = d->seed,
		.log = &e->log,
		.is_grown_outside = true,
		.hooks = &e->hooks,
	};
	e->regions = (struct region_source){ .node = p->node, .log = &e->log };
	e->hooks = region_hooks(&e->regions);
	/* No more than the headers' most beyond mtu=: the next path MTU, twice as large, does not fit. */
	if (d->mtu && config.max_frame > d->mtu + CORE_FRAME_MAX - 4096u)
		config.max_frame = d->mtu + CORE_FRAME_MAX - 4096u;
	snprintf(config.name, sizeof(config.name), "%.31s", p->text);
	memcpy(config.addr.mac, p->mac, sizeof(config.addr.mac));
	int err = core_new(&e->core, &config, now_ns);
	if (!err && d->mtu)
		err = check_mtu(e, now_ns);
	return err;
}

static int attach_fault(struct engine *e)
{
	char why[256] = "";
	int err = fault_attach(&e->fault, e->port->id, e->port->queue, e->device.fault, why, sizeof(why));
	if (err)
		log_write(&e->log, LOG_ERROR, "%s: fault=%s: %s", e->port->text, e->device.fault, why[0] ? why : strerror(-err));
	return err;
}

static int make_parts(struct engine *e)
{
	struct clock clock;
	if (pipe2(e->wake_pipe, O_NONBLOCK | O_CLOEXEC))
		return -errno;
	int err = port_open(&e->port, &e->device, &e->log);
	if (!err && e->device.fault[0])
		err = attach_fault(e);
	if (err)
		return err;
	clock_start(&clock);
	uint64_t now_ns = clock_now(&clock);
	err = make_core(e, now_ns);
	if (!err && e->device.ip_from_kernel)
		err = kernel_open(&e->kernel, e->port->interface_index, core_addr(e->core), &e->log, now_ns);
	if (!err)
		err = add_own_addresses(e);
	if (!err)
		err = add_gateways(e);
	if (!err && e->device.capture[0])
		err = capture_open(&e->capture, e->device.capture, e->port->text, e->core, now_ns, &e->log);
	if (err)
		return err;
	struct poller_config config = { .core = e->core, .port = e->port, .mailbox = &e->mailbox, .idle = e->device.idle, .sleep_us = e->device.sleep_us,
		.wake_fd = e->wake_pipe[0], .clock = clock, .on_tick = on_tick, .arg = e };
	return poller_start(&e->poller, &config);
}

static void free_parts(struct engine *e)
{
	if (e->poller.config.core)
		poller_stop(&e->poller);
	capture_close(e->capture);
	kernel_close(e->kernel);
	core_free(e->core);
	fault_detach(e->fault);
	port_close(e->port);
	for (int i = 0; i < 2; i++)
		if (e->wake_pipe[i] >= 0)
			close(e->wake_pipe[i]);
	mailbox_destroy(&e->mailbox);
	free(e);
}

/* ---- the poll core ---- */

static void *run_poll_core(void *arg)
{
	struct engine *e = arg;
	eal_enter_thread();
	prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0); /* else a nap of 50 us takes 100 */
	while (!atomic_load_explicit(&e->is_stopping, memory_order_relaxed))
		if (!poller_round(&e->poller))
			poller_idle(&e->poller);
	return NULL;
}

static int start_thread(struct engine *e)
{
	sigset_t all, old;
	cpu_set_t set;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	CPU_ZERO(&set);
	if (e->device.cpu >= 0) {
		CPU_SET(e->device.cpu, &set);
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	}
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old); /* the program's signals are the program's */
	int err = -pthread_create(&e->thread, &attr, run_poll_core, e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (err == -EINVAL && e->device.cpu >= 0)
		log_write(&e->log, LOG_ERROR, "%s: core=%d: this process may not run on that CPU", e->port->text, e->device.cpu);
	else if (err)
		log_write(&e->log, LOG_ERROR, "%s: cannot start the poll core: %s", e->port->text, strerror(-err));
	e->has_thread = !err;
	if (e->has_thread)
		pthread_setname_np(e->thread, "uroce-poll");
	return err;
}

static int start_engine(struct engine **out, const struct device_string *d, const struct log *log)
{
	struct eal_need need = { .memory_mib = d->memory_mib, .pci = strchr(d->vdev, ':') ? d->vdev : NULL, .log = log };
	int err = eal_get(&need);
	if (err)
		return err;
	struct engine *e = aligned_alloc(64, (sizeof(*e) + 63) & ~(size_t)63);
	if (!e) {
		eal_put();
		return -ENOMEM;
	}
	memset(e, 0, sizeof(*e));
	e->device = *d;
	e->log = e->hold[0] = *log;
	e->holds = 1;
	e->wake_pipe[0] = e->wake_pipe[1] = -1;
	mailbox_init(&e->mailbox);
	err = make_parts(e);
	if (!err && d->mode == DEVICE_EMBEDDED)
		err = start_thread(e);
	if (err) {
		free_parts(e);
		eal_put();
		return err;
	}
	*out = e;
	return 0;
}

/* ---- holds ---- */

static int attach(struct engine *e, const struct device_string *d, const struct log *log)
{
	if (d->mode != e->device.mode) {
		log_write(log, LOG_ERROR, "%s: runs in this process already, %s; open it with that mode", e->port->text, e->device.mode == DEVICE_INLINE ? "inline" : "embedded");
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

static void stop_engine(struct engine *e)
{
	if (e->has_thread) {
		atomic_store_explicit(&e->is_stopping, true, memory_order_relaxed);
		engine_wake(e);
		pthread_join(e->thread, NULL);
	}
	for (unsigned i = 0; i < 64 && poller_round(&e->poller); i++)
		; /* the last acknowledgements: without them a peer would retry in vain */
	free_parts(e);
	eal_put();
}

struct log_change {
	struct mail mail;
	struct engine *e;
};

static void change_log(struct mail *m, uint64_t now_ns)
{
	struct engine *e = ((struct log_change *)m)->e;
	e->log = e->hold[0];
}

void engine_close(struct engine *e, const struct log *log)
{
	pthread_mutex_lock(&lock);
	unsigned i = 0;
	while (i + 1 < e->holds && (e->hold[i].sink != log->sink || e->hold[i].arg != log->arg))
		i++;
	memmove(&e->hold[i], &e->hold[i + 1], (e->holds - i - 1) * sizeof(e->hold[0]));
	e->holds--;
	if (e->holds) {
		struct log_change change = { .mail = { .run = change_log }, .e = e };
		engine_carry_out(e, &change.mail);
	} else {
		struct engine **at = &engines;
		while (*at != e)
			at = &(*at)->next;
		*at = e->next;
		stop_engine(e);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- driving ---- */

void engine_wake(struct engine *e)
{
	ssize_t n = write(e->wake_pipe[1], "", 1); /* full: it has been woken */
	(void)n;
}

int engine_poll(struct engine *e)
{
	if (e->device.mode != DEVICE_INLINE)
		return -EOPNOTSUPP;
	if (atomic_exchange_explicit(&e->owner, 1, memory_order_acquire))
		return -EBUSY;
	eal_enter_thread();
	e->poller.has_slept = true; /* the time since the last round is the program's */
	unsigned n = poller_round(&e->poller);
	atomic_store_explicit(&e->owner, 0, memory_order_release); /* what this round wrote is the next owner's to read */
	return (int)n;
}

void engine_carry_out(struct engine *e, struct mail *m)
{
	mailbox_post(&e->mailbox, m);
	if (e->device.mode == DEVICE_EMBEDDED) {
		engine_wake(e);
		mailbox_wait(&e->mailbox, m);
		return;
	}
	while (!mailbox_is_done(&e->mailbox, m))
		if (engine_poll(e) == -EBUSY)
			sched_yield();
}

struct fault_port *engine_fault(const struct engine *e)
{
	return e->fault;
}

struct core *engine_core(struct engine *e)
{
	return e->core;
}

const struct port *engine_port(const struct engine *e)
{
	return e->port;
}

enum device_mode engine_mode(const struct engine *e)
{
	return e->device.mode;
}

void engine_stats(const struct engine *e, struct engine_stats *stats)
{
	*stats = e->poller.stats;
}
