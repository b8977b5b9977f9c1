/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client can write: any word at any place of the memory that it shares with the core - control blocks, slots, doorbells, its page, pool memory - between WQEs of any content and turns of the core. The input is a byte that chooses the service and whether there is an SRQ, then a list of steps, a byte each and the bytes that
 * the step wants. The sanitizer sees what is touched beyond the arenas; every object goes with its client.
 * known-bugs: 50 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_core.h"
#include "raw_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_MAX 300u
#define QPS 2u
#define AHS 2u
#define NAMES 3u

struct input {
	const uint8_t *at, *end;
};

struct world {
	struct input in;
	uint64_t now;
	struct core *core;
	struct raw_client client;
	struct raw_memory memory;
	struct raw_cq cq;
	struct raw_srq srq;
	bool uses_srq;
	uint32_t name[NAMES]; /* keys of a window of each type and of a fast MR, before they are bound */
	uint32_t ah[AHS]; /* UD: to ourselves, to nobody; destroyed and made again in turns */
	struct raw_qp qp[QPS];
};

static uint8_t take(struct world *w)
{
	return w->in.at < w->in.end ? *w->in.at++ : 0;
}

static uint64_t take_word(struct world *w)
{
	uint8_t kind = take(w), n = take(w);
	switch (kind % 6) {
	case 0: return n;
	case 1: return UINT64_MAX - n;
	case 2: return (uint64_t)w->memory.key << 32 | n;
	case 3: return (uint64_t)n << 32 | w->memory.key;
	case 4: return (uint64_t)n << (kind & 63);
	default: return (uint64_t)n << 32 | (uint64_t)take(w) << 8 | take(w);
	}
}

static void write_word(void *base, uint64_t bytes, uint64_t at, uint64_t word)
{
	atomic_store_explicit((_Atomic uint64_t *)(void *)((uint8_t *)base + at % (bytes / 8) * 8), word, memory_order_relaxed);
}

/* ---- steps ---- */

static struct raw_ring *receives_of(struct world *w, struct raw_qp *q)
{
	return w->uses_srq ? &w->srq.rq : &q->rq;
}

static void step_scribble(struct world *w)
{
	struct raw_qp *q = &w->qp[take(w) % QPS];
	struct raw_ring *rq = receives_of(w, q);
	const struct {
		void *base;
		uint64_t bytes;
	} places[] = {
		{ q->sq.slots, (uint64_t)q->sq.n * q->sq.slot_bytes }, { rq->slots, (uint64_t)rq->n * rq->slot_bytes }, { q->sq.ring, sizeof(struct abi_ring) }, { rq->ring, sizeof(struct abi_ring) },
		{ w->cq.ring, sizeof(struct abi_ring) }, { w->cq.slots, (uint64_t)w->cq.n * sizeof(struct abi_cqe) }, { w->client.doorbells, sizeof(struct abi_doorbells) }, { w->client.page, sizeof(struct abi_engine_page) },
		{ w->memory.host, w->memory.bytes },
	};
	unsigned p = take(w) % (sizeof(places) / sizeof(places[0]));
	uint64_t at = take(w) | (uint64_t)take(w) << 8;
	write_word(places[p].base, places[p].bytes, at, take_word(w));
}

static void step_send(struct world *w)
{
	struct raw_qp *q = &w->qp[take(w) % QPS];
	struct abi_send_wqe e = { .wr_id = take(w), .opcode = take(w) % (ABI_OP_COUNT + 1), .flags = take(w), .num_sge = take(w) % 5, .remote_addr = take(w) * 8u, .rkey = w->memory.key, .inline_len = take(w) };
	for (unsigned i = 0; i < 2; i++)
		e.sge[i] = (struct abi_sge){ take(w) * 8u, take(w) * 16u, w->memory.key };
	if (q->service == ABI_SERVICE_UD) {
		uint8_t to = take(w);
		e.ah = to & 0xf8 ? w->ah[to % AHS] : to;
		e.remote_qpn = w->qp[to >> 1 & 1].qpn;
		e.remote_qkey = to & 0x80 ? 0x80000000 : 0;
	}
	if (e.opcode >= ABI_OP_SEND_WITH_INV) {
		uint8_t b = take(w);
		e.rkey = e.imm = w->name[b % NAMES] ^ b >> 2;
	}
	if (e.opcode == ABI_OP_BIND_MW || e.opcode == ABI_OP_REG_MR)
		e.bind = (struct abi_bind){ .addr = take(w) * 8u, .len = take(w) * 64u, .lkey = w->memory.key, .access = take(w), .iova = take(w) * 8u };
	raw_post(&q->sq, &e, sizeof(e));
	raw_ring_doorbell(&w->client, q, &q->sq);
}

static void step_receive(struct world *w)
{
	struct raw_qp *q = &w->qp[take(w) % QPS];
	struct abi_recv_wqe e = { .wr_id = take(w), .num_sge = take(w) % 4 };
	for (unsigned i = 0; i < 3; i++)
		e.sge[i] = (struct abi_sge){ take(w) * 8u, take(w) * 16u, w->memory.key };
	raw_post(receives_of(w, q), &e, sizeof(e));
	if (!w->uses_srq)
		raw_ring_doorbell(&w->client, q, &q->rq);
}

static void step_run(struct world *w)
{
	static uint8_t buffer[4][CORE_FRAME_MAX];
	struct core_frame f[4];
	for (unsigned i = 0; i < 4; i++)
		f[i] = (struct core_frame){ .data = buffer[i], .room = sizeof(buffer[i]) };
	for (unsigned turns = take(w) % 8 + 1; turns; turns--) {
		w->now += 1u << take(w) % 24;
		core_run(w->core, w->now);
		core_scan(w->core);
		core_tx(w->core, w->now, f, 4);
	}
}

