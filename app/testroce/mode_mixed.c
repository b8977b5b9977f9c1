/* SPDX-License-Identifier: BSD-3-Clause */
/* Random operations against a model of the server's memory. What operation n of a QP is follows from seed, QP and n alone, so that both ends know it: the client keeps a copy of the part of the server's memory that is the QP's, changes it as
 * it posts, and compares what READs and atomics bring with the copy as it was then; the server knows what each receive must bring. At the end all of it is read and compared.
 * Now and then the client registers its own memory anew by REG_MR, names it by that key, and takes the key back by LOCAL_INV, which waits for what was posted before. What not both devices have is left out.
 * Operations that would let the answer to an earlier READ change wait for it by a fence (IBA vol. 1, 10.8.3.3). */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "end.h"
#include "names.h"
#include "pattern.h"
#include "random.h"

#define DEPTH 32u
#define MEMORY_MAX 65536u /* of the server's, for each QP */

/* One operation, as it follows from its number. */
struct operation {
	enum uroce_opcode opcode;
	uint32_t len;    /* bytes */
	uint32_t offset; /* in the server's memory */
	uint64_t operand;
};

struct model {
	uint8_t memory[MEMORY_MAX];
	uint8_t expected[DEPTH][MEMORY_MAX / 4]; /* by slot: what a READ must bring, or an atomic find */
	uint64_t reads, reads_done; /* outstanding: those with an answer that a later operation could change */
	struct uroce_mr *mr;        /* the client's memory of this lane, registered anew: */
	uint32_t key, last_key;     /* 0: it is not now */
	uint32_t checked;           /* bytes of the last look asked for, */
	uint32_t asked[DEPTH];      /* and how many of them by each slot */
};

static bool is_write(enum uroce_opcode o)
{
	return o == UROCE_OP_WRITE || o == UROCE_OP_WRITE_WITH_IMM || o == UROCE_OP_ATOMIC_WRITE;
}

/* Of one word. */
static bool is_word(enum uroce_opcode o)
{
	return o == UROCE_OP_COMPARE_SWAP || o == UROCE_OP_FETCH_ADD || o == UROCE_OP_ATOMIC_WRITE;
}

static bool is_atomic(enum uroce_opcode o)
{
	return o == UROCE_OP_COMPARE_SWAP || o == UROCE_OP_FETCH_ADD;
}

static uint32_t memory_bytes(const struct end *e)
{
	uint64_t room = (uint64_t)e->slots_in * e->stride;
	return (uint32_t)(room < MEMORY_MAX ? room : MEMORY_MAX) & ~7u;
}

static uint32_t choose_len(struct rng *r, uint32_t most)
{
	static const uint32_t edges[] = { 0, 1, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097 };
	uint32_t len = edges[rng_below(r, sizeof(edges) / sizeof(edges[0]))];
	return rng_below(r, 3) && len <= most ? len : (uint32_t)rng_below(r, (uint64_t)most + 1);
}

/* REG_MR stands for LOCAL_INV, too: which of them it is the client's key says. */
static enum uroce_opcode choose_opcode(const struct end *e, struct rng *r)
{
	static const struct {
		enum uroce_opcode opcode;
		uint32_t cap; /* enum uroce_device_cap, 0: every device has it */
	} all[] = {
		{ UROCE_OP_SEND, 0 }, { UROCE_OP_SEND_WITH_IMM, 0 }, { UROCE_OP_WRITE, 0 }, { UROCE_OP_WRITE, 0 }, { UROCE_OP_WRITE_WITH_IMM, 0 }, { UROCE_OP_READ, 0 }, { UROCE_OP_READ, 0 }, { UROCE_OP_COMPARE_SWAP, 0 },
		{ UROCE_OP_FETCH_ADD, 0 }, { UROCE_OP_ATOMIC_WRITE, UROCE_CAP_ATOMIC_WRITE }, { UROCE_OP_FLUSH, UROCE_CAP_FLUSH_GLOBAL }, { UROCE_OP_REG_MR, 0 },
	};
	for (;;) {
		size_t i = rng_below(r, sizeof(all) / sizeof(all[0]));
		if (!all[i].cap || e->caps & all[i].cap)
			return all[i].opcode;
	}
}

