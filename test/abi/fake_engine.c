/* SPDX-License-Identifier: BSD-3-Clause */
/* See fake_engine.h. Everything here is written from lib/abi alone, never from the client's sources: it is the other reading
 * of the contract. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "counters.h"
#include "fake_engine.h"

static const uint8_t fake_gid[3][16] = {
	{ [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 },
	{ 0 },
	{ [0] = 0xfe, [1] = 0x80, [15] = 1 },
};

static uint32_t up_to_power(uint32_t n)
{
	uint32_t p = 1;
	while (p < n)
		p *= 2;
	return p;
}

static struct abi_ring_place lay_ring(struct fake_engine *f, uint32_t wrs, uint32_t slot_bytes, struct fake_ring *r)
{
	struct abi_ring_place place = { .arena = 1, .slots = up_to_power(wrs), .slot_bytes = slot_bytes };
	place.control_offset = f->arena_used;
	place.slots_offset = f->arena_used + sizeof(struct abi_ring);
	f->arena_used += (uint32_t)sizeof(struct abi_ring) + place.slots * slot_bytes;
	assert_true(f->arena_used <= FAKE_ARENA);
	*r = (struct fake_ring){
		.ring = (struct abi_ring *)(f->arena[1] + place.control_offset), .slots = f->arena[1] + place.slots_offset,
		.count = place.slots, .slot_bytes = slot_bytes,
	};
	atomic_store(&r->ring->client_index, f->first_index);
	atomic_store(&r->ring->engine_index, f->first_index);
	return place;
}

/* ---- answers ---- */

static void on_query_device(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	rep->device = (struct abi_device){ .name = "fake0",
		.mac = { 2, 0, 0, 0, 0, 1 },
		.mode = 1,
		.port_up = 1,
		.active_mtu = ABI_MTU_1024,
		.gid_slots = 3,
		.max_qp = 16,
		.max_cq = 16,
		.max_mr = 100,
		.max_pd = 10,
		.max_qp_wr = 1024,
		.max_cqe = 4096,
		.max_sge = 8,
		.max_inline = 256,
		.max_rd_atomic = 16,
		.max_msg_bytes = UINT64_C(1) << 31 };
}

static void on_query_gid(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	if (req->handle >= 3) {
		rep->status = -EINVAL;
		snprintf(rep->text, sizeof(rep->text), "GID index %u, the table has 3", req->handle);
		return;
	}
	memcpy(rep->gid.gid, fake_gid[req->handle], 16);
	rep->gid.present = req->handle != 1;
	rep->gid.vlan = req->handle == 2 ? 7 : 0xffff;
}

static void on_create(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	rep->handle = ++f->handles;
}

static void on_alloc_memory(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	rep->handle = ++f->handles;
	f->arena_used = (f->arena_used + 4095) & ~4095u;
	rep->memory.arena = 1;
	rep->memory.offset = f->arena_used;
	rep->memory.bytes = (req->alloc_memory.bytes + 4095) & ~UINT64_C(4095);
	f->arena_used += (uint32_t)rep->memory.bytes;
	assert_true(f->arena_used <= FAKE_ARENA);
}

static void on_reg_mr(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	rep->handle = ++f->handles;
	rep->mr.lkey = 0x1000 + rep->handle;
	rep->mr.rkey = 0x2000 + rep->handle;
}

static void on_create_channel(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	assert_true(f->channels < FAKE_OBJECTS);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, f->channel[f->channels]), 0);
	rep->channel.fd = f->channel[f->channels][0];
	rep->handle = ++f->channels;
}

static void on_create_cq(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	struct fake_cq *cq = &f->cq[f->cqs];
	assert_true(f->cqs < FAKE_OBJECTS);
	rep->handle = f->cqs++;
	rep->cq.ring = lay_ring(f, req->create_cq.entries, sizeof(struct abi_cqe), &cq->r);
	rep->cq.entries = cq->r.count;
	cq->tail = f->first_index;
	cq->channel = req->create_cq.channel;
	cq->cookie = req->create_cq.cookie;
	cq->is_live = true;
	/* As if the passes up to first_index had been written. */
	for (uint32_t i = 0; i < cq->r.count; i++) {
		struct abi_cqe *e = fake_slot(&cq->r, f->first_index + i);
		atomic_store(&e->phase, (f->first_index + i) / cq->r.count % 2);
	}
}

