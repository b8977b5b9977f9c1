/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of multicast membership. Owns which groups are reported, and when: a change at once and, since reports may be lost, some more times within a second each; answers to queries at a random time within what the query allows.
 * Does not own the wording (wire/igmp.c), nor which QPs are in a group (core/mcast.c), nor what the port lets in.
 *
 * Invariants: a group is in `due` exactly while it is_queued; one that was left is forgotten with the last report of that, and there are no more of those than of members that there may be. However often anybody asks,
 * all groups, and each by itself, are reported ten times a second at most, and each report says as many as a frame holds.
 *
 * RFC 3376, 5.1 (changes), 5.2 (queries), 8.1, 8.11 (robustness variable, unsolicited report interval); RFC 3810, 6; RFC 3376, 7.2 and RFC 3810, 8.2 (older routers). Two departures: a query of group and sources is answered as one of the
 * group, since we never exclude a source; and IGMPv1 is taken for IGMPv2. */
#define HASH_NONFATAL_OOM 1
#include "membership.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ull
#define ROBUSTNESS 2u              /* until a query says something else (RFC 3376, 8.1) */
#define CHANGE_NS (1000 * MS)      /* within which a change is told again (RFC 3376, 8.11) */
#define ANSWER_GAP_NS (100 * MS)   /* between answers for all groups, or for one */
#define OLDER_NS (260000 * MS)     /* two query intervals and a response interval (RFC 3376, 8.12) */

static void on_timer(struct timer *timer, uint64_t now_ns);

void membership_init(struct membership *m, bool is_ip4, const struct addr_config *config, struct addr_stats *stats, struct wheel *wheel, uint64_t now_ns)
{
	uint64_t seed = now_ns;
	*m = (struct membership){ .is_ip4 = is_ip4, .config = config, .stats = stats, .wheel = wheel, .robustness = ROBUSTNESS };
	TAILQ_INIT(&m->due);
	timer_init(&m->timer, on_timer);
	for (unsigned i = 0; i < 6; i++)
		seed = seed * 31 + config->mac[i];
	rng_seed(&m->rng, seed);
}

static void forget(struct membership *m, struct membership_group *g)
{
	if (g->is_queued)
		TAILQ_REMOVE(&m->due, g, link);
	m->members -= g->is_member;
	m->left -= !g->is_member;
	HASH_DEL(m->groups, g);
	free(g);
}

void membership_free(struct membership *m)
{
	wheel_cancel(m->wheel, &m->timer);
	while (m->groups)
		forget(m, m->groups);
}

/* All hosts are in these, and those do not leave the host: nobody wants to hear of it (RFC 3376, 5; RFC 3810, 6). */
static bool is_reported(const struct gid *g)
{
	static const uint8_t all4[4] = { 224, 0, 0, 1 };
	static const struct gid all6 = { { 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 } };
	if (gid_is_ip4(g))
		return memcmp(g->b + 12, all4, 4) != 0;
	return (g->b[1] & 0xf) > 1 && !gid_is_equal(g, &all6);
}

static struct membership_group *find(const struct membership *m, const struct gid *group)
{
	struct membership_group *g;
	HASH_FIND(hh, m->groups, group, sizeof(*group), g);
	return g;
}

/* ---- when ---- */

static void queue(struct membership *m, struct membership_group *g, bool is_asked)
{
	if (g->is_queued) { /* a change says what an answer would */
		g->is_asked &= is_asked;
		return;
	}
	g->is_queued = true;
	g->is_asked = is_asked;
	TAILQ_INSERT_TAIL(&m->due, g, link);
}

static void wake_at(struct membership *m, uint64_t at_ns)
{
	if (timer_is_armed(&m->timer) && m->armed_for <= at_ns)
		return;
	m->armed_for = at_ns;
	wheel_arm(m->wheel, &m->timer, at_ns);
}

static uint64_t min_time(uint64_t a, uint64_t b)
{
	return b && b < a ? b : a;
}

static void on_timer(struct timer *timer, uint64_t now_ns)
{
	struct membership *m = (struct membership *)((uint8_t *)timer - offsetof(struct membership, timer));
	uint64_t next = WHEEL_NEVER;
	bool is_all = m->answer_all_at && m->answer_all_at <= now_ns;
	if (is_all) {
		m->answer_all_at = 0;
		m->answered_all_at = now_ns;
	}
	for (struct membership_group *g = m->groups; g; g = g->hh.next) {
		if (g->is_member && (is_all || (g->answer_at && g->answer_at <= now_ns))) {
			g->answer_at = 0;
			g->answered_at = now_ns;
			if (is_reported(&g->gid))
				queue(m, g, true);
		}
		if (g->changes && !g->is_queued && g->change_at <= now_ns)
			queue(m, g, false);
		next = min_time(next, g->answer_at);
		next = min_time(next, g->changes && !g->is_queued ? g->change_at : 0);
	}
	next = min_time(next, m->answer_all_at);
	if (next != WHEEL_NEVER)
		wake_at(m, next);
}

/* ---- changes ---- */

