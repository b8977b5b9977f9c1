/* SPDX-License-Identifier: BSD-3-Clause */
/* Every byte looked at: the server. Owns which receives are posted and which messages have come, of one round after the other.
 * What may get lost is told by its immediate or its bytes: each message that arrives has to be one of those sent, whole, from the right QP, and of UC later than the one before; of a WRITE that did not arrive there
 * may be part. SENDs that have no slot are looked at as they come, everything else when the round is over. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "pattern.h"
#include "round.h"

struct look {
	struct round round;
	uint64_t *next; /* [qps] which message is expected, by its number */
	bool *is_posted; /* [qps * slots] receives that were not used up, those of earlier rounds too */
	bool has_sender; /* the headers of a datagram were looked at */
};

static bool *posted_at(const struct end *e, const struct look *l, uint32_t q, uint32_t slot)
{
	return &l->is_posted[(size_t)q * e->slots + slot];
}

static int post_slot(struct end *e, struct look *l, uint32_t q, uint32_t slot)
{
	struct uroce_sge sge;
	struct uroce_recv_wr wr = end_recv_wr(e, q, slot, &sge);
	bool *is_posted = posted_at(e, l, q, slot);
	wr.wr_id |= (uint64_t)slot << 32;
	if (*is_posted)
		return 0;
	*is_posted = true;
	return end_post_recv(e, q, &wr, 1);
}

static int prepare(struct end *e, struct look *l)
{
	const struct operation *o = e->trial.op;
	const struct round *r = &l->round;
	l->has_sender = false;
	for (uint32_t q = 0; q < e->trial.qps; q++) {
		for (uint32_t i = 0; i < r->count; i++) {
			uint64_t number = r->first + i, before = round_word_before(q, number);
			if (o->is_atomic)
				memcpy(end_slot(e, q, i), &before, 8);
			else
				pattern_fill(end_slot(e, q, i), e->headroom + e->trial.size, pattern_seed(q, number, o->is_fetching ? FROM_PEER : JUNK));
			if (o->takes_recv && post_slot(e, l, q, i))
				return -EIO;
		}
	}
	return 0;
}

/* ---- what comes ---- */

static bool is_message(const struct end *e, uint32_t q, const struct uroce_wc *wc, const uint8_t *data, uint64_t number)
{
	if (e->trial.op->has_imm)
		return wc->imm == (uint32_t)number;
	return pattern_check(data, e->trial.size, pattern_seed(q, number, TO_PEER)) == PATTERN_FINE;
}

/* Which message of QP q this is, or -1: none that can come. The one expected first, since most come in order; datagrams may also be late, or come twice. */
static int64_t find_message(const struct end *e, const struct look *l, uint32_t q, const struct uroce_wc *wc, const uint8_t *data)
{
	uint64_t end = l->round.first + l->round.count;
	uint64_t oldest = l->round.first > e->slots ? l->round.first - e->slots : 0; /* of the round before */
	uint64_t next = l->next[q] > oldest ? l->next[q] : oldest;
	for (uint64_t n = next; n < end; n++)
		if (is_message(e, q, wc, data, n))
			return (int64_t)n;
	for (uint64_t n = oldest; n < next && e->trial.service == UROCE_UD; n++)
		if (is_message(e, q, wc, data, n))
			return (int64_t)n;
	return -1;
}

/* A datagram says where it came from. */
static int check_sender(struct end *e, struct look *l, uint32_t q, const struct uroce_wc *wc, const uint8_t *headers)
{
	struct uroce_av av;
	if (!(wc->flags & UROCE_WC_HAS_GRH) || wc->src_qpn != e->remote[q].qpn)
		return end_fail(e, "WRONG DATA: a datagram of QP %u instead of %u (flags 0x%x)", wc->src_qpn, e->remote[q].qpn, wc->flags);
	if (l->has_sender) /* once a round is enough: it asks the engine */
		return 0;
	l->has_sender = true;
	int err = uroce_av_from_wc(e->ctx, wc, headers, &av);
	if (err)
		return end_fail(e, "WRONG DATA: the headers of a datagram are none: %s", strerror(-err));
	if (memcmp(&av.dgid, &e->remote[q].gid, sizeof(av.dgid)))
		return end_fail(e, "WRONG DATA: the headers of a datagram say that another host sent it");
	return 0;
}

/* A message of QP q came, and its headers and bytes to data. */
static int check_message(struct end *e, struct look *l, uint32_t q, const uint8_t *data, const struct uroce_wc *wc)
{
	const struct round *r = &l->round;
	int64_t found = end_may_lose(e) ? find_message(e, l, q, wc, data + e->headroom) : (int64_t)l->next[q];
	if (found < 0)
		return end_fail(e, "WRONG DATA: QP %u: what came is none of messages %" PRIu64 " to %" PRIu64 " of %" PRIu64 " bytes, or came before", q,
			l->next[q], r->first + r->count - 1, e->trial.size);
	uint64_t n = (uint64_t)found;
	if (n >= l->next[q])
		l->next[q] = n + 1;
	if (e->trial.op->has_imm && wc->imm != (uint32_t)n)
		return end_fail(e, "WRONG DATA: QP %u: message %" PRIu64 " has the immediate %u", q, n, wc->imm);
	if (e->trial.service == UROCE_UD && check_sender(e, l, q, wc, data))
		return -EIO;
	if (!round_has_slots(e))
		return round_check_data(e, q, data + e->headroom, n, TO_PEER);
	return end_may_lose(e) && n >= r->first ? round_check_slot(e, q, (uint32_t)(n - r->first), n, TO_PEER) : 0;
}

