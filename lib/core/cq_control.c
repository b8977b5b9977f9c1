/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests for completion queues (IBA vol. 1, 11.2.6). Owns their making, their resizing in two steps, their moderation's settings and their end. A resize copies nothing here: the client empties the new slots before it says that
 * they are to be used, and afterwards moves what it has not taken of the old ones, which stay mapped. The control block, with the client's index and arm word, stays where it is, so that arming goes on meanwhile. */
#include <errno.h>
#include <stdlib.h>

#include "machine.h"

static int check_entries(uint32_t entries, struct abi_rep *rep)
{
	return entries && entries <= CORE_MAX_CQE ? 0 : client_refuse(rep, -EINVAL, "a CQ of %u entries: must be 1 to %u", entries, CORE_MAX_CQE);
}

static void answer(const struct abi_ring_place *place, struct abi_rep *rep)
{
	rep->cq.ring = *place;
	rep->cq.entries = place->slots;
}

static void *slots_at(struct core_client *k, const struct abi_ring_place *p)
{
	return arenas_at(&k->arenas, p->arena, p->slots_offset);
}

static void give_rings(struct core_client *k, struct completion_queue *q)
{
	client_give_slots(k, &q->place);
	client_give_slots(k, &q->next);
	client_give_control(k, &q->control);
}

static void open_queue(struct core_client *k, struct completion_queue *q, struct channel *ch, uint64_t cookie)
{
	q->control = q->place;
	cq_init(&q->cq, arenas_at(&k->arenas, q->place.arena, q->place.control_offset), slots_at(k, &q->place), q->place.slots);
	q->cq.cookie = cookie;
	q->client = k;
	q->channel = ch;
	moderation_init(&q->moderation);
	if (ch) {
		ch->refs++;
		q->cq.event_fd = ch->write_fd;
	}
	k->core->n_cqs++;
}

int cq_create(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	struct channel *ch = req->create_cq.channel ? handles_get(&k->channels, req->create_cq.channel) : NULL;
	int rc = check_entries(req->create_cq.entries, rep);
	if (rc)
		return rc;
	if (req->create_cq.channel && !ch)
		return client_refuse(rep, -ENOENT, "no channel has the handle 0x%x", req->create_cq.channel);
	if (k->cqs.count >= k->core->config.max_cq)
		return client_refuse(rep, -ENOMEM, "the device has no more than %u CQs", k->core->config.max_cq);
	uint32_t slots = control_round_up(req->create_cq.entries);
	rc = client_check_quota(k, &(struct core_usage){ .cqs = 1, .ring_bytes = client_ring_bytes(slots, sizeof(struct abi_cqe)) }, rep);
	if (rc)
		return rc;
	struct completion_queue *q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	rc = client_take_ring(k, slots, sizeof(struct abi_cqe), &q->place);
	if (rc) {
		free(q);
		return client_refuse(rep, rc, "no ring memory for a CQ of %u entries", req->create_cq.entries);
	}
	rep->handle = handles_add(&k->cqs, q);
	if (!rep->handle) {
		client_give_ring(k, &q->place);
		free(q);
		return -ENOMEM;
	}
	open_queue(k, q, ch, req->create_cq.cookie);
	q->cq.handle = rep->handle;
	answer(&q->place, rep);
	return 0;
}

void cq_destroy(struct core_client *k, uint32_t handle, struct completion_queue *q)
{
	handles_remove(&k->cqs, handle);
	k->core->n_cqs--;
	moderation_forget(k->core, &q->moderation);
	event_forget_cq(k->core, q);
	if (q->channel)
		q->channel->refs--;
	give_rings(k, q);
	free(q);
}

/* ---- size ---- */

static void forget_next(struct core_client *k, struct completion_queue *q)
{
	client_give_slots(k, &q->next);
	q->next.slots = 0;
}

/* The first step of a resize. */
static int prepare(struct core_client *k, struct completion_queue *q, uint32_t entries, struct abi_rep *rep)
{
	uint32_t held = cq_held(&q->cq), slots;
	int rc = check_entries(entries, rep);
	if (rc)
		return rc;
	if (held > entries)
		return client_refuse(rep, -EINVAL, "entries %u: the CQ holds %u CQEs now", entries, held);
	forget_next(k, q);
	slots = control_round_up(entries);
	rc = client_check_quota(k, &(struct core_usage){ .ring_bytes = (uint64_t)slots * sizeof(struct abi_cqe) }, rep);
	if (rc)
		return rc;
	rc = client_take_slots(k, slots, sizeof(struct abi_cqe), &q->next);
	return rc ? client_refuse(rep, rc, "no ring memory for a CQ of %u entries", entries) : 0;
}

/* The second. What has come since the first may be too much: then the old slots stay in use. */
static int finish(struct core_client *k, struct completion_queue *q, struct abi_rep *rep)
{
	uint32_t slots = q->next.slots;
	if (!slots)
		return client_refuse(rep, -EINVAL, "the CQ is not being resized");
	if (!cq_switch(&q->cq, slots_at(k, &q->next), slots)) {
		forget_next(k, q);
		return client_refuse(rep, -EINVAL, "%u slots do not hold the CQEs that are there", slots);
	}
	client_give_slots(k, &q->place);
	q->place = q->next;
	q->next.slots = 0;
	return 0;
}

/* ---- moderation ---- */

static int moderate(struct core_client *k, struct completion_queue *q, uint32_t count, uint32_t period_us, struct abi_rep *rep)
{
	if (!q->channel)
		return client_refuse(rep, -EINVAL, "the CQ has no channel, and so no events to moderate");
	if (count > ABI_CQ_COUNT_MAX || period_us > ABI_CQ_PERIOD_MAX_US || (count > 1 && !period_us))
		return client_refuse(rep, -EINVAL, "events for %u CQEs, or after %u us: at most %u and %u, and more than one CQE is waited for only with an end", count, period_us, ABI_CQ_COUNT_MAX,
			ABI_CQ_PERIOD_MAX_US);
	moderation_set(k->core, q, count, period_us);
	return 0;
}

int cq_modify(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	struct completion_queue *q = handles_get(&k->cqs, req->modify_cq.cq);
	uint32_t mask = req->modify_cq.mask;
	if (!q)
		return client_refuse(rep, -ENOENT, "no CQ has the handle 0x%x", req->modify_cq.cq);
	if (!mask || mask & ~(uint32_t)(ABI_CQ_ENTRIES | ABI_CQ_SWITCH | ABI_CQ_MODERATION) || mask & (mask - 1))
		return client_refuse(rep, -EINVAL, "a CQ is modified in one way at a time, and mask 0x%x is none", mask);
	if (q->cq.is_overrun)
		return client_refuse(rep, -EINVAL, "the CQ has overrun; destroy it and make a larger one");
	int rc = mask == ABI_CQ_ENTRIES ? prepare(k, q, req->modify_cq.entries, rep) : mask == ABI_CQ_SWITCH ? finish(k, q, rep)
		: moderate(k, q, req->modify_cq.count, req->modify_cq.period_us, rep);
	if (!rc)
		answer(mask == ABI_CQ_ENTRIES ? &q->next : &q->place, rep);
	return rc;
}
