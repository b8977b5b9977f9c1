/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting. Owns how a step of the plan becomes a WR: keys, addresses, address handles, and what is deliberately wrong in it. */
#include "actor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "slot.h"

#define BATCH_MAX 32u

/* Room for a batch of WRs, their SGEs, and the bytes of inline ones. */
struct batch {
	struct uroce_send_wr send[BATCH_MAX];
	struct uroce_recv_wr recv[BATCH_MAX];
	struct uroce_sge sge[BATCH_MAX][PIECES_MAX];
	struct uroce_bind bind[BATCH_MAX];
	uint8_t inline_bytes[BATCH_MAX][512];
};

static uint32_t lkey_of(const struct end *e, const struct piece *p, bool is_wrong)
{
	return (p->offset < e->plan->source_bytes ? e->source_lkey : e->landing_lkey) ^ (is_wrong ? 0x10 : 0);
}

static void put_sges(const struct end *e, const struct piece *piece, unsigned n, bool is_wrong, struct uroce_sge *to)
{
	for (unsigned i = 0; i < n; i++)
		to[i] = (struct uroce_sge){ e->local_iova + piece[i].offset, piece[i].len, lkey_of(e, &piece[i], is_wrong) };
}

/* Inline bytes come from memory that is another's right after the post, and that no MR covers. */
static void put_inline(const struct end *e, const struct step *s, uint8_t *bytes, struct uroce_sge *to)
{
	for (unsigned i = 0; i < s->pieces; i++) {
		memcpy(bytes, e->local + s->piece[i].offset, s->piece[i].len);
		to[i] = (struct uroce_sge){ (uint64_t)(uintptr_t)bytes, s->piece[i].len, 0xdead };
		bytes += s->piece[i].len;
	}
}

/* A range that the peer does not grant: by its key, or by where it is. */
static void spoil(struct uroce_send_wr *wr, const struct end *e, uint32_t kind)
{
	if (kind % 3 == 0)
		wr->rkey ^= 1;
	else if (kind % 3 == 1)
		wr->rkey ^= 0x5a00;
	else
		wr->remote_addr = e->peer->target_iova + e->peer->plan->target_bytes;
}

/* A datagram's way; the QP's own Q_Key is the same as everybody's. */
static void put_address(const struct end *e, const struct step *s, struct uroce_send_wr *wr)
{
	uint32_t to = plan_target_of(e->number, s), qkey = e->plan->attr.qkey;
	wr->ah = e->ah[to];
	wr->remote_qpn = to < PLAN_ENDS_MAX ? e->actor->all[to].qpn : UROCE_QPN_MULTICAST;
	wr->remote_qkey = s->is_unwanted ? qkey ^ 0x55 : s->imm & 1 ? 0x80000000 | s->imm : qkey;
}

static void put_send(struct end *e, uint32_t index, struct batch *b, uint32_t i)
{
	const struct step *s = &e->plan->step[index];
	bool is_local = s->is_mistaken && e->plan->mistake == MISTAKE_LOCAL_KEY;
	b->send[i] = (struct uroce_send_wr){
		.wr_id = end_wr_id(false, index), .sg_list = b->sge[i], .num_sge = s->pieces, .opcode = s->opcode, .flags = s->flags, .imm = s->imm, .remote_addr = e->peer->target_iova + s->remote_offset,
		.rkey = e->peer->target_rkey, .compare_add = s->compare_add, .swap = s->swap, .flush = s->flush,
	};
	if (e->service == UROCE_UD)
		put_address(e, s, &b->send[i]);
	if (s->flags & UROCE_SEND_INLINE)
		put_inline(e, s, b->inline_bytes[i], b->sge[i]);
	else
		put_sges(e, s->piece, s->pieces, is_local, b->sge[i]);
	if (s->garbage) {
		b->send[i].rkey ^= s->garbage;
		b->send[i].remote_addr = ~(uint64_t)s->garbage;
	}
	if (slot_is_of(s))
		slot_put(e, s, &b->send[i], &b->bind[i]);
	if (s->is_mistaken && !is_local)
		spoil(&b->send[i], e, s->imm);
}

/* An address handle for a step that needs one. */
static void provide_ah(struct end *e, uint32_t index)
{
	uint32_t to = plan_target_of(e->number, &e->plan->step[index]);
	struct uroce_av av = { .dgid = to < PLAN_ENDS_MAX ? e->actor->all[to].gid : e->actor->groups[to - PLAN_ENDS_MAX] };
	if (!e->ah[to] && uroce_ah_create(e->actor->pd, &av, &e->ah[to]))
		verdict_fail(e->actor->verdict, "%s: no AH for send %u", e->name, index);
	e->ah_until[to] = index + 1;
}

/* A WR that can never be right: no such operation, too many pieces, more than a datagram holds. */
static void put_impossible(struct end *e, struct batch *b, uint32_t i)
{
	uint64_t kind = rng_below(&e->actor->rng, 3);
	put_send(e, e->steps_posted, b, i);
	if (kind == 0)
		b->send[i].opcode = 99;
	else if (kind == 1)
		b->send[i].num_sge = 33;
	else
		b->send[i].opcode = UROCE_OP_FETCH_ADD; /* of one piece of 8 bytes, and on RC only */
	if (kind == 2 && e->service == UROCE_RC)
		b->send[i].num_sge = 0;
}

/* How many of the next n go together: what waits for the peer does not yet, and a window of type 1 is bound alone. */
static uint32_t count_ready(const struct end *e, uint32_t n)
{
	uint32_t ready = 0;
	for (; ready < n; ready++) {
		const struct step *s = &e->plan->step[e->steps_posted + ready];
		if (!slot_is_ready(e, s) || slot_is_type_1(e, s))
			break;
	}
	return ready;
}

