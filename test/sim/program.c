/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the programs of a connection. Operations take effect in the order in which they are posted: that is what RC promises (IBA vol. 1, 9.5, 10.8.3.3). Where it promises less, the program asks for more, with a
 * fence, so that every run has one right result: a WR that changes what an earlier READ reads is fenced, and so is one whose source is an earlier READ's landing place. What comes of it is image.c's.
 * Invariant: a local place is written by at most one WR or message, with untouched bytes around it. */
#include "image.h"
#include "window.h"

#include <stdlib.h>
#include <string.h>

#define SOURCE_BYTES (96u << 10)
#define STEPS_MAX 240u
#define EXTRA_RECEIVES 3u
#define READS_MAX 64u

/* A direction being made: from's WRs, to's memory. */
struct maker {
	struct plan_pair *pair;
	struct plan_end *from, *to;
	struct rng *r;
	uint32_t len_max;
	uint32_t signal_share; /* in 16 */
	struct piece read[READS_MAX]; /* remote ranges of READs that may not be done yet */
	unsigned reads;
	bool is_pooled;        /* to's receives are */
};

static bool is_one_in(struct rng *r, unsigned n)
{
	return rng_below(r, n) == 0;
}

/* ---- lengths and places ---- */

/* Mostly around multiples of the path MTU, where packets begin and end. */
static uint32_t choose_len(struct maker *m)
{
	struct rng *r = m->r;
	uint32_t mtu = m->pair->mtu, len;
	uint64_t kind = rng_below(r, 20);
	if (kind < 2)
		len = 0;
	else if (kind < 5)
		len = (uint32_t)rng_below(r, 65);
	else if (kind < 13)
		len = mtu * (1 + (uint32_t)rng_below(r, 4)) + (uint32_t)rng_below(r, 9) - 4;
	else if (kind < 15)
		len = 8192 + (uint32_t)rng_below(r, 2);
	else if (kind < 19)
		len = (uint32_t)rng_below(r, 6 * mtu);
	else
		len = (uint32_t)rng_below(r, LEN_MAX + 1);
	return len <= m->len_max ? len : (uint32_t)rng_below(r, m->len_max + 1);
}

/* Cuts len bytes into up to `most` lengths, of which some may be 0. */
static unsigned cut(struct rng *r, uint32_t len, unsigned most, uint32_t to[PIECES_MAX])
{
	unsigned n = 1 + (unsigned)rng_below(r, most);
	if (is_one_in(r, 2))
		n = 1;
	for (unsigned i = 0; i + 1 < n; i++) {
		to[i] = (uint32_t)rng_below(r, len + 1);
		len -= to[i];
	}
	to[n - 1] = len;
	return n;
}

/* Places for len bytes that nothing else ever writes, each with a few bytes before it. */
static uint8_t make_landing(struct plan_end *e, struct rng *r, uint32_t len, unsigned most, struct piece *piece)
{
	uint32_t lens[PIECES_MAX];
	unsigned n = cut(r, len, most, lens);
	for (unsigned i = 0; i < n; i++) {
		e->local_bytes += 1 + (uint32_t)rng_below(r, 16);
		piece[i] = (struct piece){ e->local_bytes, lens[i] };
		e->local_bytes += lens[i];
	}
	return (uint8_t)n;
}

static uint8_t make_source(struct plan_end *e, struct rng *r, uint32_t len, unsigned most, struct piece *piece)
{
	uint32_t lens[PIECES_MAX];
	unsigned n = cut(r, len, most, lens);
	for (unsigned i = 0; i < n; i++)
		piece[i] = (struct piece){ (uint32_t)rng_below(r, e->source_bytes - lens[i] + 1), lens[i] };
	return (uint8_t)n;
}

/* ---- one step ---- */

const struct step_kind step_kinds[] = {
	[UROCE_OP_SEND] = { 5, true, true, false, false },
	[UROCE_OP_SEND_WITH_IMM] = { 2, true, true, false, false },
	[UROCE_OP_WRITE] = { 5, true, false, true, false },
	[UROCE_OP_WRITE_WITH_IMM] = { 2, true, true, true, false },
	[UROCE_OP_READ] = { 4, false, false, true, false },
	[UROCE_OP_COMPARE_SWAP] = { 2, false, false, true, true },
	[UROCE_OP_FETCH_ADD] = { 2, false, false, true, true },
	[UROCE_OP_ATOMIC_WRITE] = { 2, true, false, true, true },
	[UROCE_OP_FLUSH] = { 2, .is_flush = true },
	[UROCE_OP_SEND_WITH_INV] = { 0, true, true, false, false }, /* these are window.c's to choose */
	[UROCE_OP_BIND_MW] = { 0, false, false, false, false },
	[UROCE_OP_LOCAL_INV] = { 0, false, false, false, false },
	[UROCE_OP_REG_MR] = { 0, false, false, false, false },
};
#define KINDS (sizeof(step_kinds) / sizeof(step_kinds[0]))

