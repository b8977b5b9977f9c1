/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: the ready-made headers of packets to one address, kept right while neighbours, routes and our own addresses
 * change. Owns the AHs' states and lists, not their memory (it is their owners') and not the MACs (neigh.c).
 *
 * Invariants: an open AH is on exactly one list: its neighbour's, local or stranded; it holds one reference to its GID and counts
 * as one user of its neighbour. Hooks are called when all of the AH is as it will be; they may open and close any AH, so every loop
 * takes the first of a list until the list is empty.
 *
 * IBA vol. 1, 11.2.2.1 (create address handle), annex A17.4 (addresses, and packets to oneself). */
#include "addr_state.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum { HOP_LIMIT_DEFAULT = 64 };

static void link_ah(struct ah **head, struct ah *ah)
{
	ah->next = *head;
	ah->at = head;
	if (ah->next)
		ah->next->at = &ah->next;
	*head = ah;
}

static void unlink_ah(struct ah *ah)
{
	*ah->at = ah->next;
	if (ah->next)
		ah->next->at = ah->at;
}

/* Takes all that is on one list over to another, order reversed. */
static void move_all(struct ah **from, struct ah **to)
{
	while (*from) {
		struct ah *ah = *from;
		unlink_ah(ah);
		link_ah(to, ah);
	}
}

static void change_state(struct ah *ah, enum ah_state state)
{
	if (ah->state == state)
		return;
	ah->state = (uint8_t)state;
	if (ah->on_changed)
		ah->on_changed(ah);
}

/* ---- the way ---- */

struct way {
	enum ah_state state;
	bool is_local;
	struct neigh *neigh; /* with one user more; NULL when there is none */
	int err;
};

static enum ah_state state_of(const struct neigh *n)
{
	return n->state == NEIGH_KNOWN ? AH_READY : n->state == NEIGH_FAILED ? AH_UNREACHABLE : AH_RESOLVING;
}

static struct way find_way(struct addr *a, const struct ah *ah, uint64_t now_ns)
{
	struct gid next_hop;
	struct way w = { .state = AH_NO_ROUTE, .err = -ENETUNREACH };
	if (ah->is_group)
		return (struct way){ .state = AH_READY };
	if (gid_table_has(&a->gids, &ah->dgid, ah->vlan))
		return (struct way){ .state = AH_READY, .is_local = true };
	/* The next hop may be ours when a route is wrong; then nobody would answer. */
	if (!route_find(&a->routes, &a->gids, &ah->dgid, ah->vlan, &next_hop) || gid_table_has(&a->gids, &next_hop, ah->vlan))
		return w;
	w.err = neigh_use(&a->neighs, &next_hop, ah->vlan, now_ns, &w.neigh);
	w.state = w.err ? AH_UNREACHABLE : state_of(w.neigh);
	return w;
}

/* All but the state. */
static void take_way(struct ah *ah, const struct way *w)
{
	struct addr *a = ah->addr;
	if (ah->progress && ah->neigh != w->neigh)
		ah->progress_seen = ah->progress(ah); /* what arrived until now went another way */
	ah->neigh = w->neigh;
	ah->is_local = w->is_local;
	if (w->is_local)
		template_set_dmac(&ah->template, a->config.mac);
	else if (w->neigh && w->state == AH_READY)
		template_set_dmac(&ah->template, w->neigh->mac);
	link_ah(w->neigh ? &w->neigh->ahs : w->state == AH_READY ? &a->local : &a->stranded, ah);
}

/* ---- open and close ---- */

static void build_template(struct ah *ah, const struct ah_fields *f)
{
	struct template_fields t = {
		.vlan = ah->vlan, .priority = f->priority, .src = ah->sgid, .dst = ah->dgid, .tos = f->traffic_class,
		.ttl = f->hop_limit ? f->hop_limit : HOP_LIMIT_DEFAULT, .flow_label = f->flow_label & 0xfffff, .udp_src_port = f->udp_src_port,
	};
	memcpy(t.smac, ah->addr->config.mac, 6);
	if (ah->is_group)
		gid_group_mac(&ah->dgid, t.dmac);
	template_build(&ah->template, &t);
}

static int open_any(struct ah *ah, struct addr *a, const struct ah_fields *f, void (*on_changed)(struct ah *), uint64_t now_ns)
{
	const struct gid_entry *e = gid_table_get(&a->gids, f->sgid_index);
	if (!e || gid_is_ip4(&e->gid) != gid_is_ip4(&f->dgid))
		return -EINVAL;
	ah->sgid = e->gid;
	ah->dgid = f->dgid;
	ah->vlan = e->vlan;
	ah->sgid_index = f->sgid_index;
	struct way w = find_way(a, ah, now_ns);
	if (w.err)
		return w.err;
	ah->addr = a;
	ah->on_changed = on_changed;
	ah->state = (uint8_t)w.state;
	build_template(ah, f);
	take_way(ah, &w);
	gid_table_hold(&a->gids, ah->sgid_index);
	return 0;
}

