/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of a core: the objects it owns, their destruction, and the events it gets. Owns the handle tables and arenas; control.c says what a request may do with them. A client can go at any moment: everything
 * it had goes with it, in the order QPs, CQs, MRs, memory, PDs. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
	k->async = (struct channel){ -1, -1, 0 };
	arenas_init(&k->arenas, c->config.hooks);
	int rc = arenas_take(&k->arenas, DOORBELLS_OFFSET + sizeof(struct abi_doorbells), 4096, &arena, &offset);
	if (!rc)
		rc = c->config.hooks->channel_new(c->config.hooks->arg, &k->async.read_fd, &k->async.write_fd);
	if (rc) {
		arenas_destroy(&k->arenas);
		free(k);
		return rc;
	}
	/* the first place of the first region: arena 0, offset 0 */
	k->page = arenas_at(&k->arenas, arena, offset);
	k->doorbells = arenas_at(&k->arenas, arena, offset + DOORBELLS_OFFSET);
	k->next = c->clients;
	c->clients = k;
	*out = k;
	return 0;
}

struct queue_pair *client_qp(struct qp *q)
{
	return q->owner;
}

int client_take_ring(struct core_client *k, uint32_t slots, uint32_t slot_bytes, struct abi_ring_place *p)
{
	*p = (struct abi_ring_place){ .slots = slots, .slot_bytes = slot_bytes };
	int rc = arenas_take(&k->arenas, sizeof(struct abi_ring) + (uint64_t)slots * slot_bytes, ABI_CACHE_LINE, &p->arena, &p->control_offset);
	p->slots_offset = p->control_offset + sizeof(struct abi_ring);
	return rc;
}

void client_give_ring(struct core_client *k, const struct abi_ring_place *p)
{
	arenas_give(&k->arenas, p->arena, p->control_offset, sizeof(struct abi_ring) + (uint64_t)p->slots * p->slot_bytes);
}

void client_destroy_qp(struct core_client *k, uint32_t handle, struct queue_pair *p)
{
	struct core *c = k->core;
	handles_remove(&k->qps, handle);
	qpn_release(&c->qpns, p->qp->qpn);
	doorbell_forget(c, p->qp);
	doorbell_give(k, p->qp);
	qp_destroy(p->qp);
	client_give_ring(k, &p->sq);
	client_give_ring(k, &p->rq);
	free(p);
}

static void unlink_from(struct cq **at, const struct cq *cq)
{
	while (*at && *at != cq)
		at = &(*at)->next_dirty;
	if (*at)
		*at = cq->next_dirty;
}

/* Takes a CQ out of the lists of those that may have an event coming. */
static void undirty(struct core *c, struct cq *cq)
{
	unlink_from(&c->env.dirty, cq);
	unlink_from(&c->late, cq);
}

static void destroy_cq(struct core_client *k, uint32_t handle, struct completion_queue *q)
{
	handles_remove(&k->cqs, handle);
	undirty(k->core, &q->cq);
	if (q->channel)
		q->channel->refs--;
	client_give_ring(k, &q->place);
	free(q);
}

static void destroy_region(struct core_client *k, uint32_t handle, struct region *r)
{
	handles_remove(&k->regions, handle);
	mr_deregister(k->core->env.mrs, r->mr);
	if (r->memory)
		r->memory->refs--;
	free(r);
}

static void destroy_memory(struct core_client *k, uint32_t handle, struct memory *m)
{
	handles_remove(&k->memories, handle);
	arenas_give(&k->arenas, m->arena, m->offset, m->bytes);
	free(m);
}

static void destroy_channel(struct core_client *k, uint32_t handle, struct channel *ch)
{
	handles_remove(&k->channels, handle);
	k->core->config.hooks->channel_free(k->core->config.hooks->arg, ch->read_fd, ch->write_fd);
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

static void destroy_all(struct core_client *k, struct handles *h, destroy_fn *destroy)
{
	for (uint32_t i = 0; i < h->room; i++)
		if (h->object[i])
			destroy(k, HANDLE_OF(h, i), h->object[i]);
	handles_free(h);
}

static void any_qp(struct core_client *k, uint32_t handle, void *o) { client_destroy_qp(k, handle, o); }
static void any_cq(struct core_client *k, uint32_t handle, void *o) { destroy_cq(k, handle, o); }
static void any_region(struct core_client *k, uint32_t handle, void *o) { destroy_region(k, handle, o); }
static void any_memory(struct core_client *k, uint32_t handle, void *o) { destroy_memory(k, handle, o); }
static void any_channel(struct core_client *k, uint32_t handle, void *o) { destroy_channel(k, handle, o); }
static void any_pd(struct core_client *k, uint32_t handle, void *o) { destroy_pd(k, handle, o); }

void core_client_free(struct core_client *k)
{
	if (!k)
		return;
	struct core *c = k->core;
	destroy_all(k, &k->qps, any_qp);
	destroy_all(k, &k->cqs, any_cq);
	destroy_all(k, &k->regions, any_region);
	destroy_all(k, &k->memories, any_memory);
	destroy_all(k, &k->channels, any_channel);
	destroy_all(k, &k->pds, any_pd);
	struct core_client **at = &c->clients;
	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	c->config.hooks->channel_free(c->config.hooks->arg, k->async.read_fd, k->async.write_fd);
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

int core_client_async_fd(const struct core_client *k)
{
	return k->async.read_fd;
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

/* ---- events ---- */

static void write_event(struct core_client *k, uint64_t cookie, enum abi_event type)
{
	const struct core_hooks *h = k->core->config.hooks;
	struct abi_async_event e = { .cookie = cookie, .type = type };
	if (h->channel_write(h->arg, k->async.write_fd, &e, sizeof(e)))
		k->lost_events++;
}

void client_on_event(struct qp_env *env, struct qp *q, enum abi_event event)
{
	write_event(client_qp(q)->client, q->cookie, event);
}

void client_on_cq_overrun(struct qp_env *env, struct cq *cq)
{
	core_of(env)->has_overrun = true;
}

/* An overrun CQ takes its QPs to ERR (IBA vol. 1, 11.6.3.1); done outside of the QP that found it. */
void client_handle_overruns(struct core *c)
{
	c->has_overrun = false;
	for (struct core_client *k = c->clients; k; k = k->next) {
		for (uint32_t i = 0; i < k->cqs.room; i++) {
			struct completion_queue *q = k->cqs.object[i];
			if (!q || !q->cq.is_overrun || q->is_overrun_told)
				continue;
			q->is_overrun_told = true;
			log_write(c->env.log, LOG_WARN, "%s: CQ 0x%x of %u entries overran: its program does not poll fast enough, or it is too small", c->config.name, q->cq.handle, q->cq.mask + 1);
			write_event(k, q->cq.cookie, ABI_EVENT_CQ_ERR);
		}
		for (uint32_t i = 0; i < k->qps.room; i++) {
			struct queue_pair *p = k->qps.object[i];
			if (p && (p->qp->send_cq->is_overrun || p->qp->recv_cq->is_overrun))
				qp_on_cq_overrun(p->qp);
		}
	}
}
