/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of a core: the objects it owns, and their destruction. Owns the handle tables and arenas; control.c says what a request may do with them. A client can go at any moment: everything
 * it had goes with it, in the order MWs, QPs, SRQs, AHs, CQs, MRs, memory, PDs. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

#define DOORBELLS_OFFSET 4096u

int client_refuse(struct abi_rep *rep, int error, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(rep->text, sizeof(rep->text), format, args);
	va_end(args);
	return error;
}

int core_client_new(struct core *c, struct core_client **out)
{
	struct core_client *k = calloc(1, sizeof(*k));
	uint32_t arena;
	uint64_t offset;
	if (!k)
		return -ENOMEM;
	k->core = c;
	group_init(&k->group);
	arenas_init(&k->arenas, c->config.hooks);
	int rc = arenas_grow(&k->arenas, &arena);
	if (!rc)
		rc = arenas_take(&k->arenas, DOORBELLS_OFFSET + sizeof(struct abi_doorbells), 4096, &arena, &offset);
	if (!rc)
		rc = channel_init(&k->async, c->config.hooks, true);
	if (rc) {
		arenas_destroy(&k->arenas);
		free(k);
		return rc;
	}
	/* the first place of the first region: arena 0, offset 0 */
	k->page = arenas_at(&k->arenas, arena, offset);
	k->doorbells = arenas_at(&k->arenas, arena, offset + DOORBELLS_OFFSET);
	*out = k;
	return 0;
}

void core_client_attach(struct core_client *k)
{
	struct core *c = k->core;
	k->next = c->clients;
	c->clients = k;
	c->n_clients++;
	k->id = ++c->attached * c->config.cores + c->config.core_index;
	k->is_attached = true;
}

void core_client_introduce(struct core_client *k, const struct core_who *who)
{
	k->who = *who;
}

uint32_t core_client_id(const struct core_client *k)
{
	return k->id;
}

int core_client_grow(struct core_client *k, uint32_t *arena)
{
	return !k->arenas.wanted ? -ENOENT : arenas_grow(&k->arenas, arena);
}

uint64_t core_client_lacks(const struct core_client *k)
{
	return k->arenas.wanted ? arenas_lack(&k->arenas) : 0;
}

int core_client_add_region(struct core_client *k, void *base, uint64_t bytes, int fd, uint32_t *arena)
{
	return arenas_add(&k->arenas, base, bytes, fd, arena);
}

void core_client_mark_dead(struct core_client *k)
{
	k->is_dead = true; /* the page is the client's to write, whatever it should do */
	atomic_store_explicit(&k->page->dead, 1, memory_order_release);
}

struct queue_pair *client_qp(struct qp *q)
{
	return q->owner;
}

uint64_t client_ring_bytes(uint32_t slots, uint32_t slot_bytes)
{
	return sizeof(struct abi_ring) + (uint64_t)slots * slot_bytes;
}

/* The slots are the client's to clear: a ring may be large, and this is the poll core. */
int client_take_ring(struct core_client *k, uint32_t slots, uint32_t slot_bytes, struct abi_ring_place *p)
{
	uint64_t bytes = client_ring_bytes(slots, slot_bytes);
	*p = (struct abi_ring_place){ .slots = slots, .slot_bytes = slot_bytes };
	int rc = arenas_take(&k->arenas, bytes, ABI_CACHE_LINE, &p->arena, &p->control_offset);
	if (rc)
		return rc;
	p->slots_offset = p->control_offset + sizeof(struct abi_ring);
	memset(arenas_at(&k->arenas, p->arena, p->control_offset), 0, sizeof(struct abi_ring));
	k->usage.ring_bytes += bytes;
	return 0;
}

void client_give_ring(struct core_client *k, const struct abi_ring_place *p)
{
	uint64_t bytes = client_ring_bytes(p->slots, p->slot_bytes);
	if (!p->slots) /* there is none */
		return;
	arenas_give(&k->arenas, p->arena, p->control_offset, bytes);
	k->usage.ring_bytes -= bytes;
}

int client_take_slots(struct core_client *k, uint32_t slots, uint32_t slot_bytes, struct abi_ring_place *p)
{
	uint64_t bytes = (uint64_t)slots * slot_bytes;
	struct abi_ring_place place = { .slots = slots, .slot_bytes = slot_bytes };
	int rc = arenas_take(&k->arenas, bytes, ABI_CACHE_LINE, &place.arena, &place.slots_offset);
	if (rc)
		return rc;
	*p = place;
	k->usage.ring_bytes += bytes;
	return 0;
}

void client_give_slots(struct core_client *k, const struct abi_ring_place *p)
{
	uint64_t bytes = (uint64_t)p->slots * p->slot_bytes;
	if (!p->slots)
		return;
	arenas_give(&k->arenas, p->arena, p->slots_offset, bytes);
	k->usage.ring_bytes -= bytes;
}