static enum uroce_opcode choose_opcode(const struct plan_pair *pair, struct rng *r)
{
	unsigned sum = 0, k = 0, n = pair->service == UROCE_RC ? KINDS : pair->service == UROCE_UC ? UROCE_OP_READ : UROCE_OP_WRITE;
	for (unsigned i = 0; i < n; i++)
		sum += step_kinds[i].weight;
	uint64_t at = rng_below(r, sum);
	while (at >= step_kinds[k].weight)
		at -= step_kinds[k++].weight;
	return (enum uroce_opcode)k;
}

/* A WR that changes bytes that a READ before it may still be reading waits for that READ. */
static void order_after_reads(struct maker *m, struct step *s)
{
	bool changes = step_kinds[s->opcode].is_remote && s->opcode != UROCE_OP_READ;
	for (unsigned i = 0; changes && i < m->reads; i++)
		if (s->remote_offset < m->read[i].offset + m->read[i].len && m->read[i].offset < s->remote_offset + s->len)
			s->flags |= UROCE_SEND_FENCE;
	if (m->reads == READS_MAX || is_one_in(m->r, 16))
		s->flags |= UROCE_SEND_FENCE;
	if (s->flags & UROCE_SEND_FENCE)
		m->reads = 0;
	if (s->opcode == UROCE_OP_READ)
		m->read[m->reads++] = (struct piece){ s->remote_offset, s->len };
}

/* The bytes of an earlier READ, sent on. */
static bool resend_read(struct maker *m, struct step *s)
{
	for (uint32_t i = m->from->steps; i-- > 0;) {
		const struct step *read = &m->from->step[i];
		if (read->opcode != UROCE_OP_READ || !is_one_in(m->r, 3) || read->len > m->len_max)
			continue;
		s->len = read->len;
		s->pieces = read->pieces;
		memcpy(s->piece, read->piece, sizeof(s->piece));
		s->flags |= UROCE_SEND_FENCE;
		return true;
	}
	return false;
}

/* What can be lost has a place of its own, so that nothing else decides what is there. */
static void choose_target(struct maker *m, struct step *s)
{
	if (step_kinds[s->opcode].is_word) {
		s->remote_offset = 8 * (uint32_t)rng_below(m->r, 8);
	} else if (m->pair->service == UROCE_RC) {
		s->remote_offset = (uint32_t)rng_below(m->r, m->to->target_bytes - s->len + 1);
	} else if (step_kinds[s->opcode].is_remote) {
		s->remote_offset = m->to->target_bytes - 16;
		m->to->target_bytes += s->len + 1 + (uint32_t)rng_below(m->r, 16);
	}
}

/* Anywhere in the target: it changes nothing. */
static void choose_flush(struct maker *m, struct step *s)
{
	s->remote_offset = (uint32_t)rng_below(m->r, m->to->target_bytes);
	s->flush.len = (uint32_t)rng_below(m->r, m->to->target_bytes - s->remote_offset + 1);
	s->flush.placement = UROCE_FLUSH_GLOBAL;
	s->flush.level = is_one_in(m->r, 2) ? UROCE_FLUSH_MR : UROCE_FLUSH_RANGE;
}

static void choose_memory(struct maker *m, struct step *s)
{
	const struct step_kind *k = &step_kinds[s->opcode];
	struct rng *r = m->r;
	if (k->is_flush) {
		choose_flush(m, s);
		return;
	}
	bool is_resent = k->has_payload && !k->is_word && is_one_in(r, 8) && resend_read(m, s);
	if (!is_resent)
		s->len = k->is_word ? 8 : choose_len(m);
	if (k->is_word && k->has_payload)
		s->pieces = make_source(m->from, r, 8, 1, s->piece);
	else if (k->is_word)
		s->pieces = make_landing(m->from, r, 8, 1, s->piece);
	else if (!k->has_payload)
		s->pieces = make_landing(m->from, r, s->len, m->from->cap.max_send_sge, s->piece);
	else if (!is_resent)
		s->pieces = make_source(m->from, r, s->len, m->from->cap.max_send_sge, s->piece);
	choose_target(m, s);
	if (!s->len)
		s->garbage = (uint32_t)rng_below(r, 2) * (1 + (uint32_t)rng_below(r, 1u << 30));
	/* inline bytes are taken while posting, before a READ that they come from is done */
	if (k->has_payload && !is_resent && s->len <= m->from->cap.max_inline && is_one_in(r, 2))
		s->flags |= UROCE_SEND_INLINE;
}