static struct operation choose(const struct end *e, const struct lane *l, uint64_t n)
{
	uint32_t most = e->config.size < MEMORY_MAX / 4 ? (uint32_t)e->config.size : MEMORY_MAX / 4;
	struct operation o;
	struct rng r;
	rng_seed(&r, e->config.seed ^ (n + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)(l->number + 1) << 48);
	o.opcode = choose_opcode(e, &r);
	o.len = is_word(o.opcode) ? 8 : o.opcode == UROCE_OP_REG_MR ? 0 : choose_len(&r, most);
	o.offset = (uint32_t)rng_below(&r, memory_bytes(e) - o.len + 1);
	if (is_word(o.opcode))
		o.offset &= ~7u;
	o.operand = rng_next(&r);
	return o;
}

/* ---- client ---- */

static void apply_atomic(struct model *m, const struct operation *o, struct uroce_send_wr *wr)
{
	uint64_t value;
	memcpy(&value, m->memory + o->offset, 8);
	bool is_met = o->operand & 1;
	wr->swap = o->operand;
	wr->compare_add = o->opcode == UROCE_OP_FETCH_ADD ? o->operand : is_met ? value : ~value;
	if (o->opcode == UROCE_OP_FETCH_ADD)
		value += o->operand;
	else if (is_met)
		value = o->operand;
	memcpy(m->memory + o->offset, &value, 8);
}

/* What the operation does to the model, and what it must find there. */
static void apply(struct end *e, struct lane *l, uint64_t n, const struct operation *o, uint32_t slot, struct uroce_send_wr *wr)
{
	struct model *m = l->state;
	if (is_atomic(o->opcode) || o->opcode == UROCE_OP_READ) {
		memcpy(m->expected[slot], m->memory + o->offset, o->len);
		memset(end_in(e, l, slot), PATTERN_GUARD, e->stride);
	} else {
		end_fill(e, l, n, end_out(e, l, slot), o->len);
	}
	if (is_write(o->opcode))
		memcpy(m->memory + o->offset, end_out(e, l, slot), o->len);
	if (is_atomic(o->opcode))
		apply_atomic(m, o, wr);
}

/* The client's memory gets a key of its own, or loses it. */
static int post_key(struct end *e, struct lane *l, uint32_t slot)
{
	struct model *m = l->state;
	struct uroce_bind all = { .addr = (uintptr_t)l->in, .len = e->lane_bytes, .lkey = uroce_mr_lkey(l->home->mr), .access = UROCE_ACCESS_LOCAL_WRITE, .iova = (uintptr_t)l->in };
	struct uroce_send_wr drop = { .opcode = UROCE_OP_LOCAL_INV, .invalidate_rkey = m->key }, take = { .opcode = UROCE_OP_REG_MR, .bind = &all, .rkey = uroce_inc_rkey(m->last_key) };
	bool is_taken = m->key != 0;
	if (!is_taken)
		m->last_key = take.rkey;
	m->key = is_taken ? 0 : take.rkey;
	return end_send(e, l, slot, is_taken ? &drop : &take);
}

static int post_flush(struct end *e, struct lane *l, uint32_t slot, const struct operation *o)
{
	struct uroce_send_wr wr = { .opcode = UROCE_OP_FLUSH, .remote_addr = l->remote_addr + o->offset, .rkey = e->remote_rkey,
		.flush = { o->len, UROCE_FLUSH_GLOBAL, o->operand & 1 ? UROCE_FLUSH_MR : UROCE_FLUSH_RANGE } };
	return end_send(e, l, slot, &wr);
}

