/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of groups: who wants each, whether the port lets it in, whether the reporting core knows. Cores write only that they come and go; who may wait lets in and shuts out (multicast_settle), and the reporting core takes what has changed
 * in its tick. So no poll core makes a system call or waits for one, and routers hear of a group once, however many cores are in it.
 *
 * Invariants: `lock` is held for a few steps at a time, however many groups there are: over no walk, no system call, and no taking or giving back of memory. A group is in the list of those for whom something is to be done exactly while it is
 * (place); it is gone when nobody wants it, the port has shut it out, and the reporting core knows. */
#include "multicast.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "addr.h"
#include "core.h"
#include "group_door.h"
#include "port.h"

#define BUCKETS 1024u
#define TELL_AT_ONCE 256u /* in one tick: the core has other things to do */

/* Who wants a group: cores that have members; addresses, counted on each core. */
enum use { OF_QPS, OF_ADDRESSES, USES };
static const unsigned groups_max[USES] = { [OF_QPS] = MULTICAST_GROUPS_MAX, [OF_ADDRESSES] = MULTICAST_ENTRIES_MAX };

/* What is to be done for a group. */
enum errand {
	TO_SETTLE,    /* let it in, or shut it out */
	TO_TRY_AGAIN, /* let it in, when there is room */
	TO_TELL,      /* the reporting core */
	ERRANDS
};

struct entry {
	struct gid gid;
	uint16_t users[USES];
	bool is_let_in;
	bool is_at_door;  /* it is being let in or shut out just now: stays where it is */
	bool is_refused;  /* the port could not, when it was last asked */
	bool is_complained; /* and a line has said so; the settling thread's */
	bool is_reported; /* to the core that reports */
	struct {
		bool is_in;
		TAILQ_ENTRY(entry) link;
	} errand[ERRANDS];
	LIST_ENTRY(entry) of_bucket;
};
TAILQ_HEAD(errand_list, entry);

struct multicast {
	struct core_mcast_map map;
	pthread_mutex_t lock; /* over the entries and their lists */
	LIST_HEAD(, entry) buckets[BUCKETS];
	unsigned entries;
	unsigned groups[USES]; /* that are wanted */
	struct errand_list errand[ERRANDS];
	unsigned errands[ERRANDS];
	_Atomic bool has_errand[ERRANDS];
	uint64_t refused;
	pthread_mutex_t settling; /* over the door */
	struct group_door *door;
	struct log_limit complaints;
	bool is_shared; /* the kernel reports */
	const struct port *port;
	const struct log *log;
};

/* ---- entries, under the lock ---- */

static unsigned bucket_of(const struct gid *group)
{
	return gid_hash(group, 0) % BUCKETS;
}

static struct entry *find(const struct multicast *m, const struct gid *group)
{
	struct entry *e;
	LIST_FOREACH(e, &m->buckets[bucket_of(group)], of_bucket)
		if (gid_is_equal(&e->gid, group))
			break;
	return e;
}

static bool is_wanted(const struct entry *e)
{
	return e->users[OF_QPS] || e->users[OF_ADDRESSES];
}

static void put_on(struct multicast *m, struct entry *e, enum errand errand, bool is_due)
{
	if (e->errand[errand].is_in == is_due)
		return;
	e->errand[errand].is_in = is_due;
	if (is_due)
		TAILQ_INSERT_TAIL(&m->errand[errand], e, errand[errand].link);
	else
		TAILQ_REMOVE(&m->errand[errand], e, errand[errand].link);
	m->errands[errand] += is_due ? 1 : -1;
	atomic_store_explicit(&m->has_errand[errand], m->errands[errand] != 0, memory_order_relaxed); /* who looks takes the lock before the entries */
}

/* After every change of e. Returns it when it is there no more: to be freed without the lock. */
static struct entry *place(struct multicast *m, struct entry *e)
{
	put_on(m, e, TO_TELL, !m->is_shared && e->is_reported != is_wanted(e));
	if (e->is_at_door)
		return NULL;
	e->is_refused &= is_wanted(e);
	put_on(m, e, TO_SETTLE, e->is_let_in != is_wanted(e) && !e->is_refused);
	put_on(m, e, TO_TRY_AGAIN, e->is_refused);
	if (is_wanted(e) || e->is_let_in || e->is_reported)
		return NULL;
	LIST_REMOVE(e, of_bucket);
	m->entries--;
	return e;
}