void client_give_control(struct core_client *k, const struct abi_ring_place *p)
{
	arenas_give(&k->arenas, p->arena, p->control_offset, sizeof(struct abi_ring));
	k->usage.ring_bytes -= sizeof(struct abi_ring);
}

void client_destroy_qp(struct core_client *k, uint32_t handle, struct queue_pair *p)
{
	struct core *c = k->core;
	handles_remove(&k->qps, handle);
	mcast_leave_all(k, p);
	qpn_release(&c->qpns, p->qp->qpn);
	doorbell_forget(c, p->qp);
	doorbell_give(k, p->qp);
	k->qps_gone++;
	for (unsigned i = 0; i < QP_COUNTER_COUNT; i++)
		k->counter[i] += p->qp->counter[i];
	qp_destroy(p->qp);
	client_give_ring(k, &p->sq);
	client_give_ring(k, &p->rq);
	free(p);
}

static void destroy_memory(struct core_client *k, uint32_t handle, struct memory *m)
{
	handles_remove(&k->memories, handle);
	arenas_give(&k->arenas, m->arena, m->offset, m->bytes);
	k->usage.pool_bytes -= m->bytes;
	free(m);
}

static void destroy_channel(struct core_client *k, uint32_t handle, struct channel *ch)
{
	handles_remove(&k->channels, handle);
	channel_destroy(ch, k->core->config.hooks);
	free(ch);
}

static void destroy_pd(struct core_client *k, uint32_t handle, struct pd *pd)
{
	handles_remove(&k->pds, handle);
	free(pd);
}

/* One row a kind: its table, and what DESTROY does. In the order in which a dead client's objects go. */
typedef void destroy_fn(struct core_client *k, uint32_t handle, void *object);
#define HANDLE_OF(h, i) ((h)->generation[i] << HANDLE_INDEX_BITS | (i))

static void any_qp(struct core_client *k, uint32_t handle, void *o) { client_destroy_qp(k, handle, o); }
static void any_srq(struct core_client *k, uint32_t handle, void *o) { srq_destroy(k, handle, o); }
static void any_ah(struct core_client *k, uint32_t handle, void *o) { ah_destroy(k, handle, o); }
static void any_cq(struct core_client *k, uint32_t handle, void *o) { cq_destroy(k, handle, o); }
static void any_region(struct core_client *k, uint32_t handle, void *o) { mr_destroy(k, handle, o); }
static void any_binding(struct core_client *k, uint32_t handle, void *o) { mr_unbind(k, o); }
static void any_mw(struct core_client *k, uint32_t handle, void *o) { mw_destroy(k, handle, o); }
static void any_memory(struct core_client *k, uint32_t handle, void *o) { destroy_memory(k, handle, o); }
static void any_channel(struct core_client *k, uint32_t handle, void *o) { destroy_channel(k, handle, o); }
static void any_pd(struct core_client *k, uint32_t handle, void *o) { destroy_pd(k, handle, o); }

/* In the order in which a dead client's objects go: nothing is freed that something else still refers to. */
static const struct {
	size_t table; /* offset of its struct handles in struct core_client */
	destroy_fn *destroy;
	bool is_kept; /* they come once more */
} endings[] = {
	{ offsetof(struct core_client, mws), any_mw }, /* before the QPs that they are bound on, since one QP can have many */
	{ offsetof(struct core_client, qps), any_qp },
	{ offsetof(struct core_client, srqs), any_srq },
	{ offsetof(struct core_client, ahs), any_ah },
	{ offsetof(struct core_client, cqs), any_cq },
	{ offsetof(struct core_client, regions), any_binding, .is_kept = true }, /* some stand on others */
	{ offsetof(struct core_client, regions), any_region },
	{ offsetof(struct core_client, memories), any_memory },
	{ offsetof(struct core_client, channels), any_channel },
	{ offsetof(struct core_client, pds), any_pd },
};
#define ENDINGS (sizeof(endings) / sizeof(endings[0]))

static void unlink_client(struct core_client *k)
{
	doorbell_forget_client(k);
	event_forget_client(k);
	k->core->n_clients--;
	struct core_client **at = &k->core->clients;
	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	k->is_attached = false;
}

bool core_client_detach(struct core_client *k, unsigned budget)
{
	if (k->is_attached)
		unlink_client(k);
	for (; k->ending_kind < ENDINGS; k->ending_kind++, k->ending_index = 0) {
		struct handles *h = (struct handles *)((uint8_t *)k + endings[k->ending_kind].table);
		for (uint32_t *i = &k->ending_index; *i < h->room; ++*i) {
			if (!h->object[*i])
				continue;
			if (!budget--)
				return false;
			endings[k->ending_kind].destroy(k, HANDLE_OF(h, *i), h->object[*i]);
		}
		if (!endings[k->ending_kind].is_kept)
			handles_free(h);
	}
	return true;
}

