/* SPDX-License-Identifier: BSD-3-Clause */
/* A context: one session with an engine, its log, the lock of the control calls and the objects that were made in it. It
 * does not know what any request means, nor how the engine is reached: that is the session's business.
 * Invariant: every request is made under ctx->control, and a reply is looked at only when its type and sequence number are
 * those of the request. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

static void write_line(void *arg, enum log_level level, const char *line)
{
	const struct client_log *log = arg;
	log->write(log->arg, (int)level, line);
}

void context_log_init(struct client_log *log, const struct uroce_open_attr *attr)
{
	const char *text = NULL;
	*log = (struct client_log){ .log.level = LOG_WARN };
	if (attr && attr->log) {
		log->write = attr->log;
		log->arg = attr->log_arg;
		log->log.sink = write_line;
		log->log.arg = log;
	}
	if (attr && attr->log_level > 0)
		log->log.level = attr->log_level - 1 > LOG_DEBUG ? LOG_DEBUG : (enum log_level)(attr->log_level - 1);
	else
		text = getenv("UROCE_LOG");
	if (text && *text && log_level_parse(text, &log->log.level))
		log_write(&log->log, LOG_WARN, "UROCE_LOG is \"%s\": error, warn, info or debug are understood; taking warn",
			text);
}

void context_log_copy(struct client_log *to, const struct client_log *from)
{
	*to = *from;
	if (to->log.sink)
		to->log.arg = to;
}

void context_lock(struct uroce_context *ctx)
{
	pthread_mutex_lock(&ctx->control);
}

void context_unlock(struct uroce_context *ctx)
{
	pthread_mutex_unlock(&ctx->control);
}

int context_call(struct uroce_context *ctx, struct abi_req *req, struct abi_rep *rep)
{
	int err;
	memset(rep, 0, sizeof(*rep));
	req->sequence = ++ctx->sequence;
	err = ctx->ops->call(ctx->session, req, rep);
	if (err)
		return err;
	if (rep->type != req->type || rep->sequence != req->sequence) {
		log_write(context_log(ctx), LOG_ERROR,
			"the engine answered request %u, type %u, with %u, type %u: client and engine are of different versions?",
			req->sequence, req->type, rep->sequence, rep->type);
		return -EPROTO;
	}
	if (rep->status < 0)
		log_write(context_log(ctx), LOG_WARN, "%.*s", (int)strnlen(rep->text, sizeof(rep->text)), rep->text);
	return rep->status < 0 ? rep->status : 0;
}

int context_call_handle(struct uroce_context *ctx, enum abi_msg type, uint32_t handle)
{
	struct abi_req req = { .type = type, .handle = handle };
	struct abi_rep rep;
	int err = context_call(ctx, &req, &rep);
	return err == -ENODEV ? 0 : err;
}

int context_query_device(struct uroce_context *ctx, struct abi_device *device)
{
	struct abi_req req = { .type = ABI_QUERY_DEVICE };
	struct abi_rep rep;
	int err = context_call(ctx, &req, &rep);
	if (!err)
		*device = rep.device;
	return err;
}

int context_region(struct uroce_context *ctx, uint32_t arena, uint64_t offset, uint64_t bytes, void **out)
{
	void *base;
	uint64_t size;
	int err = ctx->ops->region(ctx->session, arena, &base, &size);
	if (err) {
		log_write(context_log(ctx), LOG_ERROR, "arena %u, which the engine named, cannot be mapped: %s", arena,
			strerror(-err));
		return err;
	}
	if (offset > size || bytes > size - offset) {
		log_write(context_log(ctx), LOG_ERROR,
			"the engine named %" PRIu64 " bytes at offset %" PRIu64 " of arena %u, which has %" PRIu64, bytes, offset,
			arena, size);
		return -EPROTO;
	}
	*out = (uint8_t *)base + offset;
	return 0;
}

int context_slots(struct uroce_context *ctx, const struct abi_ring_place *place, uint32_t slot_bytes, void **slots)
{
	bool is_sane = place->slots && !(place->slots & (place->slots - 1)) && place->slots < UINT32_C(1) << 31
		&& place->slot_bytes >= slot_bytes && place->slot_bytes % ABI_CACHE_LINE == 0
		&& place->control_offset % ABI_CACHE_LINE == 0 && place->slots_offset % ABI_CACHE_LINE == 0;
	if (!is_sane) {
		log_write(context_log(ctx), LOG_ERROR,
			"the engine made a ring of %u slots of %u bytes, not a power of two of at least %u bytes aligned to 64",
			place->slots, place->slot_bytes, slot_bytes);
		return -EPROTO;
	}
	return context_region(ctx, place->arena, place->slots_offset, (uint64_t)place->slots * place->slot_bytes, slots);
}

int context_ring(struct uroce_context *ctx, const struct abi_ring_place *place, uint32_t slot_bytes, struct abi_ring **ring,
	void **slots)
{
	void *control;
	int err = context_slots(ctx, place, slot_bytes, slots);
	if (!err)
		err = context_region(ctx, place->arena, place->control_offset, sizeof(struct abi_ring), &control);
	if (!err)
		*ring = control;
	return err;
}

/* ---- opening and closing ---- */

