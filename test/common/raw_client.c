/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's end of rings and requests. Owns the client's indices; trusts the core, which it tests. */
#include "raw_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "direct_hooks.h"
#include "modify.h"

static void give_up(const char *what, int rc)
{
	fprintf(stderr, "raw client: %s: %s\n", what, strerror(-rc));
	exit(2);
}

static void must(int rc, const char *what)
{
	if (rc)
		give_up(what, rc);
}

struct core *raw_core_new(uint32_t core_index, uint32_t cores, uint64_t now_ns)
{
	struct core *core;
	struct gid gid;
	uint32_t index;
	struct core_config config = { .name = "raw", .addr = { .mode = ADDR_OWN, .mac = { 2, 0, 0, 0, 0, 1 } }, .max_frame = 4300, .core_index = core_index, .cores = cores, .seed = 1 + core_index, .hooks = &direct_hooks };
	must(core_new(&core, &config, now_ns), "core");
	must(gid_parse("10.0.0.1", &gid), "address");
	must(addr_gid_add(core_addr(core), &gid, VLAN_NONE, 24, &index), "address");
	return core;
}

int raw_ask(struct raw_client *c, const struct abi_req *req)
{
	core_control(c->k, *c->clock, req, &c->rep);
	return c->rep.status;
}

int raw_ask_handle(struct raw_client *c, enum abi_msg type, uint32_t handle)
{
	return raw_ask(c, &(struct abi_req){ .type = type, .handle = handle });
}

static void must_ask(struct raw_client *c, const struct abi_req *req)
{
	if (raw_ask(c, req))
		give_up(c->rep.text, c->rep.status);
}

static void *at(const struct raw_client *c, uint32_t arena, uint64_t offset)
{
	void *base;
	uint64_t bytes;
	int fd;
	must(core_client_region(c->k, arena, &base, &bytes, &fd), "region");
	return (uint8_t *)base + offset;
}

void raw_open(struct raw_client *c, struct core *core, const uint64_t *clock)
{
	*c = (struct raw_client){ .core = core, .clock = clock };
	must(core_client_new(core, &c->k), "client");
	core_client_attach(c->k);
	c->page = at(c, 0, 0);
	c->doorbells = at(c, 0, 4096);
	must_ask(c, &(struct abi_req){ .type = ABI_CREATE_PD });
	c->pd = c->rep.handle;
}

void raw_memory_new(struct raw_client *c, uint64_t bytes, struct raw_memory *m)
{
	must_ask(c, &(struct abi_req){ .type = ABI_ALLOC_MEMORY, .alloc_memory = { bytes } });
	*m = (struct raw_memory){ .handle = c->rep.handle, .bytes = c->rep.memory.bytes, .host = at(c, c->rep.memory.arena, c->rep.memory.offset) };
	must_ask(c, &(struct abi_req){ .type = ABI_REG_MR, .reg_mr = { .pd = c->pd, .access = MEM_ACCESS_ALL, .len = m->bytes, .memory = m->handle } });
	m->mr = c->rep.handle;
	m->key = c->rep.mr.lkey;
}

void raw_cq_new(struct raw_client *c, uint32_t entries, uint32_t channel, struct raw_cq *q)
{
	must_ask(c, &(struct abi_req){ .type = ABI_CREATE_CQ, .create_cq = { .entries = entries, .channel = channel } });
	const struct abi_ring_place *p = &c->rep.cq.ring;
	*q = (struct raw_cq){ .handle = c->rep.handle, .n = p->slots, .ring = at(c, p->arena, p->control_offset), .slots = at(c, p->arena, p->slots_offset) };
	memset(q->slots, 0, (size_t)p->slots * p->slot_bytes); /* the client's to clear */
}

struct raw_ring raw_ring_of(const struct raw_client *c, const struct abi_ring_place *p)
{
	return (struct raw_ring){ .ring = at(c, p->arena, p->control_offset), .slots = at(c, p->arena, p->slots_offset), .n = p->slots, .slot_bytes = p->slot_bytes };
}

void raw_srq_new(struct raw_client *c, uint32_t max_wr, uint32_t max_sge, struct raw_srq *q)
{
	must_ask(c, &(struct abi_req){ .type = ABI_CREATE_SRQ, .create_srq = { .pd = c->pd, .max_wr = max_wr, .max_sge = max_sge, .cookie = 0x5005 } });
	*q = (struct raw_srq){ .handle = c->rep.handle, .rq = raw_ring_of(c, &c->rep.srq.ring) };
}

