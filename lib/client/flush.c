/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program polls when its engine is gone: the WRs that it has posted and no completion has told of, as flushed
 * (IBA vol. 1, 10.8.6, would have them come from the engine). Owns which queues complete into a CQ and, from flush_begin on,
 * how far each is flushed. The ring is read by completion.c. What waits in an SRQ belongs to no CQ, and ends with it.
 * Invariants: a WR comes once, in post order, and none that a CQE told of; no more of a queue than its slots can hold,
 * whatever shared memory says. A WR that was posted while the engine went is found by a later poll. */
#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "cause.h"
#include "client.h"

static struct post_queue *get_queue(const struct cq_queue *k)
{
	return k->is_rq ? &k->qp->rq : &k->qp->sq;
}

/* ---- which queues ---- */

static void join(struct cq_queue *k, struct uroce_qp *qp, struct uroce_cq *cq, bool is_rq)
{
	*k = (struct cq_queue){ .qp = qp, .is_rq = is_rq };
	/* What a QP of the same number left unpolled was purged when it went, so that all of it is older than this. */
	k->since = atomic_load_explicit(&cq->ring->client_index, memory_order_relaxed);
	k->oldest = atomic_load_explicit(&get_queue(k)->tail, memory_order_relaxed);
	DL_APPEND(cq->queues, k);
}

void flush_add(struct uroce_qp *qp)
{
	struct uroce_context *ctx = qp->o.ctx;
	pthread_mutex_lock(&ctx->events);
	join(&qp->in_send_cq, qp, qp->send_cq, false);
	if (!qp->srq)
		join(&qp->in_recv_cq, qp, qp->recv_cq, true);
	pthread_mutex_unlock(&ctx->events);
}

static void leave(struct cq_queue *k, struct uroce_cq *cq)
{
	DL_DELETE(cq->queues, k);
	cq->flushing = NULL;
}

void flush_remove(struct uroce_qp *qp)
{
	struct uroce_context *ctx = qp->o.ctx;
	pthread_mutex_lock(&ctx->events);
	leave(&qp->in_send_cq, qp->send_cq);
	if (!qp->srq)
		leave(&qp->in_recv_cq, qp->recv_cq);
	pthread_mutex_unlock(&ctx->events);
}

/* ---- what is outstanding ---- */

static uint32_t get_tail(const struct cq_queue *k)
{
	/* Acquire: the WQEs before the tail are visible. */
	return atomic_load_explicit(&get_queue(k)->tail, memory_order_acquire);
}

/* From the engine's head, or where it was last seen, when it says what cannot be. */
static uint32_t find_oldest(const struct cq_queue *k)
{
	const struct post_queue *q = get_queue(k);
	uint32_t tail = get_tail(k), seen = atomic_load_explicit(&q->head, memory_order_relaxed);
	/* Acquire: the CQE that was written before it is visible. */
	uint32_t head = atomic_load_explicit(&q->ring->engine_index, memory_order_acquire);
	return tail - head <= tail - seen ? head : seen;
}

static int compare_keys(uint32_t qpn, bool is_rq, const struct cq_queue *k)
{
	if (qpn != k->qp->qpn)
		return qpn < k->qp->qpn ? -1 : 1;
	return is_rq - k->is_rq;
}

static int compare_queues(const void *a, const void *b)
{
	const struct cq_queue *const *ka = a;
	return compare_keys((*ka)->qp->qpn, (*ka)->is_rq, *(const struct cq_queue *const *)b);
}

static int compare_cqe(const void *cqe, const void *b)
{
	const struct abi_cqe *e = cqe;
	return compare_keys(e->qpn, e->opcode >= ABI_WC_RECV, *(const struct cq_queue *const *)b);
}

/* The queues by QPN; NULL when there is no memory for it. */
static struct cq_queue **sort_queues(struct cq_queue *queues, size_t *n)
{
	struct cq_queue **sorted, *k;
	DL_COUNT(queues, k, *n);
	sorted = malloc((*n + 1) * sizeof(*sorted));
	if (!sorted)
		return NULL;
	*n = 0;
	DL_FOREACH(queues, k)
		sorted[(*n)++] = k;
	qsort(sorted, *n, sizeof(*sorted), compare_queues);
	return sorted;
}

/* A CQE tells of its WR and of those posted before. age: how many were taken since, this one too. */
static void note(struct cq_queue **sorted, size_t n, const struct abi_cqe *e, uint32_t taken, uint32_t age)
{
	struct cq_queue **k = bsearch(e, sorted, n, sizeof(*sorted), compare_cqe);
	uint32_t told = k ? e->index - (*k)->oldest : 0;
	if (k && age <= taken - (*k)->since && told < get_tail(*k) - (*k)->oldest)
		(*k)->oldest += told + 1;
}

