/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the child and the page that it writes what it sees to. Invariant: the child changes the page only while the traced thread is stopped at the entrance of a call, so that this thread finds all of its calls so far in there. */
#include "tracer.h"

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

/* Shared with the child. */
struct page {
	_Atomic int state; /* 0: starting, 1: tracing, else a negative errno */
	_Atomic uint64_t calls;
	uint64_t number[SEEN];
};

struct tracer {
	pid_t child;
	struct page *page;
};

static const struct {
	long number;
	const char *name;
} names[] = {
	{ SYS_read, "read" }, { SYS_write, "write" }, { SYS_close, "close" }, { SYS_mmap, "mmap" }, { SYS_munmap, "munmap" }, { SYS_mprotect, "mprotect" }, { SYS_madvise, "madvise" }, { SYS_brk, "brk" },
	{ SYS_sendto, "sendto" }, { SYS_recvfrom, "recvfrom" }, { SYS_sendmsg, "sendmsg" }, { SYS_recvmsg, "recvmsg" }, { SYS_socket, "socket" }, { SYS_bind, "bind" }, { SYS_listen, "listen" },
	{ SYS_connect, "connect" }, { SYS_accept4, "accept4" }, { SYS_getsockname, "getsockname" }, { SYS_setsockopt, "setsockopt" }, { SYS_futex, "futex" }, { SYS_pipe2, "pipe2" }, { SYS_fcntl, "fcntl" },
	{ SYS_ftruncate, "ftruncate" }, { SYS_memfd_create, "memfd_create" }, { SYS_getrandom, "getrandom" }, { SYS_sched_yield, "sched_yield" }, { SYS_clock_nanosleep, "clock_nanosleep" }, { SYS_mlock, "mlock" },
	{ SYS_clock_gettime, "clock_gettime" }, { SYS_fallocate, "fallocate" }, { SYS_ioctl, "ioctl" }, { SYS_openat, "openat" }, { SYS_mbind, "mbind" },
};

static void note_call(struct page *p, pid_t thread)
{
	struct __ptrace_syscall_info info;
	long got = ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info);
	if (got <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return;
	uint64_t n = atomic_load_explicit(&p->calls, memory_order_relaxed);
	p->number[n % SEEN] = info.entry.nr;
	atomic_store_explicit(&p->calls, n + 1, memory_order_release);
}

/* The child: until it is killed, or the thread ends. */
static void look_on(struct page *p, pid_t thread)
{
	int status;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ptrace(PTRACE_SEIZE, thread, 0, PTRACE_O_TRACESYSGOOD) || ptrace(PTRACE_INTERRUPT, thread, 0, 0)) {
		atomic_store(&p->state, -errno);
		_exit(1);
	}
	while (waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status)) {
		int signal = WSTOPSIG(status), pass = 0;
		if (signal == (SIGTRAP | 0x80))
			note_call(p, thread);
		else if (status >> 16 == PTRACE_EVENT_STOP)
			atomic_store(&p->state, 1);
		else
			pass = signal;
		ptrace(PTRACE_SYSCALL, thread, 0, pass);
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

int tracer_start(struct tracer **out)
{
	struct tracer *t = calloc(1, sizeof(*t));
	pid_t thread = (pid_t)syscall(SYS_gettid);
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
			look_on(t->page, thread);
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

void tracer_name(const struct tracer *t, uint64_t from, char *text, size_t room)
{
	uint64_t to = tracer_calls(t);
	size_t len = 0;
	text[0] = 0;
	for (uint64_t n = from; n < to && n < from + SEEN && len + 24 < room; n++) {
		long number = (long)t->page->number[n % SEEN];
		const char *name = NULL, *comma = len ? ", " : "";
		for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (names[i].number == number)
				name = names[i].name;
		len += (size_t)(name ? snprintf(text + len, room - len, "%s%s", comma, name) : snprintf(text + len, room - len, "%s#%ld", comma, number));
	}
}
