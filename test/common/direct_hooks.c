/* SPDX-License-Identifier: BSD-3-Clause */
/* What the outside does for a core in a test: memory of malloc, so that a sanitizer sees where a region ends, and pipes. */
#include "direct_hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int region_new(void *arg, uint64_t bytes, void **base, int *fd)
{
	*base = aligned_alloc(4096, bytes);
	if (!*base)
		return -ENOMEM;
	memset(*base, 0, bytes);
	*fd = -1;
	return 0;
}

static void region_free(void *arg, void *base, uint64_t bytes, int fd)
{
	free(base);
}

static int channel_new(void *arg, int *read_fd, int *write_fd)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
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
	return write(write_fd, record, len) == (ssize_t)len ? 0 : -EAGAIN;
}

const struct core_hooks direct_hooks = { region_new, region_free, channel_new, channel_free, channel_write, NULL };
