/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the child and the page that it writes what it sees to. Invariant: the child changes the page only while the traced thread is stopped at a call, so that a thread finds all of its own calls so far in there. */
#include "tracer.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/ptrace.h>

#define SEEN 256u /* calls whose numbers are kept */
#define START_MS 2000
#define THREADS 64u

/* Shared with the child. */
struct page {
	_Atomic int state; /* 0: starting, 1: tracing, else a negative errno */
	_Atomic uint64_t calls, bytes, calls_of[TRACER_NUMBERS];
	uint64_t number[SEEN];
};

/* One thread as the child knows it. */
struct traced {
	pid_t id;
	bool is_copying; /* in a call that copies bytes */
};

struct tracer {
	pid_t child;
	struct page *page;
};

static const struct {
	long number;
	const char *name;
	bool is_copying; /* returns how many bytes it copied from or to its second argument */
} names[] = {
	{ SYS_read, "read", true }, { SYS_write, "write", true }, { SYS_readv, "readv", true }, { SYS_writev, "writev", true }, { SYS_sendto, "sendto", true }, { SYS_recvfrom, "recvfrom", true },
	{ SYS_sendmsg, "sendmsg", true }, { SYS_recvmsg, "recvmsg", true },
	{ SYS_close, "close" }, { SYS_mmap, "mmap" }, { SYS_munmap, "munmap" }, { SYS_mprotect, "mprotect" }, { SYS_madvise, "madvise" }, { SYS_brk, "brk" },
	{ SYS_socket, "socket" }, { SYS_bind, "bind" }, { SYS_listen, "listen" },
	{ SYS_connect, "connect" }, { SYS_accept4, "accept4" }, { SYS_getsockname, "getsockname" }, { SYS_setsockopt, "setsockopt" }, { SYS_futex, "futex" }, { SYS_pipe2, "pipe2" }, { SYS_fcntl, "fcntl" },
	{ SYS_ftruncate, "ftruncate" }, { SYS_memfd_create, "memfd_create" }, { SYS_getrandom, "getrandom" }, { SYS_sched_yield, "sched_yield" }, { SYS_clock_nanosleep, "clock_nanosleep" }, { SYS_mlock, "mlock" },
	{ SYS_clock_gettime, "clock_gettime" }, { SYS_fallocate, "fallocate" }, { SYS_ioctl, "ioctl" }, { SYS_openat, "openat" }, { SYS_mbind, "mbind" }, { SYS_ppoll, "ppoll" },
	{ SYS_epoll_pwait, "epoll_pwait" },
#ifdef SYS_poll /* calls that newer machines do not have */
	{ SYS_poll, "poll" }, { SYS_epoll_wait, "epoll_wait" },
#endif
};

static bool does_copy(uint64_t number)
{
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if ((uint64_t)names[i].number == number)
			return names[i].is_copying;
	return false;
}

static void note_call(struct page *p, struct traced *t)
{
	struct __ptrace_syscall_info info;
	long got = ptrace(PTRACE_GET_SYSCALL_INFO, t->id, sizeof(info), &info);
	if (got > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		uint64_t n = atomic_load_explicit(&p->calls, memory_order_relaxed);
		p->number[n % SEEN] = info.entry.nr;
		if (info.entry.nr < TRACER_NUMBERS)
			atomic_fetch_add_explicit(&p->calls_of[info.entry.nr], 1, memory_order_relaxed);
		t->is_copying = does_copy(info.entry.nr) && info.entry.args[1]; /* without a buffer nothing is: af_packet's sendto */
		atomic_store_explicit(&p->calls, n + 1, memory_order_release);
	} else if (got > 0 && info.op == PTRACE_SYSCALL_INFO_EXIT && t->is_copying && info.exit.rval > 0) {
		atomic_fetch_add_explicit(&p->bytes, (uint64_t)info.exit.rval, memory_order_release);
	}
}

