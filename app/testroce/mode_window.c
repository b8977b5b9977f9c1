/* SPDX-License-Identifier: BSD-3-Clause */
/* How storage is served: the server opens a memory window of type 2 for each message and tells its key, the client WRITEs through it and gives it back by a SEND with invalidate. The client's own memory is registered for each message, too,
 * by REG_MR, and taken back by LOCAL_INV. A key is good for one message. All is in order: message n goes through slot n modulo the depth, on both sides. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "end.h"

#define DEPTH 32u

/* Keys by slot. */
struct keys {
	struct uroce_mw *mw[DEPTH];  /* server: its windows; */
	struct uroce_mr *mr[DEPTH];  /* client: what is registered anew */
	uint32_t own[DEPTH];         /* of these, as posted last */
	uint32_t granted[DEPTH];     /* client: the server's windows */
	uint64_t grants;             /* how many have come */
};

static uint64_t window_bytes(const struct end *e)
{
	return e->config.size ? e->config.size : 1; /* nothing can be bound to no bytes */
}

/* ---- server ---- */

/* Opens the window of a slot, and then says so: the SEND is behind the bind in one queue. */
static int grant(struct end *e, struct lane *l, uint32_t slot)
{
	struct keys *k = l->state;
	struct uroce_bind to = { .addr = (uintptr_t)end_in(e, l, slot), .len = window_bytes(e), .lkey = uroce_mr_lkey(l->home->mr), .access = UROCE_ACCESS_REMOTE_WRITE };
	struct uroce_send_wr bind = { .opcode = UROCE_OP_BIND_MW, .bind = &to, .rkey = k->own[slot] = uroce_inc_rkey(k->own[slot]) };
	struct uroce_send_wr tell = { .opcode = UROCE_OP_SEND_WITH_IMM, .imm = k->own[slot] };
	int err = end_send(e, l, slot, &bind);
	l->posted += !err;
	return err ? err : end_send(e, l, slot, &tell);
}

static int open_windows(struct end *e, struct lane *l)
{
	struct keys *k = l->state;
	for (uint32_t slot = 0; slot < e->config.depth; slot++) {
		int err = uroce_mw_create(l->home->pd, UROCE_MW_TYPE_2, &k->mw[slot]);
		if (err)
			return end_fail(e, "no memory window: %s", strerror(-err));
		k->own[slot] = uroce_mw_rkey(k->mw[slot]);
		if (end_receive_nothing(e, l, slot) || grant(e, l, slot))
			return -EIO;
	}
	return 0;
}

static int begin_server(struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++)
		if (open_windows(e, &e->lane[i]))
			return -EIO;
	return 0;
}

static int on_granted(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	l->done += wc->opcode == UROCE_WC_SEND;
	return 0;
}

static int on_given_back(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	const struct keys *k = l->state;
	uint64_t n = l->received++;
	slot = (uint32_t)(n % e->config.depth);
	end_count(e, TALLY_MESSAGES, 1);
	end_count(e, TALLY_BYTES, e->config.size);
	if (!(wc->flags & UROCE_WC_HAS_INVALIDATED) || wc->invalidated_rkey != k->own[slot])
		return end_fail(e, "WRONG DATA: QP 0x%x: message %" PRIu64 " gives back key 0x%x (flags 0x%x) instead of 0x%x", wc->qpn, n, wc->invalidated_rkey, wc->flags, k->own[slot]);
	if (end_check(e, l, n, end_in(e, l, slot), e->config.size) || end_check_guard(e, l, end_in(e, l, slot), e->config.size))
		return -EIO;
	return end_receive_nothing(e, l, slot) ? -EIO : grant(e, l, slot);
}

/* ---- client ---- */

static int begin_client(struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++)
		for (uint32_t slot = 0; slot < e->config.depth; slot++) {
			struct lane *l = &e->lane[i];
			struct keys *k = l->state;
			int err = uroce_mr_alloc(l->home->pd, &k->mr[slot]);
			if (err)
				return end_fail(e, "no MR for REG_MR: %s", strerror(-err));
			k->own[slot] = uroce_mr_rkey(k->mr[slot]);
			if (end_receive_nothing(e, l, slot))
				return -EIO;
		}
	return 0;
}

static int send_message(struct end *e, struct lane *l, uint32_t slot)
{
	struct keys *k = l->state;
	uint8_t *data = end_out(e, l, slot);
	struct uroce_bind from = { .addr = (uintptr_t)data, .len = window_bytes(e), .lkey = uroce_mr_lkey(l->home->mr), .iova = (uintptr_t)data };
	struct uroce_sge sge = { (uintptr_t)data, (uint32_t)e->config.size, k->own[slot] = uroce_inc_rkey(k->own[slot]) };
	struct uroce_send_wr wr[] = {
		{ .opcode = UROCE_OP_REG_MR, .bind = &from, .rkey = k->own[slot] },
		{ .opcode = UROCE_OP_WRITE, .sg_list = &sge, .num_sge = 1, .remote_addr = end_remote(e, l, slot), .rkey = k->granted[slot] },
		{ .opcode = UROCE_OP_SEND_WITH_INV, .invalidate_rkey = k->granted[slot] },
		{ .opcode = UROCE_OP_LOCAL_INV, .invalidate_rkey = k->own[slot] },
	};
	for (unsigned i = 0; i < sizeof(wr) / sizeof(wr[0]); i++)
		if (end_send(e, l, slot, &wr[i]))
			return -EIO;
	return 0;
}

static int step(struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++) {
		struct lane *l = &e->lane[i];
		const struct keys *k = l->state;
		while (end_has_room(e, l) && l->posted < k->grants) {
			uint32_t slot = (uint32_t)(l->posted % e->config.depth);
			end_fill(e, l, l->posted++, end_out(e, l, slot), e->config.size);
			if (send_message(e, l, slot))
				return -EIO;
		}
	}
	return 0;
}

static int on_grant(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	struct keys *k = l->state;
	if (!(wc->flags & UROCE_WC_HAS_IMM) || wc->byte_len)
		return end_fail(e, "WRONG DATA: QP 0x%x: a key came with %u bytes, and flags 0x%x", wc->qpn, wc->byte_len, wc->flags);
	k->granted[k->grants++ % e->config.depth] = wc->imm;
	return end_receive_nothing(e, l, slot);
}

/* The last of a message's WRs. */
static int on_sent(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	if (wc->opcode == UROCE_WC_LOCAL_INV)
		end_done(e, l, e->config.size);
	return 0;
}

static void end(struct lane *l)
{
	struct keys *k = l->state;
	for (unsigned slot = 0; slot < DEPTH; slot++) {
		uroce_mw_destroy(k->mw[slot]);
		uroce_mr_deregister(k->mr[slot]);
	}
}

const struct mode mode_window = {
	.name = "window", .help = "WRITE through windows of type 2, given back by SEND with invalidate; REG_MR and LOCAL_INV at the client", .service = UROCE_RC, .opcode = UROCE_OP_WRITE, .is_receiving = true,
	.is_answering = true, .wrs = 4, .most_depth = DEPTH, .state_bytes = sizeof(struct keys),
	.client = { .begin = begin_client, .step = step, .on_sent = on_sent, .on_received = on_grant, .end = end },
	.server = { .begin = begin_server, .on_sent = on_granted, .on_received = on_given_back, .end = end },
};
