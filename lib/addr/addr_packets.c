/* SPDX-License-Identifier: BSD-3-Clause */
/* The small packets that go with addresses: what is made of those that come (ARP, ND, echo, queries of multicast groups), and which go: replies, questions and reports in turn. Owns the queue of replies; what is known of neighbours and groups
 * is neigh.c's and membership.c's, the wording wire's.
 *
 * Invariants: nothing that comes from the net takes memory beyond the configured numbers or makes a neighbour in use go (known-bugs 29). Only a packet that asks for one of our addresses makes a new entry, and only for a sender on link; any
 * other message only changes what is there.
 *
 * RFC 826 (ARP: merge what is known, answer what is ours), RFC 5227 (probes are answered, never learned), RFC 4861, 7.2.3 to 7.2.5, 7.2.8; RFC 792 and RFC 4443 (echo). */
#include "addr_state.h"

#include <string.h>

#include "arp.h"

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

/* ---- reports ---- */

/* As whom a family's reports are sent, and where: IGMP by its first address (RFC 3376, 4.2.13), MLD by a link-local one (RFC 3810, 5.2.13); a host without one among its GIDs has that of its MAC (RFC 4291, appendix A). Zero when
 * the family has no address. */
static struct gid choose_reporter(const struct addr *a, bool is_ip4, uint16_t *vlan)
{
	struct gid source = { { 0 } };
	bool has_vlan = false;
	*vlan = VLAN_NONE;
	for (uint32_t i = 0; i < a->gids.slots; i++) {
		const struct gid_entry *e = gid_table_get(&a->gids, i);
		if (!e || gid_is_ip4(&e->gid) != is_ip4 || (has_vlan && e->vlan != *vlan))
			continue;
		*vlan = e->vlan;
		has_vlan = true;
		if (is_ip4 || gid_is_link_local(&e->gid))
			return e->gid;
	}
	if (!is_ip4 && has_vlan)
		source = gid_link_local(a->config.mac);
	return source;
}

/* ---- what comes ---- */

static bool learn_asker(struct addr *a, const struct packet *p, const struct neighbour_message *m, bool is_to_us)
{
	unsigned how = LEARN_OVERRIDE;
	if (m->is_probe || !m->has_mac || !addr_can_be_neighbour(a, &m->sender, p->vlan))
		return false;
	if (is_to_us && gid_table_on_link(&a->gids, &m->sender, p->vlan) >= 0)
		how |= LEARN_CREATE;
	return neigh_learn(&a->neighs, &m->sender, p->vlan, m->mac, how, a->neighs.now_ns) == 0;
}

static enum drop on_asked(struct addr *a, const struct packet *p, const struct neighbour_message *m, bool is_copy, enum drop ignored)
{
	bool is_to_us = gid_table_has(&a->gids, &m->target, p->vlan);
	bool has_taught = learn_asker(a, p, m, is_to_us);
	/* A copy is answered where it came, unless nobody but us has the address any more. */
	if (!is_to_us || (is_copy && !gid_table_is_leaving(&a->gids, &m->target, p->vlan)))
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
	if (!addr_can_be_neighbour(a, &m->target, p->vlan))
		return ignored;
	const struct neigh *n = neigh_find(&a->neighs, &m->target, p->vlan);
	/* An answer to a unicast solicitation may leave the MAC out (RFC 4861, 4.4). */
	if (!n || (!m->has_mac && !(n->state == NEIGH_KNOWN && m->solicited)))
		return ignored;
	memcpy(mac, m->has_mac ? m->mac : n->mac, 6);
	return neigh_learn(&a->neighs, &m->target, p->vlan, mac, how, a->neighs.now_ns) ? ignored : DROP_NONE;
}

static enum drop on_group_query(struct addr *a, const struct packet *p)
{
	struct group_query q;
	uint16_t vlan;
	enum drop drop = group_query_parse(&q, p);
	if (drop != DROP_NONE)
		return drop;
	choose_reporter(a, p->ip_version == 4, &vlan);
	if (p->vlan != vlan || (!p->is_multicast && !gid_table_has(&a->gids, &p->dst, p->vlan)))
		return DROP_GROUP_IGNORED;
	return membership_asked(&a->groups[p->ip_version != 4], &q, a->neighs.now_ns);
}

static enum drop take(struct addr *a, uint64_t now_ns, const struct packet *p, bool is_copy)
{
	struct neighbour_message m;
	enum drop drop;
	a->neighs.now_ns = now_ns;
	/* The kernel has got the packet too, and answers and learns. */
	if (a->config.mode == ADDR_SHARED)
		return DROP_NONE;
	if (p->kind == PACKET_QUERY)
		return is_copy ? DROP_GROUP_IGNORED : on_group_query(a, p);
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
	return a->reply_count || has_question(a) || membership_has_tx(&a->groups[0]) || membership_has_tx(&a->groups[1]);
}

/* A long echo may not fit where it came in: given up, as a router would. 0: none is left. */
static uint32_t send_reply(struct addr *a, uint64_t now_ns, uint8_t *frame, uint32_t room)
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

static uint32_t send_question(struct addr *a, uint64_t now_ns, uint8_t *frame, uint32_t room)
{
	const struct neigh *n = has_question(a) ? neigh_next_question(&a->neighs, now_ns) : NULL;
	if (!n)
		return 0;
	/* Asked for because an AH needs it: that AH's own address asks. */
	return neighbour_write_ask(frame, a->config.mac, neigh_is_asked_alone(n) ? n->mac : NULL, n->key.vlan, &n->ahs->sgid, &n->key.gid);
}

static uint32_t send_report(struct addr *a, uint64_t now_ns, uint8_t *frame, uint32_t room)
{
	for (int i = 0; i < 2; i++) {
		uint16_t vlan;
		struct membership *m = &a->groups[i];
		if (!membership_has_tx(m))
			continue;
		struct gid source = choose_reporter(a, m->is_ip4, &vlan);
		return membership_tx(m, &source, vlan, now_ns, frame, room);
	}
	return 0;
}

uint32_t addr_tx(struct addr *a, uint64_t now_ns, uint8_t *frame, uint32_t room)
{
	static uint32_t (*const senders[])(struct addr *, uint64_t, uint8_t *, uint32_t) = { send_reply, send_question, send_report };
	const unsigned n = sizeof(senders) / sizeof(senders[0]);
	a->neighs.now_ns = now_ns;
	for (unsigned i = 0; i < n && room >= NEIGHBOUR_FRAME_MAX; i++) {
		unsigned turn = (a->turn + i) % n;
		uint32_t len = senders[turn](a, now_ns, frame, room);
		if (!len)
			continue;
		a->turn = (turn + 1) % n;
		return len;
	}
	return 0;
}
