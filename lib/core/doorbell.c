/* SPDX-License-Identifier: BSD-3-Clause */
/* Which send queues are looked at. A queue with work is; one that ran empty lingers for a while, so that a busy program rings no doorbell; then the flag is cleared and the program rings. Owns
 * qp->is_looking, the linger list, the doorbell numbers, and which clients' doorbells are looked at when: those that rang lately at every round, the others in turn, each within 2^SWEEP_SHIFT ns, so that a
 * round costs the same however many clients and idle QPs there are.
 *
 * Invariant: whenever an SQ's `looking` is 1 in the ring, the QP is ready, lingers, or waits for something that will make it ready. */
#include <errno.h>
#include <stdlib.h>

#include "machine.h"

#define QUIET_ROUNDS 64u
#define RUNG_AT_ONCE 64u  /* doorbells and words of them taken from a client at one look; the last word whole */
#define WARM_ROUNDS 4096u /* since it rang: some 100 us, so that who rings now and then is answered at once */
#define SWEEP_SHIFT 15u   /* 2^15 ns, 33 us, and each client has been looked at */

/* No more looking: from now on the program rings. true: it posted just before it could see that. */
static bool stop_looking(struct qp *q)
{
	struct abi_ring *sq = q->req.sq;
	atomic_store_explicit(&sq->looking, 0, memory_order_relaxed);
	/* the cleared flag is visible before the tail is read: either the program sees 0 and rings, or its WQE is seen here */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&sq->client_index, memory_order_acquire) == q->req.taken) {
		q->is_looking = false;
		return false;
	}
	atomic_store_explicit(&sq->looking, 1, memory_order_relaxed);
	return true;
}

static void start_looking(struct qp *q)
{
	if (q->is_looking)
		return;
	q->is_looking = true;
	atomic_store_explicit(&q->req.sq->looking, 1, memory_order_relaxed);
}

static void add_lingering(struct core *c, struct qp *q)
{
	q->quiet_rounds = 0;
	q->is_lingering = true;
	q->group->lingering++;
	c->linger[c->lingering++] = q;
}

static void drop_lingering(struct core *c, uint32_t i)
{
	c->linger[i]->is_lingering = false;
	c->linger[i]->group->lingering--;
	c->linger[i] = c->linger[--c->lingering];
}

/* Whether a makes room before b: the client that has most of the places loses one, the QP of it that has been quiet for the longest. */
static bool goes_first(const struct qp *a, const struct qp *b)
{
	if (a->group->lingering != b->group->lingering)
		return a->group->lingering > b->group->lingering;
	return a->quiet_rounds > b->quiet_rounds;
}

static void evict(struct core *c)
{
	uint32_t first = 0;
	for (uint32_t i = 1; i < c->lingering; i++)
		if (goes_first(c->linger[i], c->linger[first]))
			first = i;
	struct qp *q = c->linger[first];
	drop_lingering(c, first);
	if (stop_looking(q))
		qp_on_doorbell(q);
}

void doorbell_on_idle(struct qp_env *env, struct qp *q)
{
	struct core *c = core_of(env);
	if (q->is_lingering)
		return;
	start_looking(q);
	if (c->lingering == LINGER_MAX)
		evict(c);
	if (c->lingering < LINGER_MAX)
		add_lingering(c, q);
	else if (stop_looking(q))
		qp_on_doorbell(q);
}

void doorbell_forget(struct core *c, struct qp *q)
{
	for (uint32_t i = 0; i < c->lingering; i++)
		if (c->linger[i] == q)
			drop_lingering(c, i--);
}

static void scan_lingering(struct core *c)
{
	for (uint32_t i = c->lingering; i-- > 0;) { /* from the end: what is added in here is looked at in the next round */
		struct qp *q = c->linger[i];
		if (atomic_load_explicit(&q->req.sq->client_index, memory_order_acquire) != q->req.taken) {
			drop_lingering(c, i);
			qp_on_doorbell(q);
		} else if (++q->quiet_rounds > QUIET_ROUNDS) {
			drop_lingering(c, i);
			if (stop_looking(q))
				qp_on_doorbell(q);
		}
	}
}

static void ring(struct core_client *k, uint32_t n)
{
	struct qp *q = n < k->doorbells_room ? k->by_doorbell[n] : NULL;
	if (!q) { /* a number of nobody's: the client's mistake, or a QP that has just gone */
		k->core->stats.bad_doorbells++;
		return;
	}
	k->core->stats.doorbells++;
	__builtin_prefetch(q);
	start_looking(q);
	qp_on_doorbell(q);
}

/* How many bits were set. */
static uint32_t scan_word(struct core_client *k, uint32_t w)
{
	uint64_t bits = atomic_exchange_explicit(&k->doorbells->word[w], 0, memory_order_acquire);
	uint32_t n = (uint32_t)__builtin_popcountll(bits);
	for (; bits; bits &= bits - 1)
		ring(k, w * 64 + (uint32_t)__builtin_ctzll(bits));
	return n;
}

