/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups of a core: who is in them, requests to attach and detach (IBA vol. 1, 10.5.2, 11.3), and what is done with a datagram to a group. Owns the table, and this core's bits of the map that all cores of an engine share; what
 * the port lets in, and what routers are told, is whose on_group it is.
 *
 * Invariants: a group is there exactly while it has members; a QP is in each group once; this core's bit of a slot of the map is set exactly while one of its groups has that hash. A datagram costs no more copies than max_group_qps, and a client
 * with quotas has no more than a quarter of them, so that there is room for others. */
#define HASH_NONFATAL_OOM 1
#include "mcast.h"

#include <errno.h>
#include <stdlib.h>

#include "machine.h"

#define CLIENTS_MIN 4u /* for which a group has room */

static uint32_t slot_of(const struct gid *gid)
{
	return gid_hash(gid, 0) % CORE_MCAST_SLOTS;
}

/* ---- the map ---- */

static void enter_map(struct core *c, uint32_t slot)
{
	if (!c->mcasts.in_slot[slot]++ && c->config.mcast_map)
		atomic_fetch_or_explicit(&c->config.mcast_map->cores[slot], (uint16_t)(1u << c->config.core_index), memory_order_relaxed);
}

static void leave_map(struct core *c, uint32_t slot)
{
	if (!--c->mcasts.in_slot[slot] && c->config.mcast_map)
		atomic_fetch_and_explicit(&c->config.mcast_map->cores[slot], (uint16_t)~(1u << c->config.core_index), memory_order_relaxed);
}

uint32_t core_mcast_cores(const struct core_mcast_map *map, const struct gid *group)
{
	return atomic_load_explicit(&map->cores[slot_of(group)], memory_order_relaxed);
}

uint32_t mcast_other_cores(const struct core *c, const struct gid *gid)
{
	return c->config.mcast_map ? core_mcast_cores(c->config.mcast_map, gid) & ~(1u << c->config.core_index) : 0;
}

/* ---- groups ---- */

struct mcast_group *mcast_find(const struct core *c, const struct gid *gid)
{
	struct mcast_group *g;
	HASH_FIND(hh, c->mcasts.groups, gid, sizeof(*gid), g);
	return g;
}

static int tell(struct core *c, const struct gid *gid, bool is_joined)
{
	if (c->config.on_group)
		return c->config.on_group(c->config.on_group_arg, gid, is_joined);
	return is_joined ? addr_group_join(c->env.addr, gid, c->env.now_ns) : addr_group_leave(c->env.addr, gid, c->env.now_ns);
}

static int make_group(struct core *c, const struct gid *gid, struct mcast_group **out)
{
	if (HASH_COUNT(c->mcasts.groups) >= c->config.max_groups)
		return -ENOSPC;
	struct mcast_group *g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->gid = *gid;
	TAILQ_INIT(&g->members);
	HASH_ADD(hh, c->mcasts.groups, gid, sizeof(g->gid), g);
	int rc = g->hh.tbl ? tell(c, gid, true) : -ENOMEM;
	if (rc) {
		if (g->hh.tbl)
			HASH_DEL(c->mcasts.groups, g);
		free(g);
		return rc;
	}
	enter_map(c, slot_of(gid));
	*out = g;
	return 0;
}

static void free_group(struct core *c, struct mcast_group *g)
{
	leave_map(c, slot_of(&g->gid));
	tell(c, &g->gid, false);
	HASH_DEL(c->mcasts.groups, g);
	free(g);
}

static struct mcast_member *find_member(const struct queue_pair *p, const struct gid *gid)
{
	struct mcast_member *m;
	LIST_FOREACH(m, &p->mcasts, of_qp)
		if (gid_is_equal(&m->group->gid, gid))
			break;
	return m;
}

static int add_member(struct core_client *k, struct queue_pair *p, const struct gid *gid)
{
	struct core *c = k->core;
	struct mcast_group *g = mcast_find(c, gid);
	if (g && g->n >= c->config.max_group_qps)
		return -ENOSPC;
	struct mcast_member *m = calloc(1, sizeof(*m));
	int rc = !m ? -ENOMEM : g ? 0 : make_group(c, gid, &g);
	if (rc) {
		free(m);
		return rc;
	}
	*m = (struct mcast_member){ .qp = p, .group = g };
	TAILQ_INSERT_TAIL(&g->members, m, of_group);
	LIST_INSERT_HEAD(&p->mcasts, m, of_qp);
	g->n++;
	k->usage.attachments++;
	return 0;
}

static void remove_member(struct core_client *k, struct mcast_member *m)
{
	struct mcast_group *g = m->group;
	TAILQ_REMOVE(&g->members, m, of_group);
	LIST_REMOVE(m, of_qp);
	free(m);
	k->usage.attachments--;
	if (!--g->n)
		free_group(k->core, g);
}

