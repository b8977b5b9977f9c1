/* SPDX-License-Identifier: BSD-3-Clause */
/* Every byte looked at. Messages move in rounds of as many as fit in memory: the client announces a round, the server prepares it, all of it is outstanding at once, and then both ends look at what they hold: the
 * bytes of each message, the bytes between messages that nobody may touch, lengths, immediates, the order of completions, and for atomics the values returned and left behind.
 * Invariant: message n of a QP is in slot n - first of the round that begins with first. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "pattern.h"

enum direction { TO_PEER, FROM_PEER, JUNK };

struct round {
	uint64_t first;
	uint32_t count; /* of each QP */
};

static uint64_t get_word(const uint8_t *at)
{
	uint64_t v;
	memcpy(&v, at, 8);
	return v;
}

static int check_guard(struct end *e, uint32_t q, uint32_t slot)
{
	uint64_t size = e->trial.size, at = pattern_check_guard(end_slot(e, q, slot) + size, e->stride - size);
	if (at == PATTERN_FINE)
		return 0;
	return end_fail(e, "WRONG DATA: QP %u: byte %" PRIu64 " beyond a message of %" PRIu64 " bytes was written", q, at, size);
}

static int check_bytes(struct end *e, uint32_t q, uint32_t slot, uint64_t number, enum direction d)
{
	const uint8_t *data = end_slot(e, q, slot);
	uint64_t at = pattern_check(data, e->trial.size, pattern_seed(q, number, d));
	if (at != PATTERN_FINE)
		return end_fail(e, "WRONG DATA: QP %u, message %" PRIu64 " of %" PRIu64 " bytes: byte %" PRIu64 " is 0x%02x", q, number, e->trial.size, at, data[at]);
	return 0;
}

/* ---- atomics: which value a word has before, and after ---- */

static bool cas_matches(uint64_t number)
{
	return number % 3 != 2; /* every third one compares with what is not there */
}

static uint64_t value_before(uint32_t q, uint64_t number)
{
	return pattern_seed(q, number, FROM_PEER);
}

static uint64_t value_after(const struct operation *o, uint32_t q, uint64_t number)
{
	uint64_t before = value_before(q, number), given = pattern_seed(q, number, TO_PEER);
	if (o->opcode == UROCE_OP_FETCH_ADD)
		return before + given;
	return cas_matches(number) ? given : before;
}

static void set_operands(struct uroce_send_wr *wr, uint32_t q, uint64_t number)
{
	uint64_t given = pattern_seed(q, number, TO_PEER), before = value_before(q, number);
	wr->compare_add = wr->opcode == UROCE_OP_FETCH_ADD ? given : cas_matches(number) ? before : before + 1;
	wr->swap = given;
}

static int check_value(struct end *e, uint32_t q, uint32_t slot, uint64_t number, uint64_t wanted)
{
	uint64_t found = get_word(end_slot(e, q, slot));
	if (found == wanted)
		return 0;
	return end_fail(e, "WRONG DATA: QP %u, %s %" PRIu64 ": 0x%" PRIx64 " instead of 0x%" PRIx64, q, e->trial.op->name, number, found, wanted);
}

/* ---- client ---- */

static void prepare_client(struct end *e, const struct round *r)
{
	for (uint32_t q = 0; q < e->trial.qps; q++)
		for (uint32_t i = 0; i < r->count; i++)
			pattern_fill(end_slot(e, q, i), e->trial.size, pattern_seed(q, r->first + i, e->trial.op->is_fetching ? JUNK : TO_PEER));
}

static int post_round(struct end *e, const struct round *r)
{
	for (uint32_t i = 0; i < r->count; i++) {
		for (uint32_t q = 0; q < e->trial.qps; q++) {
			struct uroce_sge sge;
			struct uroce_send_wr wr = end_send_wr(e, q, i, &sge);
			wr.wr_id |= (uint64_t)i << 32;
			wr.imm = (uint32_t)(r->first + i);
			if (e->trial.op->is_atomic)
				set_operands(&wr, q, r->first + i);
			if (end_post_send(e, q, &wr, 1))
				return -EIO;
		}
	}
	return 0;
}

