/* SPDX-License-Identifier: BSD-3-Clause */
/* The server: one link after the other, as the client opens them. Invariant: every "open" ends with "closed" after the client said "close", with {"error": ...} before that if something failed. */
#include <stdio.h>
#include <string.h>

#include "host.h"
#include "work.h"

/* Who asks is another program, perhaps: only what this version can do. */
static bool take_link(json_t *message, struct link *l)
{
	const char *name, *work;
	json_int_t size;
	if (json_unpack(message, "{s:s, s:s, s:I}", "open", &name, "work", &work, "size", &size))
		return false;
	int t = transport_find(name, strlen(name)), w = work_find(work, strlen(work));
	if (t < 0 || w < 0 || size < (json_int_t)MARK_BYTES || size > (json_int_t)works[WORK_PINGPONG].most)
		return false;
	l->transport = transport_at((unsigned)t);
	l->work = (enum work)w;
	l->size = (uint64_t)size;
	return true;
}

static int open_link(struct host *h, json_t *message, struct link *l)
{
	if (!take_link(message, l))
		return link_fail(l, "this version cannot do that");
	if (host_choose(h, l->transport))
		return link_fail(l, "it cannot use its device %s", h->device ? h->device : "(none)");
	l->end = h->is_open ? &h->end : NULL;
	return link_open(l);
}

/* 0, 1 if something failed, -1 when the client is gone. */
static int serve_link(struct host *h, json_t *message)
{
	struct link l = { .exchange = &h->exchange, .fd = -1 };
	int err = open_link(h, message, &l);
	bool is_told = false, is_closed = false;
	while (!is_closed) {
		if (err && !is_told && (is_told = true))
			exchange_send(&h->exchange, json_pack("{s:s}", "error", l.error));
		json_t *next = exchange_read(&h->exchange);
		if (!next)
			break;
		is_closed = json_object_get(next, "close");
		if (!err && json_object_get(next, "phase"))
			err = work_serve(&l, next, l.transport->has_device ? h->daemon : 0);
		json_decref(next);
	}
	if (err)
		fprintf(stderr, "uroce-compare: server: %s\n", l.error);
	if (l.transport)
		link_close(&l);
	return !is_closed || exchange_send(&h->exchange, json_pack("{s:b}", "closed", 1)) ? -1 : err != 0;
}

int server_run(struct host *h)
{
	bool is_bye = false, has_failed = false;
	json_t *message;
	int rc = host_meet(h);
	bool has_met = !rc;
	while (!rc && !is_bye && (message = exchange_read(&h->exchange))) {
		is_bye = json_object_get(message, "bye");
		int failed = is_bye ? 0 : serve_link(h, message);
		has_failed |= failed != 0;
		rc = failed < 0;
		json_decref(message);
	}
	if (has_met && !is_bye)
		fprintf(stderr, "uroce-compare: the other end %s\n", h->exchange.why);
	host_close(h);
	exchange_close(&h->exchange);
	return rc || has_failed || !is_bye;
}
