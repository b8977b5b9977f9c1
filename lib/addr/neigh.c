/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbours. Owns the entries, their states and timers, the queue of questions and what goes when there is no room; does not write
 * or read packets, and knows of its users only their number.
 *
 *     UNKNOWN -> ASKING -> KNOWN <-> (refreshing) -> FAILED -> ASKING ...
 *
 * Invariants: an entry with users is never evicted, whatever comes from the net; entries are at most max_neighbours, ASKING ones at
 * most max_pending; only entries with users are asked for and have their timer armed; one without users is on the idle list.
 *
 * RFC 826; RFC 4861, 7.2.2 (retransmission), 7.2.3 to 7.2.5 (what solicitations and advertisements teach), 7.3 (unreachability,
 * here with ARP too; 7.3.1: what is acknowledged has arrived); RFC 1122, 2.3.2.1 (stale ARP entries). */
#define HASH_NONFATAL_OOM 1
#include "neigh.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum { BACKOFF_MAX = 5 }; /* a neighbour that stays away is asked for every failed_ns << 5 at last */

static void on_timer(struct timer *timer, uint64_t now_ns);

void neigh_table_init(struct neigh_table *t, const struct addr_config *config, struct addr_stats *stats, struct wheel *wheel,
		      void (*on_changed)(struct neigh *n, uint64_t now_ns), bool (*has_progress)(struct neigh *n))
{
	*t = (struct neigh_table){ .config = config, .stats = stats, .wheel = wheel, .on_changed = on_changed, .has_progress = has_progress };
	TAILQ_INIT(&t->idle);
	TAILQ_INIT(&t->questions);
	slab_init(&t->slab, sizeof(struct neigh), 64, config->max_neighbours);
}

void neigh_table_free(struct neigh_table *t)
{
	for (struct neigh *n = t->by_key; n; n = n->hh.next)
		wheel_cancel(t->wheel, &n->timer);
	HASH_CLEAR(hh, t->by_key);
	slab_destroy(&t->slab);
}

/* ---- lists and entries ---- */

static struct neigh_list *list_of(struct neigh_table *t, enum neigh_queue queue)
{
	return queue == NEIGH_ON_IDLE ? &t->idle : &t->questions;
}

static void put_on(struct neigh *n, enum neigh_queue queue)
{
	if (n->queue != NEIGH_ON_NONE)
		TAILQ_REMOVE(list_of(n->table, n->queue), n, link);
	n->queue = (uint8_t)queue;
	if (queue != NEIGH_ON_NONE)
		TAILQ_INSERT_TAIL(list_of(n->table, queue), n, link);
}

static void set_state(struct neigh *n, enum neigh_state state)
{
	n->table->pending += (state == NEIGH_ASKING) - (n->state == NEIGH_ASKING);
	n->state = (uint8_t)state;
}

static void make_key(struct neigh_key *key, const struct gid *gid, uint16_t vlan)
{
	memset(key, 0, sizeof(*key));
	key->gid = *gid;
	key->vlan = vlan;
}

struct neigh *neigh_find(const struct neigh_table *t, const struct gid *gid, uint16_t vlan)
{
	struct neigh_key key;
	struct neigh *n;
	make_key(&key, gid, vlan);
	HASH_FIND(hh, t->by_key, &key, sizeof(key), n);
	return n;
}

static void forget(struct neigh *n)
{
	struct neigh_table *t = n->table;
	wheel_cancel(t->wheel, &n->timer);
	put_on(n, NEIGH_ON_NONE);
	set_state(n, NEIGH_UNKNOWN);
	HASH_DEL(t->by_key, n);
	slab_put(&t->slab, n);
	t->count--;
}

/* The least recently used one that nobody needs and nobody has set by hand. Static ones are few: they are what an operator typed. */
static bool evict(struct neigh_table *t)
{
	struct neigh *n;
	TAILQ_FOREACH(n, &t->idle, link)
		if (!n->is_static) {
			forget(n);
			return true;
		}
	return false;
}

/* A new entry without users, on the idle list. NULL: no room. */
static struct neigh *create(struct neigh_table *t, const struct gid *gid, uint16_t vlan)
{
	if (t->count == t->config->max_neighbours && !evict(t))
		return NULL;
	struct neigh *n = slab_get(&t->slab);
	if (!n)
		return NULL;
	memset(n, 0, sizeof(*n));
	make_key(&n->key, gid, vlan);
	n->table = t;
	timer_init(&n->timer, on_timer);
	HASH_ADD(hh, t->by_key, key, sizeof(n->key), n);
	if (!n->hh.tbl) {
		slab_put(&t->slab, n);
		return NULL;
	}
	t->count++;
	put_on(n, NEIGH_ON_IDLE);
	return n;
}

