/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of one poll core: what is made of the small packets that come, and which small packets go. Owns the queue of
 * replies; GIDs, routes, neighbours and address handles are in the files named so.
 *
 * Invariants: nothing that comes from the net takes memory beyond the configured numbers or makes a neighbour in use go (known-bugs
 * 29). Only a packet that asks for one of our addresses makes a new entry, and only for a sender on link; any other message only
 * changes what is there.
 *
 * RFC 826 (ARP: merge what is known, answer what is ours), RFC 5227 (probes are answered, never learned), RFC 4861, 7.2.3 to 7.2.5,
 * 7.2.8; RFC 792 and RFC 4443 (echo). */
#include "addr_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arp.h"

#define MS 1000000ull

/* ---- making ---- */

static void set_defaults(struct addr_config *c)
{
	const struct addr_config d = {
		.max_gids = 64, .max_neighbours = 4096, .max_pending = 256, .max_replies = 64, .ask_tries = 5,
		.ask_interval_ns = c->mode == ADDR_SHARED ? 1000 * MS : 100 * MS, .fresh_ns = 30000 * MS, .failed_ns = 1000 * MS,
	};
	c->max_gids = c->max_gids ? c->max_gids : d.max_gids;
	c->max_neighbours = c->max_neighbours ? c->max_neighbours : d.max_neighbours;
	c->max_pending = c->max_pending ? c->max_pending : d.max_pending;
	c->max_replies = c->max_replies ? c->max_replies : d.max_replies;
	c->ask_interval_ns = c->ask_interval_ns ? c->ask_interval_ns : d.ask_interval_ns;
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
	neigh_table_init(&a->neighs, &a->config, &a->stats, wheel, ah_on_neigh_changed);
	a->neighs.now_ns = now_ns;
	a->replies = calloc(a->config.max_replies, sizeof(*a->replies));
	if (gid_table_init(&a->gids, a->config.max_gids) || !a->replies) {
		addr_free(a);
		return -ENOMEM;
	}
	*out = a;
	return 0;
}

