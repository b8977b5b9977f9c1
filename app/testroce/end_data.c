/* SPDX-License-Identifier: BSD-3-Clause */
/* The data path of an end: posts, completions, and the look at bytes. The driver's thread. In a wr_id are the lane, the slot, and whether it was a receive. */
#include <errno.h>
#include <string.h>

#include "end.h"
#include "pattern.h"

#define BURST 16
#define MOST 512 /* WCs of a CQ in one step */
#define RECEIVE (UINT64_C(1) << 63)

static uint64_t make_id(const struct lane *l, uint32_t slot)
{
	return (uint64_t)l->number << 32 | slot;
}

bool end_takes_receive(enum uroce_opcode o)
{
	return o == UROCE_OP_SEND || o == UROCE_OP_SEND_WITH_IMM || o == UROCE_OP_SEND_WITH_INV || o == UROCE_OP_WRITE_WITH_IMM;
}

int end_send(struct end *e, struct lane *l, uint32_t slot, struct uroce_send_wr *wr)
{
	wr->wr_id = make_id(l, slot);
	wr->flags |= UROCE_SEND_SIGNALED;
	if (l->ah) /* in a union with what a bind needs */
		wr->ah = l->ah;
	wr->remote_qpn = e->mode->is_multicast ? UROCE_QPN_MULTICAST : l->remote.qpn;
	wr->remote_qkey = END_QKEY;
	int posted = uroce_post_send(l->qp, wr, 1);
	l->sent += posted == 1 && end_takes_receive(wr->opcode);
	return posted == 1 ? 0 : end_fail(e, "QP 0x%x took no WR: %s", uroce_qp_num(l->qp), strerror(-posted));
}

int end_receive_into(struct end *e, struct lane *l, uint32_t slot, const struct uroce_sge *sge)
{
	struct uroce_recv_wr wr = { .wr_id = RECEIVE | make_id(l, slot), .sg_list = sge, .num_sge = sge ? 1 : 0 };
	int posted = l->home->srq ? uroce_post_srq_recv(l->home->srq, &wr, 1) : uroce_post_recv(l->qp, &wr, 1);
	return posted == 1 ? 0 : end_fail(e, "QP 0x%x took no receive: %s", uroce_qp_num(l->qp), strerror(-posted));
}

int end_receive(struct end *e, struct lane *l, uint32_t slot)
{
	struct uroce_sge sge = { (uintptr_t)end_in(e, l, slot), (uint32_t)(e->stride - END_GUARD_BYTES), uroce_mr_lkey(l->home->mr) };
	return end_receive_into(e, l, slot, &sge);
}

int end_receive_nothing(struct end *e, struct lane *l, uint32_t slot)
{
	return end_receive_into(e, l, slot, NULL);
}

static struct lane *lane_of(const struct end *e, const struct uroce_wc *wc)
{
	return &e->lane[(uint32_t)(wc->wr_id >> 32) & 0x7fffffff];
}

const uint8_t *end_landed(const struct end *e, const struct uroce_wc *wc)
{
	return end_in(e, lane_of(e, wc), (uint32_t)wc->wr_id);
}

int end_receive_again(struct end *e, const struct uroce_wc *wc)
{
	return end_receive(e, lane_of(e, wc), (uint32_t)wc->wr_id);
}

int end_receive_all(struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++)
		for (uint32_t slot = 0; slot < e->recv_depth; slot++)
			if (end_receive(e, &e->lane[i], slot))
				return -EIO;
	return 0;
}

void end_done(struct end *e, struct lane *l, uint64_t bytes)
{
	l->done++;
	end_count(e, TALLY_MESSAGES, 1);
	end_count(e, TALLY_BYTES, bytes);
}

/* ---- bytes ---- */

void end_fill(const struct end *e, const struct lane *l, uint64_t n, uint8_t *to, uint64_t len)
{
	if (e->config.is_verified)
		pattern_fill(to, len, pattern_seed(l->number, n, 0));
}

