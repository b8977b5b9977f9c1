/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what is said about the traffic unasked, and the refusals that several commands share. */
#include "lab.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "pair.h"

int lab_fail(const char *format, ...)
{
	va_list args;
	fflush(stdout);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return -EINVAL;
}

void lab_interject(const struct lab *lab)
{
	fputs(lab->is_at_prompt ? "\r\033[K" : "", stdout);
	fflush(stdout);
}

struct station *lab_station(struct lab *lab, uint64_t number)
{
	if (number < lab->stations)
		return &lab->station[number];
	lab_fail("there is no port %llu: expected one below %u", (unsigned long long)number, lab->stations);
	return NULL;
}

/* A flow that failed by itself is said once. */
static bool look_at_failure(struct lab *lab)
{
	struct flow *f = lab->flow;
	if (!f || f->is_said || atomic_load_explicit(&f->state, memory_order_acquire) != FLOW_FAILED)
		return false;
	f->is_said = true;
	lab->failures++;
	pair_tell_failure(lab);
	lab_interject(lab);
	lab_fail("the traffic has ended: %s", flow_error(f));
	return true;
}

static bool look_at_pace(struct lab *lab)
{
	struct flow *f = lab->flow;
	bool is_running = f && atomic_load_explicit(&f->state, memory_order_acquire) == FLOW_RUNNING;
	if (!is_running || lab->stats_seconds <= 0)
		return false;
	uint64_t last_ns = f->shown_ns ? f->shown_ns : f->started_ns;
	if ((double)(end_now() - last_ns) * 1e-9 < lab->stats_seconds)
		return false;
	lab_interject(lab);
	flow_print_pace(f);
	return true;
}

bool lab_look(struct lab *lab)
{
	bool has_said = look_at_failure(lab);
	has_said |= look_at_pace(lab);
	has_said |= events_look(lab, true);
	return pair_look(lab) || has_said;
}