/* Completions of a QP come in the order of its posts: done[q] of them so far. */
static int check_completion(struct end *e, const struct uroce_wc *wc, uint32_t *done)
{
	uint32_t q = (uint32_t)wc->wr_id, i = (uint32_t)(wc->wr_id >> 32) & 0x7fffffff;
	if (q >= e->trial.qps || i != done[q])
		return end_fail(e, "WRONG DATA: QP %u completed number %u of a round instead of %u", q, i, q < e->trial.qps ? done[q] : 0);
	done[q]++;
	if ((wc->wr_id & END_RECV || e->trial.op->is_fetching) && wc->byte_len != e->trial.size)
		return end_fail(e, "WRONG DATA: QP %u: %u bytes instead of %" PRIu64, q, wc->byte_len, e->trial.size);
	return 0;
}

static int finish_round(struct end *e, const struct round *r)
{
	struct uroce_wc wc[64];
	uint64_t left = (uint64_t)r->count * e->trial.qps;
	uint32_t *done = calloc(e->trial.qps, sizeof(*done));
	int err = done ? 0 : end_fail(e, "no memory");
	while (left && !err) {
		int n = end_take(e, wc, 64, true);
		for (int i = 0; i < n && !err; i++)
			err = check_completion(e, &wc[i], done);
		if (n < 0)
			err = n;
		else
			left -= (uint64_t)n;
	}
	free(done);
	return err;
}

static int check_client(struct end *e, const struct round *r)
{
	const struct operation *o = e->trial.op;
	int err = 0;
	for (uint32_t q = 0; q < e->trial.qps; q++) {
		for (uint32_t i = 0; i < r->count && !err; i++) {
			if (o->is_atomic)
				err = check_value(e, q, i, r->first + i, value_before(q, r->first + i));
			else
				err = check_bytes(e, q, i, r->first + i, o->is_fetching ? FROM_PEER : TO_PEER); /* what was sent must still be there, too */
			if (!err)
				err = check_guard(e, q, i);
		}
	}
	return err;
}

/* Says something to the server and takes its answer: {"ok": true}, or why not. */
static int ask(struct end *e, json_t *question)
{
	if (exchange_send(e->exchange, question))
		return end_fail(e, "the peer is gone");
	json_t *answer = exchange_read(e->exchange);
	if (!answer)
		return end_fail(e, "the peer is gone");
	const char *why = json_string_value(json_object_get(answer, "error"));
	int err = why ? end_fail(e, "at the peer: %s", why) : 0;
	json_decref(answer);
	return err;
}

static int run_round(struct end *e, const struct round *r)
{
	prepare_client(e, r);
	int err = ask(e, json_pack("{s:I, s:i}", "first", (json_int_t)r->first, "count", (int)r->count));
	if (!err)
		err = post_round(e, r);
	if (!err)
		err = finish_round(e, r);
	if (!err)
		err = check_client(e, r);
	return err ? err : ask(e, json_pack("{s:b}", "check", 1));
}

int verify_run(struct end *e, struct result *res)
{
	const struct trial *t = &e->trial;
	uint64_t start_ns = end_now();
	struct round r = { 0 };
	memset(e->memory, PATTERN_GUARD, (size_t)t->qps * e->slots * e->stride);
	do {
		r.count = e->slots;
		if (t->iters && t->iters - r.first < r.count)
			r.count = (uint32_t)(t->iters - r.first);
		int err = run_round(e, &r);
		if (err)
			return err;
		r.first += r.count;
	} while (!trial_is_over(t, r.first, r.first * t->qps * t->size, start_ns));
	res->messages = r.first * t->qps;
	res->bytes = res->messages * t->size;
	res->seconds = (double)(end_now() - start_ns) * 1e-9;
	return 0;
}

/* ---- server ---- */

