/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the buffers and the question which message came. From one QP to another messages come in the order of their posts and once at most; on RC, every one of them; datagrams as the network likes, whoever sends them. */
#include "pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "slot.h"

#define FAIL(e, ...) verdict_fail((e)->actor->verdict, __VA_ARGS__)
#define GUARD 16u
#define POOL_MARK (UINT64_C(2) << 32) /* in a wr_id */

static uint8_t pattern_at(uint32_t i)
{
	return (uint8_t)(0xc0 ^ (i * 5));
}

static uint8_t *buffer_at(const struct pool *p, uint32_t i)
{
	return p->memory + (size_t)i * p->stride;
}

static void fill(struct pool *p, uint32_t i)
{
	uint8_t *b = buffer_at(p, i);
	for (uint32_t k = 0; k < p->stride; k++)
		b[k] = pattern_at(k);
}

int pool_open(struct pool *p, struct uroce_pd *pd, uint64_t iova, const struct plan_pool *plan, bool is_shared)
{
	*p = (struct pool){ .buffers = plan->buffers, .room = plan->room, .stride = (GUARD + plan->room + 63) & ~63u, .iova = iova, .is_shared = is_shared };
	size_t bytes = (size_t)p->stride * p->buffers + GUARD;
	p->memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	p->is_posted = calloc(p->buffers, sizeof(*p->is_posted));
	if (!p->memory || !p->is_posted)
		abort();
	for (uint32_t i = 0; i < p->buffers; i++)
		fill(p, i);
	return uroce_mr_register_iova(pd, p->memory, bytes, iova, UROCE_ACCESS_LOCAL_WRITE, &p->mr);
}

int pool_close(struct pool *p)
{
	int err = uroce_mr_deregister(p->mr);
	free(p->memory);
	free(p->is_posted);
	return err;
}

uint32_t pool_offer(struct pool *p, uint32_t n, struct uroce_recv_wr *wr, struct uroce_sge *sge)
{
	uint32_t got = 0;
	for (uint32_t i = 0; i < p->buffers && got < n; i++) {
		if (p->is_posted[i])
			continue;
		sge[got] = (struct uroce_sge){ p->iova + (size_t)i * p->stride + GUARD, p->room, uroce_mr_lkey(p->mr) };
		wr[got] = (struct uroce_recv_wr){ .wr_id = POOL_MARK | i, .sg_list = &sge[got], .num_sge = 1 };
		got++;
	}
	return got;
}

void pool_posted(struct pool *p, const struct uroce_recv_wr *wr, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		p->is_posted[(uint32_t)wr[i].wr_id] = true;
	p->posted += n;
}

/* ---- which message it is ---- */

static bool is_write(const struct step *s)
{
	return s->opcode == UROCE_OP_WRITE_WITH_IMM;
}

/* The bytes of a step beside those of a buffer. */
static bool has_bytes(const struct end *from, const struct step *s, const uint8_t *at)
{
	for (unsigned i = 0; i < s->pieces; at += s->piece[i++].len)
		if (memcmp(at, from->plan->image_local + s->piece[i].offset, s->piece[i].len))
			return false;
	return true;
}

/* Bytes before the payload. */
static uint32_t header_of(const struct end *e)
{
	return e->service == UROCE_UD ? GRH_BYTES : 0;
}

/* The 40 bytes before a datagram: from one address to the other. */
static bool has_header(const struct uroce_gid *from, const struct uroce_gid *to, const uint8_t *b)
{
	static const uint8_t nothing[20];
	bool is_ip4 = from->raw[10] == 0xff;
	if (is_ip4)
		return !memcmp(b, nothing, sizeof(nothing)) && b[20] == 0x45 && !memcmp(b + 32, from->raw + 12, 4) && !memcmp(b + 36, to->raw + 12, 4);
	return b[0] >> 4 == 6 && !memcmp(b + 8, from->raw, 16) && !memcmp(b + 24, to->raw, 16);
}

static const struct uroce_gid *gid_of(const struct actor *a, uint32_t way)
{
	return way < PLAN_ENDS_MAX ? &a->all[way].gid : &a->groups[way - PLAN_ENDS_MAX];
}

/* Whose message it says it is; NULL: nobody's. */
static const struct end *find_sender(const struct end *e, const struct uroce_wc *wc, const uint8_t *bytes)
{
	const uint8_t *source = e->gid.raw[10] == 0xff ? bytes + 32 : bytes + 8;
	uint32_t len = e->gid.raw[10] == 0xff ? 4 : 16;
	if (e->service != UROCE_UD)
		return e->peer;
	for (uint32_t i = 0; i < 2 * e->actor->plan->pairs; i++) {
		const struct end *from = &e->actor->all[i];
		if (from->service == UROCE_UD && from->qpn == wc->src_qpn && !memcmp(from->gid.raw + 16 - len, source, len))
			return from;
	}
	return NULL;
}

/* Whether a step is to come to e at all. */
static bool is_for(const struct end *from, const struct step *s, const struct end *e)
{
	return s->takes_receive && !s->is_unwanted && plan_is_for(e->actor->plan, from->number, s, e->number);
}

