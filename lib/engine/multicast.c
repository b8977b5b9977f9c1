/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of groups under a lock: which cores are in each, whether the port lets it in, whether the reporting core knows. Cores write only that they are in or out; who may wait applies it (multicast_settle), and the reporting core fetches it
 * in its tick. So no poll core makes a system call or waits for one, and routers hear of a group once, however many cores are in it.
 *
 * Invariants: `lock` is held over no system call; an entry is freed by multicast_settle alone, under both locks, when no core is in it, the port has shut it out, and the reporting core knows. */
#define HASH_NONFATAL_OOM 1
#include "multicast.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "addr.h"
#include "core.h"
#include "group_door.h"
#include "port.h"

#define ENTRIES_MAX (4 * MULTICAST_GROUPS_MAX) /* those that were left and are not settled yet, too */

struct entry {
	struct gid gid;
	uint16_t cores;   /* that have members, a bit each */
	bool is_let_in;
	bool is_refused;  /* the port could not, in this settling */
	bool is_reported; /* to the core that reports */
	UT_hash_handle hh;
};

struct multicast {
	struct core_mcast_map map;
	pthread_mutex_t lock;          /* over the entries */
	struct entry *entries;         /* by gid */
	unsigned groups;               /* entries with a core */
	uint64_t refused;
	_Atomic unsigned changes;      /* how often a group came or went */
	unsigned reported;             /* of these, known to the reporting core; its own */
	pthread_mutex_t settling;      /* over the door and `settled` */
	_Atomic unsigned settled;
	struct group_door *door;
	bool is_shared;                /* the kernel reports */
	const struct port *port;
	const struct log *log;
};

int multicast_open(struct multicast **out, const struct port *p, const struct device_string *d, const struct log *log)
{
	struct multicast *m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->port = p;
	m->log = log;
	m->is_shared = d->ip_from_kernel;
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->settling, NULL);
	int err = group_door_open(&m->door, p, d, log);
	if (err) {
		multicast_close(m);
		return err;
	}
	*out = m;
	return 0;
}