int end_check(struct end *e, const struct lane *l, uint64_t n, const uint8_t *data, uint64_t len)
{
	if (!e->config.is_verified)
		return 0;
	uint64_t at = pattern_check(data, len, pattern_seed(l->number, n, 0));
	if (at != PATTERN_FINE)
		return end_fail(e, "WRONG DATA: QP %u, message %llu of %llu bytes: byte %llu is 0x%02x", l->number, (unsigned long long)n, (unsigned long long)len, (unsigned long long)at, data[at]);
	end_count(e, TALLY_VERIFIED, 1);
	return 0;
}

int end_check_guard(struct end *e, const struct lane *l, const uint8_t *slot, uint64_t len)
{
	if (!e->config.is_verified)
		return 0;
	uint64_t at = pattern_check_guard(slot + len, e->stride - len);
	return at == PATTERN_FINE ? 0 : end_fail(e, "WRONG DATA: QP %u: byte %llu beyond a message of %llu bytes was written", l->number, (unsigned long long)at, (unsigned long long)len);
}

/* ---- completions ---- */

static int fail_completion(struct end *e, const struct lane *l, const struct uroce_wc *wc)
{
	char why[400] = "";
	uroce_qp_error_text(l->qp, why, sizeof(why));
	return end_fail(e, "%s%s (%s)%s%s", wc->wr_id & RECEIVE ? "receive: " : "", uroce_wc_status_str(wc->status), uroce_wc_cause_str(wc->vendor_error), why[0] ? ": " : "", why);
}

static struct lane *find_lane(struct end *e, const struct uroce_wc *wc)
{
	if (!(e->mode->has_srq && wc->wr_id & RECEIVE))
		return lane_of(e, wc);
	for (uint32_t i = 0; i < e->config.qps; i++) /* an SRQ's receive may be taken by any */
		if (uroce_qp_num(e->lane[i].qp) == wc->qpn)
			return &e->lane[i];
	return lane_of(e, wc);
}

static int take(struct end *e, const struct uroce_wc *wc)
{
	struct lane *l = find_lane(e, wc);
	int (*hook)(struct end *, struct lane *, uint32_t, const struct uroce_wc *) = wc->wr_id & RECEIVE ? e->role->on_received : e->role->on_sent;
	if (wc->status != UROCE_WC_SUCCESS)
		return fail_completion(e, l, wc);
	l->arrived += wc->wr_id & RECEIVE ? 1 : 0;
	return hook ? hook(e, l, (uint32_t)wc->wr_id, wc) : 0;
}

/* What is in a CQ, though not for ever: services that lose need their receives back before the next ones come. */
static int take_all(struct end *e, struct uroce_cq *cq)
{
	struct uroce_wc wc[BURST];
	int all = 0, n;
	do {
		n = uroce_cq_poll(cq, wc, BURST);
		for (int i = 0; i < n; i++)
			if (take(e, &wc[i]))
				return -EIO;
		all += n > 0 ? n : 0;
	} while (n == BURST && all < MOST);
	return n < 0 ? end_fail(e, "CQ: %s", strerror(-n)) : all;
}

int end_step(struct end *e, bool is_wanted)
{
	int all = 0;
	for (uint32_t h = 0; h < e->homes; h++) {
		int n = take_all(e, e->home[h].cq);
		if (n < 0)
			return n;
		all += n;
	}
	if (is_wanted && e->role->step && e->role->step(e))
		return -EIO;
	return all;
}

bool end_is_drained(const struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++)
		if (e->lane[i].posted != e->lane[i].done)
			return false;
	return true;
}

int end_compare(const struct end *from, struct end *to)
{
	for (uint32_t i = 0; i < to->config.qps; i++) {
		const struct lane *sender = &from->lane[to->mode->is_multicast ? 0 : i], *l = &to->lane[i];
		if (!to->mode->may_lose && sender->sent != l->arrived)
			return end_fail(to, "LOST: QP %u: %llu messages of %llu have arrived", i, (unsigned long long)l->arrived, (unsigned long long)sender->sent);
		if (to->mode->may_lose && sender->sent > l->next) /* gaps have been counted; these are behind the last that came */
			end_count(to, TALLY_LOST, sender->sent - l->next);
	}
	return 0;
}

int end_finish(struct end *e)
{
	int posted = e->role->finish ? e->role->finish(e) : 0;
	return posted < 0 ? -EIO : !posted;
}
