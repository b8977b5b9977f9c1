/* SPDX-License-Identifier: BSD-3-Clause */
/* Tries smaller runs of a seed. A plan's parts come from seeds of their own, so that what is left is as it was. */
#include "shrink.h"

#include <string.h>

struct search {
	uint64_t seed;
	struct plan_fixed *fixed;
	struct run_result *result;
};

/* Takes the smaller run if it fails. */
static bool try(struct search *s, const struct plan_fixed *smaller)
{
	struct run_config config = { NULL };
	struct run_result result;
	struct plan *p = plan_new(s->seed, smaller);
	bool is_failed = !run_plan(p, &config, &result);
	plan_free(p);
	if (!is_failed)
		return false;
	*s->fixed = *smaller;
	*s->result = result;
	return true;
}

static void leave_out_connections(struct search *s)
{
	struct plan *p = plan_new(s->seed, s->fixed);
	uint64_t there = 0;
	for (unsigned i = 0; i < p->pairs; i++)
		there |= UINT64_C(1) << p->pair[i].number;
	plan_free(p);
	for (uint64_t left = there; left; left &= left - 1) {
		struct plan_fixed smaller = *s->fixed;
		smaller.only = there & ~(left & -left);
		if (smaller.only && try(s, &smaller))
			there = smaller.only;
	}
}

static void leave_out_faults(struct search *s)
{
	struct plan_fixed smaller = *s->fixed;
	smaller.fault = "none";
	try(s, &smaller);
}

/* The least number of steps, as if fewer of them never failed where more do not. */
static void cut_programs(struct search *s)
{
	struct plan_fixed smaller = *s->fixed;
	uint32_t good = 0, bad = 256; /* more than any program has */
	while (bad - good > 1) {
		smaller.steps = good + (bad - good) / 2;
		if (try(s, &smaller))
			bad = smaller.steps;
		else
			good = smaller.steps;
	}
}

void shrink(uint64_t seed, struct plan_fixed *fixed, struct run_result *result)
{
	struct search s = { seed, fixed, result };
	leave_out_connections(&s);
	leave_out_faults(&s);
	cut_programs(&s);
	leave_out_connections(&s);
}
