/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. Message n of a lane is in slot n modulo the depth; its bytes follow from lane and n, so that what was lost, repeated or put elsewhere shows. */
#include "one_way.h"

static uint64_t header_bytes(const struct end *e)
{
	return e->mode->service == UROCE_UD ? END_GRH_BYTES : 0;
}

int one_way_step_lane(struct end *e, struct lane *l)
{
	while (end_has_room(e, l)) {
		uint32_t slot = (uint32_t)(l->posted % e->config.depth);
		struct uroce_sge sge = { (uintptr_t)end_out(e, l, slot), (uint32_t)e->config.size, uroce_mr_lkey(l->home->mr) };
		struct uroce_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = e->mode->opcode, .imm = (uint32_t)l->posted,
			.remote_addr = end_remote(e, l, (uint32_t)(l->posted % e->slots_in)), .rkey = e->remote_rkey };
		end_fill(e, l, l->posted, end_out(e, l, slot), e->config.size);
		l->posted++;
		if (end_send(e, l, slot, &wr))
			return -1;
	}
	return 0;
}

int one_way_step(struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++)
		if (one_way_step_lane(e, &e->lane[i]))
			return -1;
	return 0;
}

int one_way_on_sent(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	end_done(e, l, e->config.size);
	return 0;
}

static bool has_imm(const struct mode *m)
{
	return m->opcode == UROCE_OP_SEND_WITH_IMM || m->opcode == UROCE_OP_WRITE_WITH_IMM;
}

static int check_message(struct end *e, const struct lane *l, uint64_t n, const uint8_t *slot, const struct uroce_wc *wc)
{
	uint64_t head = header_bytes(e);
	if (wc->byte_len != e->config.size + head)
		return end_fail(e, "WRONG DATA: QP 0x%x: a message of %u bytes instead of %llu", wc->qpn, wc->byte_len, (unsigned long long)(e->config.size + head));
	if (!!(wc->flags & UROCE_WC_HAS_IMM) != has_imm(e->mode) || (has_imm(e->mode) && wc->imm != (uint32_t)n))
		return end_fail(e, "WRONG DATA: QP 0x%x: message %llu has the immediate %u (flags 0x%x)", wc->qpn, (unsigned long long)n, wc->imm, wc->flags);
	const struct lane *sender = e->mode->is_multicast ? &e->lane[0] : l;
	if (end_check(e, sender, n, slot + head, e->config.size))
		return -1;
	return end_check_guard(e, l, slot, e->config.size + head);
}

static int take(struct end *e, struct lane *l, uint64_t n, const uint8_t *slot, const struct uroce_wc *wc)
{
	l->received++;
	end_count(e, TALLY_MESSAGES, 1);
	end_count(e, TALLY_BYTES, e->config.size);
	return e->config.is_verified ? check_message(e, l, n, slot, wc) : 0;
}

int one_way_on_received(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	uint64_t n = l->received;
	bool is_write = e->mode->opcode == UROCE_OP_WRITE_WITH_IMM; /* then the client has said where it is to go */
	int err = take(e, l, n, is_write ? end_in(e, l, (uint32_t)(n % e->slots_in)) : end_landed(e, wc), wc);
	if (err)
		return err;
	return is_write ? end_receive_nothing(e, l, slot) : end_receive_again(e, wc);
}

int one_way_on_received_some(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	int32_t ahead = (int32_t)(wc->imm - (uint32_t)l->next);
	uint64_t n = l->next + (uint64_t)(int64_t)ahead;
	if (ahead < 0 && e->mode->service == UROCE_UC)
		return end_fail(e, "WRONG DATA: QP 0x%x: message %u came after message %u", wc->qpn, wc->imm, (uint32_t)l->next - 1);
	if (ahead < 0) {
		end_count(e, TALLY_LATE, 1);
	} else {
		end_count(e, TALLY_LOST, (uint64_t)ahead);
		l->next = n + 1;
	}
	int err = take(e, l, n, end_landed(e, wc), wc);
	return err ? err : end_receive_again(e, wc);
}