/* ---- changes ---- */

/* *spare becomes the group's entry, if it has none. */
static int enter_locked(struct multicast *m, const struct gid *group, enum use use, struct entry **spare)
{
	struct entry *e = find(m, group);
	if (!(e && e->users[use]) && m->groups[use] >= groups_max[use])
		return -ENOSPC;
	if (!e) {
		if (!*spare || m->entries >= MULTICAST_ENTRIES_MAX)
			return *spare ? -ENOSPC : -ENOMEM;
		e = *spare;
		*spare = NULL;
		e->gid = *group;
		LIST_INSERT_HEAD(&m->buckets[bucket_of(group)], e, of_bucket);
		m->entries++;
	}
	if (!e->users[use]++)
		m->groups[use]++;
	place(m, e); /* it is wanted: it stays */
	return 0;
}

static int enter(struct multicast *m, const struct gid *group, enum use use)
{
	struct entry *spare = calloc(1, sizeof(*spare));
	pthread_mutex_lock(&m->lock);
	int err = enter_locked(m, group, use, &spare);
	pthread_mutex_unlock(&m->lock);
	free(spare);
	return err;
}

static void leave(struct multicast *m, const struct gid *group, enum use use)
{
	struct entry *gone = NULL;
	pthread_mutex_lock(&m->lock);
	struct entry *e = find(m, group);
	if (e && e->users[use]) {
		if (!--e->users[use])
			m->groups[use]--;
		gone = place(m, e);
	}
	pthread_mutex_unlock(&m->lock);
	free(gone);
}

static int change(struct multicast *m, const struct gid *group, enum use use, bool is_joined)
{
	if (is_joined)
		return enter(m, group, use);
	leave(m, group, use);
	return 0;
}

/* ---- open and close ---- */

/* What every host is in: queries of routers come there, and what concerns all neighbours. */
static int enter_all_hosts(struct multicast *m)
{
	const struct gid hosts4 = gid_from_ip4((const uint8_t[4]){ 224, 0, 0, 1 }), nodes6 = { { 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 } };
	int err = enter(m, &hosts4, OF_ADDRESSES);
	return err ? err : enter(m, &nodes6, OF_ADDRESSES);
}

int multicast_open(struct multicast **out, const struct port *p, const struct device_string *d, const struct log *log)
{
	struct multicast *m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->port = p;
	m->log = log;
	m->is_shared = d->ip_from_kernel;
	for (unsigned i = 0; i < ERRANDS; i++)
		TAILQ_INIT(&m->errand[i]);
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->settling, NULL);
	int err = group_door_open(&m->door, p, d, log);
	if (!err && !m->is_shared)
		err = enter_all_hosts(m);
	if (err) {
		multicast_close(m);
		return err;
	}
	*out = m;
	return 0;
}

