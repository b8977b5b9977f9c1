/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of live objects of a context. It owns their memory and cookies, and the count of the events that the program took
 * and acknowledged (IBA vol. 1, 11.6.3); what they mean, what refers to them and their
 * counterpart in the engine belong to the files named after them.
 * Invariant: a cookie names at most one object for as long as the context lives, and an object that was retired is never
 * found again. */
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1

#include "client.h"

void *object_new(struct uroce_context *ctx, enum object_kind kind, size_t size)
{
	struct object *o = aligned_alloc(CLIENT_LINE, (size + CLIENT_LINE - 1) & ~(size_t)(CLIENT_LINE - 1));
	if (!o)
		return NULL;
	memset(o, 0, size);
	o->ctx = ctx;
	o->kind = kind;
	pthread_mutex_lock(&ctx->events);
	o->cookie = ++ctx->last_cookie;
	HASH_ADD(hh, ctx->objects, cookie, sizeof(o->cookie), o);
	pthread_mutex_unlock(&ctx->events);
	if (!o->hh.tbl) {
		free(o);
		return NULL;
	}
	return o;
}

static void unlink_locked(struct object *o)
{
	if (!o->hh.tbl)
		return;
	HASH_DELETE(hh, o->ctx->objects, o);
	o->hh.tbl = NULL;
}

void object_retire(struct object *o)
{
	pthread_mutex_lock(&o->ctx->events);
	unlink_locked(o);
	while (o->acked < o->delivered)
		pthread_cond_wait(&o->ctx->acked, &o->ctx->events);
	pthread_mutex_unlock(&o->ctx->events);
}

void object_free(struct object *o)
{
	pthread_mutex_lock(&o->ctx->events);
	unlink_locked(o);
	pthread_mutex_unlock(&o->ctx->events);
	free(o);
}

struct object *object_deliver(struct uroce_context *ctx, enum object_kind kind, uint64_t cookie)
{
	struct object *o;
	HASH_FIND(hh, ctx->objects, &cookie, sizeof(cookie), o);
	if (!o || o->kind != kind)
		return NULL;
	o->delivered++;
	return o;
}

void object_ack(struct object *o, unsigned n)
{
	pthread_mutex_lock(&o->ctx->events);
	o->acked += n;
	pthread_cond_broadcast(&o->ctx->acked);
	pthread_mutex_unlock(&o->ctx->events);
}

void object_free_all(struct uroce_context *ctx, unsigned count[OBJECT_KINDS])
{
	struct object *o, *next;
	memset(count, 0, sizeof(count[0]) * OBJECT_KINDS);
	HASH_ITER(hh, ctx->objects, o, next) {
		count[o->kind]++;
		object_free(o);
	}
}
