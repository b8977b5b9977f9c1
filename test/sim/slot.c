/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what a window or a fast MR is called: its key, from when it is opened, and the address of its first byte. */
#include "slot.h"

#include <errno.h>
#include <stdlib.h>

#define REMOTE (UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC)

int slots_open(struct end *e)
{
	int err = 0;
	for (unsigned i = 0; i < e->plan->slots && !err; i++) {
		if (e->plan->slot[i] == SLOT_FAST_MR)
			err = uroce_mr_alloc(e->actor->pd, &e->fast[i]);
		else
			err = uroce_mw_create(e->actor->pd, e->plan->slot[i] == SLOT_WINDOW_1 ? UROCE_MW_TYPE_1 : UROCE_MW_TYPE_2, &e->window[i]);
	}
	return err;
}

int slots_close(struct end *e)
{
	int err = 0;
	for (unsigned i = 0; i < e->plan->slots && !err; i++)
		err = e->fast[i] ? uroce_mr_deregister(e->fast[i]) : uroce_mw_destroy(e->window[i]);
	return err;
}

bool slot_is_ready(const struct end *e, const struct step *s)
{
	return s->after == NO_INDEX || e->peer->steps_done > s->after;
}

bool slot_is_type_1(const struct end *e, const struct step *s)
{
	return s->opcode == UROCE_OP_BIND_MW && e->plan->slot[e->plan->opening[s->opening].slot] == SLOT_WINDOW_1;
}

static struct uroce_bind bind_of(const struct end *e, const struct opening *w)
{
	bool is_fast = e->plan->slot[w->slot] == SLOT_FAST_MR;
	return (struct uroce_bind){
		.addr = e->target_iova + w->offset, .len = w->len, .lkey = uroce_mr_lkey(e->target), .access = REMOTE | (is_fast ? UROCE_ACCESS_LOCAL_WRITE : 0) | (w->is_zero_based ? UROCE_ACCESS_ZERO_BASED : 0),
		.iova = is_fast ? w->iova : 0,
	};
}

int slot_bind(struct end *e, uint32_t index)
{
	const struct step *s = &e->plan->step[index];
	const struct opening *w = &e->plan->opening[s->opening];
	struct uroce_bind bind = bind_of(e, w);
	int err = uroce_mw_bind(e->qp, e->window[w->slot], &bind, end_wr_id(false, index), s->flags);
	if (!err)
		e->opening_key[s->opening] = uroce_mw_rkey(e->window[w->slot]);
	return err;
}

/* Of this side's. */
static void put_own(struct end *e, const struct step *s, struct uroce_send_wr *wr, struct uroce_bind *bind)
{
	const struct opening *w = &e->plan->opening[s->opening];
	if (s->opcode == UROCE_OP_LOCAL_INV) {
		wr->invalidate_rkey = e->opening_key[s->opening];
		return;
	}
	uint32_t name = e->fast[w->slot] ? uroce_mr_rkey(e->fast[w->slot]) : uroce_mw_rkey(e->window[w->slot]);
	*bind = bind_of(e, w);
	wr->bind = bind;
	wr->rkey = e->opening_key[s->opening] = (name & 0xffffff00) | w->key;
}

static void put_of_peer(const struct end *e, const struct step *s, struct uroce_send_wr *wr)
{
	const struct opening *w = &e->peer->plan->opening[s->opening];
	bool is_fast = e->peer->fast[w->slot];
	uint64_t first = is_fast ? w->iova : w->is_zero_based ? 0 : e->peer->target_iova + w->offset;
	if (s->opcode == UROCE_OP_SEND_WITH_INV) {
		wr->invalidate_rkey = e->peer->opening_key[s->opening];
		return;
	}
	wr->rkey = e->peer->opening_key[s->opening];
	wr->remote_addr = first + (s->remote_offset - w->offset);
}

void slot_put(struct end *e, const struct step *s, struct uroce_send_wr *wr, struct uroce_bind *bind)
{
	bool is_own = s->opcode == UROCE_OP_BIND_MW || s->opcode == UROCE_OP_REG_MR || s->opcode == UROCE_OP_LOCAL_INV;
	if (is_own)
		put_own(e, s, wr, bind);
	else
		put_of_peer(e, s, wr);
}

bool slot_is_invalidated(const struct end *e, const struct step *s, const struct uroce_wc *wc)
{
	bool is_said = wc->flags & UROCE_WC_HAS_INVALIDATED;
	if (s->opcode != UROCE_OP_SEND_WITH_INV)
		return !is_said;
	return is_said && wc->invalidated_rkey == e->opening_key[s->opening];
}
