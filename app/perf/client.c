/* SPDX-License-Identifier: BSD-3-Clause */
/* The client: goes through the operations and sizes that were asked for, and reports. Owns its end and the results. A trial that fails is reported and the next one begun. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "report.h"
#include "role.h"

struct client {
	struct role *role;
	struct end end;
	struct report report;
	struct result results[TESTS];
	unsigned number, of; /* trials */
	bool has_failed, is_alone;
};

bool trial_is_over(const struct trial *t, uint64_t count, uint64_t all_bytes, uint64_t start_ns)
{
	bool is_over = (t->iters && count >= t->iters) || (t->bytes && count >= 2 && all_bytes >= t->bytes);
	if (is_over || (t->iters && !t->pace))
		return is_over;
	double seconds = (double)(end_now() - start_ns) * 1e-9;
	if (t->pace)
		t->pace->show(t->pace->arg, t->size ? all_bytes / t->size : count, seconds);
	return !t->iters && seconds >= t->seconds;
}

/* The server's answer; NULL: e->error says why. */
static json_t *hear(struct end *e)
{
	return exchange_hear(e->exchange, "the server", e->error, sizeof(e->error));
}

static int connect_trial(struct end *e)
{
	json_t *card = hear(e), *ready;
	int err = card ? end_connect(e, card) : -1;
	json_decref(card);
	if (err)
		return err;
	if (exchange_send(e->exchange, end_pack(e)))
		return end_fail(e, "the server is gone");
	ready = hear(e);
	json_decref(ready);
	return ready ? 0 : -1;
}

/* What of a stream was lost is taken from what was measured, though some may have been lost before; what is verified is what arrived whole. */
static void count_lost(const struct end *e, struct result *r, uint64_t received)
{
	const struct trial *t = &e->trial;
	if (t->test == TEST_LATENCY || (t->test == TEST_STREAM && !t->op->takes_recv))
		return;
	r->lost = r->sent > received ? r->sent - received : 0;
	r->messages = r->messages > r->lost ? r->messages - r->lost : 0;
	r->bytes = r->messages * t->size;
}

/* Ends the trial at the server, and hears its last word: the server often knows better why something failed. */
static int end_trial(struct end *e, struct result *r, int err)
{
	json_t *answer = NULL;
	if (exchange_send(e->exchange, json_pack("{s:b}", "end", 1)))
		return end_fail(e, "the server is gone");
	do {
		json_decref(answer);
		answer = exchange_read(e->exchange);
	} while (answer && !json_object_get(answer, "done"));
	const char *why = json_string_value(json_object_get(answer, "error"));
	if (end_may_lose(e))
		count_lost(e, r, (uint64_t)json_integer_value(json_object_get(answer, "received")));
	if (!answer)
		err = end_fail(e, "the server %s", e->exchange->why);
	if (why && *why && !strstr(e->error, why)) {
		size_t len = strlen(e->error);
		snprintf(e->error + len, sizeof(e->error) - len, "%sthe server: %s", len ? "; " : "", why);
		err = -1;
	}
	json_decref(answer);
	return err;
}

void result_add_counters(struct result *r, const struct end *e)
{
	uint64_t value[RESULT_COUNTERS];
	for (uint32_t q = 0; q < e->trial.qps && e->qp && e->qp[q]; q++) {
		int n = uroce_qp_counters(e->qp[q], value, RESULT_COUNTERS);
		for (int i = 0; i < n && i < (int)RESULT_COUNTERS; i++)
			r->counters[i] += value[i];
	}
}

static int run_trial(struct client *c, const struct trial *t, struct result *r)
{
	struct end *e = &c->end;
	e->trial = *t;
	e->error[0] = 0;
	*r = (struct result){ 0 };
	report_progress(&c->report, t, ++c->number, c->of);
	if (!t->op)
		return tcp_run(e->exchange, t, r, e->error, sizeof(e->error));
	if (exchange_send(e->exchange, trial_pack(t)))
		return end_fail(e, "the server is gone");
	int err = end_prepare(e);
	if (!err)
		err = connect_trial(e);
	if (!err)
		err = tests[t->test].run(e, r);
	result_add_counters(r, e);
	err = end_trial(e, r, err);
	end_release(e);
	return err;
}

