/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows and MRs for fast registration. Owns what `of`, `in_list`, `mr.through` and `mr.bound` of an entry say; does not own keys and indices (mr.c) nor the WRs that ask for it (qp/local.c).
 *
 * Invariants: an entry is bound (of) exactly while its key is not 0; it then lies within what it is bound to, which counts it (bound) and so can neither change nor go; a bound window of type 2B is in the list
 * of the QP that `through` names, and no other is in one.
 *
 * IBA vol. 1, 10.6.7.2 (windows), C10-72 to C10-75 (what a bind checks), o10-36.2.2, o10-37.2.26, .30, .40 (types), 10.6.7.1 (fast registration), 10.6.5 (invalidation). */
#include "mw.h"

#include <errno.h>
#include <stddef.h>

#include "mr_entry.h"

#define REMOTE ((uint32_t)MEM_REMOTE_WRITE | MEM_REMOTE_READ | MEM_REMOTE_ATOMIC | MEM_FLUSH_GLOBAL)
#define WRITING ((uint32_t)MEM_LOCAL_WRITE | MEM_REMOTE_WRITE | MEM_REMOTE_ATOMIC)

static const struct {
	bool is_bindable, is_window;
	bool is_rebound;      /* also while it is bound */
	bool is_unbound_by_0; /* by a bind of no bytes */
	bool is_invalidable;
	bool is_of_qp;
	uint32_t takes;       /* what a bind may ask for */
	uint32_t needs;       /* of the MR */
	uint32_t grants;      /* besides what was asked for */
} kinds[MR_KINDS] = {
	[MR_FAST] = { .is_bindable = true, .is_invalidable = true, .takes = MEM_ACCESS_ALL | MEM_MW_BIND, .grants = MEM_LKEY },
	[MW_TYPE_1] = { .is_bindable = true, .is_window = true, .is_rebound = true, .is_unbound_by_0 = true, .takes = REMOTE, .needs = MEM_MW_BIND },
	[MW_TYPE_2] = { .is_bindable = true, .is_window = true, .is_invalidable = true, .is_of_qp = true, .takes = REMOTE | MEM_ZERO_BASED, .needs = MEM_MW_BIND },
};

/* Not the index whose upper bits are 0: with the program's own lower ones its key could be 0. */
static struct entry *take_nonzero(struct mr_table *t, uint8_t *low, uint32_t *upper, int *error)
{
	for (unsigned tries = 0; tries < 2; tries++) {
		struct entry *e = entry_take(t, low, error);
		*upper = e ? key_perm_apply(&t->perm, e->index) : 0;
		if (!e || *upper)
			return e;
		entry_give(t, e);
	}
	*error = -ENOSPC;
	return NULL;
}

int mw_allocate(struct mr_table *t, struct pd *pd, enum mr_kind kind, uint32_t *key, struct mr **out)
{
	uint32_t upper;
	uint8_t low;
	int error;
	struct entry *e = take_nonzero(t, &low, &upper, &error);
	if (!e)
		return error;
	e->mr = (struct mr){ .pd = pd, .kind = (uint8_t)kind };
	e->low = low;
	pd->refs++;
	*key = upper << 8 | low;
	*out = &e->mr;
	return 0;
}

/* ---- binding ---- */

/* Whichever it is, it may be bound so now. */
static enum bind_verdict check_target(const struct entry *e, const struct mw_bind *b, bool is_window)
{
	if (!e || e->mr.pd != b->pd || !kinds[e->mr.kind].is_bindable || kinds[e->mr.kind].is_window != is_window)
		return BIND_NO_TARGET;
	if (e->of && !kinds[e->mr.kind].is_rebound)
		return BIND_NOT_FREE;
	if (b->access & ~kinds[e->mr.kind].takes)
		return BIND_BAD_RIGHTS;
	if (kinds[e->mr.kind].is_of_qp && b->through->n == MW_PER_QP_MAX)
		return BIND_TOO_MANY;
	return BIND_OK;
}

/* The MR allows it. */
static enum bind_verdict check_memory(const struct mr *mr, const struct mw_bind *b, uint8_t kind)
{
	uint64_t offset = b->addr - mr->iova;
	if ((kinds[kind].needs & ~mr->access) || ((b->access & WRITING) && !(mr->access & MEM_LOCAL_WRITE)))
		return BIND_BAD_RIGHTS;
	if (b->access & MEM_FLUSH_GLOBAL & ~mr->access)
		return BIND_BAD_RIGHTS;
	if (!kinds[kind].is_window && !access_is_sound(b->access))
		return BIND_BAD_RIGHTS;
	/* as in mr_check, nothing wraps */
	if (!b->len || offset > mr->len || b->len > mr->len - offset)
		return BIND_BAD_RANGE;
	return !kinds[kind].is_window && range_is_wrapping(b->iova, b->len) ? BIND_BAD_RANGE : BIND_OK;
}

static void take_memory(struct entry *e, struct mr *of, const struct mw_bind *b)
{
	struct mr *m = &e->mr;
	bool is_zero_based = b->access & MEM_ZERO_BASED;
	m->iova = !kinds[m->kind].is_window ? b->iova : is_zero_based ? 0 : b->addr;
	m->len = b->len;
	m->host = of->host + (b->addr - of->iova);
	m->access = (b->access & ~(uint32_t)MEM_ZERO_BASED) | kinds[m->kind].grants;
	m->key = b->key;
	e->low = (uint8_t)b->key;
	e->of = (struct entry *)of;
	of->bound++;
	if (!kinds[m->kind].is_of_qp)
		return;
	m->through = b->through;
	LIST_INSERT_HEAD(&b->through->head, e, in_list);
	b->through->n++;
}

enum bind_verdict mw_bind(struct mr_table *t, const struct mw_bind *b, bool is_window)
{
	struct entry *e = entry_by_upper(t, b->key >> 8);
	enum bind_verdict v = check_target(e, b, is_window);
	if (v != BIND_OK)
		return v;
	if (!b->len && kinds[e->mr.kind].is_unbound_by_0) {
		mw_unbind(t, &e->mr);
		return BIND_OK;
	}
	struct mr *of = mr_find(t, b->lkey);
	if (!of || of->pd != b->pd || !(of->access & MEM_LKEY))
		return BIND_BAD_MR;
	v = check_memory(of, b, e->mr.kind);
	if (v != BIND_OK)
		return v;
	mw_unbind(t, &e->mr);
	take_memory(e, of, b);
	return BIND_OK;
}

/* ---- and what ends it ---- */

void mw_unbind(struct mr_table *t, struct mr *mr)
{
	struct entry *e = (struct entry *)mr;
	if (!e->of)
		return;
	entry_forget_key(t, e);
	e->of->mr.bound--;
	e->of = NULL;
	if (!mr->through)
		return;
	mr->through->n--;
	LIST_REMOVE(e, in_list);
	mr->through = NULL;
}

void mw_unbind_all(struct mr_table *t, struct mw_list *l)
{
	while (!LIST_EMPTY(&l->head))
		mw_unbind(t, &LIST_FIRST(&l->head)->mr);
}

struct mr *mw_find_invalidable(const struct mr_table *t, const struct pd *pd, const struct mw_list *through, uint32_t key)
{
	struct mr *mr = mr_find(t, key);
	if (!mr || mr->pd != pd || !kinds[mr->kind].is_invalidable || mr->bound)
		return NULL;
	return mr->through && mr->through != through ? NULL : mr;
}
