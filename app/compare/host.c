/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the device of an end. */
#include "host.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include "machine.h"
#include "tracer.h"
#include "usage.h"

#define VERSION 1 /* of what the ends say to each other */

static int count_spinning(const char *device)
{
	return !device ? 0 : strncmp(device, "inline:", 7) ? 2 : 1;
}

static void look_at_self(struct host *h)
{
	struct about *a = &h->self;
	struct utsname u;
	struct tracer *tracer = NULL;
	machine_read(a->machine);
	if (!uname(&u)) {
		snprintf(a->name, sizeof(a->name), "%s", u.nodename);
		snprintf(a->system, sizeof(a->system), "%s %s", u.sysname, u.release);
	}
	a->cpus = get_nprocs();
	a->cpu = h->cpu;
	a->spinning = count_spinning(h->device);
	a->daemon = (int)usage_find_daemon(h->device);
	a->can_trace = h->options->is_uncounted ? 0 : !tracer_start(TRACER_PROCESS, &tracer);
	tracer_stop(tracer);
}

static bool unpack(json_t *message, struct about *a)
{
	const char *machine, *name, *system;
	int version;
	if (json_unpack(message, "{s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:b}", "uroce_compare", &version, "machine", &machine, "name", &name, "system", &system, "cpus", &a->cpus, "cpu", &a->cpu,
		    "spinning", &a->spinning, "daemon", &a->daemon, "can_trace", &a->can_trace) || version != VERSION)
		return false;
	snprintf(a->machine, sizeof(a->machine), "%s", machine);
	snprintf(a->name, sizeof(a->name), "%s", name);
	snprintf(a->system, sizeof(a->system), "%s", system);
	return true;
}

int host_pin(const struct host *h)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	if (h->cpu < 0)
		return 0;
	CPU_SET((unsigned)h->cpu, &set);
	if (!sched_setaffinity(0, sizeof(set), &set))
		return 0;
	fprintf(stderr, "uroce-compare: --cores: CPU %d is not there, or not for this process: expected others\n", h->cpu);
	return -1;
}

int host_meet(struct host *h)
{
	const struct about *a = &h->self;
	look_at_self(h);
	json_t *hello = json_pack("{s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:b}", "uroce_compare", VERSION, "machine", a->machine, "name", a->name, "system", a->system, "cpus", a->cpus, "cpu", a->cpu,
		"spinning", a->spinning, "daemon", a->daemon, "can_trace", a->can_trace);
	json_t *peer = exchange_send(&h->exchange, hello) ? NULL : exchange_read(&h->exchange);
	bool is_fine = peer && unpack(peer, &h->peer);
	if (!is_fine)
		fprintf(stderr, "uroce-compare: the other end %s\n", peer ? "is another version, or something else" : h->exchange.why);
	json_decref(peer);
	bool is_one_machine = !strcmp(h->self.machine, h->peer.machine);
	h->end.exchange = &h->exchange;
	h->end.is_client = h->is_client;
	h->end.is_crowded = a->spinning + (is_one_machine ? h->peer.spinning : 0) > a->cpus;
	h->daemon = !h->is_client && is_one_machine && h->peer.daemon == a->daemon ? 0 : (pid_t)a->daemon;
	return is_fine ? 0 : -1;
}

void host_close(struct host *h)
{
	if (h->is_open)
		end_close(&h->end);
	h->is_open = false;
	h->exchange.pump = NULL;
}

int host_choose(struct host *h, const struct transport *t)
{
	if (!t->has_device) {
		host_close(h);
		return 0;
	}
	int err = h->is_open ? 0 : h->device ? end_open(&h->end, h->device, h->options->gid_index) : -ENODEV;
	if (err)
		return err;
	h->is_open = true;
	h->exchange.pump = end_pump;
	h->exchange.arg = &h->end;
	return 0;
}