void core_client_free(struct core_client *k)
{
	if (!k)
		return;
	core_client_detach(k, UINT_MAX);
	channel_destroy(&k->async, k->core->config.hooks);
	arenas_destroy(&k->arenas);
	free(k->by_doorbell);
	free(k);
}

int core_client_region(const struct core_client *k, uint32_t arena, void **base, uint64_t *bytes, int *fd)
{
	if (arena >= k->arenas.n)
		return -ENOENT;
	*base = k->arenas.v[arena].base;
	*bytes = k->arenas.v[arena].bytes;
	*fd = k->arenas.v[arena].fd;
	return 0;
}

void core_client_forget_fd(struct core_client *k, uint32_t arena)
{
	k->arenas.v[arena].fd = -1;
}

int core_client_async_fd(const struct core_client *k)
{
	return k->async.read_fd;
}

int core_client_channel_fd(const struct core_client *k, uint32_t channel)
{
	const struct channel *ch = handles_get(&k->channels, channel);
	return ch ? ch->read_fd : -ENOENT;
}

/* ---- quotas ---- */

void core_client_usage(const struct core_client *k, struct core_usage *u)
{
	*u = k->usage;
	u->pds = k->pds.count;
	u->qps = k->qps.count;
	u->cqs = k->cqs.count;
	u->srqs = k->srqs.count;
	u->ahs = k->ahs.count;
	u->mrs = k->regions.count;
	u->mws = k->mws.count;
	u->channels = k->channels.count;
}

void core_client_set_quota(struct core_client *k, const struct core_usage *most)
{
	k->quota = *most;
	k->has_quota = true;
}

int client_check_quota(struct core_client *k, const struct core_usage *more, struct abi_rep *rep)
{
	struct core_usage used;
	if (!k->has_quota)
		return 0;
	core_client_usage(k, &used);
	for (unsigned i = 0; i < USAGE_ROWS; i++) {
		uint64_t have = usage_row_value(&used, i), want = usage_row_value(more, i), most = usage_row_value(&k->quota, i);
		if (!want || (have <= most && want <= most - have))
			continue;
		return client_refuse(rep, -EDQUOT, "quota: %llu more %s asked for, %llu in use, %llu allowed", (unsigned long long)want, usage_row_text(i), (unsigned long long)have, (unsigned long long)most);
	}
	return 0;
}

/* ---- requests that end an object: the same checks for each kind ---- */

struct kind {
	const char *name;
	size_t table;      /* offset of its struct handles in struct core_client */
	size_t refs;       /* offset of a uint32_t in the object that must be 0, or NO_REFS */
	destroy_fn *destroy;
};
#define NO_REFS SIZE_MAX
static const struct kind kinds[ABI_MSG_COUNT] = {
	[ABI_DESTROY_PD] = { "PD", offsetof(struct core_client, pds), offsetof(struct pd, refs), any_pd },
	[ABI_FREE_MEMORY] = { "memory", offsetof(struct core_client, memories), offsetof(struct memory, refs), any_memory },
	[ABI_DEREG_MR] = { "MR", offsetof(struct core_client, regions), NO_REFS, any_region },
	[ABI_DESTROY_CHANNEL] = { "channel", offsetof(struct core_client, channels), offsetof(struct channel, refs), any_channel },
	[ABI_DESTROY_CQ] = { "CQ", offsetof(struct core_client, cqs), offsetof(struct completion_queue, cq.refs), any_cq },
	[ABI_DESTROY_SRQ] = { "SRQ", offsetof(struct core_client, srqs), offsetof(struct shared_queue, srq.refs), any_srq },
	[ABI_DESTROY_AH] = { "AH", offsetof(struct core_client, ahs), NO_REFS, any_ah },
	[ABI_DESTROY_MW] = { "MW", offsetof(struct core_client, mws), NO_REFS, any_mw },
	[ABI_DESTROY_QP] = { "QP", offsetof(struct core_client, qps), NO_REFS, any_qp },
};

int client_destroy(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	const struct kind *kind = &kinds[req->type];
	void *object = handles_get((struct handles *)((uint8_t *)k + kind->table), req->handle);
	if (!object)
		return client_refuse(rep, -ENOENT, "no %s has the handle 0x%x", kind->name, req->handle);
	uint32_t refs = kind->refs == NO_REFS ? 0 : *(uint32_t *)((uint8_t *)object + kind->refs);
	if (refs)
		return client_refuse(rep, -EBUSY, "the %s is still used by %u other objects; destroy them first", kind->name, refs);
	kind->destroy(k, req->handle, object);
	return 0;
}
