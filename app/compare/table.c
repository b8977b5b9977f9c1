/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the layout of the table. */
#include "table.h"

#include <stdio.h>
#include <string.h>

#include "number.h"

#define SHARE_FAIR 0.8

static const char *text_of(json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));
	return text ? text : "";
}

static json_t *at(json_t *list, size_t i)
{
	return json_array_get(list, i);
}

/* A column: " %*.*f", or a dash. */
static void print_number(json_t *value, int width, int decimals, double factor)
{
	if (json_is_number(value))
		printf(" %*.*f", width, decimals, json_number_value(value) * factor);
	else
		printf(" %*s", width, "-");
}

static void print_row(json_t *r)
{
	char size[24];
	json_t *latency = json_object_get(r, "latency_ns");
	printf("  %5s %-9s", number_text((uint64_t)json_integer_value(json_object_get(r, "size")), size), text_of(r, "transport"));
	if (text_of(r, "error")[0]) {
		printf("  failed: %s\n", text_of(r, "error"));
		return;
	}
	print_number(json_object_get(r, "msgs_per_s"), 9, 0, 1);
	print_number(json_object_get(r, "gbit_per_s"), 8, 3, 1);
	print_number(json_object_get(latency, "p50"), 9, 2, 1e-3);
	print_number(json_object_get(latency, "p99"), 9, 2, 1e-3);
	print_number(json_object_get(latency, "p999"), 9, 2, 1e-3);
	print_number(json_object_get(r, "cpu_s_per_gib"), 10, 3, 1);
	print_number(json_object_get(r, "system_calls_per_message"), 10, 2, 1);
	print_number(json_object_get(r, "context_switches_per_message"), 10, 3, 1);
	print_number(json_object_get(r, "copies_per_message"), 10, 2, 1);
	printf(" %6.1f%%\n", 100 * json_number_value(json_object_get(r, "lost_share")));
}

static void print_work(json_t *document, json_t *work)
{
	const char *name = text_of(work, "name");
	json_t *results = json_object_get(document, "results"), *r;
	size_t i;
	json_int_t before = 0;
	printf("\n%s\n  %5s %-9s %9s %8s %9s %9s %9s %10s %10s %10s %10s %7s\n", text_of(work, "text"), "bytes", "over", "msgs/s", "Gbit/s", "p50 us", "p99 us", "p99.9 us", "CPU s/GiB", "calls/msg",
		"switch/msg", "copies/msg", "lost");
	json_array_foreach(results, i, r) {
		json_int_t size = json_integer_value(json_object_get(r, "size"));
		if (strcmp(text_of(r, "work"), name))
			continue;
		if (before && size != before)
			printf("\n");
		before = size;
		print_row(r);
	}
}

/* One line of those that one side wins. */
static void print_ahead(json_t *document, const char *by, bool is_uroce)
{
	json_t *list = json_object_get(document, "ahead"), *v;
	const char *work = "";
	size_t i;
	json_array_foreach(list, i, v) {
		char size[24];
		if (!strcmp(text_of(v, "winner"), "uroce") != is_uroce || strcmp(text_of(v, "by"), by))
			continue;
		bool is_new = strcmp(work, text_of(v, "work"));
		if (!work[0])
			printf("  %-11s %-7s", by, is_uroce ? "uroce" : "kernel");
		printf("%s%s %s %.1f", is_new ? work[0] ? "; " : " " : ",", is_new ? text_of(v, "work") : "", number_text((uint64_t)json_integer_value(json_object_get(v, "size")), size),
			json_number_value(json_object_get(v, "factor")));
		work = text_of(v, "work");
	}
	if (work[0])
		printf("\n");
}

static void print_hosts(json_t *document)
{
	json_t *hosts = json_object_get(document, "hosts"), *transports = json_object_get(document, "transports"), *t;
	size_t i;
	if (json_is_true(json_object_get(document, "one_machine")))
		printf("two programs on one machine, %s (%s, %lld CPUs)\n", text_of(at(hosts, 0), "name"), text_of(at(hosts, 0), "system"), (long long)json_integer_value(json_object_get(at(hosts, 0), "cpus")));
	else
		printf("%s (%s) and %s (%s)\n", text_of(at(hosts, 0), "name"), text_of(at(hosts, 0), "system"), text_of(at(hosts, 1), "name"), text_of(at(hosts, 1), "system"));
	json_array_foreach(transports, i, t)
		printf("  %-9s %s%s%s\n", text_of(t, "name"), text_of(t, "text"), json_object_get(t, "device") ? "; " : "", text_of(t, "device"));
}

/* What a row has to say, unless one before it said so. */
static void print_once(json_t *r, const char *key, json_t *said)
{
	const char *note = text_of(r, key);
	if (!note[0] || json_object_get(said, note))
		return;
	json_object_set_new(said, note, json_true());
	printf("  %s: %s\n", text_of(r, "transport"), note);
}

static void print_notes(json_t *document)
{
	json_t *results = json_object_get(document, "results"), *said = json_object(), *r;
	size_t i;
	printf("\nmessages are counted in each direction; latency is half a round trip. CPU time, system calls, context switches and copies are those of both ends together.\n");
	if (json_is_true(json_object_get(document, "counted")))
		printf("calls/msg and copies/msg: counted by a tracer, in a run of its own. A copy is as many bytes as the message has, copied by a system call, by uroce between memory and packets (once at each end), or below that.\n");
	else
		printf("system calls and copies are not counted: processes may not be traced here, or --no-count was given\n");
	json_array_foreach(results, i, r)
		print_once(r, "also_copying", said);
	json_array_foreach(results, i, r)
		print_once(r, "note", said);
	json_decref(said);
}

/* Figures of what asks all the time are worth little where it gets no CPU to do so. */
static void print_share(json_t *document)
{
	json_t *share = json_object_get(document, "least_cpu_share");
	if (json_is_number(share) && json_number_value(share) < SHARE_FAIR)
		printf("warning: what asks all the time had %.0f %% of a CPU at worst: other programs run on these CPUs, and its figures are worth little\n", 100 * json_number_value(share));
}

void table_print(json_t *document)
{
	static const char *const by[] = { "latency", "throughput", "CPU time" };
	json_t *works = json_object_get(document, "works"), *work;
	size_t i;
	print_hosts(document);
	json_array_foreach(works, i, work)
		print_work(document, work);
	if (json_array_size(json_object_get(document, "ahead")))
		printf("\nwho is ahead, at which sizes, by how many times (uroce beside the best over sockets)\n");
	for (unsigned b = 0; b < sizeof(by) / sizeof(by[0]); b++)
		for (int is_uroce = 1; is_uroce >= 0; is_uroce--)
			print_ahead(document, by[b], is_uroce);
	print_notes(document);
	print_share(document);
}
