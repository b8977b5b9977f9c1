/* SPDX-License-Identifier: BSD-3-Clause */
/* The RX callback around a struct fault. Owns the mbufs that wait; decides nothing about them. A frame that is changed or delivered twice is a deep copy out of the mbuf's own pool: net_ring hands the sender's
 * very mbuf over, and a second reference to it, if there is one, must not see the change.
 *
 * Invariant: a burst returns at most as many frames as its caller has room for; the rest waits for the next one. */
#include "fault_dpdk.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_version.h>

#if RTE_VERSION < RTE_VERSION_NUM(22, 11, 0, 0)
#error "the fault driver needs DPDK 22.11 or later"
#endif

struct fault_port {
	struct fault *fault;
	const struct rte_eth_rxtx_callback *callback;
	uint16_t port, queue;
	atomic_bool is_on;                          /* written by any thread, read by the poll core */
	_Atomic uint64_t counter[FAULT_COUNTERS];   /* the other way round */
};

static uint8_t *mbuf_data(void *frame, uint32_t *len)
{
	struct rte_mbuf *m = frame;
	*len = m->data_len;
	return rte_pktmbuf_mtod(m, uint8_t *);
}

static void *mbuf_copy(void *arg, void *frame)
{
	struct rte_mbuf *m = frame;
	return rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);
}

static void mbuf_free(void *arg, void *frame)
{
	rte_pktmbuf_free(frame);
}

static const struct fault_frames mbufs = { mbuf_data, mbuf_copy, mbuf_free, NULL };

static uint64_t read_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The faults read a frame in one piece; one that cannot be put together goes past them. */
static bool is_whole(struct rte_mbuf *m)
{
	return m->nb_segs == 1 || !rte_pktmbuf_linearize(m);
}

static uint16_t on_received(uint16_t port, uint16_t queue, struct rte_mbuf *pkts[], uint16_t n, uint16_t room, void *arg)
{
	struct fault_port *p = arg;
	uint64_t now_ns = read_clock();
	uint16_t out = 0;
	fault_switch(p->fault, atomic_load_explicit(&p->is_on, memory_order_relaxed));
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i]; /* out <= i: there is room for one now that its slot has been read */
		void *due = is_whole(m) ? fault_pop(p->fault, now_ns) : m;
		if (due)
			pkts[out++] = due;
		if (due != m)
			fault_push(p->fault, now_ns, m); /* into a line that is not full of what is due */
	}
	for (void *frame; out < room && (frame = fault_pop(p->fault, now_ns));)
		pkts[out++] = frame;
	for (unsigned c = 0; c < FAULT_COUNTERS; c++)
		atomic_store_explicit(&p->counter[c], fault_counter(p->fault, (enum fault_counter)c), memory_order_relaxed);
	return out;
}

int fault_attach(struct fault_port **out, uint16_t port, uint16_t queue, const char *spec, char *why, uint32_t len)
{
	if (!rte_eth_dev_is_valid_port(port)) {
		snprintf(why, len, "there is no port %u to attach faults to", port);
		return -EINVAL;
	}
	struct fault_port *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	int err = fault_new(&p->fault, spec, &mbufs, why, len);
	if (err)
		goto fail;
	p->port = port;
	p->queue = queue;
	atomic_init(&p->is_on, true);
	p->callback = rte_eth_add_rx_callback(port, queue, on_received, p);
	if (p->callback) {
		*out = p;
		return 0;
	}
	err = -rte_errno;
	if (err == -EINVAL)
		snprintf(why, len, "port %u has no RX queue %u to attach faults to", port, queue);
	fault_free(p->fault);
fail:
	free(p);
	return err;
}

void fault_detach(struct fault_port *p)
{
	if (!p)
		return;
	rte_eth_remove_rx_callback(p->port, p->queue, p->callback);
	fault_free(p->fault);
	free(p);
}

void fault_port_switch(struct fault_port *p, bool is_on)
{
	atomic_store_explicit(&p->is_on, is_on, memory_order_relaxed);
}

uint64_t fault_port_counter(const struct fault_port *p, enum fault_counter c)
{
	return atomic_load_explicit(&p->counter[c], memory_order_relaxed);
}
