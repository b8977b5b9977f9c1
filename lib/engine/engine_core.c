/* SPDX-License-Identifier: BSD-3-Clause */
/* One core of an engine: owns the stack, what feeds it beside the port (addresses, the kernel's knowledge, capture), the mailbox, and the thread; the loop is poller.c's, the protocol the core's.
 * Invariant: core, kernel and capture are touched only by the thread that owns the engine core: before it starts the opener, then the poll core or whoever exchanged `owner` from 0, at last the closer. */
#include "engine_core.h"

#include <errno.h>
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
#include "handover.h"
#include "kernel.h"
#include "multicast.h"
#include "poller.h"
#include "port.h"
#include "wakeup.h"

_Static_assert(DEVICE_CORES_MAX == 1u << CORE_INDEX_BITS, "each core of an engine has a number in its QPNs");

struct engine_core {
	struct engine_core_config config;
	struct core *core;
	struct kernel *kernel;   /* NULL: addresses are our own */
	struct capture *capture; /* or NULL */
	struct fault_port *fault; /* or NULL */
	struct mailbox mailbox;
	struct wakeup wakeup;
	_Atomic unsigned clients;
	bool has_thread;
	pthread_t thread;
	_Atomic bool is_stopping;
	_Atomic int owner;       /* inline: 1 while a thread is in a round */
	struct poller poller;
};

static void tell_groups(struct engine_core *ec, uint64_t now_ns)
{
	if (!ec->config.index)
		multicast_tell(ec->config.multicast, core_addr(ec->core), now_ns);
}

static void on_tick(void *arg, uint64_t now_ns)
{
	struct engine_core *ec = arg;
	if (!ec->config.index)
		port_tick(ec->config.port, now_ns);
	core_set_port_up(ec->core, now_ns, !port_is_down(ec->config.port));
	if (ec->kernel)
		kernel_poll(ec->kernel, now_ns);
	if (ec->capture)
		capture_flush(ec->capture);
	tell_groups(ec, now_ns);
}

/* ---- addresses ---- */

static int add_own_address(struct engine_core *ec, const struct device_ip *ip)
{
	uint32_t index;
	char text[GID_TEXT_MAX];
	int err = addr_gid_add(core_addr(ec->core), &ip->gid, ec->config.device->vlan, ip->prefix_len, &index);
	if (err)
		log_write(ec->config.log, LOG_ERROR, "%s: cannot use address %s: %s", ec->config.port->text, gid_format(&ip->gid, text), strerror(-err));
	return err;
}

/* Routable addresses first, each kind in the order given. */
static int add_own_addresses(struct engine_core *ec)
{
	const struct device_string *d = ec->config.device;
	for (int is_local = 0; is_local < 2; is_local++) {
		for (unsigned i = 0; i < d->ips; i++) {
			int err = gid_is_link_local(&d->ip[i].gid) == is_local ? add_own_address(ec, &d->ip[i]) : 0;
			if (err)
				return err;
		}
	}
	return 0;
}

static int add_gateways(struct engine_core *ec)
{
	static const uint8_t any4[4];
	for (unsigned i = 0; i < ec->config.device->gateways; i++) {
		const struct gid *gateway = &ec->config.device->gateway[i];
		struct gid network = gid_is_ip4(gateway) ? gid_from_ip4(any4) : (struct gid){ { 0 } };
		int err = addr_route_add(core_addr(ec->core), &network, 0, gateway);
		if (err) {
			char text[GID_TEXT_MAX];
			log_write(ec->config.log, LOG_ERROR, "%s: cannot use gw=%s: %s", ec->config.port->text, gid_format(gateway, text), strerror(-err));
			return err;
		}
	}
	return 0;
}

/* ---- parts ---- */

/* The kernel's. When it is ours no more another may have its slot. */
static int on_kernel_address(void *arg, const struct gid *gid, bool is_ours)
{
	struct engine_core *ec = arg;
	if (!is_ours)
		gid_index_leave(ec->config.gid_index, ec->config.index, gid);
	return 0;
}

