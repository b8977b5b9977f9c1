/* SPDX-License-Identifier: BSD-3-Clause */
/* A hierarchical timing wheel with a resolution of 1,024 ns. Arming, re-arming and cancelling are O(1); a timer never fires before its
 * time, and fires at the first wheel_run at or after it (rounded up to the next tick). The wheel has no clock: time is an argument.
 * One thread. Reference: Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (1987). */
#ifndef UROCE_WHEEL_H
#define UROCE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#define WHEEL_TICK_NS 1024u
#define WHEEL_NEVER UINT64_MAX

struct timer {
	struct timer *next, **at; /* at: whoever points to this timer; NULL when not armed */
	uint64_t due_tick;
	void (*fire)(struct timer *t, uint64_t now_ns); /* disarmed before it is called; may arm itself again or free its owner */
};

struct wheel; /* sized by the caller through wheel_new */

/* NULL without memory. */
struct wheel *wheel_new(uint64_t now_ns);
void wheel_free(struct wheel *w);

void timer_init(struct timer *t, void (*fire)(struct timer *t, uint64_t now_ns));
static inline bool timer_is_armed(const struct timer *t)
{
	return t->at != 0;
}
/* Arms t for due_ns, moving it when it is armed already. A due time in the past fires at the next wheel_run. */
void wheel_arm(struct wheel *w, struct timer *t, uint64_t due_ns);
void wheel_cancel(struct wheel *w, struct timer *t);
/* Fires all that is due at now_ns, in order of their ticks; now_ns never goes back. Returns how many fired. A timer armed by a hook
 * for a time not after now_ns fires at the next call, so a run always ends. */
unsigned wheel_run(struct wheel *w, uint64_t now_ns);
/* A lower bound of the time at which something will be due (exact within the lowest level), WHEEL_NEVER when nothing is armed. */
uint64_t wheel_next(const struct wheel *w);

#endif