void multicast_close(struct multicast *m)
{
	struct entry *e;
	if (!m)
		return;
	group_door_close(m->door);
	for (unsigned i = 0; i < BUCKETS; i++) {
		while ((e = LIST_FIRST(&m->buckets[i]))) {
			LIST_REMOVE(e, of_bucket);
			free(e);
		}
	}
	pthread_mutex_destroy(&m->settling);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

struct core_mcast_map *multicast_map(struct multicast *m)
{
	return &m->map;
}

/* ---- from the cores ---- */

int multicast_on_group(void *arg, const struct gid *group, bool is_joined)
{
	return change(arg, group, OF_QPS, is_joined);
}

int multicast_on_address(void *arg, const struct gid *address, bool is_ours)
{
	struct multicast *m = arg;
	struct gid group = gid_solicited_node(address);
	return m->is_shared || gid_is_ip4(address) ? 0 : change(m, &group, OF_ADDRESSES, is_ours);
}

/* The first one that the reporting core does not know of, taken for told. */
static bool take_untold(struct multicast *m, struct gid *group, bool *is_joined)
{
	struct entry *gone = NULL;
	if (pthread_mutex_trylock(&m->lock)) /* else with the next tick */
		return false;
	struct entry *e = TAILQ_FIRST(&m->errand[TO_TELL]);
	bool is_there = e != NULL;
	if (is_there) {
		*group = e->gid;
		*is_joined = e->is_reported = is_wanted(e);
		gone = place(m, e);
	}
	pthread_mutex_unlock(&m->lock);
	free(gone);
	return is_there;
}

/* It could not be told. It is there: one that is taken for told stays until it is told of the end. */
static void note_untold(struct multicast *m, const struct gid *group)
{
	pthread_mutex_lock(&m->lock);
	struct entry *e = find(m, group);
	e->is_reported = false;
	struct entry *gone = place(m, e);
	pthread_mutex_unlock(&m->lock);
	free(gone);
}

void multicast_tell(struct multicast *m, struct addr *addr, uint64_t now_ns)
{
	struct gid group;
	bool is_joined;
	for (unsigned i = 0; i < TELL_AT_ONCE; i++) {
		if (!atomic_load_explicit(&m->has_errand[TO_TELL], memory_order_relaxed) || !take_untold(m, &group, &is_joined))
			return;
		if (!is_joined) {
			addr_group_leave(addr, &group, now_ns);
		} else if (addr_group_join(addr, &group, now_ns)) { /* no memory: with the next tick */
			note_untold(m, &group);
			return;
		}
	}
}

/* ---- to the port ---- */

/* The first one of a list: it stays as it is until put_back. */
static struct entry *take(struct multicast *m, enum errand errand, bool *is_let_in)
{
	pthread_mutex_lock(&m->lock);
	struct entry *e = TAILQ_FIRST(&m->errand[errand]);
	if (e) {
		e->is_at_door = true;
		*is_let_in = is_wanted(e);
	}
	pthread_mutex_unlock(&m->lock);
	return e;
}

static void put_back(struct multicast *m, struct entry *e, bool is_let_in, bool is_refused)
{
	pthread_mutex_lock(&m->lock);
	e->is_at_door = false;
	e->is_let_in = is_let_in;
	e->is_refused = is_refused;
	m->refused += is_refused;
	put_on(m, e, TO_TRY_AGAIN, false); /* the others are tried before it is once more */
	struct entry *gone = place(m, e);
	pthread_mutex_unlock(&m->lock);
	free(gone);
}

/* Once for each, until it is let in or left by all; and a client may leave and come back as often as it likes. */
static void complain(struct multicast *m, struct entry *e, int err)
{
	char text[GID_TEXT_MAX];
	struct timespec t;
	if (e->is_complained)
		return;
	e->is_complained = true;
	clock_gettime(CLOCK_MONOTONIC, &t);
	log_limited(m->log, &m->complaints, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec, LOG_WARN, "%s: multicast group %s cannot be let in: %s; only what this engine sends to it will come", m->port->text,
		gid_format(&e->gid, text), strerror(-err));
}

static void settle_one(struct multicast *m, struct entry *e, bool is_let_in)
{
	int err = 0;
	if (is_let_in)
		err = group_door_let_in(m->door, &e->gid);
	else
		group_door_shut_out(m->door, &e->gid);
	if (err)
		complain(m, e, err);
	else
		e->is_complained = false;
	put_back(m, e, is_let_in && !err, err != 0);
}

static unsigned count_refused(struct multicast *m)
{
	pthread_mutex_lock(&m->lock);
	unsigned n = m->errands[TO_TRY_AGAIN];
	pthread_mutex_unlock(&m->lock);
	return n;
}

void multicast_settle(struct multicast *m)
{
	struct entry *e;
	bool is_let_in;
	unsigned again = 0; /* how many of the refused ones there may be room for: each is tried once */
	if (!atomic_load_explicit(&m->has_errand[TO_SETTLE], memory_order_relaxed))
		return;
	pthread_mutex_lock(&m->settling);
	while ((e = take(m, TO_SETTLE, &is_let_in)) || (again && again-- && (e = take(m, TO_TRY_AGAIN, &is_let_in)))) {
		settle_one(m, e, is_let_in);
		if (!is_let_in)
			again = count_refused(m);
	}
	pthread_mutex_unlock(&m->settling);
}

void multicast_stats(struct multicast *m, struct multicast_stats *s)
{
	pthread_mutex_lock(&m->lock);
	*s = (struct multicast_stats){ m->groups[OF_QPS], m->refused };
	pthread_mutex_unlock(&m->lock);
}