/* The largest path MTU that the core found for the port. */
static unsigned query_path_mtu(struct engine_core *ec, uint64_t now_ns)
{
	struct abi_req req = { .type = ABI_QUERY_DEVICE };
	struct abi_rep rep = { .status = -ENODEV };
	struct core_client *k;
	if (core_client_new(ec->core, &k))
		return 0;
	core_control(k, now_ns, &req, &rep);
	core_client_free(k);
	return rep.status ? 0 : 128u << rep.device.active_mtu;
}

static int check_mtu(struct engine_core *ec, uint64_t now_ns)
{
	const struct port *p = ec->config.port;
	unsigned carried = query_path_mtu(ec, now_ns), mtu = ec->config.device->mtu;
	if (carried >= mtu)
		return 0;
	log_write(ec->config.log, LOG_ERROR, "%s: mtu=%u: the port carries frames of %u bytes, enough for a path MTU of %u%s%s%s", p->text, mtu, p->max_frame, carried,
		p->interface[0] ? "; raise the MTU of interface " : "", p->interface, p->interface[0] ? " to 4200 (and framesz= if given)" : "");
	return -EINVAL;
}

static int make_stack(struct engine_core *ec, uint64_t now_ns)
{
	const struct device_string *d = ec->config.device;
	const struct port *p = ec->config.port;
	struct core_config config = {
		.mode = (uint8_t)d->mode,
		.addr = { .mode = d->ip_from_kernel ? ADDR_SHARED : ADDR_OWN, .max_groups = MULTICAST_ENTRIES_MAX, .on_address = multicast_on_address, .on_address_arg = ec->config.multicast },
		.core_index = ec->config.index,
		.cores = d->cores,
		.max_frame = p->max_frame,
		.mcast_map = d->cores > 1 ? multicast_map(ec->config.multicast) : NULL,
		.on_group = multicast_on_group,
		.on_group_arg = ec->config.multicast,
		.window_packets = d->window ? d->window : p->window_max && p->window_max < 256 ? p->window_max : 0,
		.seed = d->seed ? d->seed + ec->config.index : 0,
		.log = ec->config.log,
		.is_grown_outside = true,
		.hooks = ec->config.hooks,
	};
	if (d->ip_from_kernel) {
		config.addr.max_gids = GID_INDEX_MAX;
		config.addr.on_address = on_kernel_address;
		config.addr.on_address_arg = ec;
	}
	/* No more than the headers' most beyond mtu=: the next path MTU, twice as large, does not fit. */
	if (d->mtu && config.max_frame > d->mtu + CORE_FRAME_MAX - 4096u)
		config.max_frame = d->mtu + CORE_FRAME_MAX - 4096u;
	snprintf(config.name, sizeof(config.name), "%.31s", p->text);
	memcpy(config.addr.mac, p->mac, sizeof(config.addr.mac));
	int err = core_new(&ec->core, &config, now_ns);
	if (!err && d->mtu)
		err = check_mtu(ec, now_ns);
	return err;
}

static uint16_t queue_of(const struct engine_core *ec)
{
	return (uint16_t)(ec->config.port->queue + ec->config.index);
}

static int attach_fault(struct engine_core *ec)
{
	const struct port *p = ec->config.port;
	const char *spec = ec->config.device->fault;
	char why[256] = "";
	int err = fault_attach(&ec->fault, p->id, queue_of(ec), spec, why, sizeof(why));
	if (err)
		log_write(ec->config.log, LOG_ERROR, "%s: fault=%s: %s", p->text, spec, why[0] ? why : strerror(-err));
	return err;
}

/* Each core has a file of its own: no thread waits for another's writing. */
static int open_capture(struct engine_core *ec, uint64_t now_ns)
{
	const struct device_string *d = ec->config.device;
	char path[sizeof(d->capture) + 4];
	snprintf(path, sizeof(path), d->cores > 1 ? "%s.%u" : "%s", d->capture, ec->config.index);
	int fd = capture_create(path), err = fd < 0 ? fd : capture_open(&ec->capture, fd, ec->config.port->text, 0, ec->config.log);
	if (fd >= 0)
		close(fd);
	if (err)
		log_write(ec->config.log, LOG_ERROR, "capture=%s: %s", path, strerror(-err));
	else
		capture_begin(ec->capture, ec->core, now_ns);
	return err;
}

