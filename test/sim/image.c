/* SPDX-License-Identifier: BSD-3-Clause */
/* Carries programs out on images of memory, in the order in which they are posted: what must be there at the end of a run. */
#include "image.h"

#include <stdlib.h>
#include <string.h>

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

/* What an image holds there, which a compare-and-swap may know. */
static uint64_t peek(const uint8_t *image, uint32_t offset)
{
	uint64_t v;
	memcpy(&v, image + offset, 8);
	return v;
}

static void apply_atomic(struct step *s, struct plan_end *from, struct plan_end *to, struct rng *r)
{
	uint64_t old = peek(to->image_target, s->remote_offset), fresh = old + s->compare_add;
	if (s->opcode == UROCE_OP_COMPARE_SWAP) {
		if (rng_below(r, 2))
			s->compare_add = old;
		fresh = s->compare_add == old ? s->swap : old;
	}
	memcpy(to->image_target + s->remote_offset, &fresh, 8);
	scatter(from->image_local, s->piece, s->pieces, (const uint8_t *)&old, 8);
}

static void apply(struct step *s, struct plan_end *from, struct plan_end *to, struct rng *r)
{
	const struct step_kind *k = &step_kinds[s->opcode];
	if (!k->has_payload && !k->is_remote)
		return;
	uint8_t *bytes = malloc(LEN_MAX + 1);
	if (!bytes)
		abort();
	if (k->is_word && !k->has_payload) {
		apply_atomic(s, from, to, r);
	} else if (s->opcode == UROCE_OP_READ) {
		scatter(from->image_local, s->piece, s->pieces, to->image_target + s->remote_offset, s->len);
	} else {
		gather(from->image_local, s->piece, s->pieces, bytes);
		if (step_kinds[s->opcode].is_remote)
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
	if (!step_kinds[s->opcode].is_remote || !step_kinds[s->opcode].has_payload)
		return false;
	for (uint32_t j = i + 1; j < e->steps; j++) {
		const struct step *t = &e->step[j];
		if (step_kinds[t->opcode].is_remote && t->opcode != UROCE_OP_READ && t->remote_offset < s->remote_offset + s->len && s->remote_offset < t->remote_offset + t->len)
			return false;
	}
	return true;
}

/* What a program does that goes on behind its mistake, too. */
static void run_on_images(struct plan_end *from, struct plan_end *to, struct rng *r)
{
	for (uint32_t i = 0; i < from->steps; i++) {
		if (from->recovers ? from->step[i].is_mistaken : i >= from->mistake_step)
			continue;
		apply(&from->step[i], from, to, r);
		from->step[i].is_last_word = has_last_word(from, i);
	}
}

void images_make(struct plan_pair *pair, struct rng *r)
{
	make_images(&pair->end[0]);
	make_images(&pair->end[1]);
	run_on_images(&pair->end[0], &pair->end[1], r);
	run_on_images(&pair->end[1], &pair->end[0], r);
}
