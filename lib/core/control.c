/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: one function each, found in a table by type. Owns the checks of what a client asks for. Nothing in a request is trusted; every refusal says what was wrong and what would be right. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

#define MAX_PD 65536u

typedef int handler_fn(struct core_client *k, const struct abi_req *req, struct abi_rep *rep);

uint32_t control_round_up(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

void core_describe(const struct core *c, struct abi_device *d)
{
	*d = (struct abi_device){
		.mode = c->config.mode, .port_up = c->is_port_up, .active_mtu = c->limits.max_mtu, .gid_slots = addr_gid_slots(c->env.addr),
		.max_qp = c->config.max_qp, .max_cq = c->config.max_cq, .max_srq = c->config.max_srq, .max_ah = c->config.max_ah, .max_mr = c->config.max_mr, .max_mw = c->config.max_mw, .max_pd = MAX_PD,
		.max_qp_wr = MAX_QP_WR, .max_cqe = CORE_MAX_CQE, .max_sge = ABI_MAX_SGE, .max_inline = ABI_MAX_INLINE,
		.max_rd_atomic = c->limits.max_rd_atomic, .max_msg_bytes = MESSAGE_MAX_BYTES,
		.caps = ABI_CAP_ATOMIC_WRITE | ABI_CAP_FLUSH_GLOBAL,
		.max_mcast_grp = c->config.max_groups, .max_mcast_qp_attach = c->config.max_group_qps,
	};
	memcpy(d->name, c->config.name, sizeof(d->name));
	memcpy(d->mac, c->filter.mac, 6);
}

static int query_device(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	core_describe(k->core, &rep->device);
	rep->device.max_mcast_qp_attach = mcast_group_qps(k);
	return 0;
}

static int query_gid(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	struct gid g;
	uint16_t vlan;
	if (req->handle >= addr_gid_slots(k->core->env.addr))
		return client_refuse(rep, -EINVAL, "GID index %u is beyond the table of %u", req->handle, addr_gid_slots(k->core->env.addr));
	rep->gid.present = addr_gid_get(k->core->env.addr, req->handle, &g, &vlan);
	if (rep->gid.present) {
		memcpy(rep->gid.gid, g.b, 16);
		rep->gid.vlan = vlan;
	}
	return 0;
}

static int create_pd(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	int rc = client_check_quota(k, &(struct core_usage){ .pds = 1 }, rep);
	if (rc)
		return rc;
	struct pd *pd = k->pds.count < MAX_PD ? calloc(1, sizeof(*pd)) : NULL;
	if (!pd)
		return -ENOMEM;
	pd->id = ++k->core->next_pd;
	rep->handle = handles_add(&k->pds, pd);
	if (rep->handle)
		return 0;
	free(pd);
	return -ENOMEM;
}

/* ---- channels ---- */

static int create_channel(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	const struct core_hooks *h = k->core->config.hooks;
	int rc = client_check_quota(k, &(struct core_usage){ .channels = 1 }, rep);
	if (rc)
		return rc;
	struct channel *ch = calloc(1, sizeof(*ch));
	if (!ch)
		return -ENOMEM;
	rc = channel_init(ch, h, false);
	if (!rc && !(rep->handle = handles_add(&k->channels, ch))) {
		channel_destroy(ch, h);
		rc = -ENOMEM;
	}
	if (rc) {
		free(ch);
		return client_refuse(rep, rc, "no descriptors can be had for a completion channel");
	}
	rep->channel.fd = ch->read_fd;
	return 0;
}

/* ---- queue pairs ---- */

static int check_cap(const struct abi_qp_cap *cap, struct abi_rep *rep)
{
	const struct {
		const char *name;
		uint32_t value, max;
	} bounds[] = {
		{ "max_send_wr", cap->max_send_wr, MAX_QP_WR }, { "max_recv_wr", cap->max_recv_wr, MAX_QP_WR }, { "max_send_sge", cap->max_send_sge, ABI_MAX_SGE },
		{ "max_recv_sge", cap->max_recv_sge, ABI_MAX_SGE }, { "max_inline", cap->max_inline, ABI_MAX_INLINE },
	};
	for (unsigned i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
		if (bounds[i].value > bounds[i].max)
			return client_refuse(rep, -EINVAL, "%s is %u, must be at most %u", bounds[i].name, bounds[i].value, bounds[i].max);
	return 0;
}

/* What is granted for what was asked: everything at least 1, rings a power of two. With an SRQ there is no RQ. */
static struct abi_qp_cap grant_cap(const struct abi_qp_cap *ask, bool has_srq)
{
	struct abi_qp_cap c = {
		.max_send_wr = control_round_up(ask->max_send_wr), .max_recv_wr = control_round_up(ask->max_recv_wr), .max_send_sge = ask->max_send_sge ? ask->max_send_sge : 1,
		.max_recv_sge = ask->max_recv_sge ? ask->max_recv_sge : 1,
	};
	if (has_srq)
		c.max_recv_wr = c.max_recv_sge = 0;
	uint32_t body = abi_send_slot_bytes(c.max_send_sge, ask->max_inline) - ABI_WQE_BODY;
	c.max_inline = body < ABI_MAX_INLINE ? body : ABI_MAX_INLINE;
	return c;
}

static uint64_t rings_bytes(const struct abi_qp_cap *cap)
{
	uint64_t sq = client_ring_bytes(cap->max_send_wr, abi_send_slot_bytes(cap->max_send_sge, cap->max_inline));
	return cap->max_recv_wr ? sq + client_ring_bytes(cap->max_recv_wr, abi_recv_slot_bytes(cap->max_recv_sge)) : sq;
}

static int take_rings(struct core_client *k, struct queue_pair *p, const struct abi_qp_cap *cap)
{
	int rc = client_take_ring(k, cap->max_send_wr, abi_send_slot_bytes(cap->max_send_sge, cap->max_inline), &p->sq);
	if (rc || !cap->max_recv_wr)
		return rc;
	rc = client_take_ring(k, cap->max_recv_wr, abi_recv_slot_bytes(cap->max_recv_sge), &p->rq);
	if (rc)
		client_give_ring(k, &p->sq);
	return rc;
}

static int make_qp(struct core_client *k, struct queue_pair *p, const struct abi_req *req, struct pd *pd, struct completion_queue *send, struct completion_queue *recv, struct shared_queue *srq,
	const struct abi_qp_cap *cap)
{
	struct arenas *a = &k->arenas;
	struct qp_init init = {
		.env = &k->core->env, .group = &k->group, .pd = pd, .send_cq = &send->cq, .recv_cq = &recv->cq, .service = (enum abi_service)req->create_qp.service, .cap = *cap, .ahs = &k->ahs, .signal_all = req->create_qp.signal_all, .blocks_own_multicast = req->create_qp.flags & ABI_QP_BLOCK_SELF_MCAST_LB, .cookie = req->create_qp.cookie,
		.sq = arenas_at(a, p->sq.arena, p->sq.control_offset), .sq_slots = arenas_at(a, p->sq.arena, p->sq.slots_offset), .sq_n = p->sq.slots, .sq_slot_bytes = p->sq.slot_bytes,
	};
	if (srq) {
		init.srq = &srq->srq;
	} else {
		init.rq = arenas_at(a, p->rq.arena, p->rq.control_offset);
		init.rq_slots = arenas_at(a, p->rq.arena, p->rq.slots_offset);
		init.rq_n = p->rq.slots;
		init.rq_slot_bytes = p->rq.slot_bytes;
	}
	int rc = qp_new(&p->qp, &init);
	if (rc)
		return rc;
	rc = qpn_take(&k->core->qpns, p->qp, &p->qp->qpn);
	if (rc) {
		qp_destroy(p->qp);
		return rc;
	}
	rc = doorbell_take(k, p->qp);
	if (rc) {
		qpn_release(&k->core->qpns, p->qp->qpn);
		qp_destroy(p->qp);
		return rc;
	}
	p->client = k;
	p->qp->owner = p;
	return 0;
}

static int create_qp(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	struct pd *pd = handles_get(&k->pds, req->create_qp.pd);
	struct completion_queue *send = handles_get(&k->cqs, req->create_qp.send_cq), *recv = handles_get(&k->cqs, req->create_qp.recv_cq);
	if (!pd || !send || !recv)
		return client_refuse(rep, -ENOENT, "no such %s", !pd ? "PD" : !send ? "send CQ" : "receive CQ");
	if (send->cq.is_overrun || recv->cq.is_overrun)
		return client_refuse(rep, -EINVAL, "the CQ has overrun; destroy it and make a larger one");
	if (req->create_qp.service >= ABI_SERVICES)
		return client_refuse(rep, -EOPNOTSUPP, "service %u is not supported, RC (0), UC (1) and UD (2) are", req->create_qp.service);
	if (req->create_qp.flags & ~(uint32_t)ABI_QP_BLOCK_SELF_MCAST_LB)
		return client_refuse(rep, -EINVAL, "QP flags 0x%x: known is 0x%x", req->create_qp.flags, ABI_QP_BLOCK_SELF_MCAST_LB);
	struct shared_queue *srq = req->create_qp.srq ? handles_get(&k->srqs, req->create_qp.srq) : NULL;
	if (req->create_qp.srq && !srq)
		return client_refuse(rep, -ENOENT, "no SRQ has the handle 0x%x", req->create_qp.srq);
	int rc = check_cap(&req->create_qp.cap, rep);
	if (rc)
		return rc;
	struct abi_qp_cap cap = grant_cap(&req->create_qp.cap, srq != NULL);
	if (k->qps.count >= k->core->config.max_qp)
		return client_refuse(rep, -ENOMEM, "the device has no more than %u QPs", k->core->config.max_qp);
	rc = client_check_quota(k, &(struct core_usage){ .qps = 1, .ring_bytes = rings_bytes(&cap) }, rep);
	if (rc)
		return rc;
	struct queue_pair *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	rc = take_rings(k, p, &cap);
	if (rc) {
		free(p);
		return client_refuse(rep, rc, "no ring memory for a QP of %u send and %u receive WRs", cap.max_send_wr, cap.max_recv_wr);
	}
	rc = make_qp(k, p, req, pd, send, recv, srq, &cap);
	if (!rc && !(p->qp->handle = rep->handle = handles_add(&k->qps, p))) {
		doorbell_give(k, p->qp);
		qpn_release(&k->core->qpns, p->qp->qpn);
		qp_destroy(p->qp);
		rc = -ENOMEM;
	}
	if (rc) {
		client_give_ring(k, &p->sq);
		client_give_ring(k, &p->rq);
		free(p);
		return client_refuse(rep, rc, "a QP cannot be made: %s", rc == -ENOSPC ? "no free QP number or doorbell" : "out of memory");
	}
	rep->qp.sq = p->sq;
	rep->qp.rq = p->rq;
	rep->qp.cap = cap;
	rep->qp.qpn = p->qp->qpn;
	rep->qp.doorbell = p->qp->doorbell;
	return 0;
}

static struct qp *find_qp(struct core_client *k, uint32_t handle, struct abi_rep *rep)
{
	struct queue_pair *p = handles_get(&k->qps, handle);
	if (!p)
		client_refuse(rep, -ENOENT, "no QP has the handle 0x%x", handle);
	return p ? p->qp : NULL;
}

static int modify_qp(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	struct qp *q = find_qp(k, req->modify_qp.qp, rep);
	if (!q)
		return -ENOENT;
	return qp_modify(q, &req->modify_qp.attr, req->modify_qp.mask, &k->core->limits, rep->text, sizeof(rep->text));
}

static int query_qp(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	struct qp *q = find_qp(k, req->handle, rep);
	if (!q)
		return -ENOENT;
	rep->query_qp.attr = q->attr;
	rep->query_qp.attr.state = rep->query_qp.attr.cur_state = q->state;
	rep->query_qp.attr.sq_psn = q->flight.frontier.v;
	rep->query_qp.attr.rq_psn = q->resp.epsn.v;
	rep->query_qp.cap = q->cap;
	rep->query_qp.sq_draining = q->is_draining;
	rep->query_qp.error = q->error;
	return 0;
}

static int query_counters(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	struct qp *q = find_qp(k, req->handle, rep);
	if (!q)
		return -ENOENT;
	for (unsigned i = 0; i < QP_COUNTER_COUNT; i++)
		rep->counters.value[i] = q->counter[i];
	return 0;
}

static handler_fn *const handlers[ABI_MSG_COUNT] = {
	[ABI_QUERY_DEVICE] = query_device,
	[ABI_QUERY_GID] = query_gid,
	[ABI_CREATE_PD] = create_pd,
	[ABI_DESTROY_PD] = client_destroy,
	[ABI_ALLOC_MEMORY] = memory_alloc,
	[ABI_FREE_MEMORY] = client_destroy,
	[ABI_REG_MR] = mr_create,
	[ABI_DEREG_MR] = mr_end,
	[ABI_CREATE_CHANNEL] = create_channel,
	[ABI_DESTROY_CHANNEL] = client_destroy,
	[ABI_CREATE_CQ] = cq_create,
	[ABI_DESTROY_CQ] = client_destroy,
	[ABI_CREATE_QP] = create_qp,
	[ABI_MODIFY_QP] = modify_qp,
	[ABI_QUERY_QP] = query_qp,
	[ABI_DESTROY_QP] = client_destroy,
	[ABI_QUERY_COUNTERS] = query_counters,
	[ABI_CREATE_SRQ] = srq_create,
	[ABI_MODIFY_SRQ] = srq_modify,
	[ABI_QUERY_SRQ] = srq_query,
	[ABI_DESTROY_SRQ] = client_destroy,
	[ABI_CREATE_AH] = ah_create,
	[ABI_DESTROY_AH] = client_destroy,
	[ABI_REREG_MR] = mr_modify,
	[ABI_ALLOC_MR] = mr_alloc,
	[ABI_CREATE_MW] = mw_create,
	[ABI_DESTROY_MW] = client_destroy,
	[ABI_MODIFY_CQ] = cq_modify,
	[ABI_ATTACH_MULTICAST] = mcast_attach,
	[ABI_DETACH_MULTICAST] = mcast_detach,
};

static void carry_out(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	memset(rep, 0, sizeof(*rep));
	rep->type = req->type;
	rep->sequence = req->sequence;
	k->arenas.wanted = 0;
	if (k->is_dead)
		rep->status = client_refuse(rep, -ENODEV, "the engine has let go of this client");
	else if (req->type < ABI_MSG_COUNT)
		rep->status = handlers[req->type](k, req, rep);
	else
		rep->status = client_refuse(rep, -EINVAL, "request %u does not exist, the last is %u", req->type, ABI_MSG_COUNT - 1);
}

void core_control(struct core_client *k, uint64_t now_ns, const struct abi_req *req, struct abi_rep *rep)
{
	struct core *c = k->core;
	uint32_t arena;
	c->env.now_ns = now_ns;
	carry_out(k, req, rep);
	while (k->arenas.wanted && !c->config.is_grown_outside) {
		int rc = arenas_grow(&k->arenas, &arena);
		if (rc) {
			rep->status = client_refuse(rep, rc, "no memory for a region of %llu bytes", (unsigned long long)k->arenas.wanted);
			break;
		}
		carry_out(k, req, rep);
	}
	c->stats.refused_requests += rep->status < 0 && rep->status != -ENOBUFS;
	event_notify(c);
}
