/* SPDX-License-Identifier: BSD-3-Clause */
/* rte_eth_dev_start "restores" MAC and promiscuous mode; for af_packet that means ioctls that write the interface's flags: they clear a promiscuous mode that somebody else set, and without CAP_NET_ADMIN (an
 * ordinary container) they fail and the whole start with them. So the start runs on a thread of its own whose seccomp filter answers just these two ioctls with success and nothing done. A filter
 * binds only the thread that installs it, and that thread ends here. Where no filter may be installed, the start goes the plain way. */
#include "quiet_start.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "dpdk_compat.h"

#include <rte_ethdev.h>

struct start {
	uint16_t port_id;
	int err;
};

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOW_HALF 0u
#else
#define LOW_HALF 4u
#endif

/* The thread makes only native system calls, so the architecture need not be looked at. */
static void install_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_ioctl, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]) + LOW_HALF),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIOCSIFFLAGS, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIOCSIFHWADDR, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };
	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static void *run_start(void *arg)
{
	struct start *s = arg;
	install_filter();
	s->err = rte_eth_dev_start(s->port_id);
	return NULL;
}

int quiet_start(uint16_t port_id)
{
	struct start s = { .port_id = port_id };
	sigset_t all, old;
	pthread_t thread;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	int err = -pthread_create(&thread, NULL, run_start, &s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return err;
	pthread_join(thread, NULL);
	return s.err;
}