/* New slots look as if all of them had been written: whatever lay there before. */
static void on_modify_cq(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	struct fake_cq *cq = &f->cq[req->modify_cq.cq];
	if (req->modify_cq.mask == ABI_CQ_ENTRIES) {
		uint32_t head = atomic_load(&cq->r.ring->client_index);
		rep->cq.ring = lay_ring(f, req->modify_cq.entries, sizeof(struct abi_cqe), &cq->next);
		rep->cq.ring.control_offset = 0;
		for (uint32_t i = head; i != head + cq->next.count; i++)
			*(struct abi_cqe *)fake_slot(&cq->next, i) = (struct abi_cqe){ .wr_id = 0xbad, .phase = !(i / cq->next.count % 2) };
	}
	if (req->modify_cq.mask == ABI_CQ_SWITCH) {
		cq->r.slots = cq->next.slots;
		cq->r.count = cq->next.count;
		atomic_fetch_add(&cq->r.ring->resizes, 1);
	}
	rep->cq.entries = cq->r.count;
}

static void on_create_qp(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	struct fake_qp *qp = &f->qp[f->qps];
	assert_true(f->qps < FAKE_OBJECTS);
	qp->cap = req->create_qp.cap;
	rep->qp.sq = lay_ring(f, qp->cap.max_send_wr, abi_send_slot_bytes(qp->cap.max_send_sge, qp->cap.max_inline), &qp->sq);
	if (req->create_qp.srq) {
		qp->cap.max_recv_wr = qp->cap.max_recv_sge = 0;
	} else {
		rep->qp.rq = lay_ring(f, qp->cap.max_recv_wr, abi_recv_slot_bytes(qp->cap.max_recv_sge), &qp->rq);
		atomic_store(&qp->rq.ring->looking, 1); /* but in ERR the engine comes by itself when a message needs a receive */
	}
	rep->qp.cap = qp->cap;
	rep->qp.qpn = qp->qpn = (FAKE_QPN + f->qps) ^ f->qpn_twist;
	rep->qp.doorbell = qp->doorbell = f->doorbell++;
	qp->cookie = req->create_qp.cookie;
	rep->handle = f->qps++;
}

static void on_modify_qp(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	struct fake_qp *qp = &f->qp[req->modify_qp.qp];
	uint8_t state = req->modify_qp.mask & ABI_QP_STATE ? req->modify_qp.attr.state : qp->attr.state;
	qp->attr = req->modify_qp.attr;
	qp->attr.state = state;
	if (state == ABI_QP_RESET) {
		atomic_store(&qp->sq.ring->engine_index, atomic_load(&qp->sq.ring->client_index));
		if (qp->rq.ring)
			atomic_store(&qp->rq.ring->engine_index, atomic_load(&qp->rq.ring->client_index));
	}
}

static void on_query_qp(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	rep->query_qp.attr = f->qp[req->handle].attr;
	rep->query_qp.cap = f->qp[req->handle].cap;
	rep->query_qp.error = f->qp[req->handle].error;
}

static void on_destroy_cq(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	f->cq[req->handle].is_live = false;
}

static void on_query_counters(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	for (unsigned i = 0; i < ABI_QP_COUNTERS; i++)
		rep->counters.value[i] = 100 + i;
}

static void fill_srq(const struct fake_srq *s, struct abi_rep *rep)
{
	rep->srq.max_wr = s->rq.count;
	rep->srq.max_sge = s->max_sge;
	rep->srq.limit = s->limit;
}

static void on_create_srq(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	struct fake_srq *s = &f->srq[f->srqs];
	assert_true(f->srqs < FAKE_OBJECTS);
	*s = (struct fake_srq){ .max_sge = req->create_srq.max_sge, .limit = req->create_srq.limit, .cookie = req->create_srq.cookie };
	rep->srq.ring = lay_ring(f, req->create_srq.max_wr, abi_recv_slot_bytes(s->max_sge), &s->rq);
	fill_srq(s, rep);
	rep->handle = ++f->srqs;
}

/* A new ring begins as zeroes; the client says where it goes on. */
static void on_modify_srq(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	struct fake_srq *s = &f->srq[req->modify_srq.srq - 1];
	struct fake_ring now = s->rq;
	if (req->modify_srq.mask == ABI_SRQ_LIMIT)
		s->limit = req->modify_srq.limit;
	if (req->modify_srq.mask == ABI_SRQ_MAX_WR) {
		rep->srq.ring = lay_ring(f, req->modify_srq.max_wr, abi_recv_slot_bytes(s->max_sge), &s->old);
		atomic_store(&s->old.ring->client_index, 0);
		atomic_store(&s->old.ring->engine_index, 0);
	}
	if (req->modify_srq.mask == ABI_SRQ_SWITCH) {
		s->rq = s->old;
		s->old = now;
		atomic_store(&s->rq.ring->engine_index, atomic_load(&now.ring->engine_index));
	}
	fill_srq(s, rep);
}

static void on_query_srq(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	fill_srq(&f->srq[req->handle - 1], rep);
}

