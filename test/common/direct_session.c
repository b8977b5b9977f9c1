/* SPDX-License-Identifier: BSD-3-Clause */
/* The session of a core in the same thread. Owns the core's client; does not own the core, and does not run it. */
#include "direct_session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session.h"

struct direct_session {
	struct core_client *client;
	const uint64_t *clock;
};

static int call(void *session, const struct abi_req *req, struct abi_rep *rep)
{
	struct direct_session *s = session;
	core_control(s->client, *s->clock, req, rep);
	return 0;
}

static int region(void *session, uint32_t arena, void **base, uint64_t *bytes)
{
	int fd;
	return core_client_region(((struct direct_session *)session)->client, arena, base, bytes, &fd);
}

static void wake(void *session)
{
}

static int async_fd(void *session)
{
	return core_client_async_fd(((struct direct_session *)session)->client);
}

static void close_session(void *session)
{
	struct direct_session *s = session;
	core_client_free(s->client);
	free(s);
}

static const struct session_ops ops = { .call = call, .region = region, .wake = wake, .async_fd = async_fd, .close = close_session };

int direct_session_open(struct core *core, const uint64_t *clock, const struct uroce_open_attr *attr, struct uroce_context **out)
{
	struct direct_session *s = malloc(sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->clock = clock;
	int rc = core_client_new(core, &s->client);
	if (rc) {
		free(s);
		return rc;
	}
	core_client_attach(s->client);
	return context_open(&ops, s, attr, out);
}

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