void mcast_leave_all(struct core_client *k, struct queue_pair *p)
{
	while (!LIST_EMPTY(&p->mcasts))
		remove_member(k, LIST_FIRST(&p->mcasts));
}

/* ---- requests ---- */

uint32_t mcast_group_qps(const struct core_client *k)
{
	uint32_t most = k->core->config.max_group_qps;
	return k->has_quota ? (most + CLIENTS_MIN - 1) / CLIENTS_MIN : most;
}

static int check_share(const struct core_client *k, const struct gid *gid, struct abi_rep *rep)
{
	const struct mcast_group *g = mcast_find(k->core, gid);
	const struct mcast_member *m;
	char text[GID_TEXT_MAX];
	uint32_t n = 0;
	if (!g || !k->has_quota)
		return 0;
	TAILQ_FOREACH(m, &g->members, of_group)
		n += m->qp->client == k;
	if (n < mcast_group_qps(k))
		return 0;
	return client_refuse(rep, -EDQUOT, "quota: %u QPs of this client are in %s, the most of one client in one group", n, gid_format(gid, text));
}

/* The QP and the group that a request names, checked: 0, or refused. */
static int read_request(struct core_client *k, const struct abi_req *req, struct queue_pair **p, struct gid *gid, struct abi_rep *rep)
{
	char text[GID_TEXT_MAX];
	*p = handles_get(&k->qps, req->group.qp);
	if (!*p)
		return client_refuse(rep, -ENOENT, "no QP has the handle 0x%x", req->group.qp);
	memcpy(gid->b, req->group.gid, sizeof(gid->b));
	if ((*p)->qp->service != SERVICE_UD)
		return client_refuse(rep, -EINVAL, "QP 0x%x: only UD QPs can be in multicast groups", (*p)->qp->qpn);
	if (!gid_is_multicast(gid))
		return client_refuse(rep, -EINVAL, "%s is no multicast group: 224.0.0.0/4 and ff00::/8 are", gid_format(gid, text));
	return 0;
}

int mcast_attach(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	const struct core_config *config = &k->core->config;
	char text[GID_TEXT_MAX];
	struct queue_pair *p;
	struct gid gid;
	int rc = read_request(k, req, &p, &gid, rep);
	if (rc || find_member(p, &gid)) /* twice is once, as with other adapters */
		return rc;
	rc = client_check_quota(k, &(struct core_usage){ .attachments = 1 }, rep);
	if (!rc)
		rc = check_share(k, &gid, rep);
	if (rc)
		return rc;
	rc = add_member(k, p, &gid);
	if (rc)
		client_refuse(rep, rc, "QP 0x%x cannot be in %s: %s (%u groups a core, %u QPs of it in each)", p->qp->qpn, gid_format(&gid, text), rc == -ENOSPC ? "there are no more" : "out of memory", config->max_groups,
			config->max_group_qps);
	return rc;
}

int mcast_detach(struct core_client *k, const struct abi_req *req, struct abi_rep *rep)
{
	char text[GID_TEXT_MAX];
	struct queue_pair *p;
	struct gid gid;
	int rc = read_request(k, req, &p, &gid, rep);
	if (rc)
		return rc;
	struct mcast_member *m = find_member(p, &gid);
	if (!m)
		return client_refuse(rep, -EINVAL, "QP 0x%x is not in %s", p->qp->qpn, gid_format(&gid, text));
	remove_member(k, m);
	return 0;
}

/* ---- datagrams ---- */

/* The group is looked for before the ICRC is computed: a flood to groups of others costs little. */
enum drop mcast_rx(struct core *c, const struct packet *p, bool is_looped)
{
	const struct mcast_group *g = mcast_find(c, &p->dst);
	struct mcast_member *m;
	enum drop last = DROP_NONE;
	bool is_taken = false;
	if (!g || !addr_hears_group(c->env.addr, &p->dst, p->vlan))
		return DROP_GROUP_UNKNOWN;
	if (!packet_is_icrc_ok(p))
		return DROP_ICRC;
	TAILQ_FOREACH(m, &g->members, of_group) {
		struct qp *q = m->qp->qp;
		if (is_looped && q->blocks_own_multicast && p->deth.src_qpn == q->qpn)
			continue;
		enum drop d = qp_rx(q, p);
		c->stats.group_copies += d == DROP_NONE;
		c->stats.group_copies_dropped += d != DROP_NONE;
		is_taken |= d == DROP_NONE;
		last = d != DROP_NONE ? d : last;
	}
	return is_taken ? DROP_NONE : last;
}