/* Whether it had rung. What is more than a client may ring at once is kept for the next look, so that one that rings everything all the time keeps nobody waiting. */
static bool scan_client(struct core_client *k)
{
	uint64_t any = k->has_left;
	uint32_t n = 0;
	for (uint32_t t = 0; t < ABI_DOORBELL_TOP; t++)
		any |= atomic_load_explicit(&k->doorbells->top[t], memory_order_relaxed);
	if (!any)
		return false;
	k->has_left = false;
	for (uint32_t t = 0; t < ABI_DOORBELL_TOP; t++) {
		if (!k->left[t] && !atomic_load_explicit(&k->doorbells->top[t], memory_order_relaxed))
			continue;
		/* the top is cleared before the words are read; a client sets the word before the top: no bit is left behind */
		uint64_t bits = k->left[t] | atomic_exchange_explicit(&k->doorbells->top[t], 0, memory_order_acq_rel);
		for (; bits && n < RUNG_AT_ONCE; bits &= bits - 1)
			n += scan_word(k, t * 64 + (uint32_t)__builtin_ctzll(bits)) + 1;
		k->left[t] = bits;
		k->has_left |= bits != 0;
	}
	return true;
}

/* ---- which clients ---- */

static void cool(struct core *c, uint32_t i)
{
	c->warm[i]->is_warm = false;
	c->warm[i] = c->warm[--c->warms];
}

static void warm(struct core *c, struct core_client *k)
{
	uint32_t quietest = 0;
	k->quiet_rounds = 0;
	if (k->is_warm)
		return;
	for (uint32_t i = 1; i < c->warms; i++)
		if (c->warm[i]->quiet_rounds > c->warm[quietest]->quiet_rounds)
			quietest = i;
	if (c->warms == WARM_MAX)
		cool(c, quietest);
	k->is_warm = true;
	c->warm[c->warms++] = k;
}

static void scan_warm(struct core *c)
{
	for (uint32_t i = c->warms; i-- > 0;) {
		struct core_client *k = c->warm[i];
		if (scan_client(k))
			k->quiet_rounds = 0;
		else if (++k->quiet_rounds > WARM_ROUNDS)
			cool(c, i);
	}
}

/* So many of the others that all have had their turn once in a sweep. */
static void scan_in_turn(struct core *c)
{
	c->sweep_due += (c->env.now_ns - c->swept_at) * c->n_clients;
	c->swept_at = c->env.now_ns;
	uint64_t n = c->sweep_due >> SWEEP_SHIFT;
	c->sweep_due &= (1ull << SWEEP_SHIFT) - 1;
	for (n = n < c->n_clients ? n : c->n_clients; n; n--) {
		struct core_client *k = c->sweep ? c->sweep : c->clients;
		c->sweep = k->next;
		if (c->sweep)
			__builtin_prefetch(c->sweep->doorbells);
		if (scan_client(k))
			warm(c, k);
	}
}

void doorbell_scan(struct core *c)
{
	if (c->lingering)
		scan_lingering(c);
	if (c->n_clients > WARM_MAX) {
		scan_warm(c);
		scan_in_turn(c);
		return;
	}
	for (struct core_client *k = c->clients; k; k = k->next)
		scan_client(k);
}

void doorbell_sweep_all(struct core *c)
{
	c->sweep_due = (uint64_t)c->n_clients << SWEEP_SHIFT;
}

void doorbell_forget_client(struct core_client *k)
{
	struct core *c = k->core;
	for (uint32_t i = 0; i < c->warms; i++)
		if (c->warm[i] == k)
			cool(c, i--);
	if (c->sweep == k)
		c->sweep = k->next;
}

bool doorbell_is_rung(const struct core *c)
{
	for (uint32_t i = 0; i < c->lingering; i++)
		if (atomic_load_explicit(&c->linger[i]->req.sq->client_index, memory_order_acquire) != c->linger[i]->req.taken)
			return true;
	for (const struct core_client *k = c->clients; k; k = k->next) {
		uint64_t any = k->has_left;
		for (uint32_t t = 0; t < ABI_DOORBELL_TOP; t++)
			any |= atomic_load_explicit(&k->doorbells->top[t], memory_order_relaxed);
		if (any)
			return true;
	}
	return false;
}

int doorbell_take(struct core_client *k, struct qp *q)
{
	uint32_t n = k->doorbells_hint;
	while (n < k->doorbells_room && k->by_doorbell[n])
		n++;
	if (n == ABI_DOORBELLS)
		return -ENOSPC;
	if (n == k->doorbells_room) {
		uint32_t room = n ? n * 2 : 64;
		struct qp **v = realloc(k->by_doorbell, room * sizeof(*v));
		if (!v)
			return -ENOMEM;
		memset(v + n, 0, (room - n) * sizeof(*v));
		k->by_doorbell = v;
		k->doorbells_room = room;
	}
	k->by_doorbell[n] = q;
	k->doorbells_hint = n + 1;
	q->doorbell = n;
	return 0;
}

void doorbell_give(struct core_client *k, struct qp *q)
{
	k->by_doorbell[q->doorbell] = NULL;
	if (q->doorbell < k->doorbells_hint)
		k->doorbells_hint = q->doorbell;
}
