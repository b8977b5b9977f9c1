/* SPDX-License-Identifier: BSD-3-Clause */
/* A link. Owns the frames on it. Invariant: departures and arrivals in the ring never fall, so the ring is in order of time. */
#include "sim_link.h"

#include <stdio.h>

#include "fault.h"

struct flight {
	struct sim_frame *frame;
	uint64_t departs_ns; /* the last bit has left the queue */
};

struct sim_link {
	struct sim_link_config config;
	struct fault *fault;
	struct flight *ring;
	uint32_t head, tail, mask; /* free running */
	uint32_t leaving;          /* first in the ring whose last bit may still be in the queue */
	uint64_t free_at_ns;       /* the wire is idle from then on */
	uint64_t overflows;
	bool is_cut;
};

static uint8_t *frame_data(void *frame, uint32_t *len)
{
	struct sim_frame *f = frame;
	*len = f->len;
	return f->b;
}

static void *frame_copy(void *arg, void *frame)
{
	return sim_frame_copy(arg, frame);
}

static void frame_free(void *arg, void *frame)
{
	sim_frame_free(arg, frame);
}

static void make_fault(struct sim_link *l)
{
	char why[200];
	struct fault_frames frames = { frame_data, frame_copy, frame_free, l->config.pool };
	if (!fault_new(&l->fault, l->config.fault, &frames, why, sizeof(why)))
		return;
	fprintf(stderr, "%s: %s: %s\n", l->config.name, l->config.fault, why);
	exit(2);
}

struct sim_link *sim_link_new(const struct sim_link_config *config)
{
	struct sim_link *l = calloc(1, sizeof(*l));
	if (!l)
		abort();
	l->config = *config;
	l->mask = 63;
	l->ring = malloc((l->mask + 1) * sizeof(*l->ring));
	if (!l->ring)
		abort();
	if (config->fault)
		make_fault(l);
	l->config.fault = NULL; /* the text is the caller's */
	return l;
}

void sim_link_free(struct sim_link *l)
{
	if (!l)
		return;
	for (; l->head != l->tail; l->head++)
		sim_frame_free(l->config.pool, l->ring[l->head & l->mask].frame);
	fault_free(l->fault);
	free(l->ring);
	free(l);
}

static void tap(const struct sim_link *l, enum sim_link_event event, uint64_t now_ns, const struct sim_frame *f)
{
	if (l->config.tap)
		l->config.tap(l->config.tap_arg, l->config.name, event, now_ns, f);
}

/* The number of frames under way is bounded by the queue and by rate times propagation: a ring that doubles is enough. */
static void grow(struct sim_link *l)
{
	uint32_t n = l->tail - l->head;
	if (n <= l->mask)
		return;
	struct flight *ring = malloc(2 * (l->mask + 1) * sizeof(*ring));
	if (!ring)
		abort();
	for (uint32_t i = 0; i < n; i++)
		ring[i] = l->ring[(l->head + i) & l->mask];
	free(l->ring);
	l->ring = ring;
	l->mask = 2 * l->mask + 1;
	l->leaving -= l->head;
	l->head = 0;
	l->tail = n;
}

uint32_t sim_link_backlog(struct sim_link *l, uint64_t now_ns)
{
	while (l->leaving != l->tail && l->ring[l->leaving & l->mask].departs_ns <= now_ns)
		l->leaving++;
	return l->tail - l->leaving;
}

uint64_t sim_link_room_at(struct sim_link *l, uint64_t now_ns, uint32_t frames)
{
	uint32_t n = sim_link_backlog(l, now_ns);
	if (n < frames)
		return now_ns;
	return l->ring[(l->leaving + n - frames) & l->mask].departs_ns;
}

void sim_link_send(struct sim_link *l, uint64_t now_ns, struct sim_frame *f)
{
	if (sim_link_backlog(l, now_ns) >= l->config.queue_frames) {
		l->overflows++;
		tap(l, SIM_LINK_OVERFLOWS, now_ns, f);
		sim_frame_free(l->config.pool, f);
		return;
	}
	tap(l, SIM_LINK_ENTERS, now_ns, f);
	grow(l);
	/* preamble, FCS and gap are on the wire too */
	uint64_t ns = (f->len + 24ull) * 8 * 1000000000 / l->config.bits_per_second;
	if (l->free_at_ns < now_ns)
		l->free_at_ns = now_ns;
	l->free_at_ns += ns ? ns : 1;
	l->ring[l->tail++ & l->mask] = (struct flight){ f, l->free_at_ns };
}

/* The frame at the head has arrived. */
static struct sim_frame *take_head(struct sim_link *l)
{
	if (l->leaving == l->head)
		l->leaving++;
	return l->ring[l->head++ & l->mask].frame;
}

static uint64_t next_arrival(const struct sim_link *l)
{
	return l->head == l->tail ? UINT64_MAX : l->ring[l->head & l->mask].departs_ns + l->config.propagation_ns;
}

/* What comes out of the faults, or straight off the wire. */
static struct sim_frame *take_due(struct sim_link *l, uint64_t now_ns)
{
	if (!l->fault)
		return next_arrival(l) <= now_ns ? take_head(l) : NULL;
	for (uint64_t at; (at = next_arrival(l)) <= now_ns;)
		fault_push(l->fault, at, take_head(l));
	return fault_pop(l->fault, now_ns);
}

struct sim_frame *sim_link_receive(struct sim_link *l, uint64_t now_ns)
{
	struct sim_frame *f;
	while ((f = take_due(l, now_ns)) && l->is_cut)
		sim_frame_free(l->config.pool, f);
	if (f)
		tap(l, SIM_LINK_LEAVES, now_ns, f);
	return f;
}

uint64_t sim_link_next(const struct sim_link *l)
{
	uint64_t at = next_arrival(l), due = l->fault ? fault_next_due(l->fault) : UINT64_MAX;
	return at < due ? at : due;
}

void sim_link_cut(struct sim_link *l, bool is_cut)
{
	l->is_cut = is_cut;
}

uint64_t sim_link_overflows(const struct sim_link *l)
{
	return l->overflows;
}

bool sim_link_has_faults(const struct sim_link *l)
{
	return l->fault != NULL;
}