static void (*const answers[ABI_MSG_COUNT])(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep) = {
	[ABI_QUERY_DEVICE] = on_query_device,
	[ABI_QUERY_GID] = on_query_gid,
	[ABI_CREATE_PD] = on_create,
	[ABI_ALLOC_MEMORY] = on_alloc_memory,
	[ABI_REG_MR] = on_reg_mr,
	[ABI_CREATE_CHANNEL] = on_create_channel,
	[ABI_CREATE_CQ] = on_create_cq,
	[ABI_DESTROY_CQ] = on_destroy_cq,
	[ABI_MODIFY_CQ] = on_modify_cq,
	[ABI_CREATE_QP] = on_create_qp,
	[ABI_MODIFY_QP] = on_modify_qp,
	[ABI_QUERY_QP] = on_query_qp,
	[ABI_QUERY_COUNTERS] = on_query_counters,
	[ABI_CREATE_AH] = on_create,
	[ABI_REREG_MR] = on_reg_mr,
	[ABI_ALLOC_MR] = on_reg_mr,
	[ABI_CREATE_MW] = on_reg_mr,
	[ABI_CREATE_SRQ] = on_create_srq,
	[ABI_MODIFY_SRQ] = on_modify_srq,
	[ABI_QUERY_SRQ] = on_query_srq,
};

/* ---- session ---- */

void fake_answer(struct fake_engine *f, const struct abi_req *req, struct abi_rep *rep)
{
	memset(rep, 0, sizeof(*rep));
	assert_true(f->reqs < FAKE_REQUESTS);
	f->req[f->reqs++] = *req;
	rep->type = req->type;
	rep->sequence = req->sequence;
	assert_true(req->type < ABI_MSG_COUNT);
	if (answers[req->type])
		answers[req->type](f, req, rep);
	if (f->on_answered)
		f->on_answered(f, req, rep);
}

static int answer(void *session, const struct abi_req *req, struct abi_rep *rep)
{
	struct fake_engine *f = session;
	if (f->call_error)
		return f->call_error;
	if (atomic_load(&f->page->dead) || atomic_load(&f->life))
		return -ENODEV;
	fake_answer(f, req, rep);
	if (f->is_dying)
		atomic_store(&f->page->dead, 1);
	return f->is_dying ? -ENODEV : 0;
}

static int map_region(void *session, uint32_t arena, void **base, uint64_t *bytes)
{
	struct fake_engine *f = session;
	if (arena > 1)
		return -ENOENT;
	*base = f->arena[arena];
	*bytes = arena ? FAKE_ARENA : FAKE_ARENA0;
	return 0;
}

static void wake(void *session)
{
	struct fake_engine *f = session;
	f->wakes++;
	if (f->on_woken)
		f->on_woken(f);
}

static int poll_once(void *session)
{
	return (int)++((struct fake_engine *)session)->polls;
}

static int get_async_fd(void *session)
{
	return ((struct fake_engine *)session)->async[0];
}

static void close_session(void *session)
{
	((struct fake_engine *)session)->closes++;
}

const struct session_ops fake_session_ops = { .call = answer, .region = map_region, .wake = wake, .poll = poll_once, .async_fd = get_async_fd, .close = close_session };

static void keep_line(void *arg, int level, const char *line)
{
	struct fake_engine *f = arg;
	snprintf(f->line, sizeof(f->line), "%s", line);
	f->lines++;
}

struct uroce_open_attr fake_open_attr(struct fake_engine *f)
{
	return (struct uroce_open_attr){ .log = keep_line, .log_arg = f, .log_level = 4 };
}

static void new_arena(struct fake_engine *f, unsigned i, size_t bytes)
{
	f->arena_fd[i] = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(f->arena_fd[i] >= 0);
	assert_int_equal(ftruncate(f->arena_fd[i], (off_t)bytes), 0);
	f->arena[i] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->arena_fd[i], 0);
	assert_true(f->arena[i] != MAP_FAILED);
}

static void free_arena(struct fake_engine *f, unsigned i, size_t bytes)
{
	munmap(f->arena[i], bytes);
	close(f->arena_fd[i]);
}

struct fake_engine *fake_new(void)
{
	struct fake_engine *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	_Static_assert(FAKE_ARENA0 >= 4096 + sizeof(struct abi_doorbells), "too small");
	new_arena(f, 0, FAKE_ARENA0);
	new_arena(f, 1, FAKE_ARENA);
	f->page = (struct abi_engine_page *)f->arena[0];
	f->doorbells = (struct abi_doorbells *)(f->arena[0] + 4096);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, f->async), 0);
	return f;
}

void fake_free(struct fake_engine *f)
{
	for (unsigned i = 0; i < f->channels; i++) {
		close(f->channel[i][0]);
		close(f->channel[i][1]);
	}
	close(f->async[0]);
	close(f->async[1]);
	free_arena(f, 0, FAKE_ARENA0);
	free_arena(f, 1, FAKE_ARENA);
	free(f);
}

