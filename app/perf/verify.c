/* SPDX-License-Identifier: BSD-3-Clause */
/* Every byte looked at: the client. Messages move in rounds of as many as fit in memory: the client announces a round, the server prepares it, all of it is outstanding at once, and then both ends look at what they
 * hold: the bytes of each message, the bytes between messages that nobody may touch, lengths, immediates, the order of completions, and for atomics the values returned and left behind. The server's half is
 * verify_server.c, what the bytes are says round.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "pattern.h"
#include "round.h"

static void prepare(struct end *e, const struct round *r)
{
	enum direction d = e->trial.op->is_fetching ? JUNK : TO_PEER;
	for (uint32_t q = 0; q < e->trial.qps; q++)
		for (uint32_t i = 0; i < r->count; i++)
			pattern_fill(end_slot(e, q, i), e->trial.size, pattern_seed(q, r->first + i, d));
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
				round_set_operands(&wr, q, r->first + i);
			if (end_post_send(e, q, &wr, 1))
				return -EIO;
		}
	}
	return 0;
}

/* Completions of a QP come in the order of its posts: done[q] of them so far. */
static int check_completion(struct end *e, const struct uroce_wc *wc, uint32_t *done)
{
	uint32_t q = (uint32_t)wc->wr_id, i = (uint32_t)(wc->wr_id >> 32);
	if (q >= e->trial.qps || i != done[q])
		return end_fail(e, "WRONG DATA: QP %u completed number %u of a round instead of %u", q, i, q < e->trial.qps ? done[q] : 0);
	done[q]++;
	if (e->trial.op->is_fetching && wc->byte_len != e->trial.size)
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

static int check_round(struct end *e, const struct round *r)
{
	const struct operation *o = e->trial.op;
	int err = 0;
	for (uint32_t q = 0; q < e->trial.qps; q++) {
		for (uint32_t i = 0; i < r->count && !err; i++) {
			uint64_t number = r->first + i;
			if (o->is_atomic)
				err = round_check_word(e, q, i, number, round_word_before(q, number));
			else
				err = round_check_slot(e, q, i, number, o->is_fetching ? FROM_PEER : TO_PEER); /* what was sent must still be there, too */
			if (!err)
				err = round_check_guard(e, q, i);
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
		return end_fail(e, "the peer %s", e->exchange->why);
	const char *why = json_string_value(json_object_get(answer, "error"));
	int err = why ? end_fail(e, "at the peer: %s", why) : 0;
	json_decref(answer);
	return err;
}

static int run_round(struct end *e, const struct round *r)
{
	prepare(e, r);
	int err = ask(e, json_pack("{s:I, s:i}", "first", (json_int_t)r->first, "count", (int)r->count));
	if (!err)
		err = post_round(e, r);
	if (!err)
		err = finish_round(e, r);
	if (!err)
		err = check_round(e, r);
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
	res->messages = res->sent = r.first * t->qps;
	res->bytes = res->messages * t->size;
	res->seconds = (double)(end_now() - start_ns) * 1e-9;
	return 0;
}
