/* SPDX-License-Identifier: BSD-3-Clause */
/* The session of a core in the same thread. Owns the core's client; does not own the core, and does not run it. */
#include "direct_session.h"

#include <errno.h>
#include <stdlib.h>

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
