/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns some steps of two programs into binds, fast registrations and invalidations, and lets the peer's requests between them go by the key that is then open (IBA vol. 1, 10.6.5, 10.6.7). The two programs run
 * side by side: a step that needs what the other side has done names the step of the other side that has to have completed before it is posted.
 * Invariant: such a step is earlier in the time that both programs have here, so that neither ever waits for the other and is waited for by it. */
#include "window.h"

#include <string.h>

struct maker {
	struct plan_end *owner, *user;
	struct rng *r;
	uint32_t open[SLOTS_MAX];      /* opening; NO_INDEX: closed */
	uint32_t last_use[SLOTS_MAX];  /* step of the user since it opened, or the one that closed it; NO_INDEX: none */
};

static bool is_one_in(struct rng *r, unsigned n)
{
	return rng_below(r, n) == 0;
}

/* The step of the other side completes with a WC then. */
static void wait_for(struct step *s, struct plan_end *other, uint32_t step)
{
	s->after = step;
	if (step != NO_INDEX)
		other->step[step].flags |= UROCE_SEND_SIGNALED;
}

/* What a step was before does not matter any more, but that those behind it count on its fence. */
static void become(struct step *s, enum uroce_opcode opcode, uint32_t opening)
{
	*s = (struct step){ .opcode = opcode, .flags = s->flags & (UROCE_SEND_SIGNALED | UROCE_SEND_FENCE), .receive = NO_INDEX, .stray = NO_INDEX, .opening = opening, .after = NO_INDEX };
}

static const enum uroce_opcode opening_opcodes[SLOT_KINDS] = { [SLOT_WINDOW_1] = UROCE_OP_BIND_MW, [SLOT_WINDOW_2] = UROCE_OP_BIND_MW, [SLOT_FAST_MR] = UROCE_OP_REG_MR };

static void open_slot(struct maker *m, uint32_t slot, uint32_t index)
{
	struct plan_end *o = m->owner;
	struct opening *w = &o->opening[o->openings];
	struct step *s = &o->step[index];
	enum slot_kind kind = o->slot[slot];
	uint32_t from = (uint32_t)rng_below(m->r, o->target_bytes / 2) & ~7u;
	*w = (struct opening){ .slot = slot, .offset = from, .len = o->target_bytes - from - (uint32_t)rng_below(m->r, o->target_bytes / 4), .key = (uint8_t)rng_next(m->r), .opened = index };
	w->is_zero_based = kind == SLOT_WINDOW_2 && is_one_in(m->r, 2);
	w->iova = rng_next(m->r) >> 1 & ~UINT64_C(7);
	become(s, opening_opcodes[kind], o->openings);
	s->flags |= UROCE_SEND_SIGNALED;
	wait_for(s, m->user, m->last_use[slot]);
	m->open[slot] = o->openings++;
	m->last_use[slot] = NO_INDEX;
}

/* A step of the owner's: it may open something, or close it. */
static void pass_owner(struct maker *m, uint32_t index)
{
	struct step *s = &m->owner->step[index];
	uint32_t slot = (uint32_t)rng_below(m->r, m->owner->slots);
	if (s->takes_receive || s->opening != NO_INDEX || s->after != NO_INDEX || is_one_in(m->r, 2))
		return;
	if (m->open[slot] == NO_INDEX || m->owner->slot[slot] == SLOT_WINDOW_1) {
		if (m->owner->openings < OPENINGS_MAX)
			open_slot(m, slot, index);
		return;
	}
	if (is_one_in(m->r, 4)) {
		become(s, UROCE_OP_LOCAL_INV, m->open[slot]);
		wait_for(s, m->user, m->last_use[slot]);
		m->open[slot] = NO_INDEX;
		m->last_use[slot] = NO_INDEX;
	}
}

static bool covers(const struct opening *w, const struct step *s)
{
	return s->remote_offset >= w->offset && s->remote_offset + s->len <= w->offset + w->len;
}

/* A step of the user's: it may go by what is open, or close it. READs before it have been answered by then: the answer needs the key as well. */
static void pass_user(struct maker *m, uint32_t index)
{
	struct step *s = &m->user->step[index];
	uint32_t slot = (uint32_t)rng_below(m->r, m->owner->slots), opening = m->open[slot];
	if (opening == NO_INDEX || s->opening != NO_INDEX || is_one_in(m->r, 4))
		return;
	bool is_closing = s->opcode == UROCE_OP_SEND && m->owner->slot[slot] != SLOT_WINDOW_1 && is_one_in(m->r, 2);
	if (!is_closing && !(step_kinds[s->opcode].is_remote && s->len && covers(&m->owner->opening[opening], s)))
		return;
	s->opening = opening;
	wait_for(s, m->owner, m->owner->opening[opening].opened);
	m->last_use[slot] = index;
	if (!is_closing)
		return;
	s->opcode = UROCE_OP_SEND_WITH_INV;
	s->flags |= UROCE_SEND_FENCE;
	m->open[slot] = NO_INDEX;
}

static void make_slots(struct plan_end *e, struct rng *r)
{
	e->slots = 1 + (unsigned)rng_below(r, SLOTS_MAX);
	for (unsigned i = 0; i < e->slots; i++)
		e->slot[i] = (enum slot_kind)rng_below(r, SLOT_KINDS);
}

/* Step i of n comes before step j of m of the other side. */
static bool is_before(uint32_t i, uint32_t n, uint32_t j, uint32_t m)
{
	return (uint64_t)(i + 1) * (m + 1) < (uint64_t)(j + 1) * (n + 1);
}

void windows_make(struct plan_pair *pair, struct rng *r)
{
	struct plan_end *a = &pair->end[0], *b = &pair->end[1];
	struct maker m[2];
	if (pair->service != UROCE_RC || a->mistake != MISTAKE_NONE || !a->steps || !b->steps || is_one_in(r, 2))
		return;
	for (unsigned i = 0; i < 2; i++) {
		m[i] = (struct maker){ .owner = &pair->end[i], .user = &pair->end[!i], .r = r };
		memset(m[i].open, 0xff, sizeof(m[i].open));
		memset(m[i].last_use, 0xff, sizeof(m[i].last_use));
		make_slots(m[i].owner, r);
	}
	for (uint32_t i = 0, j = 0; i < a->steps || j < b->steps;) {
		bool is_a = j == b->steps || (i < a->steps && is_before(i, a->steps, j, b->steps));
		uint32_t at = is_a ? i++ : j++;
		pass_owner(&m[!is_a], at);
		pass_user(&m[is_a], at);
	}
}
