/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program does with its turns. Owns the pace; what is posted is the plan's, what must come of it check.c's. */
#include "actor.h"

#include <stdarg.h>
#include <string.h>

#include "pool.h"

#define PAUSE_MAX_NS 200000u
#define POLL_MAX 16u
#define AT_ONCE 32u

void verdict_fail(struct verdict *v, const char *format, ...)
{
	va_list args;
	if (verdict_is_bad(v))
		return;
	va_start(args, format);
	vsnprintf(v->text, sizeof(v->text), format, args);
	va_end(args);
}

void actor_note(const struct actor *a, const char *format, ...)
{
	va_list args;
	if (!a->history)
		return;
	fprintf(a->history, "%12llu ", (unsigned long long)a->now_ns);
	va_start(args, format);
	vfprintf(a->history, format, args);
	va_end(args);
	fputc('\n', a->history);
}

static bool poll_cqs(struct actor *a)
{
	struct uroce_wc wc[POLL_MAX];
	bool has_any = false;
	for (unsigned c = 0; c < a->cqs; c++) {
		int n = uroce_cq_poll(a->cq[c], wc, 1 + (unsigned)rng_below(&a->rng, POLL_MAX));
		if (n < 0)
			verdict_fail(a->verdict, "polling a CQ: %s", strerror(-n));
		for (int i = 0; i < n; i++)
			check_completion(a, &wc[i]);
		has_any |= n > 0;
	}
	return has_any;
}

/* Armed, looked at once more, and nothing to post: until an event. */
static void wait_for_event(struct actor *a)
{
	if (!a->channel)
		return;
	for (unsigned i = 0; i < a->ends; i++)
		if (post_has_more(a->end[i]) || upkeep_is_due(a->end[i]))
			return;
	for (unsigned c = 0; c < a->cqs; c++)
		uroce_cq_arm(a->cq[c], false);
	a->is_waiting = !poll_cqs(a);
}

void actor_act(void *actor, uint64_t now_ns)
{
	struct actor *a = actor;
	uint64_t gap_ns = PAUSE_MAX_NS;
	a->is_waiting = false;
	a->now_ns = now_ns;
	if (a->seen_events != sim_host_events(a->host))
		upkeep_take_events(a);
	bool is_busy = poll_cqs(a);
	is_busy |= post_shared(a, 1 + (uint32_t)rng_below(&a->rng, AT_ONCE));
	upkeep_actor(a);
	for (unsigned i = 0; i < a->ends; i++) {
		struct end *e = a->end[i];
		upkeep_end(e);
		if (!e->plan->posts_late || rng_below(&a->rng, 4) == 0)
			is_busy |= post_receives(e, 1 + (uint32_t)rng_below(&a->rng, e->plan->batch));
		is_busy |= post_sends(e, 1 + (uint32_t)rng_below(&a->rng, e->plan->batch));
		gap_ns = e->plan->gap_ns < gap_ns ? e->plan->gap_ns : gap_ns;
	}
	if (!is_busy)
		wait_for_event(a);
	a->pause_ns = is_busy || !a->pause_ns ? gap_ns : a->pause_ns * 2 < PAUSE_MAX_NS ? a->pause_ns * 2 : PAUSE_MAX_NS;
	a->next_ns = now_ns + 1 + rng_below(&a->rng, 2 * a->pause_ns);
}

uint64_t actor_next(void *actor, uint64_t now_ns)
{
	const struct actor *a = actor;
	if (!a->is_waiting)
		return a->next_ns;
	return a->seen_events != sim_host_events(a->host) ? 0 : UINT64_MAX;
}

void actor_finish(struct actor *a, uint64_t now_ns)
{
	a->now_ns = now_ns;
	while (poll_cqs(a))
		;
	upkeep_finish(a);
}