static int post_data(struct end *e, struct lane *l, uint64_t n, const struct operation *o, uint32_t slot)
{
	struct model *m = l->state;
	bool is_fetching = is_atomic(o->opcode) || o->opcode == UROCE_OP_READ;
	uint8_t *at = is_fetching ? end_in(e, l, slot) : end_out(e, l, slot);
	/* in two pieces, as often as not */
	uint32_t first = is_word(o->opcode) ? o->len : (uint32_t)(o->operand % (o->len + 1));
	uint32_t lkey = m->key ? m->key : uroce_mr_lkey(l->home->mr);
	struct uroce_sge sge[2] = { { (uintptr_t)at, first, lkey }, { (uintptr_t)at + first, o->len - first, lkey } };
	struct uroce_send_wr wr = { .sg_list = sge, .num_sge = first == o->len ? 1 : 2, .opcode = o->opcode, .imm = (uint32_t)n, .remote_addr = l->remote_addr + o->offset, .rkey = e->remote_rkey };
	if ((is_write(o->opcode) || is_atomic(o->opcode)) && m->reads != m->reads_done)
		wr.flags |= UROCE_SEND_FENCE;
	m->reads += is_fetching;
	apply(e, l, n, o, slot, &wr);
	return end_send(e, l, slot, &wr);
}

static int post(struct end *e, struct lane *l, uint64_t n, const struct operation *o)
{
	uint32_t slot = (uint32_t)(n % e->config.depth);
	if (o->opcode == UROCE_OP_REG_MR)
		return post_key(e, l, slot);
	return o->opcode == UROCE_OP_FLUSH ? post_flush(e, l, slot, o) : post_data(e, l, n, o, slot);
}

static int make_keys(struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++) {
		struct model *m = e->lane[i].state;
		int err = uroce_mr_alloc(e->lane[i].home->pd, &m->mr);
		if (err)
			return end_fail(e, "no MR for REG_MR: %s", strerror(-err));
		m->last_key = uroce_mr_rkey(m->mr);
	}
	return 0;
}

static void free_key(struct lane *l)
{
	uroce_mr_deregister(((struct model *)l->state)->mr);
}

static int step(struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++) {
		struct lane *l = &e->lane[i];
		while (end_has_room(e, l)) {
			struct operation o = choose(e, l, l->posted);
			if (post(e, l, l->posted++, &o))
				return -1;
		}
	}
	return 0;
}

static int compare(struct end *e, const struct lane *l, const struct operation *o, uint32_t slot)
{
	const struct model *m = l->state;
	const uint8_t *found = end_in(e, l, slot);
	uint32_t at = 0;
	while (at < o->len && found[at] == m->expected[slot][at])
		at++;
	if (at == o->len) {
		end_count(e, TALLY_VERIFIED, 1);
		return end_check_guard(e, l, found, o->len);
	}
	return end_fail(e, "WRONG DATA: seed %" PRIu64 ", QP %u, operation %" PRIu64 ", %s of %u bytes at offset %u: byte %u is 0x%02x instead of 0x%02x", e->config.seed, l->number, l->done, name_opcode(o->opcode), o->len,
		o->offset, at, found[at], m->expected[slot][at]);
}

static int on_sent(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	struct model *m = l->state;
	struct operation o = choose(e, l, l->done);
	if (m->checked) /* the last look */
		o = (struct operation){ UROCE_OP_READ, m->asked[slot], 0, 0 };
	bool is_fetching = wc->opcode == UROCE_WC_READ || wc->opcode == UROCE_WC_COMPARE_SWAP || wc->opcode == UROCE_WC_FETCH_ADD;
	m->reads_done += is_fetching;
	if (is_fetching && wc->byte_len != o.len)
		return end_fail(e, "WRONG DATA: QP %u, operation %" PRIu64 ": %u bytes instead of %u", l->number, l->done, wc->byte_len, o.len);
	if (is_fetching && compare(e, l, &o, slot))
		return -1;
	end_done(e, l, o.opcode == UROCE_OP_FLUSH ? 0 : o.len);
	return 0;
}