/* ---- time ---- */

static uint64_t failed_wait_ns(const struct neigh *n)
{
	unsigned rounds = n->failed_rounds ? n->failed_rounds - 1u : 0;
	return n->table->config->failed_ns << (rounds < BACKOFF_MAX ? rounds : BACKOFF_MAX);
}

/* A known MAC is used for as long again after it should have been confirmed; then it counts as unknown. */
static bool is_expired(const struct neigh *n, uint64_t now_ns)
{
	return !n->is_static && now_ns >= n->check_ns + n->table->config->fresh_ns;
}

static bool must_be_asked_first(const struct neigh *n, uint64_t now_ns)
{
	switch (n->state) {
	case NEIGH_UNKNOWN:
		return true;
	case NEIGH_KNOWN:
		return !n->users && is_expired(n, now_ns);
	case NEIGH_FAILED:
		return now_ns >= n->failed_ns + n->table->config->failed_ns;
	default:
		return false;
	}
}

static void begin_round(struct neigh *n)
{
	n->tries = 0;
	n->is_due = false;
	wheel_cancel(n->table->wheel, &n->timer);
	put_on(n, NEIGH_ON_QUESTIONS);
}

static void begin_asking(struct neigh *n)
{
	set_state(n, NEIGH_ASKING);
	begin_round(n);
}

static void watch(struct neigh *n)
{
	if (!n->is_static)
		wheel_arm(n->table->wheel, &n->timer, n->check_ns);
}

/* FAILED and in use: it may come back, and then must not wait for somebody to open an AH. */
static void ask_by_itself(struct neigh *n, uint64_t now_ns)
{
	struct neigh_table *t = n->table;
	if (t->pending == t->config->max_pending)
		wheel_arm(t->wheel, &n->timer, now_ns + t->config->ask_interval_ns);
	else
		begin_asking(n);
}

/* Its round is over, well or badly. */
static void end_round(struct neigh *n)
{
	wheel_cancel(n->table->wheel, &n->timer);
	n->is_refreshing = n->is_due = false;
	if (n->queue == NEIGH_ON_QUESTIONS)
		put_on(n, NEIGH_ON_NONE);
}

/* A round had no answer, or the time to begin one has come. Nobody need be asked who answers what is sent, and a host whose
 * programs do may be unable to. One lost round does not cut off a neighbour that has just been there: packets have retries of their
 * own, and these are the bound that the program chose. */
static void refresh(struct neigh *n, uint64_t now_ns)
{
	const struct addr_config *c = n->table->config;
	if (n->table->has_progress(n)) {
		end_round(n);
		n->check_ns = now_ns + c->fresh_ns;
		watch(n);
	} else if (!n->is_refreshing) {
		n->is_refreshing = true;
		begin_round(n);
	} else if (n->tries < c->ask_tries) {
		put_on(n, NEIGH_ON_QUESTIONS);
	} else if (is_expired(n, now_ns)) {
		neigh_fail(n, now_ns);
	} else {
		n->is_refreshing = false;
		wheel_arm(n->table->wheel, &n->timer, now_ns + c->failed_ns);
	}
}

static void on_timer(struct timer *timer, uint64_t now_ns)
{
	struct neigh *n = (struct neigh *)((uint8_t *)timer - offsetof(struct neigh, timer));
	n->table->now_ns = now_ns;
	if (n->state == NEIGH_KNOWN)
		refresh(n, now_ns);
	else if (n->state == NEIGH_FAILED)
		ask_by_itself(n, now_ns);
	else if (n->tries < n->table->config->ask_tries)
		put_on(n, NEIGH_ON_QUESTIONS);
	else
		neigh_fail(n, now_ns);
}

/* ---- users ---- */

/* The first user has come: what was only remembered is now looked after. */
static void on_first_used(struct neigh *n)
{
	put_on(n, NEIGH_ON_NONE);
	if (n->state == NEIGH_KNOWN)
		watch(n);
	else if (n->state == NEIGH_FAILED)
		wheel_arm(n->table->wheel, &n->timer, n->failed_ns + failed_wait_ns(n));
}