void multicast_close(struct multicast *m)
{
	struct entry *e, *next;
	if (!m)
		return;
	group_door_close(m->door);
	HASH_ITER(hh, m->entries, e, next) {
		HASH_DEL(m->entries, e);
		free(e);
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

static struct entry *find(const struct multicast *m, const struct gid *group)
{
	struct entry *e;
	HASH_FIND(hh, m->entries, group, sizeof(*group), e);
	return e;
}

static struct entry *find_or_make(struct multicast *m, const struct gid *group)
{
	struct entry *e = find(m, group);
	if (e || HASH_COUNT(m->entries) >= ENTRIES_MAX)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->gid = *group;
	HASH_ADD(hh, m->entries, gid, sizeof(e->gid), e);
	if (e->hh.tbl)
		return e;
	free(e);
	return NULL;
}

static void note_change(struct multicast *m)
{
	atomic_fetch_add_explicit(&m->changes, 1, memory_order_relaxed); /* who looks takes the lock before the entries */
}

static int enter(struct multicast *m, const struct gid *group, uint16_t core)
{
	struct entry *e = find(m, group);
	if (!(e && e->cores) && m->groups == MULTICAST_GROUPS_MAX)
		return -ENOSPC;
	e = find_or_make(m, group);
	if (!e) {
		note_change(m); /* so that whoever settles next forgets what has been left */
		return HASH_COUNT(m->entries) >= ENTRIES_MAX ? -ENOSPC : -ENOMEM;
	}
	if (!e->cores) {
		m->groups++;
		note_change(m);
	}
	e->cores |= core;
	return 0;
}

static void leave(struct multicast *m, const struct gid *group, uint16_t core)
{
	struct entry *e = find(m, group);
	if (!e || !(e->cores & core))
		return;
	e->cores &= (uint16_t)~core;
	if (e->cores)
		return;
	m->groups--;
	note_change(m);
}

int multicast_on_group(void *arg, const struct gid *group, bool is_joined)
{
	const struct multicast_end *end = arg;
	struct multicast *m = end->multicast;
	uint16_t core = (uint16_t)(1u << end->core);
	int err = 0;
	pthread_mutex_lock(&m->lock);
	if (is_joined)
		err = enter(m, group, core);
	else
		leave(m, group, core);
	pthread_mutex_unlock(&m->lock);
	return err;
}

void multicast_tell(struct multicast *m, struct addr *addr, uint64_t now_ns)
{
	unsigned changes = atomic_load_explicit(&m->changes, memory_order_relaxed);
	if (m->is_shared || changes == m->reported || pthread_mutex_trylock(&m->lock)) /* else with the next tick */
		return;
	bool is_whole = true;
	for (struct entry *e = m->entries; e; e = e->hh.next) /* first, since what joins may need their place */
		if (!e->cores && e->is_reported)
			e->is_reported = addr_group_leave(addr, &e->gid, now_ns) != 0;
	for (struct entry *e = m->entries; e; e = e->hh.next)
		if (e->cores && !e->is_reported)
			is_whole &= e->is_reported = !addr_group_join(addr, &e->gid, now_ns);
	if (is_whole) /* else once more with the next tick */
		m->reported = changes;
	pthread_mutex_unlock(&m->lock);
}

/* ---- to the port ---- */

/* One that is to be let in or shut out; a copy, since the door is used without the lock. */
static bool find_unsettled(struct multicast *m, struct gid *group, bool *is_wanted)
{
	bool is_found = false;
	pthread_mutex_lock(&m->lock);
	for (struct entry *e = m->entries; e && !is_found; e = e->hh.next) {
		*is_wanted = e->cores != 0;
		is_found = e->is_let_in != *is_wanted && !e->is_refused;
		*group = e->gid;
	}
	pthread_mutex_unlock(&m->lock);
	return is_found;
}

static void note_settled(struct multicast *m, const struct gid *group, bool is_wanted, int err)
{
	char text[GID_TEXT_MAX];
	pthread_mutex_lock(&m->lock);
	struct entry *e = find(m, group);
	e->is_let_in = is_wanted && !err;
	e->is_refused = err != 0;
	m->refused += err != 0;
	pthread_mutex_unlock(&m->lock);
	if (err)
		log_write(m->log, LOG_WARN, "%s: multicast group %s cannot be let in: %s; only what this engine sends to it will come", m->port->text, gid_format(group, text), strerror(-err));
}

static void forget_settled(struct multicast *m)
{
	struct entry *e, *next;
	pthread_mutex_lock(&m->lock);
	HASH_ITER(hh, m->entries, e, next) {
		e->is_refused = false;
		if (e->cores || e->is_let_in || e->is_reported)
			continue;
		HASH_DEL(m->entries, e);
		free(e);
	}
	pthread_mutex_unlock(&m->lock);
}

void multicast_settle(struct multicast *m)
{
	struct gid group;
	bool is_wanted;
	unsigned changes = atomic_load_explicit(&m->changes, memory_order_relaxed);
	if (changes == atomic_load_explicit(&m->settled, memory_order_relaxed))
		return;
	pthread_mutex_lock(&m->settling);
	while (find_unsettled(m, &group, &is_wanted)) {
		int err = 0;
		if (is_wanted)
			err = group_door_let_in(m->door, &group);
		else
			group_door_shut_out(m->door, &group);
		note_settled(m, &group, is_wanted, err);
	}
	forget_settled(m);
	atomic_store_explicit(&m->settled, changes, memory_order_relaxed);
	pthread_mutex_unlock(&m->settling);
}

void multicast_stats(struct multicast *m, struct multicast_stats *s)
{
	pthread_mutex_lock(&m->lock);
	*s = (struct multicast_stats){ m->groups, m->refused };
	pthread_mutex_unlock(&m->lock);
}
