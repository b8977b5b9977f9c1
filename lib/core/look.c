/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks over what clients have, in pieces. Owns nothing and changes nothing. Between two pieces clients and objects come and go, so a place is a number and never a pointer. */
#include "look.h"

#include "machine.h"

#define TABLES_MAX 2u

static uint32_t index_of(uint32_t handle)
{
	return handle & ((1u << HANDLE_INDEX_BITS) - 1);
}

/* How far the client is ahead, or behind; it can write any index. */
static uint32_t bounded(uint32_t ahead, uint32_t size)
{
	return ahead < size ? ahead : size;
}

static uint32_t client_index(const struct abi_ring *ring)
{
	return atomic_load_explicit(&((struct abi_ring *)(uintptr_t)ring)->client_index, memory_order_relaxed);
}

/* ---- one object each ---- */

static void begin_client(const struct core_client *k, bool is_first, struct look_row *row)
{
	struct look_client *v = &row->of_client;
	*v = (struct look_client){ .who = k->who, .most = k->quota, .has_quota = k->has_quota, .qps_gone = k->qps_gone };
	core_client_usage(k, &v->used);
	if (is_first)
		memcpy(v->counter, k->counter, sizeof(v->counter));
}

static void add_qp(const struct core_client *k, const void *object, struct look_row *row)
{
	const struct qp *q = ((const struct queue_pair *)object)->qp;
	for (unsigned i = 0; i < QP_COUNTER_COUNT; i++)
		row->of_client.counter[i] += q->counter[i];
}

static void copy_receives(const struct qp *q, struct look_qp *v)
{
	v->has_srq = q->source != &q->rq;
	if (v->has_srq)
		return;
	v->rq_size = q->rq.mask + 1;
	v->rq_used = bounded(client_index(q->rq.ring) - q->rq.retired, v->rq_size);
}

static void copy_qp(const struct core_client *k, const void *object, struct look_row *row)
{
	const struct qp *q = ((const struct queue_pair *)object)->qp;
	struct look_qp *v = &row->qp;
	*v = (struct look_qp){
		.qpn = q->qpn, .service = q->service, .state = q->state, .has_peer = q->has_ah, .peer = q->ah.dgid, .peer_qpn = q->dest_qpn, .path_mtu = 1u << q->mtu_log2,
		.srtt_ns = q->retry.srtt_ns, .rttvar_ns = q->retry.rttvar_ns, .rto_ns = q->retry.rto_ns, .window_packets = q->env->window_packets, .in_flight_packets = inflight_psns(&q->flight),
		.sq_size = q->req.mask + 1, .send_cq = index_of(q->send_cq->handle), .recv_cq = index_of(q->recv_cq->handle), .error = q->error,
	};
	v->sq_used = bounded(client_index(q->req.sq) - q->req.retired, v->sq_size);
	copy_receives(q, v);
	memcpy(v->counter, q->counter, sizeof(v->counter));
}

static void copy_cq(const struct core_client *k, const void *object, struct look_row *row)
{
	const struct completion_queue *q = object;
	const struct cq *cq = &q->cq;
	row->cq = (struct look_cq){
		.id = index_of(cq->handle), .entries = cq->mask + 1, .used = bounded(cq->produced - client_index(cq->ring), cq->mask + 1), .armed = atomic_load_explicit(&cq->ring->arm, memory_order_relaxed),
		.qps = cq->refs, .is_overrun = cq->is_overrun, .has_channel = q->channel != NULL,
	};
}

static void copy_key(const struct mr *mr, struct look_row *row)
{
	row->mr = (struct look_mr){ .key = mr->key >> 8, .kind = mr->kind, .access = mr->access, .pd = mr->pd->id, .bound = mr->bound, .iova = mr->iova, .len = mr->len };
}

static void copy_mr(const struct core_client *k, const void *object, struct look_row *row)
{
	copy_key(((const struct region *)object)->mr, row);
}

static void copy_mw(const struct core_client *k, const void *object, struct look_row *row)
{
	copy_key(object, row);
}

/* ---- the walk ---- */

static const struct look_of {
	void (*begin)(const struct core_client *k, bool is_first, struct look_row *row); /* NULL: each object has a row of its own; else they share their client's */
	struct {
		size_t at; /* offset of a struct handles in struct core_client */
		void (*copy)(const struct core_client *k, const void *object, struct look_row *row);
	} table[TABLES_MAX];
} kinds[LOOK_KINDS] = {
	[LOOK_CLIENT] = { begin_client, { { offsetof(struct core_client, qps), add_qp } } },
	[LOOK_QP] = { NULL, { { offsetof(struct core_client, qps), copy_qp } } },
	[LOOK_CQ] = { NULL, { { offsetof(struct core_client, cqs), copy_cq } } },
	[LOOK_MR] = { NULL, { { offsetof(struct core_client, regions), copy_mr }, { offsetof(struct core_client, mws), copy_mw } } },
};

struct piece {
	struct look_row *rows;
	unsigned n;
	uint32_t objects, slots; /* that may still be looked at */
};

static struct look_row *add_row(struct piece *p, const struct core_client *k)
{
	struct look_row *row = &p->rows[p->n++];
	row->client = k->id;
	return row;
}

/* false: the piece ends before the table does. */
static bool walk_table(const struct core_client *k, const struct look_of *of, struct look_place *at, struct look_row *shared, struct piece *p)
{
	const struct handles *h = (const struct handles *)((const uint8_t *)k + of->table[at->table].at);
	for (; at->slot < h->room; at->slot++) {
		const void *object = h->object[at->slot];
		if (!p->slots || (object && !p->objects))
			return false;
		p->slots--;
		if (!object)
			continue;
		p->objects--;
		of->table[at->table].copy(k, object, shared ? shared : add_row(p, k));
	}
	return true;
}

/* A client costs as much as an object. One is begun only if the place moves on behind it: so its first part is known by its place. */
static bool walk_client(const struct core_client *k, const struct look_of *of, struct look_place *at, struct piece *p)
{
	struct look_row *shared = NULL;
	if (p->objects < 2 || !p->slots)
		return false;
	p->objects--;
	if (of->begin) {
		shared = add_row(p, k);
		of->begin(k, !at->slot, shared);
	}
	for (; at->table < TABLES_MAX && of->table[at->table].copy; at->table++, at->slot = 0)
		if (!walk_table(k, of, at, shared, p))
			return false;
	return true;
}

unsigned core_look(const struct core *c, enum look_kind kind, struct look_place *at, struct look_row *rows)
{
	struct piece p = { .rows = rows, .objects = LOOK_OBJECTS, .slots = LOOK_SLOTS };
	const struct core_client *k = c->clients;
	while (k && at->client && k->id > at->client)
		k = k->next;
	if (k && k->id != at->client) /* that one is gone */
		*at = (struct look_place){ .client = k->id };
	for (; k; k = k->next) {
		if (!walk_client(k, &kinds[kind], at, &p)) {
			at->client = k->id;
			return p.n;
		}
		*at = (struct look_place){ 0 };
	}
	at->is_over = true;
	return p.n;
}