static int prepare_server(struct end *e, const struct round *r)
{
	const struct operation *o = e->trial.op;
	for (uint32_t q = 0; q < e->trial.qps; q++) {
		for (uint32_t i = 0; i < r->count; i++) {
			uint64_t before = value_before(q, r->first + i);
			if (o->is_atomic)
				memcpy(end_slot(e, q, i), &before, 8);
			else
				pattern_fill(end_slot(e, q, i), e->trial.size, pattern_seed(q, r->first + i, o->is_fetching ? FROM_PEER : JUNK));
			if (!o->takes_recv)
				continue;
			struct uroce_sge sge;
			struct uroce_recv_wr wr = end_recv_wr(e, q, i, &sge);
			wr.wr_id |= (uint64_t)i << 32;
			if (end_post_recv(e, q, &wr, 1))
				return -EIO;
		}
	}
	return 0;
}

static int check_receive(struct end *e, const struct round *r, const struct uroce_wc *wc, uint32_t *done)
{
	const struct operation *o = e->trial.op;
	uint32_t number = (uint32_t)r->first + ((uint32_t)(wc->wr_id >> 32) & 0x7fffffff);
	int err = check_completion(e, wc, done);
	if (err)
		return err;
	if (wc->opcode != (o->opcode == UROCE_OP_WRITE_WITH_IMM ? UROCE_WC_RECV_WRITE_WITH_IMM : UROCE_WC_RECV))
		return end_fail(e, "WRONG DATA: a receive was used up by operation %d", (int)wc->opcode);
	if (!!(wc->flags & UROCE_WC_HAS_IMM) != o->has_imm || (o->has_imm && wc->imm != number))
		return end_fail(e, "WRONG DATA: message %u has the immediate %u (flags 0x%x)", number, wc->imm, wc->flags);
	return 0;
}

/* Until the client asks for a look, and every receive has completed. */
static int finish_server(struct end *e, const struct round *r)
{
	struct uroce_wc wc[64];
	uint64_t left = e->trial.op->takes_recv ? (uint64_t)r->count * e->trial.qps : 0;
	uint32_t *done = calloc(e->trial.qps, sizeof(*done));
	int err = done ? 0 : end_fail(e, "no memory");
	bool is_asked = false;
	for (unsigned empty = 0; !err && (left || !is_asked);) {
		int n = end_take(e, wc, 64, is_asked);
		for (int i = 0; i < n && !err; i++)
			err = check_receive(e, r, &wc[i], done);
		if (n < 0)
			err = n;
		else
			left -= (uint64_t)n;
		if (!n && !is_asked && ++empty % 1024 == 0)
			is_asked = exchange_is_ready(e->exchange);
	}
	free(done);
	return err;
}

static int check_server(struct end *e, const struct round *r)
{
	const struct operation *o = e->trial.op;
	int err = 0;
	for (uint32_t q = 0; q < e->trial.qps; q++) {
		for (uint32_t i = 0; i < r->count && !err; i++) {
			uint64_t number = r->first + i;
			err = o->is_atomic ? check_value(e, q, i, number, value_after(o, q, number)) : check_bytes(e, q, i, number, o->is_fetching ? FROM_PEER : TO_PEER);
			if (!err)
				err = check_guard(e, q, i);
		}
	}
	return err;
}

static int answer(struct end *e, int err)
{
	return exchange_send(e->exchange, err ? json_pack("{s:s}", "error", e->error) : json_pack("{s:b}", "ok", 1)) ? -EIO : err;
}

/* A client that has failed ends the trial instead of asking for a look: told by what it says. */
static int serve_round(struct end *e, const struct round *r, bool *is_over)
{
	int err = answer(e, prepare_server(e, r));
	if (!err)
		err = finish_server(e, r);
	json_t *question = exchange_read(e->exchange);
	*is_over = !json_object_get(question, "check");
	if (*is_over) {
		exchange_unread(e->exchange, question);
		return err;
	}
	json_decref(question);
	return answer(e, err ? err : check_server(e, r));
}

int verify_serve(struct end *e)
{
	bool is_over = false;
	memset(e->memory, PATTERN_GUARD, (size_t)e->trial.qps * e->slots * e->stride);
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
		err = serve_round(e, &(struct round){ (uint64_t)first, (uint32_t)count }, &is_over);
	}
	return err;
}
