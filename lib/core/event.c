/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: of completions, asynchronous ones, and what follows when a CQ overruns. Owns the list of clients with an overrun CQ; an overrun costs a bounded part of a round, however many objects its client has.
 * How an event gets to the client, now or later, is channel.c's. */
#include "machine.h"

#define OVERRUN_PIECE 256u  /* QPs of a client with an overrun CQ that are looked at in a round */

/* ---- of completions ---- */

void event_fire(struct core *c, struct completion_queue *q)
{
	/* one that is late has its event coming: what is armed meanwhile is served by that one */
	if (q->is_late)
		return;
	c->stats.events++;
	c->stats.lost_events += !channel_put_completion(c, q);
}

static void notify(struct core *c, struct completion_queue *q)
{
	if (q->moderation.count > 1 ? moderation_is_over(c, q) : cq_take_arm(&q->cq))
		event_fire(c, q);
}

void event_notify(struct core *c)
{
	struct cq *cq = c->env.dirty;
	c->env.dirty = NULL;
	while (cq) {
		struct cq *next = cq->next_dirty;
		cq->is_dirty = false;
		notify(c, (struct completion_queue *)cq);
		cq = next;
	}
}

void event_forget_cq(struct core *c, struct completion_queue *q)
{
	struct cq **at = &c->env.dirty;
	channel_forget_cq(c, q);
	if (!q->cq.is_dirty)
		return;
	while (*at != &q->cq) /* few: the list is emptied in every round */
		at = &(*at)->next_dirty;
	*at = q->cq.next_dirty;
}

/* ---- asynchronous ones ---- */

static const char *const names[ABI_EVENT_TYPES] = {
	[ABI_EVENT_CQ_ERR] = "cq_err",
	[ABI_EVENT_QP_FATAL] = "qp_fatal",
	[ABI_EVENT_QP_REQ_ERR] = "qp_req_err",
	[ABI_EVENT_QP_ACCESS_ERR] = "qp_access_err",
	[ABI_EVENT_COMM_EST] = "comm_est",
	[ABI_EVENT_SQ_DRAINED] = "sq_drained",
	[ABI_EVENT_PORT_ACTIVE] = "port_active",
	[ABI_EVENT_PORT_ERR] = "port_err",
	[ABI_EVENT_SRQ_ERR] = "srq_err",
	[ABI_EVENT_SRQ_LIMIT_REACHED] = "srq_limit_reached",
	[ABI_EVENT_QP_LAST_WQE_REACHED] = "qp_last_wqe_reached",
	[ABI_EVENT_GID_CHANGE] = "gid_change",
};

const char *core_event_name(unsigned type)
{
	return type < ABI_EVENT_TYPES ? names[type] : NULL;
}

/* Each is counted once, also one that is lost because the program does not read: nothing waits for a program. Who is on its way out reads nothing any more. */
static void write_async(struct core_client *k, uint64_t cookie, enum abi_event type)
{
	struct core *c = k->core;
	struct abi_async_event e = { .cookie = cookie, .type = type };
	c->stats.raised[type]++;
	if (channel_put_async(c, &k->async, &e, k->is_attached))
		return;
	c->stats.lost_events++;
	log_limited(c->env.log, &k->refusals, c->env.now_ns, LOG_WARN, "%s: event %s is lost: its program does not read its asynchronous events", c->config.name, names[type]);
}

/* Of the device: every client hears of it. */
static void write_to_all(struct core *c, enum abi_event type)
{
	for (struct core_client *k = c->clients; k; k = k->next)
		write_async(k, 0, type);
}

void core_set_port_up(struct core *c, uint64_t now_ns, bool is_up)
{
	if (c->is_port_up == is_up)
		return;
	c->env.now_ns = now_ns;
	c->is_port_up = is_up;
	log_write(c->config.log, LOG_INFO, "%s: the port is %s", c->config.name, is_up ? "active" : "down");
	write_to_all(c, is_up ? ABI_EVENT_PORT_ACTIVE : ABI_EVENT_PORT_ERR);
	if (is_up)
		addr_on_link_up(c->env.addr);
}

void event_on_gids_changed(void *arg)
{
	write_to_all(arg, ABI_EVENT_GID_CHANGE);
}

void event_on_qp(struct qp_env *env, struct qp *q, enum abi_event event)
{
	write_async(client_qp(q)->client, q->cookie, event);
}

void event_on_srq(struct qp_env *env, struct srq *srq, enum abi_event event)
{
	struct core_client *k = ((struct shared_queue *)srq)->client;
	if (event == ABI_EVENT_SRQ_ERR)
		log_limited(env->log, &k->refusals, env->now_ns, LOG_WARN, "%s: the ring of an SRQ was overwritten; it is not used any more", k->core->config.name);
	write_async(k, srq->cookie, event);
}

/* ---- an overrun CQ takes its QPs to ERR (IBA vol. 1, 11.6.3.1), outside of the QP that found it ---- */

void event_on_cq_overrun(struct qp_env *env, struct cq *cq)
{
	struct completion_queue *q = (struct completion_queue *)cq;
	struct core_client *k = q->client;
	struct core *c = k->core;
	if (q->is_overrun_told)
		return;
	q->is_overrun_told = true;
	c->stats.cq_overruns++;
	log_limited(env->log, &k->refusals, env->now_ns, LOG_WARN, "%s: CQ 0x%x of %u entries overran: its program does not poll fast enough, or it is too small", c->config.name, cq->handle, cq->mask + 1);
	write_async(k, cq->cookie, ABI_EVENT_CQ_ERR);
	if (!k->is_attached) /* all its QPs are on their way out */
		return;
	k->overrun_left = k->qps.room; /* those that come later cannot have an overrun CQ */
	if (k->has_overrun)
		return;
	k->has_overrun = true;
	TAILQ_INSERT_TAIL(&c->overruns, k, overrun_link);
}

void event_handle_overruns(struct core *c)
{
	struct core_client *k = TAILQ_FIRST(&c->overruns);
	for (unsigned i = 0; i < OVERRUN_PIECE && k->overrun_left; i++) {
		struct queue_pair *p = k->qps.object[--k->overrun_left];
		if (p && (p->qp->send_cq->is_overrun || p->qp->recv_cq->is_overrun))
			qp_on_cq_overrun(p->qp);
	}
	TAILQ_REMOVE(&c->overruns, k, overrun_link);
	if (k->overrun_left)
		TAILQ_INSERT_TAIL(&c->overruns, k, overrun_link);
	else
		k->has_overrun = false;
}

void event_forget_client(struct core_client *k)
{
	if (k->has_overrun)
		TAILQ_REMOVE(&k->core->overruns, k, overrun_link);
	k->has_overrun = false;
	channel_forget_async(k->core, &k->async);
}
