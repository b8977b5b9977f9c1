/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce-perf: which ends run here, on which CPUs, with which device. One thread for each end. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "output.h"
#include "role.h"

/* One end of this process, before it runs. */
struct seat {
	struct role role;
	char device[1024];
	char cores[32];
	int cpu;      /* of the program's thread; -1: any */
	int poll_cpu; /* of the poll core, embedded */
	int (*run)(struct role *role);
	int rc;
};

static bool is_embedded(const char *device)
{
	return !strncmp(device, "embedded:", 9);
}

static void add(struct seat *s, const char *before, unsigned n, const char *after)
{
	size_t len = strlen(s->device);
	snprintf(s->device + len, sizeof(s->device) - len, "%s%u%s", before, n, after);
}

/* The default device is a ring pair; what was given is completed to one where it is a ring. */
static bool choose_device(struct seat *s, const struct options *o, unsigned side)
{
	const char *given = o->device[side] ? o->device[side] : o->device[0] ? o->device[0] : "inline:net_ring";
	bool is_self = !o->listen && !o->connect;
	size_t fault_room = o->fault ? strlen(o->fault) + 16 : 0;
	if (strlen(given) + fault_room + 80 > sizeof(s->device)) {
		fprintf(stderr, "uroce-perf: --device or --fault: expected less than %zu characters\n", sizeof(s->device) - 80);
		return false;
	}
	strcpy(s->device, given);
	if (is_self && strstr(given, "net_ring")) {
		if (!strstr(given, "link="))
			strcat(s->device, ",link=perf");
		if (!strstr(given, "side="))
			add(s, ",side=", side, "");
		if (!strstr(given, "ip="))
			add(s, ",ip=10.0.0.", side + 1, "/24");
	}
	if (o->fault) {
		strcat(s->device, ",fault=(");
		strcat(s->device, o->fault);
		strcat(s->device, ")");
	}
	return true;
}

static unsigned count_cpus(cpu_set_t *set)
{
	return sched_getaffinity(0, sizeof(*set), set) ? 1 : (unsigned)CPU_COUNT(set);
}

/* CPU of the n-th pinned thread of this process, or -1. */
static int choose_cpu(const struct options *o, unsigned n, bool is_pinned_anyway)
{
	cpu_set_t set;
	if (o->core_count)
		return (int)o->cores[n % o->core_count];
	if (!is_pinned_anyway || count_cpus(&set) < 2)
		return -1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && !n--)
			return cpu;
	return -1;
}

static void seat_threads(struct seat *s, const struct options *o, unsigned side)
{
	bool is_self = !o->listen && !o->connect, has_core = !o->is_tcp && is_embedded(s->device);
	bool has_daemon = !o->is_tcp && is_served(s->device); /* whose poll core spins too, if it does not sleep */
	unsigned threads = has_core ? 2 : 1;
	s->cpu = choose_cpu(o, side * threads, is_self && !has_core);
	s->poll_cpu = has_core ? choose_cpu(o, side * threads + 1, false) : -1;
	s->role.spinning = threads + has_daemon - (has_core && strstr(s->device, "idle=sleep") != NULL);
	if (s->poll_cpu >= 0 && !strstr(s->device, ",core="))
		add(s, ",core=", (unsigned)s->poll_cpu, "");
	if (s->cpu < 0)
		strcpy(s->cores, "any");
	else if (has_core)
		snprintf(s->cores, sizeof(s->cores), "%d+%d", s->cpu, s->poll_cpu);
	else
		snprintf(s->cores, sizeof(s->cores), "%d", s->cpu);
	s->role.cores = s->cores;
	s->role.cpus = (unsigned)get_nprocs();
}

static bool take_seat(struct seat *s, const struct options *o, unsigned side)
{
	*s = (struct seat){ .role.options = o, .role.exchange.fd = -1 };
	if (!o->is_tcp) {
		if (!choose_device(s, o, side))
			return false;
		s->role.device = s->device;
	}
	seat_threads(s, o, side);
	return true;
}

static void *run_seat(void *arg)
{
	struct seat *s = arg;
	if (s->cpu >= 0) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET((unsigned)s->cpu, &set);
		if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set)) {
			fprintf(stderr, "uroce-perf: --cores: CPU %d is not there, or not for this process: expected others\n", s->cpu);
			exchange_close(&s->role.exchange);
			s->rc = 2;
			return NULL;
		}
	}
	s->rc = s->run(&s->role);
	return NULL;
}

static int run_both(struct seat seat[2])
{
	pthread_t thread;
	int fd[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd)) {
		perror("uroce-perf: socketpair");
		return 1;
	}
	for (int i = 0; i < 2; i++) {
		exchange_init(&seat[i].role.exchange, fd[i]);
		seat[i].run = i ? server_run : client_run;
	}
	if (pthread_create(&thread, NULL, run_seat, &seat[1])) {
		perror("uroce-perf: thread");
		return 1;
	}
	run_seat(&seat[0]);
	pthread_join(thread, NULL);
	return seat[0].rc > seat[1].rc ? seat[0].rc : seat[1].rc;
}

static int run_one(struct seat *s, const struct options *o)
{
	s->run = o->is_pingpong ? pingpong_run : o->listen ? server_run : client_run;
	run_seat(s);
	return s->rc;
}

int main(int argc, char **argv)
{
	static struct options o;
	static struct seat seat[2];
	bool is_done;
	if (!options_parse(argc, argv, &o, &is_done))
		return 2;
	if (is_done)
		return 0;
	bool is_self = !o.listen && !o.connect;
	o.is_progress |= isatty(STDERR_FILENO);
	if (!take_seat(&seat[0], &o, 0) || (is_self && !take_seat(&seat[1], &o, 1)))
		return 2;
	if (o.json && !(seat[0].role.json = output_open(o.json)))
		return 1;
	return is_self ? run_both(seat) : run_one(&seat[0], &o);
}
