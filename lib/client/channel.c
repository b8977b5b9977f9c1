/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels and the asynchronous events of a context (IBA vol. 1, 11.4.2, 11.6.3): reading what the engine wrote
 * into a socket and finding the object it names. When an event fires is the engine's business, arming is completion.c's.
 * Invariant: an event is handed out only while its object is in the table of live objects, and is counted as delivered
 * before the lock of that table is let go. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "client.h"

/* An engine that has let go of us may hang before it closes its end, and nothing would come through it. */
static bool is_over(const struct uroce_context *ctx, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	return engine_is_dead(ctx->page, ctx->life) && poll(&p, 1, 0) == 0;
}

/* One record, whole. 0, or -errno; -ENODEV: the engine is gone, and with it the writing end; or this session has found so (served.c). */
static int read_record(const struct uroce_context *ctx, int fd, void *record, size_t size)
{
	ssize_t got;
	if (is_over(ctx, fd))
		return -ENODEV;
	got = read(fd, record, size);
	if (got < 0)
		return -errno;
	if (!got)
		return -ENODEV;
	return (size_t)got == size ? 0 : -EIO;
}

/* ---- channels ---- */

int uroce_channel_create(struct uroce_context *ctx, struct uroce_channel **out)
{
	struct abi_req req = { .type = ABI_CREATE_CHANNEL };
	struct abi_rep rep;
	struct uroce_channel *ch = object_new(ctx, OBJECT_CHANNEL, sizeof(*ch));
	int err;
	if (!ch)
		return -ENOMEM;
	context_lock(ctx);
	err = context_call(ctx, &req, &rep);
	context_unlock(ctx);
	if (err) {
		object_free(&ch->o);
		return err;
	}
	ch->o.handle = rep.handle;
	ch->fd = rep.channel.fd;
	*out = ch;
	return 0;
}

int uroce_channel_destroy(struct uroce_channel *ch)
{
	struct uroce_context *ctx;
	int err;
	if (!ch)
		return 0;
	ctx = ch->o.ctx;
	context_lock(ctx);
	if (ch->refs) {
		log_write(context_log(ctx), LOG_WARN, "channel still used by %u CQs: destroy them first", ch->refs);
		err = -EBUSY;
	} else {
		err = context_call_handle(ctx, ABI_DESTROY_CHANNEL, ch->o.handle);
	}
	context_unlock(ctx);
	if (!err)
		object_free(&ch->o);
	return err;
}

int uroce_channel_fd(const struct uroce_channel *ch)
{
	return ch->fd;
}

/* NULL: it was destroyed since the event was written. */
static struct uroce_cq *deliver(struct uroce_channel *ch, uint64_t cookie)
{
	struct uroce_context *ctx = ch->o.ctx;
	struct uroce_cq *cq;
	pthread_mutex_lock(&ctx->events);
	cq = (struct uroce_cq *)object_deliver(ctx, OBJECT_CQ, cookie);
	pthread_mutex_unlock(&ctx->events);
	return cq;
}

int uroce_channel_get_event(struct uroce_channel *ch, struct uroce_cq **cq)
{
	uint64_t cookie;
	int err;
	do {
		err = read_record(ch->o.ctx, ch->fd, &cookie, sizeof(cookie));
		if (err)
			return err;
		*cq = deliver(ch, cookie);
	} while (!*cq);
	return 0;
}

void uroce_cq_ack_events(struct uroce_cq *cq, unsigned n)
{
	object_ack(&cq->o, n);
}

/* ---- asynchronous events ---- */

enum event_of { OF_DEVICE, OF_CQ, OF_SRQ, OF_QP, OF_QP_IN_ERR };

