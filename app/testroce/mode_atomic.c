/* SPDX-License-Identifier: BSD-3-Clause */
/* FETCH_ADD and COMPARE_SWAP in turn on one word of the server's for each QP. They are executed once each and in order, so what each must find there is known when it is posted. */
#include <inttypes.h>
#include <string.h>

#include "end.h"

#define ADDEND UINT64_C(0x9e3779b97f4a7c15)
#define DEPTH 128u

struct words {
	uint64_t value;           /* of the server's word when all that was posted is done */
	uint64_t expected[DEPTH]; /* by slot: what it was before */
};

static void choose(struct words *w, uint64_t n, struct uroce_send_wr *wr)
{
	static const enum uroce_opcode turn[3] = { UROCE_OP_FETCH_ADD, UROCE_OP_COMPARE_SWAP, UROCE_OP_COMPARE_SWAP };
	bool is_met = n % 3 == 1; /* every second swap compares with what is not there */
	wr->opcode = turn[n % 3];
	wr->compare_add = wr->opcode == UROCE_OP_FETCH_ADD ? ADDEND : is_met ? w->value : w->value + 1;
	wr->swap = n * ADDEND;
	if (wr->opcode == UROCE_OP_FETCH_ADD)
		w->value += ADDEND;
	else if (is_met)
		w->value = wr->swap;
}

static int step(struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++) {
		struct lane *l = &e->lane[i];
		struct words *w = l->state;
		while (end_has_room(e, l)) {
			uint32_t slot = (uint32_t)(l->posted % e->config.depth);
			struct uroce_sge sge = { (uintptr_t)end_in(e, l, slot), 8, uroce_mr_lkey(l->home->mr) };
			struct uroce_send_wr wr = { .sg_list = &sge, .num_sge = 1, .remote_addr = end_remote(e, l, 0), .rkey = e->remote_rkey };
			w->expected[slot] = w->value;
			choose(w, l->posted, &wr);
			l->posted++;
			if (end_send(e, l, slot, &wr))
				return -1;
		}
	}
	return 0;
}

static int on_sent(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	const struct words *w = l->state;
	uint64_t found;
	memcpy(&found, end_in(e, l, slot), 8);
	if (found != w->expected[slot])
		return end_fail(e, "WRONG DATA: QP 0x%x: atomic %" PRIu64 " found 0x%" PRIx64 " instead of 0x%" PRIx64, wc->qpn, l->done, found, w->expected[slot]);
	end_count(e, TALLY_VERIFIED, 1);
	end_done(e, l, 8);
	return end_check_guard(e, l, end_in(e, l, slot), 8);
}

static int clear_words(struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++)
		memset(end_in(e, &e->lane[i], 0), 0, 8);
	return 0;
}

const struct mode mode_atomic = {
	.name = "atomic", .help = "FETCH_ADD and COMPARE_SWAP on words of the server's", .service = UROCE_RC, .opcode = UROCE_OP_FETCH_ADD, .fixed_size = 8, .most_depth = DEPTH, .state_bytes = sizeof(struct words),
	.client = { .step = step, .on_sent = on_sent },
	.server = { .begin = clear_words },
};
