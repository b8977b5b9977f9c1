/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the names in the JSON, which stay. Invariant: a figure that is not there is null in the JSON, and NAN before. */
#include "result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define GIB ((double)(1u << 30))

/* ---- figures ---- */

static void count_figures(const struct result *r, struct figures *f)
{
	const struct tally *t = r->counted;
	double messages = (double)t[0].messages * (r->work == WORK_PINGPONG ? 2 : 1);
	f->calls_per_msg = f->copies_per_msg = NAN;
	if (!t[0].is_counted || !t[1].is_counted)
		return;
	f->calls_per_msg = (double)(t[0].calls + t[1].calls) / messages;
	f->copies_per_msg = (double)(t[0].call_bytes + t[1].call_bytes + t[0].copied + t[1].copied) / messages / (double)r->size;
}

static void latency_figures(const struct histogram *h, struct figures *f)
{
	f->p50_ns = h->count ? (double)histogram_percentile(h, 0.5) : NAN;
	f->p99_ns = h->count ? (double)histogram_percentile(h, 0.99) : NAN;
	f->p999_ns = h->count ? (double)histogram_percentile(h, 0.999) : NAN;
	f->max_ns = h->count ? (double)h->max : NAN;
}

struct figures result_figures(const struct result *r)
{
	const struct outcome *o = &r->timed;
	struct figures f;
	bool is_pingpong = r->work == WORK_PINGPONG;
	double cpu_s = o->ends[0].cpu_s + o->ends[1].cpu_s, came = (double)(is_pingpong ? o->latency.count : o->ends[1].messages);
	f.messages = came * (is_pingpong ? 2 : 1);
	f.sent = (double)o->ends[0].messages * (is_pingpong ? 2 : 1);
	f.lost = (double)o->ends[0].messages - came;
	f.lost_share = o->ends[0].messages ? f.lost / (double)o->ends[0].messages : NAN;
	f.bytes = f.messages * (double)r->size;
	f.msgs_per_s = o->seconds > 0 ? f.messages / o->seconds : NAN;
	f.gbit_per_s = f.msgs_per_s * (double)r->size * 8e-9;
	f.cpu_s_per_gib = f.bytes > 0 ? cpu_s / (f.bytes / GIB) : NAN;
	f.cpu_us_per_msg = f.messages > 0 ? cpu_s * 1e6 / f.messages : NAN;
	f.switches_per_msg = f.sent > 0 ? (double)(o->ends[0].switches + o->ends[1].switches) / f.sent : NAN;
	latency_figures(&o->latency, &f);
	count_figures(r, &f);
	return f;
}

/* ---- JSON ---- */

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

/* Calls of both ends by their names, for one message. */
static json_t *pack_calls(const struct result *r)
{
	json_t *all = json_object();
	double messages = (double)r->counted[0].messages * (r->work == WORK_PINGPONG ? 2 : 1);
	for (unsigned i = 0; i < TRACER_NUMBERS; i++) {
		uint64_t calls = (uint64_t)r->counted[0].calls_of[i] + r->counted[1].calls_of[i];
		char text[16];
		snprintf(text, sizeof(text), "#%u", i);
		if (calls)
			json_object_set_new(all, tracer_call_name(i) ? tracer_call_name(i) : text, json_real((double)calls / messages));
	}
	return all;
}

static json_t *pack_counted(const struct result *r)
{
	const struct tally *t = r->counted;
	if (!t[0].is_counted || !t[1].is_counted)
		return json_null();
	return json_pack("{s:I, s:[I, I], s:o, s:[I, I], s:[I, I]}", "messages", (json_int_t)t[0].messages * (r->work == WORK_PINGPONG ? 2 : 1), "system_calls", (json_int_t)t[0].calls, (json_int_t)t[1].calls,
		"system_calls_per_message", pack_calls(r), "bytes_copied_by_system_calls", (json_int_t)t[0].call_bytes, (json_int_t)t[1].call_bytes,
		"bytes_copied_by_the_stack", (json_int_t)t[0].copied, (json_int_t)t[1].copied);
}

static json_t *pack_latency(const struct result *r, const struct figures *f)
{
	if (r->work != WORK_PINGPONG)
		return json_null();
	return json_pack("{s:I, s:o, s:o, s:o, s:o}", "samples", (json_int_t)r->timed.latency.count, "p50", number(f->p50_ns), "p99", number(f->p99_ns), "p999", number(f->p999_ns), "max", number(f->max_ns));
}

static json_t *pack_result(const struct result *r)
{
	struct figures f = result_figures(r);
	const struct tally *t = r->timed.ends;
	return json_pack("{s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:o, s:[f, f], s:[I, I], s:o, s:o, s:o, s:o, s:s*, s:s*, s:s*}", "work", works[r->work].name, "transport", r->transport->name,
		"size", (json_int_t)r->size, "messages", json_integer((json_int_t)f.messages), "sent", json_integer((json_int_t)f.sent), "lost", json_integer((json_int_t)f.lost), "lost_share", number(f.lost_share),
		"bytes", json_integer((json_int_t)f.bytes), "seconds", r->timed.seconds, "msgs_per_s", number(f.msgs_per_s), "gbit_per_s", number(f.gbit_per_s), "latency_ns", pack_latency(r, &f),
		"cpu_s_per_gib", number(f.cpu_s_per_gib), "cpu_us_per_message", number(f.cpu_us_per_msg), "cpu_s", t[0].cpu_s, t[1].cpu_s, "switches", (json_int_t)t[0].switches, (json_int_t)t[1].switches,
		"context_switches_per_message", number(f.switches_per_msg), "system_calls_per_message", number(f.calls_per_msg), "copies_per_message", number(f.copies_per_msg), "counted", pack_counted(r),
		"also_copying", r->copying, "note", r->note[0] ? r->note : NULL, "error", r->error[0] ? r->error : NULL);
}

