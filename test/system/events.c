/* SPDX-License-Identifier: BSD-3-Clause */
#include "events.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "side.h"

#define PATIENCE_MS 20000
#define QUIET_MS 50

static bool is_there(struct uroce_context *ctx, int wait_ms)
{
	struct pollfd p = { .fd = uroce_async_fd(ctx), .events = POLLIN };
	int n;
	while ((n = poll(&p, 1, wait_ms)) < 0 && errno == EINTR)
		;
	return n == 1;
}

static struct uroce_async_event take(struct uroce_context *ctx)
{
	struct uroce_async_event e;
	CHECK(is_there(ctx, PATIENCE_MS));
	CHECK(!uroce_async_get_event(ctx, &e));
	return e;
}

void events_expect(struct uroce_context *ctx, enum uroce_event_type type, const void *object)
{
	struct uroce_async_event e = take(ctx);
	const void *of = e.qp ? (void *)e.qp : e.cq ? (void *)e.cq : (void *)e.srq;
	if (e.type != type || of != object) {
		printf("event %d of %p, expected %d of %p\n", (int)e.type, of, (int)type, object);
		fflush(stdout);
		_exit(1);
	}
	uroce_async_ack_event(&e);
}

bool events_is_there(struct uroce_context *ctx)
{
	return is_there(ctx, QUIET_MS);
}

void events_expect_none(struct uroce_context *ctx)
{
	CHECK(!is_there(ctx, QUIET_MS));
}
