/* SPDX-License-Identifier: BSD-3-Clause */
/* A link with faults. Owns the frames between push and pop, in two places: `held` are those that later ones may overtake, `line` is what leaves, in order. Decides by the specification; reads frames with
 * the wire floor's parser, so that what it changes is where it believes it to be.
 *
 * Invariants: dues in the line never fall; a held frame is overtaken by at most reorder_frames others; chance is drawn from (seed, number of the frame), so a rule more or less changes no other frame's fate. */
#include "fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "fault_spec.h"
#include "packet.h"
#include "random.h"

#define HELD_MAX 64u /* frames overtaken at a time; more are not held */
#define CE 3u
#define BTH_VARIANT 4u /* the byte of the BTH that the ICRC does not cover */

struct waiting {
	void *frame;
	uint64_t due_ns;
};

struct held {
	void *frame;
	uint64_t number, until_ns;
	uint32_t left; /* frames that may still overtake it */
};

struct fault {
	struct fault_spec spec;
	struct fault_frames frames;
	bool is_on;
	uint64_t number, roce_number;      /* frames so far */
	uint64_t matched[FAULT_RULES_MAX]; /* frames so far, by rule */
	struct held held[HELD_MAX];        /* oldest first */
	unsigned helds;
	struct waiting *line;
	uint32_t head, tail, mask;         /* free running */
	uint64_t last_due_ns;
	uint64_t counter[FAULT_COUNTERS];
};

/* What is to happen to one frame. */
struct fate {
	bool does[FAULT_ACTIONS];
	uint32_t held_for;  /* frames */
	uint64_t delay_ns;
	struct rng rng;     /* for what is not decided yet: bits to flip */
};

const char *fault_counter_name(enum fault_counter c)
{
	static const char *const names[FAULT_COUNTERS] = { "in", "out", "dropped", "duplicated", "reordered", "corrupted", "ce_marked", "overflowed", "no_memory" };
	return c < FAULT_COUNTERS ? names[c] : "unknown";
}

int fault_new(struct fault **out, const char *spec, const struct fault_frames *frames, char *why, uint32_t len)
{
	struct fault *f = calloc(1, sizeof(*f));
	uint32_t slots = 1;
	if (!f)
		return -ENOMEM;
	int err = fault_spec_parse(spec, &f->spec, why, len);
	if (err)
		goto fail;
	while (slots < f->spec.limit)
		slots *= 2;
	f->line = malloc(slots * sizeof(*f->line));
	err = f->line ? 0 : -ENOMEM;
	if (err)
		goto fail;
	f->mask = slots - 1;
	f->frames = *frames;
	f->is_on = true;
	*out = f;
	return 0;
fail:
	free(f);
	return err;
}

static void release(struct fault *f, void *frame)
{
	f->frames.free(f->frames.arg, frame);
}

void fault_free(struct fault *f)
{
	if (!f)
		return;
	for (unsigned i = 0; i < f->helds; i++)
		release(f, f->held[i].frame);
	for (; f->head != f->tail; f->head++)
		release(f, f->line[f->head & f->mask].frame);
	free(f->line);
	free(f);
}

uint32_t fault_waiting(const struct fault *f)
{
	return f->tail - f->head + f->helds;
}

uint64_t fault_counter(const struct fault *f, enum fault_counter c)
{
	return f->counter[c];
}

/* ---- deciding ---- */

/* 0 <= result < 1, and the next number of r is used up whatever it is for. */
static double draw(struct rng *r)
{
	return (double)(rng_next(r) >> 11) * 0x1p-53;
}

static void seed_frame(struct rng *r, uint64_t seed, uint64_t number)
{
	rng_seed(r, seed ^ (number + 1) * 0x9e3779b97f4a7c15u);
}

static bool is_matched(const struct fault_rule *r, const struct packet *p)
{
	uint8_t byte = p->op->byte;
	return (r->opcodes[byte / 64] >> byte % 64 & 1) && (r->qpn == FAULT_QPN_ANY || r->qpn == p->dqpn) &&
	       (!r->psns || psn_is_within(p->psn, r->first, r->psns));
}

static void apply_rules(struct fault *f, const struct packet *p, struct fate *fate)
{
	for (unsigned i = 0; i < f->spec.rules; i++) {
		const struct fault_rule *r = &f->spec.rule[i];
		if (!is_matched(r, p))
			continue;
		uint64_t n = ++f->matched[i];
		if (n == r->nth || (n > r->nth && r->every && (n - r->nth) % r->every == 0))
			fate->does[r->action] = true;
	}
}