int neigh_use(struct neigh_table *t, const struct gid *gid, uint16_t vlan, uint64_t now_ns, struct neigh **out)
{
	struct neigh *n = neigh_find(t, gid, vlan);
	bool must_ask = !n || must_be_asked_first(n, now_ns);
	if (must_ask && t->pending == t->config->max_pending) {
		t->stats->pending_refused++;
		return -ENOBUFS;
	}
	if (!n)
		n = create(t, gid, vlan);
	if (!n)
		return -ENOBUFS;
	if (!n->users++)
		on_first_used(n);
	if (must_ask)
		begin_asking(n);
	*out = n;
	return 0;
}

bool neigh_ask_again(struct neigh *n, uint64_t now_ns)
{
	if (n->is_due || n->state == NEIGH_ASKING)
		return true;
	if (!must_be_asked_first(n, now_ns))
		return false;
	n->is_due = true;
	ask_by_itself(n, now_ns);
	return true;
}

void neigh_drop(struct neigh *n)
{
	if (--n->users)
		return;
	wheel_cancel(n->table->wheel, &n->timer);
	n->is_refreshing = false;
	/* Nobody waits for the answer, and there is nothing to remember. */
	if (n->state == NEIGH_ASKING)
		forget(n);
	else
		put_on(n, NEIGH_ON_IDLE);
}

/* ---- knowledge ---- */

void neigh_fail(struct neigh *n, uint64_t now_ns)
{
	struct neigh_table *t = n->table;
	end_round(n);
	set_state(n, NEIGH_FAILED);
	n->is_static = false;
	n->failed_ns = now_ns;
	if (n->failed_rounds <= BACKOFF_MAX)
		n->failed_rounds++;
	if (n->users)
		wheel_arm(t->wheel, &n->timer, now_ns + failed_wait_ns(n));
	t->stats->failed++;
	t->on_changed(n, now_ns);
}

/* Whether this message proves that the MAC is right. A changed MAC that nobody asked for is used, but asked after. */
static bool is_proof(const struct neigh *n, bool is_change, unsigned how)
{
	bool is_asked = n->state == NEIGH_ASKING || n->is_refreshing;
	if ((how & LEARN_TRUSTED) || ((how & LEARN_ANSWER) && is_asked))
		return true;
	return n->state == NEIGH_KNOWN ? !is_change : (how & LEARN_CREATE) != 0;
}

static void take(struct neigh *n, const uint8_t mac[6], bool is_change, unsigned how, uint64_t now_ns)
{
	struct neigh_table *t = n->table;
	bool was_proved = is_proof(n, is_change, how);
	if (is_change)
		t->has_progress(n); /* what arrived until now says nothing of the new MAC */
	end_round(n);
	set_state(n, NEIGH_KNOWN);
	memcpy(n->mac, mac, 6);
	n->failed_rounds = 0;
	n->is_static = how & LEARN_STATIC;
	n->check_ns = was_proved ? now_ns + t->config->fresh_ns : now_ns;
	if (n->users)
		watch(n);
	t->stats->learned++;
	if (is_change)
		t->on_changed(n, now_ns);
}

int neigh_learn(struct neigh_table *t, const struct gid *gid, uint16_t vlan, const uint8_t mac[6], unsigned how, uint64_t now_ns)
{
	struct neigh *n = neigh_find(t, gid, vlan);
	if (!n && !(how & LEARN_CREATE))
		return -ENOENT;
	if (!n)
		n = create(t, gid, vlan);
	if (!n)
		return -ENOBUFS;
	bool is_change = n->state != NEIGH_KNOWN || memcmp(n->mac, mac, 6);
	if (n->is_static && !(how & LEARN_TRUSTED))
		return -EAGAIN;
	if (n->state == NEIGH_KNOWN && is_change && !(how & LEARN_OVERRIDE))
		return -EAGAIN;
	take(n, mac, is_change, how, now_ns);
	return 0;
}

/* ---- questions ---- */

struct neigh *neigh_next_question(struct neigh_table *t, uint64_t now_ns)
{
	struct neigh *n = TAILQ_FIRST(&t->questions);
	if (!n)
		return NULL;
	put_on(n, NEIGH_ON_NONE);
	n->tries++;
	/* Counted from here, so that a port that does not send for a while does not use up the questions. */
	wheel_arm(t->wheel, &n->timer, now_ns + t->config->ask_interval_ns);
	t->stats->asked++;
	return n;
}

/* Half of a round: if the MAC has changed, its old owner cannot say so (RFC 1122, 2.3.2.1). */
bool neigh_is_asked_alone(const struct neigh *n)
{
	return n->state == NEIGH_KNOWN && 2u * n->tries <= n->table->config->ask_tries;
}