/* An engine that gives slots back after the CQE may have died between: the newest CQEs know better than its heads. The oldest
 * is left out: its slot is that of the next CQE, and may hold half of it. */
static void note_cqes(struct uroce_cq *cq, const struct abi_cqe *last)
{
	size_t n;
	struct cq_queue **sorted = sort_queues(cq->queues, &n);
	if (!sorted)
		return;
	for (uint32_t age = cq->slots - 1; age > 0; age--)
		if (completion_is_there(cq, cq->head - age))
			note(sorted, n, &cq->cqes[(cq->head - age) & (cq->slots - 1)], cq->head, age);
	if (last)
		note(sorted, n, last, cq->head, 0);
	free(sorted);
}

void flush_begin(struct uroce_cq *cq, const struct abi_cqe *last)
{
	struct uroce_context *ctx = cq->o.ctx;
	struct cq_queue *k;
	pthread_mutex_lock(&ctx->events);
	DL_FOREACH(cq->queues, k)
		k->oldest = find_oldest(k);
	note_cqes(cq, last);
	/* The phase of its first pass is 1, and this is 0 for ever. */
	cq->closed = (struct abi_cqe){ 0 };
	cq->cqes = &cq->closed;
	cq->slots = 1;
	cq->head = 0;
	pthread_mutex_unlock(&ctx->events);
}

/* ---- flushing ---- */

static const uint8_t wc_opcodes[ABI_OP_COUNT] = {
	[ABI_OP_SEND] = UROCE_WC_SEND,
	[ABI_OP_SEND_WITH_IMM] = UROCE_WC_SEND,
	[ABI_OP_WRITE] = UROCE_WC_WRITE,
	[ABI_OP_WRITE_WITH_IMM] = UROCE_WC_WRITE,
	[ABI_OP_READ] = UROCE_WC_READ,
	[ABI_OP_COMPARE_SWAP] = UROCE_WC_COMPARE_SWAP,
	[ABI_OP_FETCH_ADD] = UROCE_WC_FETCH_ADD,
	[ABI_OP_ATOMIC_WRITE] = UROCE_WC_ATOMIC_WRITE,
	[ABI_OP_FLUSH] = UROCE_WC_FLUSH,
	[ABI_OP_SEND_WITH_INV] = UROCE_WC_SEND,
	[ABI_OP_BIND_MW] = UROCE_WC_BIND_MW,
	[ABI_OP_LOCAL_INV] = UROCE_WC_LOCAL_INV,
	[ABI_OP_REG_MR] = UROCE_WC_REG_MR,
};

static void fill_flushed(struct uroce_wc *wc, const struct cq_queue *k)
{
	const struct post_queue *q = get_queue(k);
	const void *slot = q->slots + (size_t)(k->oldest & (q->count - 1)) * q->slot_bytes;
	const struct abi_send_wqe *send = slot;
	const struct abi_recv_wqe *recv = slot;
	*wc = (struct uroce_wc){ .status = UROCE_WC_WR_FLUSH_ERR, .qpn = k->qp->qpn, .vendor_error = CAUSE_ENGINE_GONE };
	wc->wr_id = k->is_rq ? recv->wr_id : send->wr_id;
	wc->opcode = k->is_rq ? UROCE_WC_RECV : send->opcode < ABI_OP_COUNT ? wc_opcodes[send->opcode] : UROCE_WC_SEND;
}

static unsigned flush_queue(struct cq_queue *k, struct uroce_wc *wc, unsigned n)
{
	uint32_t tail = get_tail(k);
	unsigned got = 0;
	for (; got < n && k->oldest != tail; k->oldest++)
		fill_flushed(&wc[got++], k);
	return got;
}

int flush_take(struct uroce_cq *cq, struct uroce_wc *wc, unsigned n)
{
	struct uroce_context *ctx = cq->o.ctx;
	struct cq_queue *k;
	unsigned got = 0;
	pthread_mutex_lock(&ctx->events);
	k = cq->flushing ? cq->flushing : cq->queues;
	while (k) {
		got += flush_queue(k, wc + got, n - got);
		if (got == n)
			break;
		k = k->next;
	}
	cq->flushing = k;
	pthread_mutex_unlock(&ctx->events);
	return got ? (int)got : -ENODEV;
}
