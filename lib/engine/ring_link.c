/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the rings and the pool of each in-process link, and the process's list of links (under its lock). Opens and closes no ethdev port beyond making it out of two rings.
 * Invariant: the pool outlives both sides and every mbuf in the rings. */
#include "ring_link.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpdk_compat.h"

#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "device_string.h"

#define SPARE_MBUFS 2048u /* for each pair of queues: caches of three threads, both sides' prepared frames and bursts at work */
#define AWAY_MBUFS 1024u   /* more for each where there are several: what one core of a side has handed to another */

struct ring_link {
	struct ring_link *next;
	char name[32];
	uint32_t slots;
	unsigned queues; /* of each side: what goes into one comes out of the one with the same number */
	struct rte_ring *towards[2][DEVICE_CORES_MAX]; /* [s]: what side s receives */
	struct rte_mempool *pool;
	_Atomic bool is_taken[2]; /* written under the lock */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ring_link *links;
static unsigned serial; /* DPDK's names are never used twice: a closed port leaves traces of its own */

static void drain_ring(struct rte_ring *r)
{
	void *m;
	while (r && !rte_ring_dequeue(r, &m))
		rte_pktmbuf_free(m);
}

static void drain_side(struct ring_link *l, unsigned side)
{
	for (unsigned q = 0; q < l->queues; q++)
		drain_ring(l->towards[side][q]);
}

static void free_link(struct ring_link *l)
{
	for (unsigned s = 0; s < 2; s++) {
		drain_side(l, s);
		for (unsigned q = 0; q < l->queues; q++)
			rte_ring_free(l->towards[s][q]);
	}
	rte_mempool_free(l->pool);
	free(l);
}

static bool make_rings(struct ring_link *l)
{
	char text[RTE_RING_NAMESIZE];
	bool is_made = true;
	for (int s = 0; s < 2; s++) {
		for (unsigned q = 0; q < l->queues; q++) {
			snprintf(text, sizeof(text), "uroce_l%u_%d_%u", serial, s, q);
			l->towards[s][q] = rte_ring_create(text, l->slots, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
			is_made = is_made && l->towards[s][q];
		}
	}
	return is_made;
}

static struct ring_link *make_link(const char *name, unsigned queues, uint32_t slots, uint32_t room)
{
	char text[RTE_MEMPOOL_NAMESIZE];
	struct ring_link *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	snprintf(l->name, sizeof(l->name), "%s", name);
	l->queues = queues;
	l->slots = slots;
	serial++;
	bool is_made = make_rings(l);
	snprintf(text, sizeof(text), "uroce_l%u", serial);
	uint32_t mbufs = queues * (2 * slots + SPARE_MBUFS + (queues > 1 ? AWAY_MBUFS : 0));
	l->pool = rte_pktmbuf_pool_create(text, mbufs, 256, 0, (uint16_t)(RTE_PKTMBUF_HEADROOM + room), SOCKET_ID_ANY);
	if (is_made && l->pool)
		return l;
	free_link(l);
	return NULL;
}

static int join_locked(const char *name, unsigned side, unsigned queues, uint32_t slots, uint32_t room, const struct log *log, struct ring_link **out)
{
	struct ring_link *l = links;
	while (l && strcmp(l->name, name))
		l = l->next;
	if (!l) {
		l = make_link(name, queues, slots ? slots : RING_LINK_SLOTS, room);
		if (!l) {
			log_write(log, LOG_ERROR, "link %s: no memory for its rings and mbufs: %s (see memory=)", name, rte_strerror(rte_errno));
			return -ENOMEM;
		}
		l->next = links;
		links = l;
	}
	if (l->is_taken[side]) {
		log_write(log, LOG_ERROR, "link %s: side=%u is taken; the other end is side=%u", name, side, !side);
		return -EBUSY;
	}
	if (slots && slots != l->slots) {
		log_write(log, LOG_ERROR, "link %s: was made with ring=%u, not ring=%u", name, l->slots, slots);
		return -EINVAL;
	}
	if (queues != l->queues) {
		log_write(log, LOG_ERROR, "link %s: was made with cores=%u, not cores=%u: both sides need the same number of queues", name, l->queues, queues);
		return -EINVAL;
	}
	l->is_taken[side] = true;
	*out = l;
	return 0;
}

static void leave_locked(struct ring_link *l, unsigned side)
{
	l->is_taken[side] = false;
	if (l->is_taken[!side])
		return;
	struct ring_link **at = &links;
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	free_link(l);
}

int ring_link_join(const char *name, unsigned side, unsigned queues, uint32_t slots, uint32_t room, const struct log *log, struct ring_link **out, uint16_t *port_id)
{
	char text[16];
	struct ring_link *l;
	pthread_mutex_lock(&lock);
	int err = join_locked(name, side, queues, slots, room, log, &l);
	if (!err) {
		snprintf(text, sizeof(text), "uroce%u", ++serial);
		drain_side(l, side); /* sent to an earlier owner of this side */
		int id = rte_eth_from_rings(text, l->towards[side], queues, l->towards[!side], queues, (unsigned)SOCKET_ID_ANY);
		if (id < 0) {
			log_write(log, LOG_ERROR, "link %s: DPDK refuses the port: %s", name, rte_strerror(rte_errno));
			leave_locked(l, side);
			err = -ENODEV;
		} else {
			*port_id = (uint16_t)id;
			*out = l;
		}
	}
	pthread_mutex_unlock(&lock);
	return err;
}

void ring_link_leave(struct ring_link *l, unsigned side)
{
	pthread_mutex_lock(&lock);
	leave_locked(l, side);
	pthread_mutex_unlock(&lock);
}

bool ring_link_has_side(const struct ring_link *l, unsigned side)
{
	return atomic_load_explicit(&l->is_taken[side], memory_order_relaxed);
}

struct rte_mempool *ring_link_pool(const struct ring_link *l)
{
	return l->pool;
}

uint32_t ring_link_slots(const struct ring_link *l)
{
	return l->slots;
}