struct fake_engine *fake_open(struct uroce_context **ctx)
{
	struct fake_engine *f = fake_new();
	struct uroce_open_attr attr = fake_open_attr(f);
	assert_int_equal(context_open(&fake_session_ops, f, &attr, ctx), 0);
	return f;
}

/* ---- what a poll core does ---- */

unsigned fake_count(const struct fake_engine *f, enum abi_msg type)
{
	unsigned n = 0;
	for (unsigned i = 0; i < f->reqs; i++)
		n += f->req[i].type == type;
	return n;
}

const struct abi_req *fake_last(const struct fake_engine *f, enum abi_msg type)
{
	for (unsigned i = f->reqs; i-- > 0;)
		if (f->req[i].type == type)
			return &f->req[i];
	fail_msg("request %d was never made", (int)type);
	return NULL;
}

void *fake_slot(const struct fake_ring *r, uint32_t index)
{
	return r->slots + (size_t)(index % r->count) * r->slot_bytes;
}

uint32_t fake_tail(const struct fake_ring *r)
{
	return atomic_load_explicit(&r->ring->client_index, memory_order_acquire);
}

void fake_release(struct fake_ring *r, uint32_t n)
{
	atomic_fetch_add_explicit(&r->ring->engine_index, n, memory_order_release);
}

unsigned fake_take_doorbells(struct fake_engine *f, uint32_t *last)
{
	unsigned n = 0;
	for (uint32_t t = 0; t < ABI_DOORBELL_TOP; t++) {
		uint64_t top = atomic_exchange(&f->doorbells->top[t], 0);
		for (; top; top &= top - 1) {
			uint32_t w = t * 64 + (uint32_t)__builtin_ctzll(top);
			uint64_t word = atomic_exchange(&f->doorbells->word[w], 0);
			for (; word; word &= word - 1, n++)
				*last = w * 64 + (uint32_t)__builtin_ctzll(word);
		}
	}
	return n;
}

void fake_fire(struct fake_engine *f, const struct fake_cq *cq)
{
	assert_true(cq->channel > 0);
	assert_int_equal(write(f->channel[cq->channel - 1][1], &cq->cookie, 8), 8);
}

void fake_write_cqe(struct fake_cq *cq, const struct abi_cqe *cqe)
{
	memcpy(fake_slot(&cq->r, cq->tail), cqe, offsetof(struct abi_cqe, phase));
	atomic_store_explicit(&cq->r.ring->engine_index, cq->tail + 1, memory_order_release);
}

void fake_complete(struct fake_engine *f, struct fake_cq *cq, const struct abi_cqe *cqe, bool is_solicited)
{
	struct abi_cqe *e = fake_slot(&cq->r, cq->tail);
	uint32_t arm;
	fake_write_cqe(cq, cqe);
	atomic_store_explicit(&e->phase, !(cq->tail / cq->r.count % 2), memory_order_release);
	cq->tail++;
	atomic_thread_fence(memory_order_seq_cst);
	arm = atomic_load(&cq->r.ring->arm);
	if (arm == ABI_ARM_ANY || (arm == ABI_ARM_SOLICITED && (is_solicited || cqe->status))) {
		if (atomic_exchange(&cq->r.ring->arm, ABI_ARM_NONE) != ABI_ARM_NONE)
			fake_fire(f, cq);
	}
}

void fake_complete_id(struct fake_engine *f, struct fake_cq *cq, uint32_t qpn, uint64_t wr_id)
{
	struct abi_cqe e = { .wr_id = wr_id, .qpn = qpn };
	fake_complete(f, cq, &e, false);
}

struct abi_cqe fake_cqe_of(const struct fake_engine *f, unsigned qp, bool is_rq, uint32_t index)
{
	const struct fake_ring *r = is_rq ? &f->qp[qp].rq : &f->qp[qp].sq;
	const struct abi_recv_wqe *recv = fake_slot(r, index);
	const struct abi_send_wqe *send = fake_slot(r, index);
	return (struct abi_cqe){ .wr_id = is_rq ? recv->wr_id : send->wr_id, .qpn = f->qp[qp].qpn,
		.opcode = is_rq ? ABI_WC_RECV : ABI_WC_SEND, .index = index };
}

void fake_finish(struct fake_engine *f, struct fake_cq *cq, unsigned qp, bool is_rq)
{
	struct fake_ring *r = is_rq ? &f->qp[qp].rq : &f->qp[qp].sq;
	struct abi_cqe cqe = fake_cqe_of(f, qp, is_rq, atomic_load(&r->ring->engine_index));
	fake_release(r, 1);
	fake_complete(f, cq, &cqe, false);
}

void fake_async(struct fake_engine *f, uint64_t cookie, uint32_t type)
{
	struct abi_async_event e = { .cookie = cookie, .type = type };
	assert_int_equal(write(f->async[1], &e, sizeof(e)), sizeof(e));
}
