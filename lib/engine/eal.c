/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting the EAL in a program that does not know of DPDK. rte_eal_init pins its caller to one CPU and starts threads that inherit its signal mask: it runs on a thread made for it, which ends
 * afterwards. The EAL keeps no worker threads: poll cores are ordinary threads that register themselves.
 * State of the process, since the EAL is one: `eal` below, under its lock. Invariant: once `state` is EAL_RUNNING it stays so; after a failure the EAL is not tried again. */
#include "eal.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dpdk_compat.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#define DEFAULT_MIB 512u
#define HUGE_MIN_MIB 64u /* what a port or two needs */

enum eal_state { EAL_UNTRIED, EAL_RUNNING, EAL_FAILED };

static struct {
	pthread_mutex_t lock;
	enum eal_state state;
	bool is_ours, has_pci;
	unsigned users;
} eal = { .lock = PTHREAD_MUTEX_INITIALIZER };

#define ARGS_MAX 20
struct start {
	char text[ARGS_MAX][96];
	char lcores[32 + 8 * CPU_SETSIZE];
	char *argv[ARGS_MAX + 2];
	int argc;
	int err;
};

__attribute__((format(printf, 2, 3))) static void add_arg(struct start *s, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(s->text[s->argc], sizeof(s->text[0]), format, args);
	va_end(args);
	s->argv[s->argc] = s->text[s->argc];
	s->argc++;
}

/* Free huge pages of the default size, in MiB; 0 too when they cannot be had here (a cgroup's limit, a seccomp filter). */
static uint64_t count_huge_mib(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	char line[128];
	unsigned long long pages = 0, kib = 0;
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "HugePages_Free: %llu", &pages);
		sscanf(line, "Hugepagesize: %llu", &kib);
	}
	fclose(f);
	if (!pages || !kib)
		return 0;
	int fd = memfd_create("uroce-probe", MFD_CLOEXEC | MFD_HUGETLB);
	void *p = MAP_FAILED;
	if (fd >= 0 && !ftruncate(fd, (off_t)(kib << 10)))
		p = mmap(NULL, kib << 10, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		munmap(p, kib << 10);
	if (fd >= 0)
		close(fd);
	return p != MAP_FAILED ? pages * kib >> 10 : 0;
}

/* One lcore, floating over all the CPUs that the process may use. */
static void add_lcores(struct start *s)
{
	cpu_set_t set;
	size_t at = (size_t)snprintf(s->lcores, sizeof(s->lcores), "--lcores=0@(");
	const char *comma = "";
	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &set))
			continue;
		at += (size_t)snprintf(s->lcores + at, sizeof(s->lcores) - at, "%s%d", comma, i);
		comma = ",";
	}
	snprintf(s->lcores + at, sizeof(s->lcores) - at, ")");
	s->argv[s->argc++] = s->lcores;
}

static void choose_args(struct start *s, const struct eal_need *need)
{
	uint64_t huge_mib = count_huge_mib(), wanted_mib = need->memory_mib ? need->memory_mib : HUGE_MIN_MIB;
	add_arg(s, "uroce");
	add_lcores(s);
	if (huge_mib >= wanted_mib) {
		add_arg(s, "--in-memory");
	} else {
		uint32_t mib = need->memory_mib ? need->memory_mib : DEFAULT_MIB;
		log_write(need->log, LOG_WARN, "no huge pages (%llu MiB free, %llu wanted): slower and with %u MiB of ordinary memory; config/hugepages.sh reserves them",
			(unsigned long long)huge_mib, (unsigned long long)wanted_mib, mib);
		add_arg(s, "--no-huge");
		add_arg(s, "--no-shconf");
		add_arg(s, "-m");
		add_arg(s, "%u", mib);
	}
	if (need->pci) {
		add_arg(s, "-a");
		add_arg(s, "%s", need->pci);
	} else {
		add_arg(s, "--no-pci");
		add_arg(s, "--iova-mode=va");
	}
	add_arg(s, "--no-telemetry"); /* its socket lies in a directory that only root has, and two processes that start at once quarrel over it */
	add_arg(s, "--log-level=*:%s", need->log && need->log->level >= LOG_DEBUG ? "info" : "error");
}

static void *init_eal(void *arg)
{
	struct start *s = arg;
	s->err = rte_eal_init(s->argc, s->argv) < 0 ? -(rte_errno ? rte_errno : ENODEV) : 0;
	return NULL;
}

static int start_eal(const struct eal_need *need)
{
	static struct start start; /* the EAL may keep pointers into its arguments */
	pthread_t thread;
	sigset_t all, old;
	choose_args(&start, need);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	int err = -pthread_create(&thread, NULL, init_eal, &start);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return err;
	pthread_join(thread, NULL);
	return start.err;
}

int eal_get(const struct eal_need *need)
{
	int err = 0;
	pthread_mutex_lock(&eal.lock);
	if (eal.state == EAL_UNTRIED && rte_lcore_count() > 0) {
		/* No lcore exists before rte_eal_init: it is the program's own. */
		eal.state = EAL_RUNNING;
		eal.has_pci = true;
	}
	if (eal.state == EAL_UNTRIED) {
		err = start_eal(need);
		eal.state = err ? EAL_FAILED : EAL_RUNNING;
		eal.is_ours = true;
		eal.has_pci = need->pci != NULL;
		if (err)
			log_write(need->log, LOG_ERROR, "DPDK does not start: %s (UROCE_LOG=debug shows its own lines)", strerror(-err));
	} else if (eal.state == EAL_FAILED) {
		log_write(need->log, LOG_ERROR, "DPDK did not start before and can be tried only once in a process");
		err = -ENODEV;
	} else if (need->pci && !eal.has_pci) {
		log_write(need->log, LOG_ERROR, "%s: DPDK runs without PCI in this process already; open the PCI device first", need->pci);
		err = -ENODEV;
	}
	if (!err)
		eal.users++;
	pthread_mutex_unlock(&eal.lock);
	return err;
}

void eal_put(void)
{
	pthread_mutex_lock(&eal.lock);
	eal.users--;
	pthread_mutex_unlock(&eal.lock);
}

unsigned eal_users(void)
{
	pthread_mutex_lock(&eal.lock);
	unsigned n = eal.users;
	pthread_mutex_unlock(&eal.lock);
	return n;
}

static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static _Thread_local bool has_entered;

static void leave_thread(void *arg)
{
	rte_thread_unregister();
}

static void make_key(void)
{
	pthread_key_create(&thread_key, leave_thread);
}

void eal_enter_thread(void)
{
	if (has_entered)
		return;
	has_entered = true;
	if (rte_lcore_id() != LCORE_ID_ANY || rte_thread_register())
		return;
	pthread_once(&thread_once, make_key);
	pthread_setspecific(thread_key, &thread_key); /* any non-NULL value makes leave_thread run at the thread's end */
}