void raw_qp_new(struct raw_client *c, const struct raw_cq *send, const struct raw_cq *recv, const struct abi_qp_cap *cap, struct raw_qp *q)
{
	must_ask(c, &(struct abi_req){ .type = ABI_CREATE_QP, .create_qp = { .pd = c->pd, .send_cq = send->handle, .recv_cq = recv->handle, .service = c->service, .flags = c->flags, .srq = c->srq, .cap = *cap } });
	*q = (struct raw_qp){ .handle = c->rep.handle, .qpn = c->rep.qp.qpn, .doorbell = c->rep.qp.doorbell, .service = c->service, .sq = raw_ring_of(c, &c->rep.qp.sq) };
	if (!c->srq)
		q->rq = raw_ring_of(c, &c->rep.qp.rq);
}

void raw_connect(struct raw_client *c, const struct raw_qp *q, const char *peer, uint32_t dest_qpn)
{
	struct abi_req modify = { .type = ABI_MODIFY_QP, .modify_qp = { .qp = q->handle } };
	struct gid gid;
	must(gid_parse(peer, &gid), "peer");
	modify.modify_qp.attr = (struct abi_qp_attr){ .port_num = 1, .path_mtu = ABI_MTU_4096, .dest_qpn = dest_qpn, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4, .max_dest_rd_atomic = 4,
		.access = MEM_ACCESS_ALL, .min_rnr_timer = 1 };
	memcpy(modify.modify_qp.attr.av.dgid, gid.b, 16);
	for (uint32_t from = ABI_QP_RESET; from < ABI_QP_RTS; from++) {
		modify.modify_qp.mask = ABI_QP_STATE | qp_transitions[q->service][from][from + 1].required;
		modify.modify_qp.attr.state = (uint8_t)(from + 1);
		must_ask(c, &modify);
	}
}

int raw_set_state(struct raw_client *c, const struct raw_qp *q, uint32_t state)
{
	return raw_ask(c, &(struct abi_req){ .type = ABI_MODIFY_QP, .modify_qp = { .qp = q->handle, .mask = ABI_QP_STATE, .attr = { .state = (uint8_t)state } } });
}

void raw_post(struct raw_ring *r, const void *wqe, uint32_t bytes)
{
	memcpy(r->slots + (size_t)(r->tail & (r->n - 1)) * r->slot_bytes, wqe, bytes);
	atomic_store_explicit(&r->ring->client_index, ++r->tail, memory_order_release);
}

bool raw_ring_doorbell(struct raw_client *c, const struct raw_qp *q, const struct raw_ring *r)
{
	uint32_t n = q->doorbell;
	atomic_thread_fence(memory_order_seq_cst); /* publish, full fence, read the flag */
	if (atomic_load_explicit(&r->ring->looking, memory_order_relaxed))
		return false;
	atomic_fetch_or_explicit(&c->doorbells->word[n / 64], 1ull << (n % 64), memory_order_release);
	atomic_fetch_or_explicit(&c->doorbells->top[n / 4096], 1ull << (n / 64 % 64), memory_order_release);
	return true;
}

void raw_write(struct raw_client *c, struct raw_qp *q, uint64_t wr_id, const struct raw_memory *to)
{
	struct abi_send_wqe w = { .wr_id = wr_id, .opcode = ABI_OP_WRITE, .flags = ABI_SEND_SIGNALED | ABI_SEND_INLINE, .inline_len = 8, .rkey = to->key };
	memcpy(w.inline_data, &wr_id, 8);
	raw_post(&q->sq, &w, sizeof(w));
	raw_ring_doorbell(c, q, &q->sq);
}

bool raw_poll(struct raw_cq *q, struct abi_cqe *out)
{
	const struct abi_cqe *c = &q->slots[q->head & (q->n - 1)];
	uint32_t phase = !(q->head & q->n);
	/* acquire: with the phase comes the body */
	if (atomic_load_explicit(&c->phase, memory_order_acquire) != phase)
		return false;
	memcpy(out, c, sizeof(*out));
	/* release: the slot has been read before it is given back */
	atomic_store_explicit(&q->ring->client_index, ++q->head, memory_order_release);
	return true;
}
