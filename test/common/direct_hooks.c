/* SPDX-License-Identifier: BSD-3-Clause */
/* What the outside does for a core in a test: memory of malloc, so that a sanitizer sees where a region ends, and channels as the default's, whose readers do not wait. */
#include "direct_hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

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
	int rc = core_host_hooks.channel_new(NULL, read_fd, write_fd);
	return rc ? rc : fcntl(*read_fd, F_SETFL, O_NONBLOCK);
}

static void channel_free(void *arg, int read_fd, int write_fd)
{
	core_host_hooks.channel_free(NULL, read_fd, write_fd);
}

static int channel_write(void *arg, int write_fd, const void *record, uint32_t len)
{
	return core_host_hooks.channel_write(NULL, write_fd, record, len);
}

const struct core_hooks direct_hooks = { region_new, region_free, channel_new, channel_free, channel_write, NULL };
