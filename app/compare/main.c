/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce-compare: which ends run here. Both: two processes, so that each has its own CPU time, context switches and system calls, as on two hosts. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"
#include "meet.h"
#include "output.h"

/* CPU number n of those that this process may use, or -1. */
static int nth_cpu(int n)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < 2)
		return -1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && !n--)
			return cpu;
	return -1;
}

/* Both ends here: what was given, or memory that the two share. */
static void choose_device(struct host *h, const struct options *o, int side, pid_t family)
{
	static char text[2][128];
	h->device = o->device[side] ? o->device[side] : o->device[0];
	if (h->device)
		return;
	snprintf(text[side], sizeof(text[side]), "inline:net_memif0,role=%s,socket=uroce-compare-%d,ip=10.0.0.%d/24", side ? "client" : "server", (int)family, side + 1);
	h->device = text[side];
}

/* begun: what both ends have alike. */
static int run_side(const struct host *begun, int side, int fd, pid_t family)
{
	struct host h = *begun;
	const struct options *o = h.options;
	h.is_client = !side;
	h.cpu = o->cpu[0] < 0 ? nth_cpu(side) : o->cpu[side] < 0 ? o->cpu[0] : o->cpu[side];
	exchange_init(&h.exchange, fd);
	choose_device(&h, o, side, family);
	if (host_pin(&h))
		return 1;
	return side ? server_run(&h) : client_run(&h);
}

static int run_both(const struct host *begun)
{
	int fd[2], status;
	pid_t family = getpid(), child;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) || (child = fork()) < 0) {
		fprintf(stderr, "uroce-compare: %s\n", strerror(errno));
		return 1;
	}
	close(fd[child != 0]);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		setenv("UROCE_LOG", "error", 0); /* what both would warn of, one says */
		_exit(run_side(begun, 1, fd[1], family));
	}
	int rc = run_side(begun, 0, fd[0], family);
	bool is_fine = waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status);
	return rc ? rc : !is_fine;
}

/* What comes first needs the device, if any of it does: what is wrong with it shows before the other end is met. */
static int open_device(struct host *h)
{
	for (unsigned i = 0; transport_at(i); i++)
		if (h->options->transports & 1u << i && transport_at(i)->has_device)
			return host_choose(h, transport_at(i));
	return 0;
}

static int run_one(const struct host *begun)
{
	struct host h = *begun;
	const struct options *o = h.options;
	h.is_client = !o->listen;
	h.cpu = o->cpu[0];
	h.device = o->device[0];
	if (host_pin(&h) || open_device(&h))
		return 1;
	if (!meet_peer(&h.exchange, o->listen, o->connect, EXCHANGE_PORT))
		return o->listen ? server_run(&h) : client_run(&h);
	host_close(&h);
	return 1;
}

int main(int argc, char **argv)
{
	static struct options o;
	bool is_done;
	if (!options_parse(argc, argv, &o, &is_done))
		return 2;
	if (is_done)
		return 0;
	struct host h = { .options = &o };
	if ((o.json && !(h.json = output_open(o.json))) || (o.html && !(h.html = output_open(o.html))))
		return 1;
	return o.listen || o.connect ? run_one(&h) : run_both(&h);
}