static void step_poll(struct world *w)
{
	struct abi_cqe e;
	while (raw_poll(&w->cq, &e))
		;
}

static void step_state(struct world *w)
{
	struct raw_qp *q = &w->qp[take(w) % QPS];
	raw_set_state(&w->client, q, take(w) % (ABI_QP_STATES + 1));
}

static void step_reconnect(struct world *w)
{
	for (unsigned i = 0; i < QPS; i++)
		if (raw_set_state(&w->client, &w->qp[i], ABI_QP_RESET))
			return;
	for (unsigned i = 0; i < QPS; i++) {
		w->qp[i].sq.tail = atomic_load(&w->qp[i].sq.ring->client_index);
		if (!w->uses_srq)
			w->qp[i].rq.tail = atomic_load(&w->qp[i].rq.ring->client_index);
		raw_connect(&w->client, &w->qp[i], "10.0.0.1", w->qp[!i].qpn);
	}
}

/* Another size in two requests, as a client makes it: what it copies is whatever is in the old ring. Or a limit. */
static void step_srq(struct world *w)
{
	struct abi_req req = { .type = ABI_MODIFY_SRQ, .modify_srq = { .srq = w->srq.handle, .mask = ABI_SRQ_LIMIT } };
	uint8_t b = take(w);
	if (!w->uses_srq)
		return;
	req.modify_srq.limit = b & 7;
	if (b & 0x80) {
		req.modify_srq.mask = ABI_SRQ_MAX_WR;
		req.modify_srq.max_wr = 1u << (b & 7);
	}
	if (raw_ask(&w->client, &req) || !(b & 0x80))
		return;
	struct raw_ring fresh = raw_ring_of(&w->client, &w->client.rep.srq.ring);
	memcpy(fresh.slots, w->srq.rq.slots, (size_t)(fresh.n < w->srq.rq.n ? fresh.n : w->srq.rq.n) * fresh.slot_bytes);
	fresh.tail = b & 0x40 ? take(w) : w->srq.rq.tail;
	atomic_store(&fresh.ring->client_index, fresh.tail);
	req.modify_srq.mask = ABI_SRQ_SWITCH;
	if (!raw_ask(&w->client, &req))
		w->srq.rq = fresh;
}

static void step_ah(struct world *w)
{
	static const char *const to[AHS] = { "10.0.0.1", "10.0.0.9" };
	struct abi_req req = { .type = ABI_CREATE_AH, .create_ah = { .pd = w->client.pd } };
	struct gid gid;
	unsigned i = take(w) % AHS;
	if (w->ah[i]) {
		raw_ask_handle(&w->client, ABI_DESTROY_AH, w->ah[i]);
		w->ah[i] = 0;
		return;
	}
	if (gid_parse(to[i], &gid))
		abort();
	memcpy(req.create_ah.av.dgid, gid.b, 16);
	if (!raw_ask(&w->client, &req))
		w->ah[i] = w->client.rep.handle;
}

static void (*const steps[])(struct world *w) = { step_scribble, step_scribble, step_send, step_send, step_receive, step_run, step_run, step_poll, step_state, step_reconnect, step_srq, step_ah };

static void make_names(struct world *w)
{
	for (uint32_t i = 0; i < NAMES; i++) {
		struct abi_req req = { .type = ABI_ALLOC_MR, .handle = w->client.pd };
		if (i < 2)
			req = (struct abi_req){ .type = ABI_CREATE_MW, .create_mw = { .pd = w->client.pd, .type = i ? ABI_MW_TYPE_2 : ABI_MW_TYPE_1 } };
		if (raw_ask(&w->client, &req))
			abort();
		w->name[i] = w->client.rep.mr.rkey;
	}
}

static void open_world(struct world *w)
{
	static const struct abi_qp_cap cap = { 8, 8, 4, 4, 64 };
	uint8_t b = take(w);
	w->core = fuzz_core_new(0, w->now);
	raw_open(&w->client, w->core, &w->now);
	raw_memory_new(&w->client, 8192, &w->memory);
	raw_cq_new(&w->client, 32, 0, &w->cq);
	w->client.service = b % ABI_SERVICES;
	w->uses_srq = b & 0x80;
	if (w->uses_srq) {
		raw_srq_new(&w->client, 8, 4, &w->srq);
		w->client.srq = w->srq.handle;
	}
	make_names(w);
	for (unsigned i = 0; i < AHS; i++)
		step_ah(w);
	for (unsigned i = 0; i < QPS; i++)
		raw_qp_new(&w->client, &w->cq, &w->cq, &cap, &w->qp[i]);
	for (unsigned i = 0; i < QPS; i++)
		raw_connect(&w->client, &w->qp[i], "10.0.0.1", w->qp[!i].qpn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;
	w = (struct world){ .in = { data, data + size }, .now = 1000000 };
	open_world(&w);
	for (unsigned i = 0; i < STEPS_MAX && w.in.at < w.in.end; i++)
		steps[take(&w) % (sizeof(steps) / sizeof(steps[0]))](&w);
	core_client_free(w.client.k);
	struct core_stats stats;
	core_stats(w.core, &stats);
	if (stats.qps || stats.cqs || stats.mrs || stats.mws || stats.clients)
		abort();
	core_free(w.core);
	return 0;
}