static void tell_change(struct membership *m, struct membership_group *g, bool is_member)
{
	g->is_member = is_member;
	m->members += is_member ? 1 : -1;
	m->left += is_member ? -1 : 1;
	g->answer_at = 0;
	if (!is_reported(&g->gid))
		return;
	g->changes = m->robustness;
	queue(m, g, false);
}

void membership_tell_again(struct membership *m)
{
	for (struct membership_group *g = m->groups; g; g = g->hh.next) {
		if (!g->is_member || !is_reported(&g->gid))
			continue;
		g->changes = m->robustness;
		queue(m, g, false);
	}
}

int membership_join(struct membership *m, const struct gid *group, uint64_t now_ns)
{
	struct membership_group *g = find(m, group);
	if (g && g->is_member)
		return -EEXIST;
	if (m->members == m->config->max_groups)
		return -ENOSPC;
	if (!g) {
		g = calloc(1, sizeof(*g));
		if (!g)
			return -ENOMEM;
		g->gid = *group;
		HASH_ADD(hh, m->groups, gid, sizeof(g->gid), g);
		if (!g->hh.tbl) {
			free(g);
			return -ENOMEM;
		}
		m->left++; /* as if it had been left */
	}
	tell_change(m, g, true);
	return 0;
}

int membership_leave(struct membership *m, const struct gid *group, uint64_t now_ns)
{
	struct membership_group *g = find(m, group);
	if (!g || !g->is_member)
		return -ENOENT;
	tell_change(m, g, false);
	if (!is_reported(&g->gid) || m->left > m->config->max_groups)
		forget(m, g);
	return 0;
}

/* ---- queries ---- */

static uint64_t choose_time(struct membership *m, uint64_t now_ns, uint64_t within_ns)
{
	return now_ns + 1 + rng_below(&m->rng, within_ns + 1);
}

static uint64_t choose_answer_time(struct membership *m, uint64_t now_ns, uint64_t within_ns, uint64_t answered_at)
{
	uint64_t at = choose_time(m, now_ns, within_ns), earliest = answered_at ? answered_at + ANSWER_GAP_NS : 0;
	return at < earliest ? earliest : at;
}

static void ask_all(struct membership *m, uint64_t within_ns, uint64_t now_ns)
{
	uint64_t at = choose_answer_time(m, now_ns, within_ns, m->answered_all_at);
	if (m->answer_all_at && m->answer_all_at <= at) /* RFC 3376, 5.2, rule 1 */
		return;
	m->answer_all_at = at;
	wake_at(m, at);
}

enum drop membership_asked(struct membership *m, const struct group_query *q, uint64_t now_ns)
{
	uint64_t within_ns = q->max_delay_ms * MS;
	m->stats->group_queries++;
	m->robustness = q->robustness ? q->robustness : ROBUSTNESS;
	if (q->is_older)
		m->older_until = now_ns + OLDER_NS;
	if (gid_is_zero(&q->group)) {
		ask_all(m, within_ns, now_ns);
		return DROP_NONE;
	}
	struct membership_group *g = find(m, &q->group);
	if (!g || !g->is_member)
		return DROP_GROUP_IGNORED;
	uint64_t at = choose_answer_time(m, now_ns, within_ns, g->answered_at);
	if ((m->answer_all_at && m->answer_all_at <= at) || (g->answer_at && g->answer_at <= at))
		return DROP_NONE;
	g->answer_at = at;
	wake_at(m, at);
	return DROP_NONE;
}

/* ---- reports ---- */

/* g, the first that is due, as a record; afterwards it may be gone. */
static struct group_record take_due(struct membership *m, struct membership_group *g, uint64_t now_ns)
{
	struct group_record r = { g->gid, g->is_asked ? GROUP_IS_EXCLUDE : g->is_member ? GROUP_TO_EXCLUDE : GROUP_TO_INCLUDE };
	TAILQ_REMOVE(&m->due, g, link);
	g->is_queued = false;
	m->stats->group_records++;
	if (!g->is_asked && --g->changes)
		g->change_at = choose_time(m, now_ns, CHANGE_NS);
	if (g->changes)
		wake_at(m, g->change_at > now_ns ? g->change_at : now_ns);
	else if (!g->is_member)
		forget(m, g);
	return r;
}

uint32_t membership_tx(struct membership *m, const struct gid *source, uint16_t vlan, uint64_t now_ns, uint8_t *frame, uint32_t room)
{
	struct group_record records[GROUP_RECORDS_MAX];
	bool is_older = now_ns < m->older_until;
	unsigned holds = is_older ? 1 : group_report_holds(room, m->is_ip4), n = 0;
	struct membership_group *g;
	while (n < holds && (g = TAILQ_FIRST(&m->due)))
		records[n++] = take_due(m, g, now_ns);
	if (!n)
		return 0;
	m->stats->group_reports++;
	if (is_older)
		return group_report_write_older(frame, m->config->mac, vlan, source, records);
	return group_report_write(frame, m->config->mac, vlan, source, records, n);
}
