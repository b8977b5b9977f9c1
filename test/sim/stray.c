/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP of UD talks to whomever it likes: some datagrams go to QPs of other connections, or back to the one that sends them, or to a group of them, and some have a Q_Key that their receiver does not have (IBA vol. 1,
 * 9.8.3.1, 10.2.4, 10.5).
 * Connections with a mistake are left alone: whether their QPs are there is not certain. */
#include "stray.h"

static bool is_open(const struct plan *p, const struct plan_pair *pair)
{
	return pair->service == UROCE_UD && pair->end[0].mistake == MISTAKE_NONE && p->dead_host == NO_INDEX;
}

static uint32_t choose_end(const struct plan *p, struct rng *r)
{
	uint32_t found[PLAN_ENDS_MAX], n = 0;
	for (uint32_t i = 0; i < 2 * p->pairs; i++)
		if (is_open(p, &p->pair[i / 2]))
			found[n++] = i;
	return found[rng_below(r, n)];
}

static void stray(const struct plan *p, struct plan_end *e, struct rng *r)
{
	for (uint32_t i = 0; i < e->steps; i++) {
		uint64_t kind = rng_below(r, 8);
		if (kind < 2)
			e->step[i].stray = choose_end(p, r);
		else if (kind == 2)
			e->step[i].stray = PLAN_ENDS_MAX + (uint32_t)rng_below(r, PLAN_GROUPS);
		e->step[i].is_unwanted = kind != 2 && rng_below(r, 8) == 0;
	}
}

static void join(struct plan_end *e, struct rng *r)
{
	for (unsigned g = 0; g < PLAN_GROUPS; g++)
		e->is_member[g] = rng_below(r, 2);
	e->blocks_own = rng_below(r, 2);
}

static uint32_t count_coming(const struct plan *p, uint32_t to)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < 2 * p->pairs; i++)
		for (uint32_t k = 0; p->pair[i / 2].service == UROCE_UD && k < plan_end_of(p, i)->steps; k++)
			n += plan_is_for(p, i, &plan_end_of(p, i)->step[k], to);
	return n;
}

/* Where nothing may be lost, there is a buffer for each that may come. */
static void fit_pool(const struct plan *p, struct plan_end *e, uint32_t number)
{
	if (!e->is_exact)
		return;
	e->pool.buffers = count_coming(p, number) + 1;
	if (e->cap.max_recv_wr < e->pool.buffers)
		e->cap.max_recv_wr = e->pool.buffers;
}

void stray_datagrams(struct plan *p)
{
	struct rng r;
	rng_seed(&r, p->seed ^ 0x57a4);
	for (uint32_t i = 0; i < 2 * p->pairs; i++)
		if (is_open(p, &p->pair[i / 2]) && rng_below(&r, 2))
			join(&p->pair[i / 2].end[i % 2], &r);
	for (uint32_t i = 0; i < 2 * p->pairs; i++)
		if (is_open(p, &p->pair[i / 2]) && rng_below(&r, 2))
			stray(p, &p->pair[i / 2].end[i % 2], &r);
	for (uint32_t i = 0; i < 2 * p->pairs; i++)
		if (is_open(p, &p->pair[i / 2]))
			fit_pool(p, &p->pair[i / 2].end[i % 2], i);
}