static bool is_it(const struct end *from, const struct end *e, const struct step *s, const struct uroce_wc *wc, const uint8_t *bytes)
{
	bool has_imm = s->opcode == UROCE_OP_SEND_WITH_IMM || is_write(s);
	if (!is_for(from, s, e) || wc->byte_len != s->len + header_of(e) || wc->opcode != (is_write(s) ? UROCE_WC_RECV_WRITE_WITH_IMM : UROCE_WC_RECV))
		return false;
	if (!!(wc->flags & UROCE_WC_HAS_IMM) != has_imm || (has_imm && wc->imm != s->imm))
		return false;
	if (header_of(e) && (!(wc->flags & UROCE_WC_HAS_GRH) || !has_header(&from->gid, gid_of(e->actor, plan_target_of(from->number, s)), bytes)))
		return false;
	if (!slot_is_invalidated(e, s, wc))
		return false;
	return is_write(s) || has_bytes(from, s, bytes + header_of(e));
}

/* Those from here on cannot come. */
static uint32_t bound_of(const struct end *from)
{
	return from->plan->recovers ? NO_INDEX : from->plan->mistake_step;
}

/* What was flushed may have come for all that; not so in SQE, which flushes what was not begun. */
static bool is_unsent(const struct end *from, uint32_t step)
{
	return from->plan->recovers && from->is_lost[step];
}

/* The first that it can be, from where the last one was; NO_INDEX: none. */
static uint32_t find_step(const struct end *from, const struct end *e, const struct uroce_wc *wc, const uint8_t *bytes)
{
	const struct step *step = from->plan->step;
	bool has_order = e->service != UROCE_UD || e->plan->is_exact; /* a network that repeats and reorders does so to datagrams */
	for (uint32_t i = has_order ? e->next_from[from->number] : 0; i < from->steps_posted && i < bound_of(from); i++) {
		if (!is_unsent(from, i) && is_it(from, e, &step[i], wc, bytes))
			return i;
		if (e->service == UROCE_RC && step[i].takes_receive)
			return NO_INDEX;
	}
	return NO_INDEX;
}

static uint32_t count_from(const struct end *from, const struct end *e)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < from->plan->steps && i < bound_of(from); i++) {
		const struct step *s = &from->plan->step[i];
		n += is_for(from, s, e) && !is_unsent(from, i) && !s->is_mistaken && (is_write(s) || s->len + header_of(e) <= e->plan->pool.room);
	}
	return n;
}

uint32_t pool_count_due(const struct end *e)
{
	uint32_t n = 0;
	if (e->service != UROCE_UD)
		return count_from(e->peer, e);
	for (uint32_t i = 0; i < 2 * e->actor->plan->pairs; i++)
		if (e->actor->all[i].service == UROCE_UD)
			n += count_from(&e->actor->all[i], e);
	return n;
}

/* ---- what came ---- */

static void check_around(const struct pool *p, const struct end *e, uint32_t i, uint32_t used)
{
	const uint8_t *b = buffer_at(p, i);
	for (uint32_t k = 0; k < p->stride; k++)
		if ((k < GUARD || k >= GUARD + used) && b[k] != pattern_at(k)) {
			FAIL(e, "%s: buffer %u, whose message has %u bytes, is changed at byte %d", e->name, i, used, (int)k - (int)GUARD);
			return;
		}
}

static void check_message(struct pool *p, struct end *e, uint32_t i, const struct uroce_wc *wc)
{
	const struct end *from = find_sender(e, wc, buffer_at(p, i) + GUARD);
	uint32_t step = from ? find_step(from, e, wc, buffer_at(p, i) + GUARD) : NO_INDEX;
	if (e->has_failed_receive)
		FAIL(e, "%s: a receive succeeded after one had failed", e->name);
	if (step == NO_INDEX) {
		FAIL(e, "%s: what came into buffer %u (%u bytes, flags 0x%x, immediate 0x%x) is none of the messages of %s from %u on", e->name, i, wc->byte_len, wc->flags, wc->imm, from ? from->name : "nobody's QP",
			from ? e->next_from[from->number] : 0);
		return;
	}
	const struct step *s = &from->plan->step[step];
	e->next_from[from->number] = step + 1;
	e->receives_good++;
	if (is_write(s) && s->is_last_word && memcmp(e->target_memory + s->remote_offset, e->plan->image_target + s->remote_offset, s->len))
		FAIL(e, "%s: WRITE %u of the peer completed, but its bytes are not there", e->name, step);
	/* of a message that came to nothing, more may be there */
	check_around(p, e, i, e->service == UROCE_RC && !p->is_shared ? (is_write(s) ? 0 : s->len) : p->room);
}

void pool_complete(struct pool *p, struct end *e, const struct uroce_wc *wc)
{
	uint32_t i = (uint32_t)wc->wr_id;
	const struct mistake_row *row = &mistake_rows[e->peer->plan->mistake];
	bool may_fail = e->plan->mistake != MISTAKE_NONE || (e->service == UROCE_RC && row->is_fatal_to_peer);
	if (i >= p->buffers || !p->is_posted[i]) {
		FAIL(e, "%s: buffer %u completed, but it is not posted", e->name, i);
		return;
	}
	if (wc->status == UROCE_WC_SUCCESS) {
		check_message(p, e, i, wc);
	} else {
		e->has_failed_receive = true;
		if (!may_fail || wc->status != UROCE_WC_WR_FLUSH_ERR)
			FAIL(e, "%s: a receive completed with \"%s\" (%s)", e->name, uroce_wc_status_str(wc->status), uroce_wc_cause_str(wc->vendor_error));
	}
	e->receives_done++;
	p->is_posted[i] = false;
	p->posted--;
	e->actor->is_limit_due |= p->is_shared && p->posted < e->actor->limit;
	fill(p, i);
}
