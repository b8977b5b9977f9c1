/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the slots of the wheel and the lists of what is due. Does not own the timers (they live inside their owners' structures), has
 * no clock and no thread.
 *
 * A tick is a number of seven digits to the base of 256; a level belongs to each digit, a slot to each of its values. A timer is
 * at the level of the highest digit in which its tick differs from the wheel's, in the slot of its own digit:
 *
 *	wheel at tick  00 00 00 00 00 12 fe
 *	timer for      00 00 00 00 00 12 ff   level 0, slot ff
 *	timer for      00 00 00 00 00 15 03   level 1, slot 15: moves to level 0 when the wheel reaches ... 15 00
 *
 * Seven digits hold every tick of a 64-bit time, so there is no overflow list. Invariants, between any two calls:
 * - every timer in a slot is due after w->tick, and all that is due at or before it is in `late` or `firing`;
 * - hence at each level only slots above the wheel's own digit are occupied, and everything at a level is due before anything at
 *   a higher one: the earliest slot is the first bit of the lowest occupied level;
 * - next_tick is not after the first tick of any occupied slot, and 0 while `late` is not empty. It may be too early after a
 *   cancel, which costs one look at the bitmaps when that time comes.
 * Timers of one tick fire in the order in which they were armed: lists are filled at the head and turned over when emptied, and a
 * slot gets what comes from a higher level before anything can be armed into it directly. */
#include "wheel.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS 8
#define SLOTS (1u << DIGIT_BITS)
#define WORDS (SLOTS / 64)
#define LEVELS 7
#define TICK_NEVER UINT64_MAX

_Static_assert(WHEEL_TICK_NS == 1024, "LEVELS digits hold a 64-bit time over 1,024, rounded up");

struct wheel {
	uint64_t tick;                  /* all ticks up to this one have been looked at */
	uint64_t next_tick;             /* wheel_run has nothing to do before it */
	uint32_t occupied_levels;       /* bit per level with a timer */
	struct timer *late;             /* due at the next run, newest first */
	struct timer *firing;           /* due in the run that is under way, in order */
	uint64_t occupied[LEVELS][WORDS];
	struct timer *slot[LEVELS][SLOTS];
};

struct wheel *wheel_new(uint64_t now_ns)
{
	struct wheel *w = aligned_alloc(64, (sizeof(*w) + 63) & ~(size_t)63);

	if (!w)
		return NULL;
	memset(w, 0, sizeof(*w));
	w->tick = now_ns / WHEEL_TICK_NS;
	w->next_tick = TICK_NEVER;
	return w;
}

void wheel_free(struct wheel *w)
{
	free(w);
}

void timer_init(struct timer *t, void (*fire)(struct timer *t, uint64_t now_ns))
{
	*t = (struct timer){ .fire = fire };
}

static void push(struct timer **head, struct timer *t)
{
	t->next = *head;
	if (t->next)
		t->next->at = &t->next;
	t->at = head;
	*head = t;
}

/* Empties a list and returns its timers, oldest first, linked by `next` alone: each must be placed again. */
static struct timer *take_reversed(struct timer **head)
{
	struct timer *reversed = NULL, *t = *head;

	*head = NULL;
	while (t) {
		struct timer *next = t->next;
		t->next = reversed;
		reversed = t;
		t = next;
	}
	return reversed;
}

static void mark_empty(struct wheel *w, unsigned level, unsigned slot)
{
	uint64_t *words = w->occupied[level];

	words[slot / 64] &= ~(1ull << slot % 64);
	if (!(words[0] | words[1] | words[2] | words[3]))
		w->occupied_levels &= ~(1u << level);
}

/* t is due after w->tick. */
static void place(struct wheel *w, struct timer *t)
{
	unsigned level = (63 - (unsigned)__builtin_clzll(t->due_tick ^ w->tick)) / DIGIT_BITS;
	uint64_t prefix = t->due_tick >> level * DIGIT_BITS;
	unsigned slot = prefix % SLOTS;
	uint64_t first_tick = prefix << level * DIGIT_BITS;

	push(&w->slot[level][slot], t);
	w->occupied[level][slot / 64] |= 1ull << slot % 64;
	w->occupied_levels |= 1u << level;
	if (first_tick < w->next_tick)
		w->next_tick = first_tick;
}

static void remove_armed(struct wheel *w, struct timer *t)
{
	struct timer **at = t->at;
	uintptr_t offset = (uintptr_t)at - (uintptr_t)w->slot;

	*at = t->next;
	if (t->next)
		t->next->at = at;
	else if (offset < sizeof(w->slot)) /* it was the only one of its slot */
		mark_empty(w, offset / sizeof(*at) / SLOTS, offset / sizeof(*at) % SLOTS);
	t->next = NULL;
	t->at = NULL;
}

void wheel_arm(struct wheel *w, struct timer *t, uint64_t due_ns)
{
	if (t->at)
		remove_armed(w, t);
	t->due_tick = due_ns / WHEEL_TICK_NS + (due_ns % WHEEL_TICK_NS != 0);
	if (t->due_tick > w->tick) {
		place(w, t);
		return;
	}
	t->due_tick = w->tick;
	push(&w->late, t);
	w->next_tick = 0;
}

void wheel_cancel(struct wheel *w, struct timer *t)
{
	if (t->at)
		remove_armed(w, t);
}

/* The lowest occupied level and its first slot, and the first tick that the slot stands for; TICK_NEVER without one. */
static uint64_t find_first(const struct wheel *w, unsigned *level, unsigned *slot)
{
	unsigned word = 0, shift;

	if (!w->occupied_levels)
		return TICK_NEVER;
	*level = (unsigned)__builtin_ctz(w->occupied_levels);
	while (!w->occupied[*level][word])
		word++;
	*slot = word * 64 + (unsigned)__builtin_ctzll(w->occupied[*level][word]);
	/* The digits above the level are the wheel's own, those below are zero. */
	shift = *level * DIGIT_BITS;
	return (w->tick >> shift >> DIGIT_BITS << DIGIT_BITS | *slot) << shift;
}

uint64_t wheel_next(const struct wheel *w)
{
	unsigned level, slot;
	uint64_t tick;

	if (w->late || w->firing)
		return w->tick * WHEEL_TICK_NS;
	tick = find_first(w, &level, &slot);
	return tick > UINT64_MAX / WHEEL_TICK_NS ? WHEEL_NEVER : tick * WHEEL_TICK_NS;
}

static struct timer **append(struct timer **tail, struct timer *t)
{
	t->at = tail;
	*tail = t;
	return &t->next;
}

/* Moves all that is due up to now_tick to `firing`, in order, and the wheel to now_tick. A step goes from one occupied slot to the
 * next, over any distance, and takes a timer at least one level down: at most LEVELS steps per timer. */
static void collect_due(struct wheel *w, uint64_t now_tick)
{
	struct timer **tail = &w->firing;
	struct timer *t, *next;
	unsigned level = 0, slot = 0;
	uint64_t tick;

	for (t = take_reversed(&w->late); t; t = next) {
		next = t->next;
		tail = append(tail, t);
	}
	while ((tick = find_first(w, &level, &slot)) <= now_tick) {
		w->tick = tick;
		mark_empty(w, level, slot);
		for (t = take_reversed(&w->slot[level][slot]); t; t = next) {
			next = t->next;
			if (t->due_tick == tick)
				tail = append(tail, t);
			else
				place(w, t);
		}
	}
	*tail = NULL;
	w->tick = now_tick;
	w->next_tick = tick;
}

unsigned wheel_run(struct wheel *w, uint64_t now_ns)
{
	uint64_t now_tick = now_ns / WHEEL_TICK_NS;
	unsigned fired = 0;
	struct timer *t;

	if (now_tick < w->tick)
		now_tick = w->tick;
	if (__builtin_expect(now_tick < w->next_tick, 1)) {
		/* No slot begins up to here, so the wheel may stand here: what is armed next lands as low as it can. */
		w->tick = now_tick;
		return 0;
	}
	/* All is collected before the first hook runs: whatever a hook arms is judged against now, and waits for the next run. */
	collect_due(w, now_tick);
	while ((t = w->firing)) {
		remove_armed(w, t);
		/* The hook may free t. */
		t->fire(t, now_ns);
		fired++;
	}
	return fired;
}
