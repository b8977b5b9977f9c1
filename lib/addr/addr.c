/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of one poll core as its owner, the operator and the kernel see them: made, changed, looked at. Packets are addr_packets.c's; GIDs, routes, neighbours, group memberships and address handles are in the files named so. */
#include "addr_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ull

/* ---- making ---- */

static void set_defaults(struct addr_config *c)
{
	const struct addr_config d = {
		.max_gids = 64, .max_neighbours = 4096, .max_pending = 256, .max_replies = 64, .ask_tries = 5,
		.max_groups = 1024, .ask_interval_ns = c->mode == ADDR_SHARED ? 1000 * MS : 100 * MS, .fresh_ns = 30000 * MS, .failed_ns = 1000 * MS,
	};
	c->max_gids = c->max_gids ? c->max_gids : d.max_gids;
	c->max_neighbours = c->max_neighbours ? c->max_neighbours : d.max_neighbours;
	c->max_pending = c->max_pending ? c->max_pending : d.max_pending;
	c->max_replies = c->max_replies ? c->max_replies : d.max_replies;
	c->ask_interval_ns = c->ask_interval_ns ? c->ask_interval_ns : d.ask_interval_ns;
	c->max_groups = c->max_groups ? c->max_groups : d.max_groups;
	c->ask_tries = c->ask_tries ? c->ask_tries : d.ask_tries;
	c->fresh_ns = c->fresh_ns ? c->fresh_ns : d.fresh_ns;
	c->failed_ns = c->failed_ns ? c->failed_ns : d.failed_ns;
}

int addr_new(struct addr **out, const struct addr_config *config, struct wheel *wheel, uint64_t now_ns)
{
	struct addr *a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->config = *config;
	set_defaults(&a->config);
	neigh_table_init(&a->neighs, &a->config, &a->stats, wheel, ah_on_neigh_changed, ah_has_progress);
	timer_init(&a->try_stranded, ah_try_stranded);
	a->neighs.now_ns = now_ns;
	for (int i = 0; i < 2; i++)
		membership_init(&a->groups[i], i == 0, &a->config, &a->stats, wheel, now_ns);
	a->replies = calloc(a->config.max_replies, sizeof(*a->replies));
	if (gid_table_init(&a->gids, a->config.max_gids) || !a->replies) {
		addr_free(a);
		return -ENOMEM;
	}
	a->gids.on_address = config->on_address;
	a->gids.on_address_arg = config->on_address_arg;
	*out = a;
	return 0;
}

void addr_free(struct addr *a)
{
	if (!a)
		return;
	ah_close_all(a);
	wheel_cancel(a->neighs.wheel, &a->try_stranded);
	for (int i = 0; i < 2; i++)
		membership_free(&a->groups[i]);
	neigh_table_free(&a->neighs);
	route_table_free(&a->routes);
	gid_table_free(&a->gids);
	free(a->replies);
	free(a);
}

/* ---- GIDs and routes ---- */

void addr_watch_gids(struct addr *a, void (*on_changed)(void *arg), void *arg)
{
	a->on_gids_changed = on_changed;
	a->on_gids_changed_arg = arg;
}

static void on_gids_changed(struct addr *a)
{
	ah_route_all(a);
	if (a->on_gids_changed)
		a->on_gids_changed(a->on_gids_changed_arg);
}

int addr_gid_add(struct addr *a, const struct gid *gid, uint16_t vlan, unsigned prefix_len, uint32_t *index)
{
	int err = gid_table_add(&a->gids, gid, vlan, prefix_len, index);
	if (!err)
		on_gids_changed(a);
	return err;
}

int addr_gid_choose(const struct addr *a, const struct gid *gid, uint16_t vlan, uint32_t *index)
{
	return gid_table_choose(&a->gids, gid, vlan, index);
}

int addr_gid_add_at(struct addr *a, uint32_t index, const struct gid *gid, uint16_t vlan, unsigned prefix_len)
{
	int err = gid_table_add_at(&a->gids, index, gid, vlan, prefix_len);
	if (!err)
		on_gids_changed(a);
	return err;
}

int addr_gid_remove(struct addr *a, uint32_t index)
{
	int err = gid_table_remove(&a->gids, index);
	if (!err)
		on_gids_changed(a);
	return err;
}

bool addr_gid_get(const struct addr *a, uint32_t index, struct gid *gid, uint16_t *vlan)
{
	const struct gid_entry *e = gid_table_get(&a->gids, index);
	if (!e)
		return false;
	*gid = e->gid;
	*vlan = e->vlan;
	return true;
}

