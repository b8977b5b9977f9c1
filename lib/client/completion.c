/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's side of a completion queue (IBA vol. 1, 10.2.6, 11.4.2): taking CQEs out of the ring and arming. Making CQEs
 * and firing are the engine's; reading events is channel.c's.
 * Invariant: slots from `head` on whose phase is that of the head's pass belong to this side until the head is published;
 * the engine writes none of them before. */
#include <errno.h>
#include <string.h>

#include "client.h"

#define QPN_NONE UINT32_MAX /* no QPN has more than 24 bits */

/* ---- creation ---- */

/* The memory may have been another ring's. The engine leaves it to us, who alone depend on it: clearing a large ring takes time. */
void completion_clear(struct abi_cqe *cqes, uint32_t slots, uint32_t head)
{
	for (uint32_t i = head; i != head + slots; i++) {
		struct abi_cqe *e = &cqes[i & (slots - 1)];
		e->qpn = 0;
		atomic_store_explicit(&e->phase, !completion_phase(slots, i), memory_order_relaxed);
	}
}

static int create_locked(struct uroce_cq *cq, uint32_t entries)
{
	struct uroce_context *ctx = cq->o.ctx;
	struct abi_req req = { .type = ABI_CREATE_CQ,
		.create_cq = { .entries = entries, .channel = cq->channel ? cq->channel->o.handle : 0, .cookie = cq->o.cookie } };
	struct abi_rep rep;
	void *cqes;
	int err = context_call(ctx, &req, &rep);
	if (err)
		return err;
	cq->o.handle = rep.handle;
	err = context_ring(ctx, &rep.cq.ring, sizeof(struct abi_cqe), &cq->ring, &cqes);
	if (!err && (rep.cq.ring.slot_bytes != sizeof(struct abi_cqe) || rep.cq.ring.slots < entries))
		err = -EPROTO;
	if (err) {
		context_call_handle(ctx, ABI_DESTROY_CQ, rep.handle);
		return err;
	}
	cq->cqes = cqes;
	cq->slots = cq->entries = rep.cq.ring.slots;
	cq->page = ctx->page;
	cq->life = ctx->life;
	cq->head = atomic_load_explicit(&cq->ring->client_index, memory_order_relaxed);
	completion_clear(cq->cqes, cq->slots, cq->head);
	if (cq->channel)
		cq->channel->refs++;
	return 0;
}

