/* SPDX-License-Identifier: BSD-3-Clause */
/* The default hooks: regions are memory of this process alone (an engine has others: engine/region.c), event channels are pipes. The only system calls below the engine, and a caller can replace them all. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
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

static int channel_new(void *arg, int *read_fd, int *write_fd)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	/* only the writing end: whether its reads block is the program's own business */
	if (fcntl(fds[1], F_SETFL, O_NONBLOCK)) {
		int error = errno;
		close(fds[0]);
		close(fds[1]);
		return -error;
	}
	*read_fd = fds[0];
	*write_fd = fds[1];
	return 0;
}

static void channel_free(void *arg, int read_fd, int write_fd)
{
	close(read_fd);
	close(write_fd);
}

static int channel_write(void *arg, int write_fd, const void *record, uint32_t len)
{
	/* records are far below PIPE_BUF, so a write is whole or nothing */
	return write(write_fd, record, len) == (ssize_t)len ? 0 : -EAGAIN;
}

const struct core_hooks core_host_hooks = { region_new, region_free, channel_new, channel_free, channel_write, NULL };