static struct step *add_step(struct maker *m, enum uroce_opcode opcode)
{
	struct step *s = &m->from->step[m->from->steps];
	struct rng *r = m->r;
	*s = (struct step){ .opcode = opcode, .imm = (uint32_t)rng_next(r), .receive = NO_INDEX, .stray = NO_INDEX, .opening = NO_INDEX, .after = NO_INDEX, .compare_add = rng_next(r), .swap = rng_next(r) };
	if (rng_below(r, 16) < m->signal_share)
		s->flags |= UROCE_SEND_SIGNALED;
	if (is_one_in(r, 4))
		s->flags |= UROCE_SEND_SOLICITED;
	choose_memory(m, s);
	order_after_reads(m, s);
	m->from->steps++;
	return s;
}

static struct receive *add_receive(struct maker *m, uint32_t step, uint32_t room, unsigned least_pieces)
{
	struct receive *v = &m->to->receive[m->to->receives++];
	*v = (struct receive){ .step = step, .room = room };
	if (room || least_pieces)
		v->pieces = make_landing(m->to, m->r, room, m->to->cap.max_recv_sge, v->piece);
	return v;
}

static void give_receive(struct maker *m, struct step *s)
{
	struct rng *r = m->r;
	bool is_write = step_kinds[s->opcode].is_remote;
	uint32_t room = is_write ? 0 : s->len;
	s->takes_receive = step_kinds[s->opcode].has_receive;
	if (!s->takes_receive || m->is_pooled)
		return;
	if (is_one_in(r, 2))
		room += (uint32_t)rng_below(r, 200);
	s->receive = m->to->receives;
	add_receive(m, m->from->steps - 1, room, (unsigned)rng_below(r, 2));
}

/* ---- mistakes ---- */

static bool suits(const struct maker *m, const struct step *s, enum mistake mistake)
{
	const struct step_kind *k = &step_kinds[s->opcode];
	if (!s->len)
		return false;
	switch (mistake) {
	case MISTAKE_KEY:
		return k->is_remote;
	case MISTAKE_TOO_LONG:
	case MISTAKE_RECEIVE_KEY:
		return k->has_receive && !k->is_remote;
	case MISTAKE_LOCAL_KEY:
		return !(s->flags & UROCE_SEND_INLINE);
	case MISTAKE_RNR: /* of a longer WRITE all packets but the last do their work */
		return k->has_receive && (!k->is_remote || s->len <= m->pair->mtu);
	default:
		return false;
	}
}

/* The last step made becomes the mistaken one, if it can be. */
static void make_mistake(struct maker *m, struct step *s, enum mistake mistake)
{
	struct plan_end *from = m->from;
	if (from->mistake_step != NO_INDEX || !suits(m, s, mistake))
		return;
	struct receive *v = s->receive == NO_INDEX ? NULL : &m->to->receive[s->receive];
	from->mistake_step = from->steps - 1;
	s->is_mistaken = mistake == MISTAKE_KEY || mistake == MISTAKE_LOCAL_KEY;
	if (mistake == MISTAKE_TOO_LONG || mistake == MISTAKE_RECEIVE_KEY) {
		v->is_partial = true;
		v->is_mistaken = mistake == MISTAKE_RECEIVE_KEY;
		if (mistake == MISTAKE_TOO_LONG) {
			v->pieces = 1;
			v->room = (uint32_t)rng_below(m->r, s->len);
			v->piece[0].len = v->piece[0].len < v->room ? v->piece[0].len : v->room;
			v->room = v->piece[0].len;
		}
	} else if (v) { /* nothing reaches it */
		v->step = NO_INDEX;
	}
}

/* ---- both directions ---- */

static void make_direction(struct maker *m, uint32_t steps, enum mistake mistake)
{
	struct plan_end *from = m->from;
	uint32_t strike = steps ? (uint32_t)rng_below(m->r, steps) : 0;
	steps = steps < m->pair->steps_most ? steps : m->pair->steps_most;
	bool is_vague = mistake_rows[mistake].is_vague;
	from->step = calloc(steps + 1, sizeof(*from->step));
	m->to->receive = calloc(steps + EXTRA_RECEIVES, sizeof(*m->to->receive));
	if (!from->step || !m->to->receive)
		abort();
	from->mistake = mistake;
	while (from->steps < steps) {
		struct step *s = add_step(m, choose_opcode(m->pair, m->r));
		give_receive(m, s);
		if (mistake != MISTAKE_NONE && !is_vague && from->steps > strike)
			make_mistake(m, s, mistake);
	}
	if (from->mistake_step == NO_INDEX && !is_vague)
		from->mistake = MISTAKE_NONE;
	if (steps)
		from->step[steps - 1].flags |= UROCE_SEND_SIGNALED;
	for (uint64_t n = rng_below(m->r, EXTRA_RECEIVES + 1); n && !m->is_pooled; n--)
		add_receive(m, NO_INDEX, (uint32_t)rng_below(m->r, 100), 0);
}