static int init_locks(struct uroce_context *ctx)
{
	int err = pthread_mutex_init(&ctx->control, NULL);
	if (err)
		return -err;
	err = pthread_mutex_init(&ctx->events, NULL);
	if (err)
		goto no_events;
	err = pthread_cond_init(&ctx->acked, NULL);
	if (err)
		goto no_acked;
	return 0;
no_acked:
	pthread_mutex_destroy(&ctx->events);
no_events:
	pthread_mutex_destroy(&ctx->control);
	return -err;
}

static void free_context(struct uroce_context *ctx)
{
	pthread_cond_destroy(&ctx->acked);
	pthread_mutex_destroy(&ctx->events);
	pthread_mutex_destroy(&ctx->control);
	free(ctx);
}

static int attach(struct uroce_context *ctx)
{
	void *page, *doorbells;
	int err = context_region(ctx, 0, 0, sizeof(*ctx->page), &page);
	if (!err)
		err = context_region(ctx, 0, CLIENT_DOORBELLS_OFFSET, sizeof(*ctx->doorbells), &doorbells);
	if (err)
		return err;
	ctx->page = page;
	ctx->doorbells = doorbells;
	ctx->life = ctx->ops->life ? ctx->ops->life(ctx->session) : &ctx->page->dead;
	return context_query_device(ctx, &ctx->device);
}

int context_open(const struct session_ops *ops, void *session, const struct uroce_open_attr *attr, struct uroce_context **out)
{
	struct uroce_context *ctx = calloc(1, sizeof(*ctx));
	int err = -ENOMEM;
	if (!ctx)
		goto no_context;
	ctx->ops = ops;
	ctx->session = session;
	context_log_init(&ctx->log, attr);
	err = init_locks(ctx);
	if (err)
		goto no_locks;
	err = attach(ctx);
	if (err)
		goto not_attached;
	*out = ctx;
	return 0;
not_attached:
	free_context(ctx);
	ctx = NULL;
no_locks:
	free(ctx);
no_context:
	ops->close(session);
	return err;
}

int uroce_open(const char *device, const struct uroce_open_attr *attr, struct uroce_context **out)
{
	struct client_log log;
	const struct session_ops *ops;
	void *session;
	int err;
	context_log_init(&log, attr);
	err = device_open(&log, device, attr, &ops, &session);
	return err ? err : context_open(ops, session, attr, out);
}

void uroce_close(struct uroce_context *ctx)
{
	unsigned left[OBJECT_KINDS];
	if (!ctx)
		return;
	ctx->ops->close(ctx->session);
	memory_free_all(ctx);
	object_free_all(ctx, left);
	if (left[OBJECT_QP] || left[OBJECT_CQ] || left[OBJECT_MR])
		log_write(context_log(ctx), LOG_INFO,
			"context closed with %u QPs, %u CQs and %u MRs still in it: they are gone too", left[OBJECT_QP],
			left[OBJECT_CQ], left[OBJECT_MR]);
	free_context(ctx);
}

/* ---- device ---- */

int uroce_query_device(struct uroce_context *ctx, struct uroce_device_attr *attr)
{
	struct abi_device d;
	int err;
	context_lock(ctx);
	err = context_query_device(ctx, &d);
	context_unlock(ctx);
	if (err)
		return err;
	*attr = (struct uroce_device_attr){
		.mode = d.mode, .port_up = d.port_up, .active_mtu = qp_client_mtu_bytes(d.active_mtu), .gid_slots = d.gid_slots,
		.max_qp = d.max_qp, .max_cq = d.max_cq, .max_srq = d.max_srq, .max_ah = d.max_ah, .max_mr = d.max_mr, .max_mw = d.max_mw, .max_pd = d.max_pd,
		.max_mcast_grp = d.max_mcast_grp, .max_mcast_qp_attach = d.max_mcast_qp_attach,
		.max_qp_wr = d.max_qp_wr, .max_cqe = d.max_cqe, .max_sge = d.max_sge, .max_inline = d.max_inline,
		.max_rd_atomic = d.max_rd_atomic, .max_msg_bytes = d.max_msg_bytes, .caps = d.caps,
	};
	memcpy(attr->name, d.name, sizeof(attr->name) - 1);
	memcpy(attr->mac, d.mac, sizeof(attr->mac));
	return 0;
}

int uroce_query_gid(struct uroce_context *ctx, uint32_t index, struct uroce_gid *gid, uint16_t *vlan)
{
	struct abi_req req = { .type = ABI_QUERY_GID, .handle = index };
	struct abi_rep rep;
	int err;
	context_lock(ctx);
	err = context_call(ctx, &req, &rep);
	context_unlock(ctx);
	if (err)
		return err;
	if (!rep.gid.present)
		return -ENOENT;
	memcpy(gid->raw, rep.gid.gid, sizeof(gid->raw));
	if (vlan)
		*vlan = (uint16_t)rep.gid.vlan;
	return 0;
}

int uroce_engine_poll(struct uroce_context *ctx)
{
	return ctx->ops->poll ? ctx->ops->poll(ctx->session) : -EOPNOTSUPP;
}
