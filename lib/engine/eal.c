/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting the EAL in a program that does not know of DPDK. rte_eal_init pins its caller to one CPU and starts threads that inherit its signal mask: it runs on a thread made for it, which ends
 * afterwards. The EAL keeps no worker threads: poll cores are ordinary threads that register themselves.
 * State of the process, since the EAL is one: `eal` below, under its lock. Invariant: once `state` is EAL_RUNNING it stays so; after a failure the EAL is not tried again. */
#include "eal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
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
	bool is_ours, has_pci, has_telemetry;
	unsigned users;
} eal = { .lock = PTHREAD_MUTEX_INITIALIZER };

#define ARGS_MAX 20
#define TELEMETRY_WAIT_MS 2000u /* for other processes that are starting */
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

/* ---- telemetry ---- */

/* Where DPDK keeps the folder of each file prefix: as it and dpdk-telemetry.py find it. */
static const char *runtime_folder(void)
{
	const char *given = getenv("RUNTIME_DIRECTORY"), *session = getenv("XDG_RUNTIME_DIR");
	return given ? given : !getuid() ? "/var/run" : session ? session : "/tmp";
}

/* DPDK's folder in it, and in that the one of our prefix. */
static char folders[2][PATH_MAX];

static void name_folders(void)
{
	snprintf(folders[0], PATH_MAX, "%.*s/dpdk", PATH_MAX / 2, runtime_folder());
	snprintf(folders[1], PATH_MAX, "%.*s/" EAL_FILE_PREFIX, PATH_MAX - 16, folders[0]);
}

/* In /tmp anybody may have made one of this name: it has to be ours, and nobody else may write to it. */
static bool make_folder(const char *path)
{
	struct stat st;
	if ((mkdir(path, 0700) && errno != EEXIST) || lstat(path, &st))
		return false;
	if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return !access(path, R_OK | W_OK | X_OK);
	errno = EPERM;
	return false;
}

/* Whether that is what has this name now; who held it before may have removed it. */
static bool is_at(int fd, const char *path)
{
	struct stat ours, there;
	return !fstat(fd, &ours) && !lstat(path, &there) && ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* Processes that bind their sockets at the same time take them from each other (one that is bound and does not listen yet looks like a dead one's), so they start one after the other. The folder that is locked is our user's, so nobody
 * else keeps it. -1: not locked; it is only one's luck then. */
static int lock_folder(void)
{
	for (unsigned ms = 0; ms < TELEMETRY_WAIT_MS && make_folder(folders[0]); ms++) {
		int fd = open(folders[0], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			break;
		if (!flock(fd, LOCK_EX | LOCK_NB) && is_at(fd, folders[0]))
			return fd;
		close(fd);
		usleep(1000);
	}
	return -1;
}

/* At the end of the process, after DPDK has removed its socket: the folders too, unless something is in them. */
static void remove_folders(void)
{
	int fd = lock_folder();
	if (!rmdir(folders[1]))
		rmdir(folders[0]);
	if (fd >= 0)
		close(fd);
}

/* Before the EAL starts, with the folder locked: whether there can be telemetry, without which the EAL would not start. */
static bool prepare_telemetry(const struct log *log)
{
	if (!make_folder(folders[0]) || !make_folder(folders[1])) {
		log_write(log, LOG_WARN, "no telemetry: DPDK's folder in %s cannot be used: %s", runtime_folder(), strerror(errno));
		return false;
	}
	atexit(remove_folders); /* what is registered first runs last */
	return true;
}

/* ---- arguments ---- */

static void choose_args(struct start *s, const struct eal_need *need)
{
	uint64_t huge_mib = count_huge_mib(), wanted_mib = need->memory_mib ? need->memory_mib : HUGE_MIN_MIB;
	add_arg(s, "uroce");
	add_lcores(s);
	if (huge_mib >= wanted_mib) {
		add_arg(s, "--in-memory");
	} else {
		uint32_t mib = need->memory_mib ? need->memory_mib : DEFAULT_MIB;
		log_write(need->log, LOG_WARN, "no huge pages (%llu MiB free, %llu wanted): slower and with %u MiB of ordinary memory; sudo config/hugepages.sh 1024 reserves 1 GiB",
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
	if (eal.has_telemetry)
		add_arg(s, "--file-prefix=" EAL_FILE_PREFIX);
	else
		add_arg(s, "--no-telemetry");
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
	name_folders();
	int folder = need->has_telemetry ? lock_folder() : -1;
	eal.has_telemetry = need->has_telemetry && prepare_telemetry(need->log);
	choose_args(&start, need);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	int err = -pthread_create(&thread, NULL, init_eal, &start);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err) {
		pthread_join(thread, NULL);
		err = start.err;
	}
	if (folder >= 0)
		close(folder);
	return err;
}

int eal_get(const struct eal_need *need)
{
	int err = 0;
	pthread_mutex_lock(&eal.lock);
	if (eal.state == EAL_UNTRIED && rte_lcore_count() > 0) {
		/* No lcore exists before rte_eal_init: it is the program's own. */
		eal.state = EAL_RUNNING;
		eal.has_pci = eal.has_telemetry = true;
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

bool eal_has_telemetry(void)
{
	pthread_mutex_lock(&eal.lock);
	bool has = eal.has_telemetry;
	pthread_mutex_unlock(&eal.lock);
	return has;
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
