/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tracer of a phase. Invariant: between tally_begin and tally_end this file makes no system call. */
#include "tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tally_open(struct tally_watch *w, struct link *l, bool is_counted, pid_t daemon)
{
	*w = (struct tally_watch){ .daemon = daemon };
	int err = is_counted ? tracer_start(TRACER_PROCESS, &w->tracer) : 0;
	return err ? link_fail(l, "this process may not be traced here (%s): expected --no-count, or a container that allows ptrace", strerror(-err)) : 0;
}

static uint64_t read_copied(struct link *l)
{
	return l->transport->copied ? l->transport->copied(l) : 0;
}

void tally_begin(struct tally_watch *w, struct link *l)
{
	if (!w->tracer) {
		w->usage = usage_read(w->daemon);
		return;
	}
	w->copied = read_copied(l);
	for (unsigned i = 0; i < TRACER_NUMBERS; i++)
		w->calls_of[i] = tracer_calls_of(w->tracer, i);
	w->call_bytes = tracer_bytes(w->tracer);
	w->calls = tracer_calls(w->tracer);
}

void tally_end(struct tally_watch *w, struct link *l, struct tally *t)
{
	t->is_counted = w->tracer != NULL;
	if (!w->tracer) {
		struct usage u = usage_between(w->usage, usage_read(w->daemon));
		t->cpu_s = u.cpu_s;
		t->switches = u.switches;
		return;
	}
	t->calls = tracer_calls(w->tracer) - w->calls;
	t->call_bytes = tracer_bytes(w->tracer) - w->call_bytes;
	for (unsigned i = 0; i < TRACER_NUMBERS; i++)
		t->calls_of[i] = (uint32_t)(tracer_calls_of(w->tracer, i) - w->calls_of[i]);
	t->copied = read_copied(l) - w->copied;
}

void tally_close(struct tally_watch *w)
{
	tracer_stop(w->tracer);
	w->tracer = NULL;
}

json_t *tally_pack(const struct tally *t)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < TRACER_NUMBERS; i++)
		if (t->calls_of[i])
			json_array_append_new(list, json_pack("[i, I]", (int)i, (json_int_t)t->calls_of[i]));
	return json_pack("{s:I, s:f, s:I, s:b, s:I, s:I, s:I, s:o}", "messages", (json_int_t)t->messages, "cpu_s", t->cpu_s, "switches", (json_int_t)t->switches, "counted", t->is_counted,
		"calls", (json_int_t)t->calls, "call_bytes", (json_int_t)t->call_bytes, "copied", (json_int_t)t->copied, "calls_of", list);
}

bool tally_unpack(json_t *message, struct tally *t)
{
	json_int_t messages, switches, calls, call_bytes, copied, n;
	int is_counted, number;
	json_t *list, *item;
	size_t i;
	*t = (struct tally){ 0 };
	if (json_unpack(message, "{s:I, s:F, s:I, s:b, s:I, s:I, s:I, s:o}", "messages", &messages, "cpu_s", &t->cpu_s, "switches", &switches, "counted", &is_counted, "calls", &calls, "call_bytes", &call_bytes,
		    "copied", &copied, "calls_of", &list))
		return false;
	t->messages = (uint64_t)messages;
	t->switches = (uint64_t)switches;
	t->is_counted = is_counted;
	t->calls = (uint64_t)calls;
	t->call_bytes = (uint64_t)call_bytes;
	t->copied = (uint64_t)copied;
	json_array_foreach(list, i, item)
		if (!json_unpack(item, "[i, I]", &number, &n) && number >= 0 && number < (int)TRACER_NUMBERS)
			t->calls_of[number] = (uint32_t)n;
	return true;
}