static const struct {
	uint32_t type;
	enum event_of of;
} event_kinds[] = {
	{ ABI_EVENT_CQ_ERR, OF_CQ },
	{ ABI_EVENT_QP_FATAL, OF_QP_IN_ERR },
	{ ABI_EVENT_QP_REQ_ERR, OF_QP_IN_ERR },
	{ ABI_EVENT_QP_ACCESS_ERR, OF_QP_IN_ERR },
	{ ABI_EVENT_COMM_EST, OF_QP },
	{ ABI_EVENT_SQ_DRAINED, OF_QP },
	{ ABI_EVENT_SRQ_ERR, OF_SRQ },
	{ ABI_EVENT_SRQ_LIMIT_REACHED, OF_SRQ },
	{ ABI_EVENT_QP_LAST_WQE_REACHED, OF_QP_IN_ERR },
	{ ABI_EVENT_DEVICE_FATAL, OF_DEVICE },
	{ ABI_EVENT_PORT_ACTIVE, OF_DEVICE },
	{ ABI_EVENT_PORT_ERR, OF_DEVICE },
	{ ABI_EVENT_GID_CHANGE, OF_DEVICE },
};

/* false: the object is gone, or the type is of a newer engine. */
static bool resolve(struct uroce_context *ctx, const struct abi_async_event *record, struct uroce_async_event *event)
{
	size_t i = 0;
	while (i < sizeof(event_kinds) / sizeof(event_kinds[0]) && event_kinds[i].type != record->type)
		i++;
	if (i == sizeof(event_kinds) / sizeof(event_kinds[0]))
		return false;
	*event = (struct uroce_async_event){ .type = (enum uroce_event_type)record->type };
	if (event_kinds[i].of == OF_DEVICE)
		return record->type != ABI_EVENT_DEVICE_FATAL || !atomic_exchange(&ctx->is_death_told, true);
	pthread_mutex_lock(&ctx->events);
	if (event_kinds[i].of == OF_CQ)
		event->cq = (struct uroce_cq *)object_deliver(ctx, OBJECT_CQ, record->cookie);
	else if (event_kinds[i].of == OF_SRQ)
		event->srq = (struct uroce_srq *)object_deliver(ctx, OBJECT_SRQ, record->cookie);
	else
		event->qp = (struct uroce_qp *)object_deliver(ctx, OBJECT_QP, record->cookie);
	/* An event older than the QP's last RESET says nothing about its state now. */
	if (event->qp && event_kinds[i].of == OF_QP_IN_ERR
		&& atomic_load_explicit(&event->qp->state, memory_order_relaxed) >= UROCE_QP_RTR)
		atomic_store_explicit(&event->qp->state, UROCE_QP_ERR, memory_order_relaxed);
	pthread_mutex_unlock(&ctx->events);
	return event->cq || event->srq || event->qp;
}

int uroce_async_fd(const struct uroce_context *ctx)
{
	return ctx->ops->async_fd ? ctx->ops->async_fd(ctx->session) : -EOPNOTSUPP;
}

/* Whoever has died writes no event of it: one is made here, for one reader. */
static int tell_of_death(struct uroce_context *ctx, struct uroce_async_event *event)
{
	if (atomic_exchange(&ctx->is_death_told, true))
		return -ENODEV;
	*event = (struct uroce_async_event){ .type = UROCE_EVENT_DEVICE_FATAL };
	return 0;
}

int uroce_async_get_event(struct uroce_context *ctx, struct uroce_async_event *event)
{
	struct abi_async_event record;
	int fd = uroce_async_fd(ctx);
	int err;
	if (fd < 0)
		return fd;
	do {
		err = read_record(ctx, fd, &record, sizeof(record));
		if (err == -ENODEV)
			return tell_of_death(ctx, event);
		if (err)
			return err;
	} while (!resolve(ctx, &record, event));
	return 0;
}

void uroce_async_ack_event(const struct uroce_async_event *event)
{
	if (event->qp)
		object_ack(&event->qp->o, 1);
	else if (event->cq)
		object_ack(&event->cq->o, 1);
	else if (event->srq)
		object_ack(&event->srq->o, 1);
}