static bool bind_type_1(struct end *e)
{
	int err = slot_bind(e, e->steps_posted);
	if (err && err != -ENOMEM)
		verdict_fail(e->actor->verdict, "%s: binding a window, send %u: %d", e->name, e->steps_posted, err);
	if (err)
		return false;
	actor_note(e->actor, "%s binds a window, send %u", e->name, e->steps_posted);
	e->steps_posted++;
	return true;
}

bool post_sends(struct end *e, uint32_t n)
{
	struct batch b;
	uint32_t impossible = e->plan->steps && rng_below(&e->actor->rng, 16) == 0;
	if (n > e->plan->steps - e->steps_posted)
		n = e->plan->steps - e->steps_posted;
	if (n + impossible > BATCH_MAX)
		n--;
	if (!n || !e->qp || end_waits_to_recover(e))
		return false;
	const struct step *next = &e->plan->step[e->steps_posted];
	if (slot_is_ready(e, next) && slot_is_type_1(e, next))
		return bind_type_1(e);
	n = count_ready(e, n);
	if (!n)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (e->service == UROCE_UD)
			provide_ah(e, e->steps_posted + i);
		put_send(e, e->steps_posted + i, &b, i);
	}
	if (impossible)
		put_impossible(e, &b, n);
	int posted = uroce_post_send(e->qp, b.send, n + impossible);
	memset(&b, 0xa5, sizeof(b));
	if ((posted < 0 && posted != -ENOMEM) || posted > (int)n)
		verdict_fail(e->actor->verdict, "%s: posting send %u and %u more: %d", e->name, e->steps_posted, n - 1, posted);
	if (posted > 0)
		actor_note(e->actor, "%s posts sends %u to %u", e->name, e->steps_posted, e->steps_posted + (uint32_t)posted - 1);
	if (posted > 0)
		e->steps_posted += (uint32_t)posted;
	e->post_again += posted < (int)n;
	return posted > 0;
}

/* A queue in ERR would give them back at once. */
static bool wants_buffers(const struct end *e)
{
	return e->qp && pool_has_free(&e->pool) && !e->has_failed_receive && !e->is_stopped && (e->failed_step == NO_INDEX || e->service != UROCE_RC);
}

static bool post_buffers(struct end *e, uint32_t n)
{
	struct uroce_recv_wr wr[BATCH_MAX];
	struct uroce_sge sge[BATCH_MAX];
	if (!wants_buffers(e))
		return false;
	n = pool_offer(&e->pool, n < BATCH_MAX ? n : BATCH_MAX, wr, sge);
	int posted = uroce_post_recv(e->qp, wr, n);
	if (posted < 0)
		verdict_fail(e->actor->verdict, "%s: posting a buffer: %s", e->name, strerror(-posted));
	else
		pool_posted(&e->pool, wr, (uint32_t)posted);
	return posted > 0;
}

/* The SRQ of a context. */
bool post_shared(struct actor *a, uint32_t n)
{
	struct uroce_recv_wr wr[BATCH_MAX];
	struct uroce_sge sge[BATCH_MAX];
	if (!a->srq || !pool_has_free(&a->srq_pool))
		return false;
	n = pool_offer(&a->srq_pool, n < BATCH_MAX ? n : BATCH_MAX, wr, sge);
	int posted = uroce_post_srq_recv(a->srq, wr, n);
	if (posted != (int)n)
		verdict_fail(a->verdict, "posting %u buffers to an SRQ that has room for them: %d", n, posted);
	else
		pool_posted(&a->srq_pool, wr, n);
	return true;
}

bool post_receives(struct end *e, uint32_t n)
{
	struct batch b;
	if (e->plan->uses_srq)
		return false; /* its context posts */
	if (plan_is_pooled(e->plan))
		return post_buffers(e, n);
	uint32_t offered = check_receives_offered(e);
	if (n > offered - e->receives_posted)
		n = offered - e->receives_posted;
	if (!n || !e->qp)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct receive *v = &e->plan->receive[e->receives_posted + i];
		b.recv[i] = (struct uroce_recv_wr){ .wr_id = end_wr_id(true, e->receives_posted + i), .sg_list = b.sge[i], .num_sge = v->pieces };
		put_sges(e, v->piece, v->pieces, v->is_mistaken, b.sge[i]);
	}
	int posted = uroce_post_recv(e->qp, b.recv, n);
	memset(&b, 0xa5, sizeof(b));
	if (posted < 0 && posted != -ENOMEM)
		verdict_fail(e->actor->verdict, "%s: posting receive %u: %s", e->name, e->receives_posted, strerror(-posted));
	if (posted > 0)
		actor_note(e->actor, "%s posts receives %u to %u", e->name, e->receives_posted, e->receives_posted + (uint32_t)posted - 1);
	if (posted > 0)
		e->receives_posted += (uint32_t)posted;
	e->post_again += posted < (int)n;
	return posted > 0;
}

void post_early(struct end *e)
{
	if (e->plan->posts_late)
		return;
	while (post_receives(e, BATCH_MAX))
		;
}

bool post_has_more(const struct end *e)
{
	if (e->plan->uses_srq)
		return e->qp && (e->steps_posted < e->plan->steps || pool_has_free(&e->actor->srq_pool));
	bool has_receives = plan_is_pooled(e->plan) ? wants_buffers(e) : e->receives_posted < check_receives_offered(e);
	return e->qp && (e->steps_posted < e->plan->steps || has_receives);
}