static int open_kernel(struct engine_core *ec, uint64_t now_ns)
{
	struct kernel_config config = { .interface_index = ec->config.port->interface_index, .addr = core_addr(ec->core), .index = ec->config.gid_index, .core = ec->config.index, .log = ec->config.log };
	return kernel_open(&ec->kernel, &config, now_ns);
}

static int make_parts(struct engine_core *ec)
{
	const struct device_string *d = ec->config.device;
	struct clock clock;
	int err = wakeup_open(&ec->wakeup);
	if (!err && d->fault[0])
		err = attach_fault(ec);
	if (err)
		return err;
	clock_start(&clock);
	uint64_t now_ns = clock_now(&clock);
	err = make_stack(ec, now_ns);
	if (!err)
		core_set_port_up(ec->core, now_ns, !port_is_down(ec->config.port));
	if (!err && d->ip_from_kernel)
		err = open_kernel(ec, now_ns);
	if (!err)
		err = add_own_addresses(ec);
	if (!err)
		err = add_gateways(ec);
	if (!err && d->capture[0])
		err = open_capture(ec, now_ns);
	if (err)
		return err;
	if (ec->config.handover)
		handover_join(ec->config.handover, ec->config.index, &ec->wakeup);
	struct poller_config config = { .core = ec->core, .port = ec->config.port, .queue = queue_of(ec), .index = ec->config.index, .cores = d->cores, .handover = ec->config.handover,
		.mcast_map = multicast_map(ec->config.multicast), .mailbox = &ec->mailbox, .wakeup = &ec->wakeup, .idle = d->idle, .sleep_us = d->sleep_us, .clock = clock, .on_tick = on_tick, .arg = ec };
	return poller_start(&ec->poller, &config);
}

int engine_core_open(struct engine_core **out, const struct engine_core_config *config)
{
	struct engine_core *ec = aligned_alloc(64, (sizeof(*ec) + 63) & ~(size_t)63);
	if (!ec)
		return -ENOMEM;
	memset(ec, 0, sizeof(*ec));
	ec->config = *config;
	mailbox_init(&ec->mailbox);
	int err = make_parts(ec);
	if (err) {
		engine_core_close(ec);
		return err;
	}
	*out = ec;
	return 0;
}

void engine_core_close(struct engine_core *ec)
{
	if (!ec)
		return;
	if (ec->poller.config.core)
		poller_stop(&ec->poller);
	if (ec->capture)
		capture_end(ec->capture);
	capture_close(ec->capture);
	kernel_close(ec->kernel);
	core_free(ec->core);
	fault_detach(ec->fault);
	wakeup_close(&ec->wakeup);
	mailbox_destroy(&ec->mailbox);
	free(ec);
}

/* ---- the poll core ---- */

static void *run_poll_core(void *arg)
{
	struct engine_core *ec = arg;
	eal_enter_thread();
	prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0); /* else a nap of 50 us takes 100 */
	while (!atomic_load_explicit(&ec->is_stopping, memory_order_relaxed))
		if (!poller_round(&ec->poller))
			poller_idle(&ec->poller);
	return NULL;
}

int engine_core_start(struct engine_core *ec)
{
	sigset_t all, old;
	cpu_set_t set;
	pthread_attr_t attr;
	const struct device_string *d = ec->config.device;
	char name[16];
	pthread_attr_init(&attr);
	CPU_ZERO(&set);
	if (d->cpus) {
		CPU_SET(d->cpu[ec->config.index], &set);
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	}
	sigfillset(&all);
	port_let_through(ec->config.port, &all);
	pthread_sigmask(SIG_BLOCK, &all, &old); /* the program's signals are the program's */
	int err = -pthread_create(&ec->thread, &attr, run_poll_core, ec);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (err == -EINVAL && d->cpus)
		log_write(ec->config.log, LOG_ERROR, "%s: core=%u: this process may not run on that CPU", ec->config.port->text, d->cpu[ec->config.index]);
	else if (err)
		log_write(ec->config.log, LOG_ERROR, "%s: cannot start the poll core: %s", ec->config.port->text, strerror(-err));
	ec->has_thread = !err;
	snprintf(name, sizeof(name), "uroce-poll%u", ec->config.index);
	if (ec->has_thread)
		pthread_setname_np(ec->thread, name);
	return err;
}