void addr_free(struct addr *a)
{
	if (!a)
		return;
	ah_close_all(a);
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

/* ---- replies ---- */

/* The next free place of the queue; it counts when its length is set by keep_reply. NULL: full. */
static struct reply *next_reply(struct addr *a)
{
	if (a->reply_count == a->config.max_replies) {
		a->stats.reply_full++;
		return NULL;
	}
	uint32_t at = a->reply_head + a->reply_count;
	return &a->replies[at < a->config.max_replies ? at : at - a->config.max_replies];
}

static void keep_reply(struct addr *a, struct reply *r, uint32_t len)
{
	r->len = len;
	a->reply_count++;
}

static enum drop tell(struct addr *a, const struct packet *p, const struct neighbour_message *m)
{
	static const struct gid all_nodes = { { 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 } };
	static const uint8_t all_nodes_mac[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	struct reply *r = next_reply(a);
	if (!r)
		return DROP_REPLY_FULL;
	/* Who looks for duplicates by ND has no address to which an answer could go (RFC 4861, 7.2.4). */
	bool is_to_all = m->is_probe && p->kind == PACKET_ND;
	const uint8_t *dmac = is_to_all ? all_nodes_mac : m->has_mac ? m->mac : p->smac;
	keep_reply(a, r, neighbour_write_tell(r->frame, a->config.mac, dmac, p->vlan, &m->target, is_to_all ? &all_nodes : &m->sender));
	a->stats.told++;
	return DROP_NONE;
}

static enum drop echo(struct addr *a, const struct packet *p)
{
	if (!gid_table_has(&a->gids, &p->dst, p->vlan))
		return DROP_IP_NOT_OURS;
	struct reply *r = next_reply(a);
	if (!r)
		return DROP_REPLY_FULL;
	uint32_t len = echo_write_reply(r->frame, sizeof(r->frame), a->config.mac, p);
	if (!len)
		return DROP_ICMP_IGNORED;
	keep_reply(a, r, len);
	a->stats.told++;
	return DROP_NONE;
}

/* ---- what comes ---- */

/* Nobody else is one of us: such a message is a second host with our address, or a forger. */
static bool can_be_neighbour(const struct addr *a, const struct gid *gid, uint16_t vlan)
{
	return gid_is_host(gid) && !gid_table_has(&a->gids, gid, vlan);
}

static bool learn_asker(struct addr *a, const struct packet *p, const struct neighbour_message *m, bool is_to_us)
{
	unsigned how = LEARN_OVERRIDE;
	if (m->is_probe || !m->has_mac || !can_be_neighbour(a, &m->sender, p->vlan))
		return false;
	if (is_to_us && gid_table_on_link(&a->gids, &m->sender, p->vlan) >= 0)
		how |= LEARN_CREATE;
	return neigh_learn(&a->neighs, &m->sender, p->vlan, m->mac, how, a->neighs.now_ns) == 0;
}

static enum drop on_asked(struct addr *a, const struct packet *p, const struct neighbour_message *m, bool is_copy, enum drop ignored)
{
	bool is_to_us = gid_table_has(&a->gids, &m->target, p->vlan);
	bool has_taught = learn_asker(a, p, m, is_to_us);
	if (!is_to_us || is_copy)
		return has_taught ? DROP_NONE : ignored;
	/* Its sender claims our address: an answer would go to ourselves. */
	if (!m->is_probe && gid_table_has(&a->gids, &m->sender, p->vlan))
		return ignored;
	return tell(a, p, m);
}

static enum drop on_told(struct addr *a, const struct packet *p, const struct neighbour_message *m, enum drop ignored)
{
	uint8_t mac[6];
	unsigned how = (m->override ? LEARN_OVERRIDE : 0) | (m->solicited ? LEARN_ANSWER : 0);
	if (!can_be_neighbour(a, &m->target, p->vlan))
		return ignored;
	const struct neigh *n = neigh_find(&a->neighs, &m->target, p->vlan);
	/* An answer to a unicast solicitation may leave the MAC out (RFC 4861, 4.4). */
	if (!n || (!m->has_mac && !(n->state == NEIGH_KNOWN && m->solicited)))
		return ignored;
	memcpy(mac, m->has_mac ? m->mac : n->mac, 6);
	return neigh_learn(&a->neighs, &m->target, p->vlan, mac, how, a->neighs.now_ns) ? ignored : DROP_NONE;
}

static enum drop take(struct addr *a, uint64_t now_ns, const struct packet *p, bool is_copy)
{
	struct neighbour_message m;
	enum drop drop;
	a->neighs.now_ns = now_ns;
	/* The kernel has got the packet too, and answers and learns. */
	if (a->config.mode == ADDR_SHARED)
		return DROP_NONE;
	if (p->kind == PACKET_ECHO4 || p->kind == PACKET_ECHO6)
		return is_copy ? DROP_ICMP_IGNORED : echo(a, p);
	enum drop ignored = p->kind == PACKET_ARP ? DROP_ARP_NOT_OURS : DROP_ND_IGNORED;
	if ((drop = neighbour_parse(&m, p)) != DROP_NONE)
		return drop;
	return m.kind == NEIGHBOUR_ASK ? on_asked(a, p, &m, is_copy, ignored) : on_told(a, p, &m, ignored);
}

enum drop addr_rx(struct addr *a, uint64_t now_ns, const struct packet *p)
{
	return take(a, now_ns, p, false);
}

enum drop addr_rx_copy(struct addr *a, uint64_t now_ns, const struct packet *p)
{
	return take(a, now_ns, p, true);
}

/* ---- what goes ---- */

static bool has_question(const struct addr *a)
{
	return a->config.mode == ADDR_OWN && !TAILQ_EMPTY(&a->neighs.questions);
}

bool addr_has_tx(const struct addr *a)
{
	return a->reply_count || has_question(a);
}

/* A long echo may not fit where it came in: given up, as a router would. 0: none is left. */
static uint32_t send_reply(struct addr *a, uint8_t *frame, uint32_t room)
{
	while (a->reply_count) {
		const struct reply *r = &a->replies[a->reply_head];
		if (++a->reply_head == a->config.max_replies)
			a->reply_head = 0;
		a->reply_count--;
		if (r->len <= room) {
			memcpy(frame, r->frame, r->len);
			return r->len;
		}
	}
	return 0;
}

static uint32_t send_question(struct addr *a, uint64_t now_ns, uint8_t *frame)
{
	const struct neigh *n = neigh_next_question(&a->neighs, now_ns);
	/* Asked for because an AH needs it: that AH's own address asks. */
	return neighbour_write_ask(frame, a->config.mac, neigh_is_asked_alone(n) ? n->mac : NULL, n->key.vlan, &n->ahs->sgid, &n->key.gid);
}

uint32_t addr_tx(struct addr *a, uint64_t now_ns, uint8_t *frame, uint32_t room)
{
	uint32_t len = 0;
	a->neighs.now_ns = now_ns;
	if (room < NEIGHBOUR_FRAME_MAX)
		return 0;
	if (!a->is_question_next || !has_question(a))
		len = send_reply(a, frame, room);
	a->is_question_next = len != 0;
	return len || !has_question(a) ? len : send_question(a, now_ns, frame);
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
	if (!can_be_neighbour(a, next_hop, vlan) || (mac && ((mac[0] & 1) || !memcmp(mac, none, 6))))
		return -EINVAL;
	unsigned how = LEARN_CREATE | LEARN_OVERRIDE | LEARN_TRUSTED | (is_static ? LEARN_STATIC : 0);
	if (mac)
		return neigh_learn(&a->neighs, next_hop, vlan, mac, how, now_ns);
	struct neigh *n = neigh_find(&a->neighs, next_hop, vlan);
	if (n && n->state != NEIGH_FAILED)
		neigh_fail(n, now_ns);
	return 0;
}

uint32_t addr_neighbours(const struct addr *a, struct addr_neighbour *list, uint32_t room)
{
	static const char *const states[] = { [NEIGH_UNKNOWN] = "unknown", [NEIGH_ASKING] = "asking", [NEIGH_KNOWN] = "known", [NEIGH_FAILED] = "failed" };
	uint32_t n = 0;
	for (const struct neigh *e = a->neighs.by_key; e; e = e->hh.next, n++) {
		if (n >= room)
			continue;
		list[n] = (struct addr_neighbour){ .gid = e->key.gid, .vlan = e->key.vlan, .is_known = e->state == NEIGH_KNOWN, .is_static = e->is_static, .state = states[e->state], .users = e->users };
		memcpy(list[n].mac, e->mac, sizeof(e->mac));
	}
	return n;
}

void addr_stats(const struct addr *a, struct addr_stats *s)
{
	*s = a->stats;
	s->neighbours = a->neighs.count;
	s->pending = a->neighs.pending;
}