/* The next pieces of the memory, as many as may be outstanding. */
static int look_further(struct end *e)
{
	int posted = 0;
	uint32_t piece = e->config.size < MEMORY_MAX / 4 ? (uint32_t)e->config.size : MEMORY_MAX / 4, all = memory_bytes(e);
	for (uint32_t i = 0; i < e->config.qps; i++) {
		struct lane *l = &e->lane[i];
		struct model *m = l->state;
		for (uint32_t slot = 0; piece && slot < e->config.depth && m->checked < all; slot++) {
			uint32_t len = piece < all - m->checked ? piece : all - m->checked;
			struct uroce_sge sge = { (uintptr_t)end_in(e, l, slot), len, uroce_mr_lkey(l->home->mr) };
			struct uroce_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_READ, .remote_addr = l->remote_addr + m->checked, .rkey = e->remote_rkey };
			memcpy(m->expected[slot], m->memory + m->checked, len);
			memset(end_in(e, l, slot), PATTERN_GUARD, e->stride);
			m->asked[slot] = len;
			m->checked += len;
			m->reads++;
			l->posted++;
			posted++;
			if (end_send(e, l, slot, &wr))
				return -1;
		}
	}
	return posted;
}

/* ---- server ---- */

static int clear_memory(struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++)
		memset(e->lane[i].in, 0, memory_bytes(e));
	for (uint32_t i = 0; i < e->config.qps; i++)
		for (uint32_t slot = 0; slot < e->recv_depth; slot++) {
			struct lane *l = &e->lane[i];
			struct uroce_sge sge = { (uintptr_t)end_out(e, l, slot), (uint32_t)e->config.size, uroce_mr_lkey(l->home->mr) };
			if (end_receive_into(e, l, slot, &sge))
				return -1;
		}
	return 0;
}

static int on_received(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	struct operation o = choose(e, l, l->next);
	for (; !end_takes_receive(o.opcode); o = choose(e, l, l->next))
		l->next++;
	uint64_t n = l->next++;
	bool is_imm_write = o.opcode == UROCE_OP_WRITE_WITH_IMM, has_imm = o.opcode != UROCE_OP_SEND;
	struct uroce_sge sge = { (uintptr_t)end_out(e, l, slot), (uint32_t)e->config.size, uroce_mr_lkey(l->home->mr) };
	end_count(e, TALLY_MESSAGES, 1);
	end_count(e, TALLY_BYTES, o.len);
	if (wc->byte_len != o.len || wc->opcode != (is_imm_write ? UROCE_WC_RECV_WRITE_WITH_IMM : UROCE_WC_RECV) || !!(wc->flags & UROCE_WC_HAS_IMM) != has_imm || (has_imm && wc->imm != (uint32_t)n))
		return end_fail(e, "WRONG DATA: seed %" PRIu64 ", QP %u, operation %" PRIu64 ": %s of %u bytes, and not what came: %u bytes, immediate %u, flags 0x%x", e->config.seed, l->number, n, name_opcode(o.opcode), o.len,
			wc->byte_len, wc->imm, wc->flags);
	if (!is_imm_write && end_check(e, l, n, end_out(e, l, slot), o.len))
		return -1;
	return end_receive_into(e, l, slot, &sge);
}

const struct mode mode_mixed = {
	.name = "mixed", .help = "random operations of RC, checked against a model of the server's memory", .service = UROCE_RC, .opcode = UROCE_OP_SEND, .is_receiving = true, .most_depth = DEPTH,
	.state_bytes = sizeof(struct model),
	.client = { .begin = make_keys, .step = step, .on_sent = on_sent, .finish = look_further, .end = free_key },
	.server = { .begin = clear_memory, .on_received = on_received },
};