/* ---- who is ahead ---- */

/* What is compared: the lower the better. */
static double judge(const struct result *r, bool is_cpu)
{
	struct figures f = result_figures(r);
	double v = is_cpu ? f.cpu_us_per_msg : r->work == WORK_PINGPONG ? f.p50_ns : 1 / f.msgs_per_s;
	return !r->error[0] && isfinite(v) && v > 0 ? v : INFINITY;
}

static bool is_same_work(const struct result *a, const struct result *b)
{
	return a->work == b->work && a->size == b->size;
}

/* The best over sockets beside what uroce does, of one work and size. NULL: one of them is missing. */
static json_t *pack_verdict(const struct result *uroce, const struct result *results, unsigned count, bool is_cpu)
{
	const struct result *best = NULL;
	for (const struct result *r = results; r < results + count; r++)
		if (is_same_work(r, uroce) && !r->transport->has_device && (!best || judge(r, is_cpu) < judge(best, is_cpu)))
			best = r;
	double ours = judge(uroce, is_cpu), theirs = best ? judge(best, is_cpu) : INFINITY;
	if (!isfinite(ours) || !isfinite(theirs))
		return NULL;
	return json_pack("{s:s, s:I, s:s, s:s, s:s, s:f}", "work", works[uroce->work].name, "size", (json_int_t)uroce->size, "by", is_cpu ? "CPU time" : uroce->work == WORK_PINGPONG ? "latency" : "throughput",
		"winner", ours <= theirs ? uroce->transport->name : best->transport->name, "over", ours <= theirs ? best->transport->name : uroce->transport->name, "factor", ours <= theirs ? theirs / ours : ours / theirs);
}

static json_t *pack_verdicts(const struct result *results, unsigned count)
{
	json_t *list = json_array();
	for (int is_cpu = 0; is_cpu < 2; is_cpu++)
		for (const struct result *r = results; r < results + count; r++) {
			json_t *v = r->transport->has_device ? pack_verdict(r, results, count, is_cpu) : NULL;
			if (v)
				json_array_append_new(list, v);
		}
	return list;
}

/* ---- the document ---- */

static json_t *pack_about(const struct about *a)
{
	return json_pack("{s:s, s:s, s:i, s:o, s:o}", "name", a->name, "system", a->system, "cpus", a->cpus, "cpu", a->cpu < 0 ? json_null() : json_integer(a->cpu),
		"daemon", a->daemon ? json_integer(a->daemon) : json_null());
}

static json_t *pack_transports(const struct host *h)
{
	json_t *list = json_array();
	for (unsigned i = 0; transport_at(i); i++)
		if (h->options->transports & 1u << i)
			json_array_append_new(list, json_pack("{s:s, s:s, s:s*}", "name", transport_at(i)->name, "text", transport_at(i)->text, "device", transport_at(i)->has_device ? h->device : NULL));
	return list;
}

static json_t *pack_works(const struct host *h)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < WORKS; i++)
		if (h->options->works & 1u << i)
			json_array_append_new(list, json_pack("{s:s, s:s}", "name", works[i].name, "text", works[i].text));
	return list;
}

/* What asks all the time has a CPU at each end for itself, or else other programs run there. */
static json_t *least_share(const struct result *results, unsigned count)
{
	double least = NAN;
	for (const struct result *r = results; r < results + count; r++) {
		double share = (r->timed.ends[0].cpu_s + r->timed.ends[1].cpu_s) / 2 / r->timed.seconds;
		if (r->transport->is_spinning && !r->error[0] && !(share >= least))
			least = share < 1 ? share : 1;
	}
	return number(least);
}

json_t *result_document(const struct host *h, const struct result *results, unsigned count)
{
	char when[32] = "";
	time_t now = time(NULL);
	struct tm utc;
	json_t *rows = json_array();
	if (gmtime_r(&now, &utc))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
	for (unsigned i = 0; i < count; i++)
		json_array_append_new(rows, pack_result(&results[i]));
	return json_pack("{s:s, s:i, s:s, s:b, s:[o, o], s:f, s:b, s:o, s:o, s:o, s:o, s:o}", "program", "uroce-compare", "version", 1, "when", when, "one_machine", !strcmp(h->self.machine, h->peer.machine),
		"hosts", pack_about(&h->self), pack_about(&h->peer), "seconds", h->options->seconds, "counted", h->self.can_trace && h->peer.can_trace, "least_cpu_share",
		least_share(results, count), "transports", pack_transports(h), "works", pack_works(h),
		"results", rows, "ahead", pack_verdicts(results, count));
}