static void apply_mask(struct fault *f, struct fate *fate)
{
	uint64_t i = f->roce_number++;
	if ((i < 64 || f->spec.is_mask_repeated) && (f->spec.mask >> i % 64 & 1))
		fate->does[FAULT_DROP] = true;
}

/* p: NULL when the frame is not RoCE. */
static void decide(struct fault *f, const struct packet *p, struct fate *fate)
{
	const struct fault_spec *s = &f->spec;
	struct rng *r = &fate->rng;
	seed_frame(r, s->seed, f->number);
	for (unsigned a = 0; a < FAULT_ACTIONS; a++)
		fate->does[a] = draw(r) < s->chance[a];
	fate->held_for = 1 + (uint32_t)rng_below(r, s->reorder_frames);
	fate->delay_ns = s->delay_ns + rng_below(r, s->jitter_ns + 1);
	if (!p)
		return;
	apply_rules(f, p, fate);
	apply_mask(f, fate);
}

/* ---- changing ---- */

/* TOS is not part of the ICRC, but of the IPv4 checksum, which changes by as much as it does (RFC 1624). */
static void mark_ce(uint8_t *l3, unsigned ip_version)
{
	if (ip_version == 6) {
		l3[1] |= CE << 4;
		return;
	}
	uint16_t before = get_be16(l3);
	l3[1] |= CE;
	uint32_t sum = (uint16_t)~get_be16(l3 + 10) + (uint32_t)(uint16_t)~before + get_be16(l3);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	put_be16(l3 + 10, (uint16_t)~sum);
}

/* Up to three different bits: CRC-32 finds them all at these lengths, so the ICRC is surely wrong. */
static void flip_bits(uint8_t *bth, uint32_t len, unsigned n, struct rng *r)
{
	uint32_t done[3];
	for (unsigned i = 0; i < n;) {
		uint32_t bit = (uint32_t)rng_below(r, (uint64_t)len * 8);
		bool is_taken = bit / 8 == BTH_VARIANT;
		for (unsigned j = 0; j < i; j++)
			is_taken |= done[j] == bit;
		if (is_taken)
			continue;
		bth[bit / 8] ^= (uint8_t)(1u << bit % 8);
		done[i++] = bit;
	}
}

/* Carries out what changes bytes, on a copy that replaces *frame. false: there is no memory for it. */
static bool change(struct fault *f, void **frame, const struct packet *p, struct fate *fate)
{
	bool is_ip = p && p->kind != PACKET_ARP, is_roce = p && p->kind == PACKET_ROCE;
	bool marks = fate->does[FAULT_CE] && is_ip, corrupts = fate->does[FAULT_CORRUPT] && is_roce;
	uint32_t len;
	if (!marks && !corrupts)
		return true;
	void *copy = f->frames.copy(f->frames.arg, *frame);
	if (!copy)
		return false;
	uint8_t *data = f->frames.data(copy, &len);
	release(f, *frame);
	*frame = copy;
	if (marks) {
		mark_ce(data + (p->l3 - p->frame), p->ip_version);
		f->counter[FAULT_CE_MARKED]++;
	}
	if (corrupts) {
		flip_bits(data + (p->bth - p->frame), p->l3_len - (uint32_t)(p->bth - p->l3), f->spec.corrupt_bits, &fate->rng);
		f->counter[FAULT_CORRUPTED]++;
	}
	return true;
}

/* ---- passing on ---- */

static bool is_full(struct fault *f, void *frame)
{
	if (fault_waiting(f) < f->spec.limit)
		return false;
	f->counter[FAULT_OVERFLOWED]++;
	release(f, frame);
	return true;
}

static void put_in_line(struct fault *f, void *frame, uint64_t due_ns)
{
	if (due_ns > f->last_due_ns)
		f->last_due_ns = due_ns;
	f->line[f->tail++ & f->mask] = (struct waiting){ frame, f->last_due_ns };
}

static struct held take_held(struct fault *f, unsigned i)
{
	struct held h = f->held[i];
	f->helds--;
	memmove(&f->held[i], &f->held[i + 1], (f->helds - i) * sizeof(h));
	return h;
}