void engine_core_stop(struct engine_core *ec)
{
	if (!ec->has_thread)
		return;
	atomic_store_explicit(&ec->is_stopping, true, memory_order_relaxed);
	wakeup_ring(&ec->wakeup);
	pthread_join(ec->thread, NULL);
	ec->has_thread = false;
}

bool engine_core_run_out(struct engine_core *ec)
{
	tell_groups(ec, ec->poller.now_ns); /* the last ones to leave their groups did so without a tick */
	return poller_round(&ec->poller);
}

/* ---- what others may do with it ---- */

void engine_wake(struct engine_core *ec)
{
	wakeup_ring(&ec->wakeup);
}

int engine_core_watch(struct engine_core *ec, int fd)
{
	return wakeup_watch(&ec->wakeup, fd);
}

void engine_core_unwatch(struct engine_core *ec, int fd)
{
	wakeup_unwatch(&ec->wakeup, fd);
}

int engine_poll(struct engine_core *ec)
{
	if (ec->config.device->mode != DEVICE_INLINE)
		return -EOPNOTSUPP;
	if (atomic_exchange_explicit(&ec->owner, 1, memory_order_acquire))
		return -EBUSY;
	eal_enter_thread();
	ec->poller.has_slept = true; /* the time since the last round is the program's */
	unsigned n = poller_round(&ec->poller);
	atomic_store_explicit(&ec->owner, 0, memory_order_release); /* what this round wrote is the next owner's to read */
	return (int)n;
}

static void await(struct engine_core *ec, struct mail *m)
{
	if (ec->config.device->mode != DEVICE_INLINE) {
		wakeup_ring(&ec->wakeup);
		mailbox_wait(&ec->mailbox, m);
		return;
	}
	while (!mailbox_is_done(&ec->mailbox, m))
		if (engine_poll(ec) == -EBUSY)
			sched_yield();
}

void engine_carry_out(struct engine_core *ec, struct mail *m)
{
	mailbox_post(&ec->mailbox, m);
	await(ec, m);
	multicast_settle(ec->config.multicast); /* what the core must not wait for */
}

unsigned engine_core_index(const struct engine_core *ec)
{
	return ec->config.index;
}

struct core *engine_core_stack(struct engine_core *ec)
{
	return ec->core;
}

int engine_core_set_fault(struct engine_core *ec, const char *spec, char *why, uint32_t len)
{
	struct fault_port *with = NULL;
	int err = spec ? fault_attach(&with, ec->config.port->id, queue_of(ec), spec, why, len) : 0;
	if (err)
		return err;
	fault_detach(ec->fault);
	ec->fault = with;
	return 0;
}

struct capture *engine_core_swap_capture(struct engine_core *ec, struct capture *with, uint64_t now_ns)
{
	struct capture *old = ec->capture;
	if (old)
		capture_end(old);
	ec->capture = with;
	if (with)
		capture_begin(with, ec->core, now_ns);
	return old;
}

bool engine_core_has_capture(const struct engine_core *ec)
{
	return ec->capture != NULL;
}

struct fault_port *engine_core_fault(const struct engine_core *ec)
{
	return ec->fault;
}

void engine_core_stats(const struct engine_core *ec, struct engine_stats *stats)
{
	*stats = ec->poller.stats;
}

unsigned engine_core_clients(const struct engine_core *ec)
{
	return atomic_load_explicit(&ec->clients, memory_order_relaxed);
}

void engine_core_enter(struct engine_core *ec)
{
	atomic_fetch_add_explicit(&ec->clients, 1, memory_order_relaxed);
}

void engine_core_leave(struct engine_core *ec)
{
	atomic_fetch_sub_explicit(&ec->clients, 1, memory_order_relaxed);
}
