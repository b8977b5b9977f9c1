/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints. Owns the layout of the table and the names in the JSON list, which stay. */
#include "report.h"

#include <stdio.h>
#include <string.h>

#include "number.h"
#include "output.h"

#define PACE_NS UINT64_C(250000000)

void report_start(struct report *r)
{
	r->rows = json_array();
	setvbuf(stdout, NULL, _IOLBF, 0);
}

static void clear_progress(struct report *r)
{
	if (r->has_progress)
		fprintf(stderr, "\r\033[K");
}

/* ---- the table ---- */

static double us(const struct histogram *h, double share)
{
	return (double)histogram_percentile(h, share) / 1000;
}

static double mean(const struct histogram *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0;
}

/* Where what follows was measured: figures say little without it. */
static void print_layout(const struct report *r)
{
	const struct options *o = r->options;
	static const struct {
		const char *mode, *what;
	} layouts[] = {
		{ "inline", "each runs program and engine" }, { "embedded", "program and poll core at each end" }, { "served", "program and the daemon's poll core at each end" }, { "tcp", "sockets, NODELAY" },
	};
	const char *what = "";
	for (unsigned i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (!strcmp(r->mode, layouts[i].mode))
			what = layouts[i].what;
	printf("layout: %s, port %s; CPUs: client %s, server %s; %u spinning threads: %s\n", r->mode, r->port, r->cores[0], r->cores[1], r->spinning, what);
	if (o->is_tcp)
		printf("messages: one connection, one send a message\n");
	else if (o->tests == 1u << TEST_LATENCY)
		printf("messages: service %s, one at a time on one QP, inline up to %u bytes, path MTU %u\n", service_name(o->service), o->inline_bytes, r->mtu);
	else
		printf("messages: service %s, QPs %u%s, depth %u, batch %u, inline up to %u bytes, path MTU %u\n", service_name(o->service), o->qps, o->has_srq ? " with one SRQ" : "", o->depth, o->batch,
			o->inline_bytes, r->mtu);
}

static void print_head(struct report *r)
{
	if (r->has_head)
		return;
	r->has_head = true;
	r->qps = r->options->qps;
	r->depth = r->options->depth;
	r->batch = r->options->batch;
	print_layout(r);
	if (r->is_only_verify)
		printf("%-12s %7s %9s %10s %8s  %s", "operation", "size", "messages", "bytes", "seconds", "data");
	else
		printf("%-12s %7s %11s %8s %8s %8s %8s %9s %9s %9s  %-18s %8s", "operation", "size", "messages/s", "Gbit/s", "min us", "avg us", "p50 us", "p99 us", "p99.9 us", "max us", "latency is",
			"verified");
	printf(r->options->service ? "  %9s\n" : "\n", "lost");
}

/* Messages of all tests, of services that lose some. */
static uint64_t count_lost(const struct result *const results[TESTS])
{
	uint64_t sum = 0;
	for (unsigned t = 0; t < TESTS; t++)
		sum += results[t] ? results[t]->lost : 0;
	return sum;
}

static void end_row(const struct report *r, const struct result *const results[TESTS])
{
	if (r->options->service)
		printf("  %9llu", (unsigned long long)count_lost(results));
	printf("\n");
}

/* v: NULL, if something was wrong. */
static void print_verified(const struct trial *t, const struct result *v)
{
	char size[24], bytes[24];
	printf("%-12s %7s ", trial_name(t), number_text(t->size, size));
	if (v)
		printf("%9llu %10s %8.3f  right", (unsigned long long)v->messages, number_text(v->bytes, bytes), v->seconds);
	else
		printf("%9s %10s %8s  FAILED", "-", "-", "-");
}

static void print_row(const struct trial *t, const struct result *const results[TESTS])
{
	const struct result *s = results[TEST_STREAM], *l = results[TEST_LATENCY], *v = results[TEST_VERIFY];
	char size[24];
	printf("%-12s %7s ", trial_name(t), number_text(t->size, size));
	if (s)
		printf("%11.0f %8.3f ", (double)s->messages / s->seconds, (double)s->bytes * 8e-9 / s->seconds);
	else
		printf("%11s %8s ", "-", "-");
	if (l)
		printf("%8.2f %8.2f %8.2f %9.2f %9.2f %9.2f  %-18s ", us(&l->latency, 0), mean(&l->latency) / 1000, us(&l->latency, 0.5), us(&l->latency, 0.99), us(&l->latency, 0.999), (double)l->latency.max / 1000, l->latency_of);
	else
		printf("%8s %8s %8s %9s %9s %9s  %-18s ", "-", "-", "-", "-", "-", "-", "-");
	if (v)
		printf("%8llu", (unsigned long long)v->messages);
	else
		printf("%8s", "-");
}

/* What was done when it is not what was asked for (trial_fit), nor what the row before was done with. */
static void print_fitted(struct report *r, const struct trial *t)
{
	if (!t->op || t->test == TEST_LATENCY || (t->qps == r->qps && t->depth == r->depth && t->batch == r->batch))
		return;
	r->qps = t->qps;
	r->depth = t->depth;
	r->batch = t->batch;
	printf("fitted: QPs %u, depth %u, batch %u\n", r->qps, r->depth, r->batch);
}

/* ---- JSON ---- */

static json_t *pack_latency(const struct result *l)
{
	const struct histogram *h = &l->latency;
	return json_pack("{s:s, s:I, s:I, s:f, s:I, s:I, s:I, s:I}", "of", l->latency_of, "samples", (json_int_t)h->count, "min", (json_int_t)histogram_percentile(h, 0), "mean", mean(h),
		"p50", (json_int_t)histogram_percentile(h, 0.5), "p99", (json_int_t)histogram_percentile(h, 0.99), "p999", (json_int_t)histogram_percentile(h, 0.999),
		"max", (json_int_t)h->max);
}

/* What the QPs counted in all tests of a row; nothing is left out but zeroes. */
static json_t *pack_counters(const struct result *const results[TESTS])
{
	json_t *all = json_object();
	const char *name;
	for (unsigned i = 0; i < RESULT_COUNTERS && (name = uroce_qp_counter_name(i)); i++) {
		uint64_t sum = 0;
		for (unsigned t = 0; t < TESTS; t++)
			sum += results[t] ? results[t]->counters[i] : 0;
		if (sum)
			json_object_set_new(all, name, json_integer((json_int_t)sum));
	}
	return all;
}

static json_t *pack_verified(const struct result *v)
{
	return v ? json_pack("{s:I, s:I, s:f}", "messages", (json_int_t)v->messages, "bytes", (json_int_t)v->bytes, "seconds", v->seconds) : json_null();
}

static json_t *pack_row(const struct report *r, const struct trial *t, const struct result *const results[TESTS], const char *error)
{
	const struct result *s = results[TEST_STREAM], *l = results[TEST_LATENCY], *v = results[TEST_VERIFY];
	return json_pack("{s:s, s:s, s:b, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:s*, s:o, s:o, s:o, s:I, s:o, s:I, s:o, s:{s:s, s:s, s:[s, s], s:i}}", "op", trial_name(t), "service", service_name(t->service), "srq",
		t->has_srq, "size", (json_int_t)t->size, "qps", (int)t->qps,
		"depth", (int)t->depth, "batch", (int)t->batch, "inline", t->op ? (int)t->inline_bytes : 0, "mtu", (int)r->mtu, "errors", error[0] != 0, "error", error[0] ? error : NULL,
		"msgs_per_s", s ? json_real((double)s->messages / s->seconds) : json_null(), "gbit_per_s", s ? json_real((double)s->bytes * 8e-9 / s->seconds) : json_null(),
		"lat_ns", l ? pack_latency(l) : json_null(), "verified", (json_int_t)(v ? v->messages : 0), "verify", pack_verified(v), "lost", (json_int_t)count_lost(results), "counters", pack_counters(results),
		"layout", "mode", r->mode, "port", r->port, "cores", r->cores[0], r->cores[1], "spinning_threads", (int)r->spinning);
}

/* ---- both ---- */

void report_add(struct report *r, const struct trial *t, const struct result *const results[TESTS], const char *error)
{
	char size[24];
	bool has_table = !r->json || strcmp(r->json, "-");
	clear_progress(r);
	if (has_table)
		print_head(r);
	if (has_table)
		print_fitted(r, t);
	if (has_table && r->is_only_verify)
		print_verified(t, results[TEST_VERIFY]);
	else if (has_table)
		print_row(t, results);
	if (has_table)
		end_row(r, results);
	if (error[0])
		fprintf(stderr, "uroce-perf: %s of %s bytes failed: %s\n", trial_name(t), number_text(t->size, size), error);
	json_array_append_new(r->rows, pack_row(r, t, results, error));
}

void report_progress(struct report *r, const struct trial *t, unsigned number, unsigned of)
{
	static const char *const words[TESTS] = { "stream", "latency", "every byte" };
	char size[24];
	if (!r->has_progress)
		return;
	snprintf(r->progress, sizeof(r->progress), "[%u/%u] %s, %s bytes: %s", number, of, trial_name(t), number_text(t->size, size), words[t->test]);
	fprintf(stderr, "\r\033[K%s", r->progress);
	r->paced_ns = end_now();
}

void report_pace(void *report, uint64_t messages, double seconds)
{
	struct report *r = report;
	uint64_t now_ns = end_now();
	if (now_ns - r->paced_ns < PACE_NS)
		return;
	r->paced_ns = now_ns;
	fprintf(stderr, "\r\033[K%s: %llu messages in %.1f s", r->progress, (unsigned long long)messages, seconds);
}

bool report_end(struct report *r)
{
	bool is_written = true;
	clear_progress(r);
	if (r->file) {
		json_dumpf(r->rows, r->file, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
		fputc('\n', r->file);
		is_written = output_close(r->file, r->json);
	}
	if (r->file != stdout)
		is_written &= output_close(stdout, "-");
	json_decref(r->rows);
	r->rows = NULL;
	r->file = NULL;
	return is_written;
}
