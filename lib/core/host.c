/* SPDX-License-Identifier: BSD-3-Clause */
/* The default hooks: regions are memory of this process alone (an engine has others: engine/region.c), event channels are socket pairs. The only system calls below the engine, and a caller can replace them all. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core.h"

static int region_new(void *arg, uint64_t bytes, void **base, int *fd)
{
	*fd = -1;
	*base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return *base == MAP_FAILED ? -errno : 0;
}

static void region_free(void *arg, void *base, uint64_t bytes, int fd)
{
	munmap(base, bytes);
}

static void channel_free(void *arg, int read_fd, int write_fd)
{
	close(read_fd);
	close(write_fd);
}

/* The reader may be anybody. It can write nothing back, and have no program of its own (a socket filter) run whenever a record is written. */
static int close_in(int read_fd, int write_fd)
{
	const int is_locked = 1;
	if (setsockopt(read_fd, SOL_SOCKET, SO_LOCK_FILTER, &is_locked, sizeof(is_locked)) || shutdown(write_fd, SHUT_RD))
		return -errno;
	return 0;
}

/* Not a pipe: its `read` holds a lock that `write` needs while it copies to the reader's memory, for as long as that takes. And two ends of a socket pair have flags of their own: whether the reader's blocks is its business. */
static int channel_new(void *arg, int *read_fd, int *write_fd)
{
	int fds[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	int err = close_in(fds[0], fds[1]);
	if (err) {
		channel_free(arg, fds[0], fds[1]);
		return err;
	}
	*read_fd = fds[0];
	*write_fd = fds[1];
	return 0;
}

static int channel_write(void *arg, int write_fd, const void *record, uint32_t len)
{
	if (send(write_fd, record, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len)
		return 0;
	return errno == EPIPE || errno == ECONNRESET ? -EPIPE : -EAGAIN;
}

const struct core_hooks core_host_hooks = { region_new, region_free, channel_new, channel_free, channel_write, NULL };