/* All that was asked for of one operation and size; what fails ends the row. */
static void run_row(struct client *c, const struct operation *op, uint64_t size)
{
	static const enum test order[TESTS] = { TEST_VERIFY, TEST_STREAM, TEST_LATENCY };
	const struct options *o = c->role->options;
	const struct result *done[TESTS] = { NULL };
	struct pace pace = { report_pace, &c->report };
	struct trial t, asked = { .pace = o->is_progress ? &pace : NULL, .op = op, .service = o->service, .has_srq = o->has_srq, .size = size, .qps = o->qps, .depth = o->depth,
		.batch = o->batch, .inline_bytes = o->inline_bytes, .mtu = o->mtu, .iters = o->iters, .bytes = o->bytes, .seconds = o->seconds };
	struct trial shown = asked; /* as the stream was fitted, if there was one, or else the first */
	int err = 0;
	shown.test = TESTS;
	for (unsigned i = 0; i < TESTS && !err; i++) {
		if (!(o->tests & 1u << order[i]))
			continue;
		t = asked;
		t.test = order[i];
		trial_fit(&t);
		if (t.test == TEST_STREAM || shown.test == TESTS)
			shown = t;
		err = run_trial(c, &t, &c->results[t.test]);
		if (!err)
			done[t.test] = &c->results[t.test];
	}
	report_add(&c->report, &shown, done, err ? c->end.error : "");
	if (err)
		c->has_failed = true;
	c->is_alone = c->end.exchange->is_closed || c->end.exchange->why;
}

static void run_operation(struct client *c, const struct operation *op)
{
	const struct options *o = c->role->options;
	unsigned sizes = op && op->size ? 1 : o->size_count;
	for (unsigned i = 0; i < sizes && !c->is_alone; i++) {
		uint64_t size = op && op->size ? op->size : o->sizes[i];
		if (op || size)
			run_row(c, op, size);
	}
}

static unsigned count_trials(const struct options *o)
{
	unsigned rows = o->is_tcp ? o->size_count : 0;
	for (unsigned i = 0; operation_at(i) && !o->is_tcp; i++)
		if (o->ops & 1u << i)
			rows += operation_at(i)->size ? 1 : o->size_count;
	return rows * (unsigned)__builtin_popcount(o->tests);
}

/* The path MTU that connections come to: what was asked for and both ends carry. */
static uint32_t settle_mtu(const struct client *c, int peer_mtu)
{
	uint32_t mtu = c->end.device.active_mtu, asked = c->role->options->mtu;
	if (peer_mtu > 0 && (uint32_t)peer_mtu < mtu)
		mtu = (uint32_t)peer_mtu;
	return asked && asked < mtu ? asked : mtu;
}

static void run_all(struct client *c, json_t *peer)
{
	const struct options *o = c->role->options;
	int spinning = 0, mtu = 0;
	const char *cores = "any";
	static const char *const modes[3] = { "embedded", "inline", "served" };
	json_unpack(peer, "{s?s, s?i, s?i}", "cores", &cores, "spinning", &spinning, "mtu", &mtu);
	c->report = (struct report){ .json = o->json, .file = c->role->json, .has_progress = o->is_progress, .is_only_verify = o->tests == 1u << TEST_VERIFY,
		.mode = o->is_tcp ? "tcp" : modes[c->end.device.mode % 3], .port = o->is_tcp ? "kernel" : c->end.device.name, .cores = { c->role->cores, cores },
		.spinning = c->role->spinning + (unsigned)spinning, .mtu = settle_mtu(c, mtu), .options = o };
	c->of = count_trials(o);
	report_start(&c->report);
	if (o->is_tcp)
		run_operation(c, NULL);
	for (unsigned i = 0; operation_at(i) && !o->is_tcp; i++)
		if (o->ops & 1u << i)
			run_operation(c, operation_at(i));
	if (!report_end(&c->report))
		c->has_failed = true;
}

int client_run(struct role *role)
{
	struct client *c = calloc(1, sizeof(*c));
	json_t *peer = NULL;
	if (!c)
		return 1;
	c->role = role;
	c->has_failed = true;
	c->end.is_client = true;
	if (!role_open(role, &c->end))
		peer = role_meet(role, &c->end);
	if (peer) {
		c->has_failed = false;
		run_all(c, peer);
		exchange_send(&role->exchange, json_pack("{s:b}", "bye", 1));
	}
	int failed = c->has_failed || c->is_alone;
	json_decref(peer);
	end_close(&c->end);
	exchange_close(&role->exchange);
	free(c);
	return failed;
}
