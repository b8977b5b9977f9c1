/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests for shared receive queues (IBA vol. 1, 11.2.8). Owns their making, their resizing in two steps and their end; what is taken from them is recv.c's. A resize copies nothing here: the client moves its
 * WQEs into the new ring at its own cost, and until it says so the old one is used. */
#include <errno.h>
#include <stdlib.h>

#include "machine.h"

static int check_size(uint32_t max_wr, struct abi_rep *rep)
{
	return max_wr && max_wr <= MAX_QP_WR ? 0 : client_refuse(rep, -EINVAL, "max_wr of an SRQ is %u, must be 1 to %u", max_wr, MAX_QP_WR);
}

static int take_ring(struct core_client *k, uint32_t max_wr, uint32_t max_sge, struct abi_ring_place *place, struct abi_rep *rep)
{
	uint32_t slots = control_round_up(max_wr), slot_bytes = abi_recv_slot_bytes(max_sge);
	int rc = client_check_quota(k, &(struct core_usage){ .ring_bytes = client_ring_bytes(slots, slot_bytes) }, rep);
	if (rc)
		return rc;
	rc = client_take_ring(k, slots, slot_bytes, place);
	if (rc)
		place->slots = 0;
	return rc ? client_refuse(rep, rc, "no ring memory for an SRQ of %u WRs", slots) : 0;
}

static void answer(struct shared_queue *q, const struct abi_ring_place *place, struct abi_rep *rep)
{
	rep->srq.ring = *place;
	rep->srq.max_wr = place->slots;
	rep->srq.max_sge = q->max_sge;
	rep->srq.limit = q->srq.limit;
	rep->srq.posted = srq_posted(&q->srq);
}

static void open_queue(struct core_client *k, struct shared_queue *q, const struct abi_req *req)
{
	const struct abi_ring_place *p = &q->place;
	q->client = k;
	q->srq = (struct srq){ .env = &k->core->env, .cookie = req->create_srq.cookie };
	q->srq.rq = (struct recv_queue){ .srq = &q->srq, .mask = p->slots - 1, .max_sge = (uint8_t)q->max_sge, .pd = q->pd };
	srq_switch(&q->srq, arenas_at(&k->arenas, p->arena, p->control_offset), arenas_at(&k->arenas, p->arena, p->slots_offset), p->slots, p->slot_bytes);
	q->srq.limit = req->create_srq.limit; /* nothing is posted yet, and that is no event */
	q->pd->refs++;
}

int srq_create(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	struct pd *pd = handles_get(&k->pds, req->create_srq.pd);
	uint32_t max_sge = req->create_srq.max_sge ? req->create_srq.max_sge : 1;
	if (!pd)
		return client_refuse(rep, -ENOENT, "no PD has the handle 0x%x", req->create_srq.pd);
	int rc = check_size(req->create_srq.max_wr, rep);
	if (rc)
		return rc;
	if (max_sge > ABI_MAX_SGE || req->create_srq.limit > req->create_srq.max_wr)
		return client_refuse(rep, -EINVAL, "an SRQ of %u SGEs with limit %u: at most %u SGEs, and a limit up to max_wr", max_sge, req->create_srq.limit, ABI_MAX_SGE);
	if (k->srqs.count >= k->core->config.max_srq)
		return client_refuse(rep, -ENOMEM, "the device has no more than %u SRQs", k->core->config.max_srq);
	rc = client_check_quota(k, &(struct core_usage){ .srqs = 1 }, rep);
	if (rc)
		return rc;
	struct shared_queue *q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->pd = pd;
	q->max_sge = max_sge;
	rc = take_ring(k, req->create_srq.max_wr, max_sge, &q->place, rep);
	if (!rc && !(rep->handle = handles_add(&k->srqs, q))) {
		client_give_ring(k, &q->place);
		rc = client_refuse(rep, -ENOMEM, "an SRQ cannot be made: out of memory");
	}
	if (rc) {
		free(q);
		return rc;
	}
	open_queue(k, q, req);
	answer(q, &q->place, rep);
	return 0;
}

void srq_destroy(struct core_client *k, uint32_t handle, struct shared_queue *q)
{
	handles_remove(&k->srqs, handle);
	recv_forget(&q->srq.rq, q->srq.env);
	client_give_ring(k, &q->place);
	client_give_ring(k, &q->next);
	q->pd->refs--;
	free(q);
}

/* The first step of a resize. */
static int prepare(struct core_client *k, struct shared_queue *q, uint32_t max_wr, struct abi_rep *rep)
{
	uint32_t posted = srq_posted(&q->srq);
	int rc = check_size(max_wr, rep);
	if (rc)
		return rc;
	if (control_round_up(max_wr) < posted)
		return client_refuse(rep, -EINVAL, "max_wr %u: the SRQ holds %u WRs now", max_wr, posted);
	client_give_ring(k, &q->next);
	q->next.slots = 0;
	return take_ring(k, max_wr, q->max_sge, &q->next, rep);
}

/* The second. */
static int finish(struct core_client *k, struct shared_queue *q, struct abi_rep *rep)
{
	const struct abi_ring_place *p = &q->next;
	if (!p->slots)
		return client_refuse(rep, -EINVAL, "the SRQ is not being resized");
	if (!srq_switch(&q->srq, arenas_at(&k->arenas, p->arena, p->control_offset), arenas_at(&k->arenas, p->arena, p->slots_offset), p->slots, p->slot_bytes))
		return client_refuse(rep, -EINVAL, "the ring of %u slots does not hold what is posted", p->slots);
	client_give_ring(k, &q->place);
	q->place = *p;
	q->next.slots = 0;
	return 0;
}

int srq_modify(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	struct shared_queue *q = handles_get(&k->srqs, req->modify_srq.srq);
	uint32_t mask = req->modify_srq.mask, limit = req->modify_srq.limit;
	if (!q)
		return client_refuse(rep, -ENOENT, "no SRQ has the handle 0x%x", req->modify_srq.srq);
	if (!mask || mask & ~(uint32_t)(ABI_SRQ_MAX_WR | ABI_SRQ_LIMIT | ABI_SRQ_SWITCH) || mask & (mask - 1))
		return client_refuse(rep, -EINVAL, "an SRQ is modified in one way at a time, and mask 0x%x is none", mask);
	if (mask == ABI_SRQ_LIMIT && limit > q->place.slots)
		return client_refuse(rep, -EINVAL, "the limit is %u, the SRQ has room for %u WRs", limit, q->place.slots);
	int rc = mask == ABI_SRQ_MAX_WR ? prepare(k, q, req->modify_srq.max_wr, rep) : mask == ABI_SRQ_SWITCH ? finish(k, q, rep) : 0;
	if (rc)
		return rc;
	if (mask == ABI_SRQ_LIMIT)
		srq_arm(&q->srq, limit);
	answer(q, mask == ABI_SRQ_MAX_WR ? &q->next : &q->place, rep);
	return 0;
}

int srq_query(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	struct shared_queue *q = handles_get(&k->srqs, req->handle);
	if (!q)
		return client_refuse(rep, -ENOENT, "no SRQ has the handle 0x%x", req->handle);
	answer(q, &q->place, rep);
	return 0;
}