static uint32_t choose_steps(struct rng *r)
{
	return (uint32_t)rng_below(r, is_one_in(r, 4) ? STEPS_MAX : 60);
}

/* Short timeouts where one is waited for; receives in time where their lateness would be a mistake too. */
static void suit_attrs(struct plan_pair *pair, enum mistake mistake, struct rng *r)
{
	for (unsigned i = 0; i < 2; i++) {
		struct plan_end *e = &pair->end[i];
		if (mistake == MISTAKE_RNR) {
			e->attr.rnr_retry = (uint8_t)rng_below(r, 4);
			e->posts_late = false;
			e->cap.max_recv_wr = STEPS_MAX + EXTRA_RECEIVES;
		}
		if (mistake_rows[mistake].is_silence) /* everybody else has to survive the faults before */
			e->attr.retry_cnt = 2;
	}
	pair->end[0].recovers = (mistake == MISTAKE_LOCAL_KEY || mistake == MISTAKE_AH_GONE) && pair->service != UROCE_RC && !pair->end[0].drain_ns && is_one_in(r, 2);
	/* both sides know when: it is the one that does it, or the other */
	pair->end[0].mistake_ns = mistake_rows[mistake].is_vague && mistake != MISTAKE_HOST_GONE ? 1000000 + rng_below(r, 500000) : 0;
	pair->end[1].mistake_ns = pair->end[0].mistake_ns;
}

/* Buffers for any message, or for most of them; where nothing is lost, one for each, so that none is lost for lack of them. */
static void make_pool(struct maker *m, bool is_exact)
{
	struct plan_end *to = m->to;
	uint32_t most = 0;
	for (uint32_t i = 0; i < m->from->steps; i++)
		if (!step_kinds[m->from->step[i].opcode].is_remote && m->from->step[i].len > most)
			most = m->from->step[i].len;
	bool is_short = m->pair->service != UROCE_RC && is_one_in(m->r, 4);
	uint32_t before = m->pair->service == UROCE_UD ? GRH_BYTES : 0;
	to->pool.room = before + (is_short ? (uint32_t)rng_below(m->r, most + 1) : most + (uint32_t)rng_below(m->r, 100));
	if (to->uses_srq)
		return;
	to->pool.buffers = is_exact ? m->from->steps + 1 : 1 + (uint32_t)rng_below(m->r, 64);
	to->posts_late &= !is_exact;
	if (to->cap.max_recv_wr < to->pool.buffers)
		to->cap.max_recv_wr = to->pool.buffers;
}

/* Directions and images from seeds of their own: a program that is cut short begins as the whole one does. */
static void make_programs(struct plan_pair *pair, enum mistake mistake, bool is_exact, struct rng *r)
{
	bool is_reliable = pair->service == UROCE_RC;
	for (unsigned i = 0; i < 2; i++) {
		struct rng own;
		struct maker m = { .pair = pair, .from = &pair->end[i], .to = &pair->end[!i], .r = &own, .is_pooled = !is_reliable || pair->end[!i].uses_srq };
		uint32_t steps = is_reliable ? choose_steps(r) : (uint32_t)rng_below(r, 60);
		if (pair->service == UROCE_UD)
			m.len_max = pair->mtu;
		else
			m.len_max = is_reliable && is_one_in(r, 3) ? LEN_MAX : is_one_in(r, 2) ? 5 * pair->mtu : 600;
		m.signal_share = is_one_in(r, 2) ? 16 : 1 + (uint32_t)rng_below(r, 15);
		if (mistake != MISTAKE_NONE) /* the other direction would end at a moment of chance */
			steps = i ? 0 : steps + 1;
		rng_seed(&own, rng_next(r));
		make_direction(&m, steps, i ? MISTAKE_NONE : mistake);
		if (m.is_pooled)
			make_pool(&m, is_exact);
	}
}

void program_make(struct plan_pair *pair, enum mistake mistake, bool is_exact, struct rng *r)
{
	is_exact = is_exact && !mistake_rows[mistake].is_vague;
	for (unsigned i = 0; i < 2; i++) {
		struct plan_end *e = &pair->end[i];
		e->source_bytes = e->local_bytes = SOURCE_BYTES;
		e->target_bytes = pair->service == UROCE_RC ? LEN_MAX + 4096 : 64;
		e->is_exact = is_exact;
	}
	suit_attrs(pair, mistake, r);
	make_programs(pair, mistake, is_exact, r);
	windows_make(pair, r);
	images_make(pair, r);
	pair->end[1].peer_mistake = pair->end[0].mistake;
}

void program_free(struct plan_end *e)
{
	free(e->step);
	free(e->receive);
	free(e->image_local);
	free(e->image_target);
}
