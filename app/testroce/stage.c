/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns players, watches and tracer. Looks at rings through the client library's own structures: a lesson shows what is really there. */
#include "stage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "core.h"
#include "engine.h"
#include "packet.h"

#define ROUNDS 100000u
#define DEPTH 4u

static const char *const devices[SIDES] = { "inline:net_ring,link=lesson,side=0,ip=10.0.0.1/24", "inline:net_ring,link=lesson,side=1,ip=10.0.0.2/24" };

static void keep_frame(struct stage *s, enum side from, const struct core_seen *seen)
{
	struct frames *f = &s->frames;
	struct packet p;
	if (!seen->is_tx || f->n == STAGE_FRAMES)
		return;
	bool is_roce = packet_parse(&p, seen->frame, seen->len, VLAN_NONE, NULL) == DROP_NONE && p.kind == PACKET_ROCE;
	f->from[f->n] = from;
	f->is_ack[f->n] = is_roce && p.op->message == MESSAGE_ACKNOWLEDGE;
	packet_print(f->text[f->n], sizeof(f->text[0]), seen->frame, seen->len, VLAN_NONE);
	f->n++;
}

static void see_a(void *arg, const struct core_seen *seen)
{
	keep_frame(arg, SIDE_A, seen);
}

static void see_b(void *arg, const struct core_seen *seen)
{
	keep_frame(arg, SIDE_B, seen);
}

int stage_open(struct stage *s)
{
	static void (*const taps[SIDES])(void *, const struct core_seen *) = { see_a, see_b };
	for (int i = 0; i < SIDES; i++) {
		struct station *st = &s->player[i].station;
		int err = station_open(st, (unsigned)i, devices[i]);
		if (err)
			return err;
		core_set_tap(engine_core_stack(engine_core_at(st->engine, 0)), taps[i], s); /* nobody drives it but this thread */
	}
	s->tracer_err = tracer_start(TRACER_THREAD, &s->tracer);
	return 0;
}

/* ---- objects ---- */

static void add_watch(struct stage *s, const char *name, const void *at, uint32_t bytes, uint32_t slot_bytes)
{
	struct watch *w = &s->watch[s->watches];
	*w = (struct watch){ name, at, bytes, slot_bytes, calloc(1, bytes) };
	if (!w->copy)
		return;
	memcpy(w->copy, at, bytes);
	s->watches++;
}

static void watch_queue(struct stage *s, const struct post_queue *q, const char *slots, const char *tail, const char *head)
{
	add_watch(s, slots, q->slots, q->count * q->slot_bytes, q->slot_bytes);
	add_watch(s, tail, &q->ring->client_index, 4, 0);
	add_watch(s, head, &q->ring->engine_index, 4, 0);
}

static void watch_cq(struct stage *s, const struct uroce_cq *cq, const char *slots, const char *head)
{
	add_watch(s, slots, cq->cqes, cq->slots * (uint32_t)sizeof(struct abi_cqe), sizeof(struct abi_cqe));
	add_watch(s, head, &cq->ring->client_index, 4, 0);
}

static void watch_all(struct stage *s)
{
	const struct player *a = &s->player[SIDE_A], *b = &s->player[SIDE_B];
	add_watch(s, "A's memory", a->memory, STAGE_BYTES, STAGE_BYTES);
	add_watch(s, "B's memory", b->memory, STAGE_BYTES, STAGE_BYTES);
	watch_queue(s, &a->qp->sq, "A's SQ", "A's SQ, tail", "A's SQ, head");
	watch_queue(s, &b->qp->rq, "B's RQ", "B's RQ, tail", "B's RQ, head");
	watch_cq(s, a->cq, "A's CQ", "A's CQ, head");
	watch_cq(s, b->cq, "B's CQ", "B's CQ, head");
}

static int make_player(struct player *p)
{
	struct uroce_context *ctx = p->station.ctx;
	void *memory;
	int err = uroce_pd_create(ctx, &p->pd);
	if (!err)
		err = uroce_alloc(ctx, STAGE_BYTES, &memory);
	if (err)
		return err;
	p->memory = memory;
	err = uroce_mr_register(p->pd, memory, STAGE_BYTES, UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ, &p->mr);
	if (!err)
		err = uroce_cq_create(ctx, 2 * DEPTH, NULL, NULL, &p->cq);
	struct uroce_qp_init init = { .send_cq = p->cq, .recv_cq = p->cq, .cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH } };
	if (!err)
		err = uroce_qp_create(p->pd, &init, &p->qp);
	return err;
}

int stage_make_objects(struct stage *s)
{
	int err = 0;
	for (int i = 0; i < SIDES && !err; i++)
		err = make_player(&s->player[i]);
	if (err)
		fprintf(stderr, "the lesson's objects cannot be made: %s\n", strerror(-err));
	else
		watch_all(s);
	return err;
}