int uroce_cq_create(struct uroce_context *ctx, uint32_t entries, struct uroce_channel *ch, void *user, struct uroce_cq **out)
{
	struct uroce_cq *cq;
	int err;
	if (!entries || (ch && ch->o.ctx != ctx)) {
		log_write(context_log(ctx), LOG_WARN, "CQ: %s",
			entries ? "the channel belongs to another context" : "0 entries asked for, at least 1 is needed");
		return -EINVAL;
	}
	cq = object_new(ctx, OBJECT_CQ, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->channel = ch;
	cq->user = user;
	context_lock(ctx);
	err = create_locked(cq, entries);
	context_unlock(ctx);
	if (err) {
		object_free(&cq->o);
		return err;
	}
	*out = cq;
	return 0;
}

int uroce_cq_destroy(struct uroce_cq *cq)
{
	struct uroce_context *ctx;
	int err;
	if (!cq)
		return 0;
	ctx = cq->o.ctx;
	context_lock(ctx);
	if (cq->refs) {
		log_write(context_log(ctx), LOG_WARN, "CQ still used by %u queues of QPs: destroy those first", cq->refs);
		err = -EBUSY;
	} else {
		err = context_call_handle(ctx, ABI_DESTROY_CQ, cq->o.handle);
	}
	if (!err && cq->channel)
		cq->channel->refs--;
	context_unlock(ctx);
	if (err)
		return err;
	object_retire(&cq->o);
	object_free(&cq->o);
	return 0;
}

void *uroce_cq_user(const struct uroce_cq *cq)
{
	return cq->user;
}

/* ---- polling ---- */

static inline void fill_wc(struct uroce_wc *wc, const struct abi_cqe *e)
{
	wc->wr_id = e->wr_id;
	wc->status = (enum uroce_wc_status)e->status;
	wc->opcode = (enum uroce_wc_opcode)e->opcode;
	wc->byte_len = e->byte_len;
	wc->qpn = e->qpn;
	wc->src_qpn = e->src_qpn;
	wc->imm = e->imm;
	wc->flags = e->flags & (UROCE_WC_HAS_GRH | UROCE_WC_HAS_IMM | UROCE_WC_HAS_INVALIDATED);
	wc->vendor_error = e->vendor_error;
	wc->pkey_index = e->pkey_index;
	wc->vlan = e->vlan;
	wc->sl = e->sl;
}

bool completion_is_there(const struct uroce_cq *cq, uint32_t index)
{
	/* Acquire: the body that the engine wrote before the phase is visible to what follows. */
	return atomic_load_explicit(&cq->cqes[index & (cq->slots - 1)].phase, memory_order_acquire) == completion_phase(cq->slots, index);
}

static inline unsigned take(struct uroce_cq *cq, struct uroce_wc *wc, unsigned n)
{
	const uint32_t mask = cq->slots - 1;
	uint32_t head = cq->head;
	unsigned got = 0;
	while (got < n && completion_is_there(cq, head)) {
		fill_wc(&wc[got++], &cq->cqes[head & mask]);
		head++;
	}
	if (head != cq->head) {
		cq->head = head;
		/* Release: our reads of these slots come before the engine may see them as free. Once per call, since the
		 * engine's next look at this line costs it a miss. */
		atomic_store_explicit(&cq->ring->client_index, head, memory_order_release);
	}
	return got;
}

/* Behind the last CQE that is there: one whose phase the engine could not turn any more; NULL: none. */
static struct abi_cqe *find_half_written(const struct uroce_cq *cq, uint32_t end)
{
	struct abi_cqe *e = &cq->cqes[end & (cq->slots - 1)];
	/* Acquire: the tail counts a CQE whose body is visible. */
	return atomic_load_explicit(&cq->ring->engine_index, memory_order_acquire) == end + 1 && e->qpn != QPN_NONE ? e : NULL;
}

/* The engine is gone. What it wrote until then comes first, even a CQE whose phase it could not turn any more (ring.h says
 * in which order it works); then the ring is not looked at again, and what is outstanding is flushed. */
__attribute__((cold, noinline)) static int poll_after_death(struct uroce_cq *cq, struct uroce_wc *wc, unsigned n)
{
	const struct abi_cqe *last;
	unsigned got;
	if (cq->cqes == &cq->closed)
		return flush_take(cq, wc, n);
	/* Acquire: what was written before the word that says dead is visible. */
	atomic_thread_fence(memory_order_acquire);
	got = take(cq, wc, n);
	if (got)
		return (int)got;
	last = find_half_written(cq, cq->head);
	if (last)
		fill_wc(wc, last);
	flush_begin(cq, last);
	return last ? 1 : flush_take(cq, wc, n);
}

int uroce_cq_poll(struct uroce_cq *cq, struct uroce_wc *wc, unsigned n)
{
	unsigned got = take(cq, wc, n);
	if (__builtin_expect(!got && n && engine_is_dead(cq->page, cq->life), 0))
		return poll_after_death(cq, wc, n);
	return (int)got;
}

void completion_move(struct abi_cqe *to, const struct abi_cqe *from)
{
	memcpy(to, from, offsetof(struct abi_cqe, phase));
}

static uint32_t find_end(const struct uroce_cq *cq)
{
	uint32_t i = cq->head;
	while (i - cq->head < cq->slots && completion_is_there(cq, i))
		i++;
	return i;
}

/* Those that stay move up, in order, to slots that are this side's too; each slot keeps its phase. So what is left of a QP that
 * is gone takes no room of the CQ's. */
void completion_purge(struct uroce_cq *cq, uint32_t qpn)
{
	const uint32_t mask = cq->slots - 1;
	uint32_t end = find_end(cq), head = end;
	struct abi_cqe *last = engine_is_dead(cq->page, cq->life) && cq->cqes != &cq->closed ? find_half_written(cq, end) : NULL;
	if (last && last->qpn == qpn)
		last->qpn = QPN_NONE;
	for (uint32_t i = end; i != cq->head;) {
		const struct abi_cqe *e = &cq->cqes[--i & mask];
		if (e->qpn == qpn)
			continue;
		if (--head != i)
			completion_move(&cq->cqes[head & mask], e);
	}
	if (head == cq->head)
		return;
	/* What stood there tells of no WR any more (flush.c). */
	for (uint32_t i = cq->head; i != head; i++)
		cq->cqes[i & mask].qpn = QPN_NONE;
	cq->head = head;
	/* Release: as in take. */
	atomic_store_explicit(&cq->ring->client_index, head, memory_order_release);
}

int uroce_cq_arm(struct uroce_cq *cq, bool solicited_only)
{
	uint32_t none = ABI_ARM_NONE;
	if (engine_is_dead(cq->page, cq->life))
		return -ENODEV;
	if (!cq->channel) {
		log_write(context_log(cq->o.ctx), LOG_WARN, "CQ armed that has no channel: give it one at creation");
		return -EINVAL;
	}
	/* Any outranks solicited (IBA vol. 1, 11.4.2.2): a weaker request never takes the place of a stronger one that has
	 * not fired. */
	if (solicited_only)
		atomic_compare_exchange_strong(&cq->ring->arm, &none, ABI_ARM_SOLICITED);
	else
		atomic_store(&cq->ring->arm, ABI_ARM_ANY);
	/* The arm word is visible before the program's next poll reads a phase; the engine writes a phase, fences, then
	 * takes the arm word. So either the engine sees the arm or the poll sees the CQE, and no event is lost (known-bugs
	 * 44). */
	atomic_thread_fence(memory_order_seq_cst);
	return 0;
}