/* The threads of a scope, as the child sees them before it traces any. */
static unsigned list_threads(enum tracer_scope scope, pid_t process, pid_t thread, struct traced list[THREADS])
{
	char path[64];
	unsigned n = 0;
	struct dirent *d;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
	DIR *dir = scope == TRACER_PROCESS ? opendir(path) : NULL;
	while (dir && n < THREADS && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			list[n++] = (struct traced){ .id = (pid_t)atoi(d->d_name) };
	if (dir)
		closedir(dir);
	else
		list[n++] = (struct traced){ .id = thread };
	return n;
}

static void seize_threads(struct page *p, const struct traced *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (!ptrace(PTRACE_SEIZE, list[i].id, 0, PTRACE_O_TRACESYSGOOD) && !ptrace(PTRACE_INTERRUPT, list[i].id, 0, 0))
			continue;
		atomic_store(&p->state, -errno);
		_exit(1);
	}
}

static struct traced *find_thread(struct traced *list, unsigned n, pid_t id)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i].id == id)
			return &list[i];
	return NULL;
}

/* The child: until it is killed, or the threads end. */
static void look_on(struct page *p, struct traced *list, unsigned n)
{
	int status;
	unsigned begun = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	seize_threads(p, list, n);
	for (pid_t id; (id = waitpid(-1, &status, __WALL)) > 0;) {
		struct traced *t = find_thread(list, n, id);
		int signal = WSTOPSIG(status), pass = 0;
		if (!t || !WIFSTOPPED(status))
			continue;
		if (signal == (SIGTRAP | 0x80)) {
			note_call(p, t);
		} else if (status >> 16 == PTRACE_EVENT_STOP) {
			if (++begun == n)
				atomic_store(&p->state, 1);
		} else {
			pass = signal;
		}
		ptrace(PTRACE_SYSCALL, id, 0, pass);
	}
	_exit(0);
}

static int wait_for_child(const struct page *p)
{
	for (int i = 0; i < START_MS && !atomic_load(&p->state); i++)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	int state = atomic_load(&p->state);
	return state > 0 ? 0 : state ? state : -ETIMEDOUT;
}

int tracer_start(enum tracer_scope scope, struct tracer **out)
{
	struct tracer *t = calloc(1, sizeof(*t));
	pid_t process = getpid(), thread = (pid_t)syscall(SYS_gettid);
	struct traced list[THREADS];
	int go[2];
	if (!t)
		return -ENOMEM;
	t->page = mmap(NULL, sizeof(*t->page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t->page == MAP_FAILED || pipe(go)) {
		free(t);
		return -ENOMEM;
	}
	t->child = fork();
	if (!t->child) { /* not before it may (Yama) */
		char c;
		close(go[1]);
		if (read(go[0], &c, 1) == 1)
			look_on(t->page, list, list_threads(scope, process, thread, list));
		_exit(1);
	}
	close(go[0]);
	prctl(PR_SET_PTRACER, t->child, 0, 0, 0);
	bool is_told = t->child > 0 && write(go[1], "", 1) == 1;
	close(go[1]);
	int err = is_told ? wait_for_child(t->page) : -EAGAIN;
	if (err)
		tracer_stop(t);
	else
		*out = t;
	return err;
}

void tracer_stop(struct tracer *t)
{
	if (!t)
		return;
	if (t->child > 0) {
		kill(t->child, SIGKILL); /* a thread whose tracer dies goes on by itself */
		waitpid(t->child, NULL, 0);
	}
	munmap(t->page, sizeof(*t->page));
	free(t);
}

uint64_t tracer_calls(const struct tracer *t)
{
	return atomic_load_explicit(&t->page->calls, memory_order_acquire);
}

uint64_t tracer_calls_of(const struct tracer *t, unsigned number)
{
	return atomic_load_explicit(&t->page->calls_of[number], memory_order_acquire);
}

uint64_t tracer_bytes(const struct tracer *t)
{
	return atomic_load_explicit(&t->page->bytes, memory_order_acquire);
}

const char *tracer_call_name(unsigned number)
{
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].number == (long)number)
			return names[i].name;
	return NULL;
}

void tracer_name(const struct tracer *t, uint64_t from, char *text, size_t room)
{
	uint64_t to = tracer_calls(t);
	size_t len = 0;
	text[0] = 0;
	for (uint64_t n = from; n < to && n < from + SEEN && len + 24 < room; n++) {
		unsigned number = (unsigned)t->page->number[n % SEEN];
		const char *name = tracer_call_name(number), *comma = len ? ", " : "";
		len += (size_t)(name ? snprintf(text + len, room - len, "%s%s", comma, name) : snprintf(text + len, room - len, "%s#%u", comma, number));
	}
}