/* An empty message, and all its slots and CQEs as a program would. */
static int warm_up(struct stage *s)
{
	struct player *a = &s->player[SIDE_A], *b = &s->player[SIDE_B];
	struct uroce_recv_wr recv = { .wr_id = 0 };
	struct uroce_send_wr send = { .opcode = UROCE_OP_SEND, .flags = UROCE_SEND_SIGNALED };
	struct uroce_wc wc;
	if (uroce_post_recv(b->qp, &recv, 1) != 1 || uroce_post_send(a->qp, &send, 1) != 1)
		return -EIO;
	a->sent++;
	b->received++;
	for (unsigned i = 0, got = 0; i < ROUNDS; i++) {
		uroce_engine_poll(a->station.ctx);
		uroce_engine_poll(b->station.ctx);
		got += (unsigned)uroce_cq_poll(b->cq, &wc, 1) + (unsigned)uroce_cq_poll(a->cq, &wc, 1);
		if (got == 2)
			return 0;
	}
	return -ETIMEDOUT;
}

int stage_connect(struct stage *s)
{
	struct player *a = &s->player[SIDE_A], *b = &s->player[SIDE_B];
	struct uroce_qp_attr attr = { .timeout = 0 }; /* none: between two steps somebody reads, and nothing is sent again meanwhile */
	int err = uroce_qp_endpoint(a->qp, 0, &a->endpoint);
	if (!err)
		err = uroce_qp_endpoint(b->qp, 0, &b->endpoint);
	if (!err)
		err = uroce_qp_connect(a->qp, &a->endpoint, &b->endpoint, &attr, UROCE_QP_TIMEOUT);
	if (!err)
		err = uroce_qp_connect(b->qp, &b->endpoint, &a->endpoint, &attr, UROCE_QP_TIMEOUT);
	if (!err)
		err = warm_up(s);
	if (err)
		fprintf(stderr, "the lesson's QPs cannot be connected: %s\n", strerror(-err));
	return err;
}

void stage_close(struct stage *s)
{
	tracer_stop(s->tracer);
	for (int i = 0; i < SIDES; i++)
		station_close(&s->player[i].station); /* its objects go with it */
	for (unsigned i = 0; i < s->watches; i++)
		free(s->watch[i].copy);
}

/* ---- a step ---- */

void stage_begin(struct stage *s)
{
	s->frames.n = 0;
	for (unsigned i = 0; i < s->watches; i++)
		memcpy(s->watch[i].copy, s->watch[i].at, s->watch[i].bytes);
	if (s->tracer)
		s->calls = tracer_calls(s->tracer);
}

static void print_index(const struct watch *w, const char *actor)
{
	uint32_t before, now;
	memcpy(&before, w->copy, 4);
	memcpy(&now, w->at, 4);
	printf("  memory   %s: %u -> %u, by %s\n", w->name, before, now, actor);
}

static void print_slots(const struct watch *w, const char *actor)
{
	for (uint32_t i = 0; i < w->bytes / w->slot_bytes; i++) {
		const uint8_t *before = w->copy + i * w->slot_bytes, *now = (const uint8_t *)w->at + i * w->slot_bytes;
		uint32_t first = 0, last = w->slot_bytes;
		while (first < w->slot_bytes && before[first] == now[first])
			first++;
		while (last > first && before[last - 1] == now[last - 1])
			last--;
		if (first == last)
			continue;
		if (w->slot_bytes == w->bytes)
			printf("  memory   %s: bytes %u to %u written by %s\n", w->name, first, last - 1, actor);
		else
			printf("  memory   %s, slot %u (%u bytes): written by %s\n", w->name, i, w->slot_bytes, actor);
	}
}

uint64_t stage_end(struct stage *s, const char *actor)
{
	char names[400];
	uint64_t calls = s->tracer ? tracer_calls(s->tracer) - s->calls : 0; /* before anything is printed */
	if (s->tracer)
		tracer_name(s->tracer, s->calls, names, sizeof(names));
	for (unsigned i = 0; i < s->frames.n; i++)
		printf("  packet   %c> %s\n", s->frames.from[i] == SIDE_A ? 'A' : 'B', s->frames.text[i]);
	for (unsigned i = 0; i < s->watches; i++) {
		const struct watch *w = &s->watch[i];
		if (!memcmp(w->copy, w->at, w->bytes))
			continue;
		if (w->slot_bytes)
			print_slots(w, actor);
		else
			print_index(w, actor);
	}
	if (!s->tracer)
		printf("  kernel   not counted: this process may not be traced here (%s)\n", strerror(-s->tracer_err));
	else
		printf("  kernel   %" PRIu64 " system call%s%s%s\n", calls, calls == 1 ? "" : "s", calls ? ": " : "", names);
	return calls;
}

/* One round at a time, so that nothing happens that is not asked for. */
bool stage_run_until_frame(struct stage *s, enum side side, bool is_ack)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		for (unsigned n = 0; n < s->frames.n; n++)
			if (s->frames.from[n] == side && s->frames.is_ack[n] == is_ack)
				return true;
		uroce_engine_poll(s->player[side].station.ctx);
	}
	return false;
}

bool stage_run_until_cqe(struct stage *s, enum side side)
{
	const struct player *p = &s->player[side];
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (completion_is_there(p->cq, p->cq->head))
			return true;
		uroce_engine_poll(p->station.ctx);
	}
	return false;
}