uint32_t addr_gid_slots(const struct addr *a)
{
	return a->gids.slots;
}

bool addr_is_ours(const struct addr *a, const struct gid *gid, uint16_t vlan)
{
	return gid_table_has(&a->gids, gid, vlan);
}

bool addr_hears_group(const struct addr *a, const struct gid *group, uint16_t vlan)
{
	for (uint32_t i = 0; i < a->gids.slots; i++) {
		const struct gid_entry *e = gid_table_get(&a->gids, i);
		if (e && e->vlan == vlan && gid_is_ip4(&e->gid) == gid_is_ip4(group))
			return true;
	}
	return false;
}

/* ---- groups ---- */

static struct membership *groups_like(struct addr *a, const struct gid *gid)
{
	return &a->groups[!gid_is_ip4(gid)];
}

int addr_group_join(struct addr *a, const struct gid *group, uint64_t now_ns)
{
	if (!gid_is_multicast(group))
		return -EINVAL;
	return a->config.mode == ADDR_SHARED ? 0 : membership_join(groups_like(a, group), group, now_ns);
}

int addr_group_leave(struct addr *a, const struct gid *group, uint64_t now_ns)
{
	return a->config.mode == ADDR_SHARED ? 0 : membership_leave(groups_like(a, group), group, now_ns);
}

void addr_on_link_up(struct addr *a)
{
	membership_tell_again(&a->groups[0]);
	membership_tell_again(&a->groups[1]);
}

int addr_route_add(struct addr *a, const struct gid *network, unsigned prefix_len, const struct gid *gateway)
{
	int err = route_add(&a->routes, network, prefix_len, gateway);
	if (!err)
		ah_route_all(a);
	return err;
}

int addr_route_remove(struct addr *a, const struct gid *network, unsigned prefix_len)
{
	int err = route_remove(&a->routes, network, prefix_len);
	if (!err)
		ah_route_all(a);
	return err;
}

/* ---- the kernel and the operator ---- */

bool addr_next_question(struct addr *a, struct gid *next_hop, struct gid *source)
{
	const struct neigh *n = a->config.mode == ADDR_SHARED ? neigh_next_question(&a->neighs, a->neighs.now_ns) : NULL;
	if (!n)
		return false;
	*next_hop = n->key.gid;
	*source = n->ahs->sgid;
	return true;
}

int addr_learn(struct addr *a, const struct gid *next_hop, uint16_t vlan, const uint8_t *mac, bool is_static, uint64_t now_ns)
{
	static const uint8_t none[6];
	a->neighs.now_ns = now_ns;
	if (!addr_can_be_neighbour(a, next_hop, vlan) || (mac && ((mac[0] & 1) || !memcmp(mac, none, 6))))
		return -EINVAL;
	unsigned how = LEARN_CREATE | LEARN_OVERRIDE | LEARN_TRUSTED | (is_static ? LEARN_STATIC : 0);
	if (mac)
		return neigh_learn(&a->neighs, next_hop, vlan, mac, how, now_ns);
	struct neigh *n = neigh_find(&a->neighs, next_hop, vlan);
	if (n && n->state != NEIGH_FAILED)
		neigh_fail(n, now_ns);
	return 0;
}

uint32_t addr_neighbours(const struct addr *a, uint32_t from, struct addr_neighbour *list, uint32_t room)
{
	static const char *const states[] = { [NEIGH_UNKNOWN] = "unknown", [NEIGH_ASKING] = "asking", [NEIGH_KNOWN] = "known", [NEIGH_FAILED] = "failed" };
	uint32_t n = 0;
	const struct neigh *e = a->neighs.by_key;
	for (; e && from; from--)
		e = e->hh.next;
	for (; e && n < room; e = e->hh.next, n++) {
		list[n] = (struct addr_neighbour){ .gid = e->key.gid, .vlan = e->key.vlan, .is_known = e->state == NEIGH_KNOWN, .is_static = e->is_static, .state = states[e->state], .users = e->users };
		memcpy(list[n].mac, e->mac, sizeof(e->mac));
	}
	return HASH_COUNT(a->neighs.by_key);
}

void addr_stats(const struct addr *a, struct addr_stats *s)
{
	*s = a->stats;
	s->neighbours = a->neighs.count;
	s->pending = a->neighs.pending;
}
