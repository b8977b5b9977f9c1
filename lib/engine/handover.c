/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the rings and the mbufs in them. What an mbuf is travels in its user tag (hash.usr). Invariant: a core that sleeps with frames in its ring has been rung.
 * RTS rings: a core that loses its CPU in the middle of putting does not hold up the others that put. */
#include "handover.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "dpdk_compat.h"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "wakeup.h"

#define SLOTS 1024u

struct end {
	_Alignas(RTE_CACHE_LINE_SIZE) struct rte_ring *ring;
	struct wakeup *wakeup;
	_Atomic bool is_sleeping; /* set by the core, cleared by it or by the one who rings */
};

struct handover {
	unsigned cores;
	struct end end[];
};

int handover_open(struct handover **out, unsigned cores, const struct log *log)
{
	static _Atomic unsigned serial;
	char name[RTE_RING_NAMESIZE];
	struct handover *h = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*h) + cores * sizeof(h->end[0]));
	if (!h)
		return -ENOMEM;
	unsigned number = atomic_fetch_add(&serial, 1);
	h->cores = 0;
	for (unsigned i = 0; i < cores; i++) {
		snprintf(name, sizeof(name), "uroce_h%u_%u", number, i);
		h->end[i] = (struct end){ .ring = rte_ring_create(name, SLOTS, SOCKET_ID_ANY, RING_F_MP_RTS_ENQ | RING_F_SC_DEQ) };
		if (!h->end[i].ring) {
			log_write(log, LOG_ERROR, "no memory for rings between %u cores: %s (see memory=)", cores, rte_strerror(rte_errno));
			handover_close(h);
			return -ENOMEM;
		}
		h->cores++;
	}
	*out = h;
	return 0;
}

void handover_close(struct handover *h)
{
	void *m;
	if (!h)
		return;
	for (unsigned i = 0; i < h->cores; i++) {
		while (!rte_ring_dequeue(h->end[i].ring, &m))
			rte_pktmbuf_free(m);
		rte_ring_free(h->end[i].ring);
	}
	free(h);
}

void handover_join(struct handover *h, unsigned core, struct wakeup *wakeup)
{
	h->end[core].wakeup = wakeup;
}

unsigned handover_give(struct handover *h, unsigned to, struct rte_mbuf **m, unsigned n, enum handover_kind kind)
{
	struct end *e = &h->end[to];
	for (unsigned i = 0; i < n; i++)
		m[i]->hash.usr = kind;
	n = rte_ring_enqueue_burst(e->ring, (void **)m, n, NULL);
	atomic_thread_fence(memory_order_seq_cst); /* what is in the ring is visible before is_sleeping is read; the core sets it, fences, and looks at the ring once more */
	if (atomic_load_explicit(&e->is_sleeping, memory_order_relaxed) && atomic_exchange_explicit(&e->is_sleeping, false, memory_order_relaxed))
		wakeup_ring(e->wakeup);
	return n;
}

unsigned handover_take(struct handover *h, unsigned core, struct rte_mbuf **m, unsigned room)
{
	return rte_ring_dequeue_burst(h->end[core].ring, (void **)m, room, NULL);
}

enum handover_kind handover_kind(const struct rte_mbuf *m)
{
	return (enum handover_kind)m->hash.usr;
}

void handover_set_sleeping(struct handover *h, unsigned core, bool sleeping)
{
	atomic_store_explicit(&h->end[core].is_sleeping, sleeping, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst); /* is_sleeping is visible before the ring is looked at */
}

bool handover_is_empty(const struct handover *h, unsigned core)
{
	return rte_ring_empty(h->end[core].ring);
}
