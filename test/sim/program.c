/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the programs of a connection and carries them out on images of its memory, in the order in which they are posted: that is what RC promises (IBA vol. 1, 9.5, 10.8.3.3). Where it promises less, the program
 * asks for more, with a fence, so that every run has one right result: a WR that changes what an earlier READ reads is fenced, and so is one whose source is an earlier READ's landing place.
 * Invariant: a local place is written by at most one WR or message, with untouched bytes around it. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

#define SOURCE_BYTES (96u << 10)
#define LEN_MAX (64u << 10)
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

static const struct kind {
	unsigned weight;
	bool has_payload, has_receive, is_remote, is_word, is_flush;
} kinds[] = {
	[UROCE_OP_SEND] = { 5, true, true, false, false },
	[UROCE_OP_SEND_WITH_IMM] = { 2, true, true, false, false },
	[UROCE_OP_WRITE] = { 5, true, false, true, false },
	[UROCE_OP_WRITE_WITH_IMM] = { 2, true, true, true, false },
	[UROCE_OP_READ] = { 4, false, false, true, false },
	[UROCE_OP_COMPARE_SWAP] = { 2, false, false, true, true },
	[UROCE_OP_FETCH_ADD] = { 2, false, false, true, true },
	[UROCE_OP_ATOMIC_WRITE] = { 2, true, false, true, true },
	[UROCE_OP_FLUSH] = { 2, .is_flush = true },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static enum uroce_opcode choose_opcode(const struct plan_pair *pair, struct rng *r)
{
	unsigned sum = 0, k = 0, n = pair->service == UROCE_RC ? KINDS : pair->service == UROCE_UC ? UROCE_OP_READ : UROCE_OP_WRITE;
	for (unsigned i = 0; i < n; i++)
		sum += kinds[i].weight;
	uint64_t at = rng_below(r, sum);
	while (at >= kinds[k].weight)
		at -= kinds[k++].weight;
	return (enum uroce_opcode)k;
}

/* A WR that changes bytes that a READ before it may still be reading waits for that READ. */
static void order_after_reads(struct maker *m, struct step *s)
{
	bool changes = kinds[s->opcode].is_remote && s->opcode != UROCE_OP_READ;
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
	if (kinds[s->opcode].is_word) {
		s->remote_offset = 8 * (uint32_t)rng_below(m->r, 8);
	} else if (m->pair->service == UROCE_RC) {
		s->remote_offset = (uint32_t)rng_below(m->r, m->to->target_bytes - s->len + 1);
	} else if (kinds[s->opcode].is_remote) {
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
	const struct kind *k = &kinds[s->opcode];
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

/* What an image holds there, which a compare-and-swap may know. */
static uint64_t peek(const uint8_t *image, uint32_t offset)
{
	uint64_t v;
	memcpy(&v, image + offset, 8);
	return v;
}

static struct step *add_step(struct maker *m, enum uroce_opcode opcode)
{
	struct step *s = &m->from->step[m->from->steps];
	struct rng *r = m->r;
	*s = (struct step){ .opcode = opcode, .imm = (uint32_t)rng_next(r), .receive = NO_INDEX, .compare_add = rng_next(r), .swap = rng_next(r) };
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
	bool is_write = kinds[s->opcode].is_remote;
	uint32_t room = is_write ? 0 : s->len;
	s->takes_receive = kinds[s->opcode].has_receive;
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
	const struct kind *k = &kinds[s->opcode];
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

/* ---- the images ---- */

static void gather(const uint8_t *image, const struct piece *piece, unsigned n, uint8_t *to)
{
	for (unsigned i = 0; i < n; to += piece[i++].len)
		memcpy(to, image + piece[i].offset, piece[i].len);
}

static void scatter(uint8_t *image, const struct piece *piece, unsigned n, const uint8_t *from, uint32_t len)
{
	for (unsigned i = 0; i < n && len; i++) {
		uint32_t part = piece[i].len < len ? piece[i].len : len;
		memcpy(image + piece[i].offset, from, part);
		from += part;
		len -= part;
	}
}

static void apply_atomic(struct step *s, struct plan_end *from, struct plan_end *to, struct rng *r)
{
	uint64_t old = peek(to->image_target, s->remote_offset), fresh = old + s->compare_add;
	if (s->opcode == UROCE_OP_COMPARE_SWAP) {
		if (is_one_in(r, 2))
			s->compare_add = old;
		fresh = s->compare_add == old ? s->swap : old;
	}
	memcpy(to->image_target + s->remote_offset, &fresh, 8);
	scatter(from->image_local, s->piece, s->pieces, (const uint8_t *)&old, 8);
}

static void apply(struct step *s, struct plan_end *from, struct plan_end *to, struct rng *r)
{
	uint8_t *bytes = malloc(LEN_MAX + 1);
	if (!bytes)
		abort();
	if (kinds[s->opcode].is_word && !kinds[s->opcode].has_payload) {
		apply_atomic(s, from, to, r);
	} else if (s->opcode == UROCE_OP_READ) {
		scatter(from->image_local, s->piece, s->pieces, to->image_target + s->remote_offset, s->len);
	} else if (!kinds[s->opcode].is_flush) {
		gather(from->image_local, s->piece, s->pieces, bytes);
		if (kinds[s->opcode].is_remote)
			memcpy(to->image_target + s->remote_offset, bytes, s->len);
		else if (s->receive != NO_INDEX)
			scatter(to->image_local, to->receive[s->receive].piece, to->receive[s->receive].pieces, bytes, s->len);
	}
	free(bytes);
}

static void make_images(struct plan_end *e)
{
	e->local_bytes += 16;
	e->image_local = malloc(e->local_bytes);
	e->image_target = malloc(e->target_bytes);
	if (!e->image_local || !e->image_target)
		abort();
	plan_fill(e->fill_seed, e->image_local, e->local_bytes);
	plan_fill(e->fill_seed + 1, e->image_target, e->target_bytes);
}

/* Whether anything after step i changes what it wrote. */
static bool has_last_word(const struct plan_end *e, uint32_t i)
{
	const struct step *s = &e->step[i];
	if (!kinds[s->opcode].is_remote || !kinds[s->opcode].has_payload)
		return false;
	for (uint32_t j = i + 1; j < e->steps; j++) {
		const struct step *t = &e->step[j];
		if (kinds[t->opcode].is_remote && t->opcode != UROCE_OP_READ && t->remote_offset < s->remote_offset + s->len && s->remote_offset < t->remote_offset + t->len)
			return false;
	}
	return true;
}

static void run_on_images(struct plan_end *from, struct plan_end *to, struct rng *r)
{
	for (uint32_t i = 0; i < from->steps && i < from->mistake_step; i++) {
		apply(&from->step[i], from, to, r);
		from->step[i].is_last_word = has_last_word(from, i);
	}
}

/* ---- both directions ---- */

static void make_direction(struct maker *m, uint32_t steps, enum mistake mistake)
{
	struct plan_end *from = m->from;
	uint32_t strike = steps ? (uint32_t)rng_below(m->r, steps) : 0;
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
		if (mistake_rows[mistake].is_vague && mistake != MISTAKE_STOPPED) /* whoever is stopped has still to survive the faults before */
			e->attr.retry_cnt = 2;
	}
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
		if (!kinds[m->from->step[i].opcode].is_remote && m->from->step[i].len > most)
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

void program_make(struct plan_pair *pair, enum mistake mistake, bool is_exact, struct rng *r)
{
	bool is_reliable = pair->service == UROCE_RC;
	for (unsigned i = 0; i < 2; i++) {
		struct plan_end *e = &pair->end[i];
		e->source_bytes = e->local_bytes = SOURCE_BYTES;
		e->target_bytes = is_reliable ? LEN_MAX + 4096 : 64;
	}
	suit_attrs(pair, mistake, r);
	for (unsigned i = 0; i < 2; i++) {
		struct maker m = { .pair = pair, .from = &pair->end[i], .to = &pair->end[!i], .r = r, .is_pooled = !is_reliable || pair->end[!i].uses_srq };
		uint32_t steps = is_reliable ? choose_steps(r) : (uint32_t)rng_below(r, 60);
		if (pair->service == UROCE_UD)
			m.len_max = pair->mtu;
		else
			m.len_max = is_reliable && is_one_in(r, 3) ? LEN_MAX : is_one_in(r, 2) ? 5 * pair->mtu : 600;
		m.signal_share = is_one_in(r, 2) ? 16 : 1 + (uint32_t)rng_below(r, 15);
		if (mistake != MISTAKE_NONE) /* the other direction would end at a moment of chance */
			steps = i ? 0 : steps + 1;
		make_direction(&m, steps, i ? MISTAKE_NONE : mistake);
		if (m.is_pooled)
			make_pool(&m, is_exact && !mistake_rows[mistake].is_vague);
	}
	make_images(&pair->end[0]);
	make_images(&pair->end[1]);
	run_on_images(&pair->end[0], &pair->end[1], r);
	run_on_images(&pair->end[1], &pair->end[0], r);
	pair->end[0].is_exact = pair->end[1].is_exact = is_exact && !mistake_rows[mistake].is_vague;
	pair->end[1].peer_mistake = pair->end[0].mistake;
}

void program_free(struct plan_end *e)
{
	free(e->step);
	free(e->receive);
	free(e->image_local);
	free(e->image_target);
}