int ah_open(struct ah *ah, struct addr *a, const struct ah_fields *f, void (*on_changed)(struct ah *), uint64_t now_ns)
{
	memset(ah, 0, sizeof(*ah));
	a->neighs.now_ns = now_ns;
	return gid_is_host(&f->dgid) ? open_any(ah, a, f, on_changed, now_ns) : -EINVAL;
}

int ah_open_group(struct ah *ah, struct addr *a, const struct ah_fields *f)
{
	memset(ah, 0, sizeof(*ah));
	ah->is_group = true;
	return gid_is_multicast(&f->dgid) ? open_any(ah, a, f, NULL, a->neighs.now_ns) : -EINVAL;
}

void ah_close(struct ah *ah)
{
	struct addr *a = ah ? ah->addr : NULL;
	if (!a)
		return;
	unlink_ah(ah);
	if (ah->neigh)
		neigh_drop(ah->neigh);
	ah->addr = NULL;
	ah->neigh = NULL;
	if (gid_table_release(&a->gids, ah->sgid_index)) /* and its network with it */
		ah_route_all(a);
}

/* ---- what changes under open AHs ---- */

void ah_on_neigh_changed(struct neigh *n, uint64_t now_ns)
{
	struct ah *todo = NULL;
	enum ah_state state = state_of(n);
	uint8_t mac[6];
	memcpy(mac, n->mac, 6);
	move_all(&n->ahs, &todo);
	/* As long as one is left it is a user of n, so n is there. */
	while (todo) {
		struct ah *ah = todo;
		unlink_ah(ah);
		link_ah(&n->ahs, ah);
		if (state == AH_READY)
			template_set_dmac(&ah->template, mac);
		change_state(ah, state);
	}
}

void ah_watch_progress(struct ah *ah, uint32_t (*progress)(const struct ah *ah))
{
	ah->progress = progress;
	ah->progress_seen = progress(ah);
}

bool ah_has_progress(struct neigh *n)
{
	bool has_progress = false;
	for (struct ah *ah = n->ahs; ah; ah = ah->next) {
		uint32_t progress = ah->progress ? ah->progress(ah) : ah->progress_seen;
		has_progress |= progress != ah->progress_seen;
		ah->progress_seen = progress;
	}
	return has_progress;
}

bool ah_ask_again(struct ah *ah, uint64_t now_ns)
{
	return ah->state == AH_UNREACHABLE && ah->neigh && neigh_ask_again(ah->neigh, now_ns);
}

bool ah_resolve_again(struct ah *ah, uint64_t now_ns)
{
	if (!ah_ask_again(ah, now_ns))
		return false;
	ah->state = AH_RESOLVING; /* its owner knows, and the others do not wait */
	return true;
}

static void gather_all(struct addr *a, struct ah **todo)
{
	for (struct neigh *n = a->neighs.by_key; n; n = n->hh.next)
		move_all(&n->ahs, todo);
	move_all(&a->local, todo);
	move_all(&a->stranded, todo);
}

static bool can_ask(const struct addr *a)
{
	return a->neighs.pending < a->config.max_pending;
}

static void try_stranded_soon(struct addr *a)
{
	wheel_arm(a->neighs.wheel, &a->try_stranded, a->neighs.now_ns + a->config.ask_interval_ns);
}

/* The new way first, then the old one goes: a neighbour that stays the same is not forgotten in between. */
static void route_again(struct ah *ah)
{
	struct addr *a = ah->addr;
	struct neigh *old = ah->neigh;
	struct way w = find_way(a, ah, a->neighs.now_ns);
	if (w.err == -ENOBUFS && !can_ask(a)) { /* many new neighbours at once are more than may be asked at once */
		w.state = AH_RESOLVING;
		try_stranded_soon(a);
	}
	unlink_ah(ah);
	take_way(ah, &w);
	if (old)
		neigh_drop(old);
	change_state(ah, w.state);
}

void ah_route_all(struct addr *a)
{
	struct ah *todo = NULL;
	gather_all(a, &todo);
	while (todo)
		route_again(todo);
}

void ah_try_stranded(struct timer *t, uint64_t now_ns)
{
	struct addr *a = (struct addr *)((uint8_t *)t - offsetof(struct addr, try_stranded));
	struct ah *todo = NULL;
	a->neighs.now_ns = now_ns;
	move_all(&a->stranded, &todo);
	while (todo && can_ask(a))
		route_again(todo);
	if (todo)
		try_stranded_soon(a);
	move_all(&todo, &a->stranded);
}

void ah_close_all(struct addr *a)
{
	struct ah *todo = NULL;
	gather_all(a, &todo);
	while (todo)
		ah_close(todo);
}