static int check_receive(struct end *e, struct look *l, const struct uroce_wc *wc)
{
	const struct operation *o = e->trial.op;
	uint32_t home = (uint32_t)wc->wr_id, slot = (uint32_t)(wc->wr_id >> 32) & 0x7fffffff; /* of an SRQ's receive: whose memory it is */
	int q = end_find_qp(e, wc->qpn);
	bool is_receive = wc->wr_id & END_RECV && home < e->trial.qps && slot < e->slots && *posted_at(e, l, home, slot);
	if (!is_receive || q < 0 || (!e->srq && (uint32_t)q != home))
		return end_fail(e, "WRONG DATA: QP 0x%x completed %016" PRIx64 ", which is no receive of it", wc->qpn, wc->wr_id);
	if (!e->srq && !end_may_lose(e) && slot != l->next[q] - l->round.first)
		return end_fail(e, "WRONG DATA: QP %d completed number %u of a round instead of %" PRIu64, q, slot, l->next[q] - l->round.first);
	*posted_at(e, l, home, slot) = false;
	if (wc->opcode != (o->opcode == UROCE_OP_WRITE_WITH_IMM ? UROCE_WC_RECV_WRITE_WITH_IMM : UROCE_WC_RECV))
		return end_fail(e, "WRONG DATA: a receive was used up by operation %d", (int)wc->opcode);
	if (wc->byte_len != e->headroom + e->trial.size || !!(wc->flags & UROCE_WC_HAS_IMM) != o->has_imm)
		return end_fail(e, "WRONG DATA: QP %d: %u bytes instead of %" PRIu64 " (flags 0x%x)", q, wc->byte_len, e->headroom + e->trial.size, wc->flags);
	e->received++;
	return check_message(e, l, (uint32_t)q, end_slot(e, home, slot), wc);
}

/* Until the client asks for a look, and all has come, or no more will. A WRITE without a receive is not seen to come: where it may get lost, it is waited for in any case. */
static int take_round(struct end *e, struct look *l)
{
	struct uroce_wc wc[64];
	uint64_t left = e->trial.op->takes_recv || end_may_lose(e) ? (uint64_t)l->round.count * e->trial.qps : 0, last_ns = 0;
	bool is_asked = false, is_quiet = false;
	for (unsigned empty = 0; (left && !is_quiet) || !is_asked;) {
		int n = end_take(e, wc, 64, is_asked);
		if (n < 0)
			return n;
		for (int i = 0; i < n; i++) {
			int err = check_receive(e, l, &wc[i]);
			if (err)
				return err;
		}
		left -= (uint64_t)n < left ? (uint64_t)n : left;
		if (n && is_asked)
			last_ns = end_now();
		if (n || ++empty % 1024)
			continue;
		if (!is_asked && exchange_is_ready(e->exchange)) {
			is_asked = true;
			last_ns = end_now();
		}
		is_quiet = is_asked && end_may_lose(e) && end_now() - last_ns > end_patience_ns(e);
	}
	return 0;
}

/* ---- what is there when the round is over ---- */

static int check_slot(struct end *e, uint32_t q, uint32_t slot, uint64_t number)
{
	const struct operation *o = e->trial.op;
	bool is_whole;
	if (o->is_atomic)
		return round_check_word(e, q, slot, number, round_word_after(o, q, number));
	if (!round_has_slots(e))
		return 0;
	if (!end_may_lose(e))
		return round_check_slot(e, q, slot, number, o->is_fetching ? FROM_PEER : TO_PEER);
	int err = round_check_mixed(e, q, slot, number, &is_whole);
	e->received += is_whole && !o->takes_recv; /* the others were counted as they came */
	return err;
}

static int check_round(struct end *e, const struct round *r)
{
	int err = 0;
	for (uint32_t q = 0; q < e->trial.qps; q++) {
		for (uint32_t i = 0; i < r->count && !err; i++) {
			err = check_slot(e, q, i, r->first + i);
			if (!err)
				err = round_check_guard(e, q, i);
		}
	}
	return err;
}

/* ---- the conversation ---- */

static int answer(struct end *e, int err)
{
	return exchange_send(e->exchange, err ? json_pack("{s:s}", "error", e->error) : json_pack("{s:b}", "ok", 1)) ? -EIO : err;
}

/* A client that has failed ends the trial instead of asking for a look: told by what it says. */
static int serve_round(struct end *e, struct look *l, bool *is_over)
{
	int err = answer(e, prepare(e, l));
	if (!err)
		err = take_round(e, l);
	json_t *question = exchange_read(e->exchange);
	*is_over = !json_object_get(question, "check");
	if (*is_over) {
		exchange_unread(e->exchange, question);
		return err;
	}
	json_decref(question);
	return answer(e, err ? err : check_round(e, &l->round));
}

static int serve_rounds(struct end *e, struct look *l)
{
	bool is_over = false;
	int err = end_ready(e);
	while (!err && !is_over) {
		json_t *message = exchange_read(e->exchange);
		json_int_t first = 0;
		int count = 0;
		if (json_unpack(message, "{s:I, s:i}", "first", &first, "count", &count) || count < 1 || (uint32_t)count > e->slots) {
			exchange_unread(e->exchange, message);
			return 0;
		}
		json_decref(message);
		l->round = (struct round){ (uint64_t)first, (uint32_t)count };
		err = serve_round(e, l, &is_over);
	}
	return err;
}

int verify_serve(struct end *e)
{
	size_t slots = (size_t)e->trial.qps * e->slots;
	struct look l = { .next = calloc(e->trial.qps, sizeof(*l.next)), .is_posted = calloc(slots, sizeof(*l.is_posted)) };
	int err = l.next && l.is_posted ? 0 : end_fail(e, "no memory");
	memset(e->memory, PATTERN_GUARD, slots * e->stride);
	if (!err)
		err = serve_rounds(e, &l);
	free(l.next);
	free(l.is_posted);
	return err;
}
