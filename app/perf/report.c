/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints. Owns the layout of the table and the names in the JSON object, which stay. */
#include "report.h"

#include <stdio.h>
#include <string.h>

void report_start(struct report *r)
{
	r->results = json_array();
	setvbuf(stdout, NULL, _IOLBF, 0);
}

static void clear_progress(struct report *r)
{
	if (r->has_progress)
		fprintf(stderr, "\r\033[K");
}

static const char *format_size(uint64_t bytes, char text[24])
{
	static const char units[] = "\0KMG";
	unsigned u = 0;
	while (u < 3 && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		u++;
	}
	snprintf(text, 24, "%llu%.1s", (unsigned long long)bytes, &units[u]);
	return text;
}

static double us(const struct histogram *h, double share)
{
	return (double)histogram_percentile(h, share) / 1000;
}

static const char *format_cores(const struct report *r, char text[64])
{
	snprintf(text, 64, "%s|%s", r->cores[0], r->cores[1]);
	return text;
}

static void print_head(struct report *r)
{
	if (r->has_head)
		return;
	r->has_head = true;
	if (r->kind == TEST_VERIFY)
		printf("%-10s %7s %9s %10s %8s   %s\n", "operation", "size", "messages", "bytes", "seconds", "data");
	else
		printf("%-10s %7s %12s %9s %9s %9s %9s %9s  %-18s %-8s %s\n", "operation", "size", "messages/s", "Gbit/s", "p50 us", "p99 us", "p99.9 us", "max us", "latency is", "cores",
			"spinning");
}

static void print_row(struct report *r, const struct trial *t, const struct result *s, const struct result *l)
{
	char size[24], cores[64];
	print_head(r);
	printf("%-10s %7s ", trial_name(t), format_size(t->size, size));
	if (s)
		printf("%12.0f %9.3f ", (double)s->messages / s->seconds, (double)s->bytes * 8e-9 / s->seconds);
	else
		printf("%12s %9s ", "-", "-");
	if (l)
		printf("%9.2f %9.2f %9.2f %9.2f  %-18s ", us(&l->latency, 0.5), us(&l->latency, 0.99), us(&l->latency, 0.999), (double)l->latency.max / 1000, l->latency_of);
	else
		printf("%9s %9s %9s %9s  %-18s ", "-", "-", "-", "-", "-");
	printf("%-8s %u\n", format_cores(r, cores), r->spinning);
}

static void print_error(const struct trial *t, const char *error)
{
	char size[24];
	fprintf(stderr, "uroce-perf: %s of %s bytes failed: %s\n", trial_name(t), format_size(t->size, size), error);
}

static json_t *pack_row(const struct report *r, const struct trial *t, const char *error)
{
	char cores[64];
	json_t *row = json_pack("{s:s, s:I, s:i, s:i, s:i, s:s, s:i}", "operation", trial_name(t), "size", (json_int_t)t->size, "qps", (int)t->qps, "depth", (int)t->depth, "batch",
		(int)t->batch, "cores", format_cores(r, cores), "spinning_threads", (int)r->spinning);
	if (error[0])
		json_object_set_new(row, "error", json_string(error));
	return row;
}

void report_add(struct report *r, const struct trial *t, const struct result *s, const struct result *l, const char *error)
{
	clear_progress(r);
	if (!r->is_json && (s || l))
		print_row(r, t, s, l);
	if (error[0])
		print_error(t, error);
	if (!r->is_json)
		return;
	json_t *row = pack_row(r, t, error);
	if (s)
		json_object_update_new(row, json_pack("{s:I, s:f, s:f, s:f}", "messages", (json_int_t)s->messages, "seconds", s->seconds, "messages_per_second", (double)s->messages / s->seconds,
			"gbit_per_second", (double)s->bytes * 8e-9 / s->seconds));
	if (l)
		json_object_update_new(row, json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:f}", "latency_is", l->latency_of, "latency_samples", (json_int_t)l->latency.count, "latency_mean_us",
			(double)l->latency.sum / 1000 / (double)l->latency.count, "latency_p50_us", us(&l->latency, 0.5), "latency_p99_us", us(&l->latency, 0.99),
			"latency_p99_9_us", us(&l->latency, 0.999), "latency_max_us", (double)l->latency.max / 1000));
	json_array_append_new(r->results, row);
}

void report_add_verified(struct report *r, const struct trial *t, const struct result *result, const char *error)
{
	char size[24], bytes[24];
	clear_progress(r);
	if (!r->is_json) {
		print_head(r);
		printf("%-10s %7s %9llu %10s %8.3f   %s\n", trial_name(t), format_size(t->size, size), (unsigned long long)result->messages, format_size(result->bytes, bytes), result->seconds,
			error[0] ? "FAILED" : "right");
	}
	if (error[0])
		print_error(t, error);
	if (!r->is_json)
		return;
	json_t *row = pack_row(r, t, error);
	json_object_update_new(row, json_pack("{s:b, s:I, s:I, s:f}", "verified", !error[0], "messages", (json_int_t)result->messages, "bytes", (json_int_t)result->bytes, "seconds",
		result->seconds));
	json_array_append_new(r->results, row);
}

void report_progress(struct report *r, const struct trial *t, unsigned number, unsigned of)
{
	static const char *const words[TESTS] = { "stream", "latency", "every byte" };
	char size[24];
	if (r->has_progress)
		fprintf(stderr, "\r\033[K[%u/%u] %s, %s bytes: %s", number, of, trial_name(t), format_size(t->size, size), words[t->test]);
}

void report_end(struct report *r, json_t *about, bool is_good)
{
	clear_progress(r);
	if (r->is_json) {
		json_object_set_new(about, "good", json_boolean(is_good));
		json_object_set(about, "results", r->results);
		json_dumpf(about, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
		printf("\n");
	}
	json_decref(about);
	json_decref(r->results);
	r->results = NULL;
}