/* A frame goes in line, and with it every older one that it is the last to overtake; these overtake others in turn. */
static void pass(struct fault *f, void *frame, uint64_t number, uint64_t due_ns)
{
	put_in_line(f, frame, due_ns);
	for (unsigned i = 0; i < f->helds && f->held[i].number < number; i++)
		f->held[i].left--;
	for (unsigned i = 0; i < f->helds && f->held[i].number < number;) {
		if (f->held[i].left) {
			i++;
			continue;
		}
		struct held h = take_held(f, i);
		pass(f, h.frame, h.number, due_ns);
		i = 0; /* the oldest first, always */
	}
}

/* Those that have waited for long enough. */
static void pass_late(struct fault *f, uint64_t now_ns)
{
	for (unsigned i = 0; i < f->helds;) {
		if (f->held[i].until_ns > now_ns) {
			i++;
			continue;
		}
		struct held h = take_held(f, i);
		pass(f, h.frame, h.number, h.until_ns);
		i = 0;
	}
}

static void hold(struct fault *f, void *frame, uint64_t now_ns, const struct fate *fate)
{
	f->counter[FAULT_REORDERED]++;
	f->held[f->helds++] = (struct held){ frame, f->number, now_ns + fate->delay_ns + f->spec.reorder_ns, fate->held_for };
}

static void forward(struct fault *f, void *frame, uint64_t now_ns, const struct fate *fate)
{
	if (is_full(f, frame))
		return;
	if (fate->does[FAULT_REORDER] && f->helds < HELD_MAX)
		hold(f, frame, now_ns, fate);
	else
		pass(f, frame, f->number, now_ns + fate->delay_ns);
}

static void carry_out(struct fault *f, uint64_t now_ns, void *frame, const struct packet *p, struct fate *fate)
{
	if (fate->does[FAULT_DROP]) {
		f->counter[FAULT_DROPPED]++;
		release(f, frame);
		return;
	}
	void *second = NULL;
	if (fate->does[FAULT_DUP]) {
		second = f->frames.copy(f->frames.arg, frame);
		f->counter[second ? FAULT_DUPLICATED : FAULT_NO_MEMORY]++;
	}
	if (change(f, &frame, p, fate)) {
		forward(f, frame, now_ns, fate);
	} else {
		f->counter[FAULT_NO_MEMORY]++;
		release(f, frame);
	}
	if (second && !is_full(f, second)) /* as it came, and never held: the one is good when the other is not */
		pass(f, second, f->number, now_ns + fate->delay_ns);
}

/* Everything that waits is due: what comes next finds no delay to share and, as soon as they are popped, no full line. */
static void let_go(struct fault *f)
{
	f->last_due_ns = 0;
	for (uint32_t i = f->head; i != f->tail; i++)
		f->line[i & f->mask].due_ns = 0;
	while (f->helds) {
		struct held h = take_held(f, 0);
		pass(f, h.frame, h.number, 0);
	}
}

void fault_switch(struct fault *f, bool is_on)
{
	if (f->is_on && !is_on)
		let_go(f);
	f->is_on = is_on;
}

void fault_push(struct fault *f, uint64_t now_ns, void *frame)
{
	uint32_t len;
	struct packet p;
	struct fate fate = { .delay_ns = 0 };
	f->counter[FAULT_IN]++;
	pass_late(f, now_ns);
	if (!f->is_on) {
		forward(f, frame, now_ns, &fate);
		return;
	}
	const uint8_t *data = f->frames.data(frame, &len);
	bool is_parsed = packet_parse(&p, data, len, VLAN_NONE, NULL) == DROP_NONE;
	decide(f, is_parsed && p.kind == PACKET_ROCE ? &p : NULL, &fate);
	carry_out(f, now_ns, frame, is_parsed ? &p : NULL, &fate);
	f->number++;
}

void *fault_pop(struct fault *f, uint64_t now_ns)
{
	if (f->helds)
		pass_late(f, now_ns);
	if (f->head == f->tail || f->line[f->head & f->mask].due_ns > now_ns)
		return NULL;
	f->counter[FAULT_OUT]++;
	return f->line[f->head++ & f->mask].frame;
}

uint64_t fault_next_due(const struct fault *f)
{
	uint64_t due = f->head == f->tail ? UINT64_MAX : f->line[f->head & f->mask].due_ns;
	for (unsigned i = 0; i < f->helds; i++)
		if (f->held[i].until_ns < due)
			due = f->held[i].until_ns;
	return due;
}
