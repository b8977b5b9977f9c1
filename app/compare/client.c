/* SPDX-License-Identifier: BSD-3-Clause */
/* The client: goes through transports, works and sizes, and keeps the results. Transports that need the device come first: what is wrong with it shows at once, and it is closed before the others are measured. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "number.h"
#include "output.h"
#include "result.h"
#include "table.h"

#define WARM_SHARE 0.1 /* of the time of a measurement */
#define COUNTED_BYTES (UINT64_C(64) << 20)
#define COUNTED_MOST 1000u
#define COUNTED_LEAST 4u

struct client {
	struct host *host;
	struct result *results;
	unsigned count, of;
	bool has_failed, is_alone, has_progress;
};

static void show_progress(const struct client *c, const struct result *r)
{
	char size[24];
	if (c->has_progress)
		fprintf(stderr, "\r\033[K[%u/%u] %s, %s, messages of %s bytes", c->count + 1, c->of, r->transport->name, works[r->work].name, number_text(r->size, size));
}

/* In order: warm up, measure, count. */
static int run_phases(struct client *c, struct link *l, struct result *r)
{
	const struct options *o = c->host->options;
	pid_t daemon = l->transport->has_device ? c->host->daemon : 0;
	uint64_t fit = COUNTED_BYTES / r->size, counted = fit > COUNTED_MOST ? COUNTED_MOST : fit < COUNTED_LEAST ? COUNTED_LEAST : fit;
	const struct phase warm = { .seconds = o->seconds * WARM_SHARE }, timed = { .seconds = o->seconds }, count = { .messages = counted, .is_counted = true };
	struct outcome *spare = malloc(sizeof(*spare));
	int err = spare ? work_run(l, &warm, daemon, spare) : link_fail(l, "no memory");
	if (!err)
		err = work_run(l, &timed, daemon, &r->timed);
	if (!err && c->host->self.can_trace && c->host->peer.can_trace)
		err = work_run(l, &count, daemon, spare);
	for (unsigned i = 0; i < 2 && !err; i++)
		r->counted[i] = spare->ends[i];
	free(spare);
	return err;
}

/* Ends the link at the server; what it says before that is often the better reason. */
static void close_link(struct client *c, struct link *l)
{
	bool is_closed = false;
	if (l->transport->close)
		link_close(l);
	exchange_send(l->exchange, json_pack("{s:b}", "close", 1));
	while (!is_closed && !c->is_alone) {
		json_t *answer = exchange_read(l->exchange);
		const char *why = json_string_value(json_object_get(answer, "error"));
		size_t len = strlen(l->error);
		if (why && !strstr(l->error, why))
			snprintf(l->error + len, sizeof(l->error) - len, "%sthe other end: %s", len ? "; " : "", why);
		is_closed = json_object_get(answer, "closed");
		c->is_alone = !answer;
		json_decref(answer);
	}
}

static void run_one(struct client *c, const struct transport *t, enum work work, uint64_t size)
{
	struct host *h = c->host;
	struct result *r = &c->results[c->count];
	struct link l = { .transport = t, .exchange = &h->exchange, .end = h->is_open ? &h->end : NULL, .is_client = true, .work = work, .size = size, .fd = -1 };
	char text[24];
	*r = (struct result){ .transport = t, .work = work, .size = size };
	show_progress(c, r);
	int err = link_say(&l, json_pack("{s:s, s:s, s:I}", "open", t->name, "work", works[work].name, "size", (json_int_t)size));
	if (!err)
		err = link_open(&l);
	if (!err)
		err = run_phases(c, &l, r);
	close_link(c, &l);
	snprintf(r->note, sizeof(r->note), "%s%s", l.note, h->self.daemon && t->has_device ? "system calls of the daemon are not counted" : "");
	r->copying = l.copying;
	c->count++;
	if (!err)
		return;
	c->has_failed = true;
	snprintf(r->error, sizeof(r->error), "%s", l.error[0] ? l.error : "it failed");
	fprintf(stderr, "%suroce-compare: %s, %s, messages of %s bytes: %s\n", c->has_progress ? "\r\033[K" : "", t->name, works[work].name, number_text(size, text), r->error);
}

static bool is_wanted(const struct options *o, const struct transport *t, enum work w, uint64_t size)
{
	return o->works & t->works & 1u << w && size >= works[w].least && size <= works[w].most;
}

/* Each of a transport's, or only counts them. */
static unsigned go_through(struct client *c, const struct transport *t, bool is_counting)
{
	const struct options *o = c->host->options;
	unsigned n = 0;
	for (enum work w = 0; w < WORKS; w++)
		for (unsigned i = 0; i < o->size_count; i++) {
			if (!is_wanted(o, t, w, o->sizes[i]))
				continue;
			n++;
			if (!is_counting && !c->is_alone)
				run_one(c, t, w, o->sizes[i]);
		}
	return n;
}

/* 0, or -1 when the device cannot be used. */
static int run_transports(struct client *c)
{
	for (int wants_device = 1; wants_device >= 0; wants_device--)
		for (unsigned i = 0; transport_at(i); i++) {
			const struct transport *t = transport_at(i);
			if (!(c->host->options->transports & 1u << i) || t->has_device != wants_device)
				continue;
			if (host_choose(c->host, t))
				return -1;
			go_through(c, t, false);
		}
	return 0;
}

static int compare_results(const void *a, const void *b)
{
	const struct result *x = a, *y = b;
	if (x->work != y->work)
		return x->work < y->work ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return transport_find(x->transport->name, strlen(x->transport->name)) - transport_find(y->transport->name, strlen(y->transport->name));
}

static bool write_json(FILE *f, const char *path, json_t *document)
{
	json_dumpf(document, f, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
	fputc('\n', f);
	return output_close(f, path);
}

static bool show(struct client *c)
{
	const struct host *h = c->host;
	const struct options *o = h->options;
	qsort(c->results, c->count, sizeof(*c->results), compare_results);
	json_t *document = result_document(h, c->results, c->count);
	bool is_written = document != NULL;
	if (c->has_progress)
		fprintf(stderr, "\r\033[K");
	if (document && (!o->json || strcmp(o->json, "-")))
		table_print(document);
	if (document && h->json)
		is_written = write_json(h->json, o->json, document);
	if (document && h->html)
		is_written &= page_write(h->html, document) && output_close(h->html, o->html);
	if (h->json != stdout)
		is_written &= output_close(stdout, "-");
	json_decref(document);
	return is_written;
}

int client_run(struct host *h)
{
	struct client c = { .host = h, .has_progress = isatty(STDERR_FILENO) };
	int rc = host_meet(h);
	for (unsigned i = 0; transport_at(i); i++)
		if (h->options->transports & 1u << i)
			c.of += go_through(&c, transport_at(i), true);
	c.results = calloc(c.of + 1, sizeof(*c.results));
	if (!rc && !c.of) {
		fprintf(stderr, "uroce-compare: --works and --sizes leave nothing to do: expected stream with sizes from 4K, small with less\n");
		rc = 2;
	}
	if (!rc && !h->options->is_uncounted && !(h->self.can_trace && h->peer.can_trace))
		fprintf(stderr, "uroce-compare: warning: processes may not be traced here (a container's rules, a debugger): system calls and copies are not counted\n");
	if (!rc && c.results)
		rc = run_transports(&c);
	if (!rc)
		rc = !show(&c) || c.has_failed || c.is_alone;
	exchange_send(&h->exchange, json_pack("{s:b}", "bye", 1));
	host_close(h);
	exchange_close(&h->exchange);
	free(c.results);
	return rc < 0 ? 1 : rc;
}
