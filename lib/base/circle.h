/* SPDX-License-Identifier: BSD-3-Clause */
/* A line in which things wait for their turn: first come, first served, but that one may be put in front, or go at any time. The line is a circle through its head, so there are no cases. A thing is in one line at most by each place that it
 * has; a place in none has no next. */
#ifndef UROCE_CIRCLE_H
#define UROCE_CIRCLE_H

#include <stdbool.h>
#include <stddef.h>

/* A thing's place in a line, or the head of one: then the first and the last. */
struct circle {
	struct circle *next, *before;
};

static inline void circle_init(struct circle *head)
{
	head->next = head->before = head;
}

static inline bool circle_is_empty(const struct circle *head)
{
	return head->next == head;
}

/* Or is empty. */
static inline bool circle_has_one(const struct circle *head)
{
	return head->next == head->before;
}

static inline bool circle_is_in(const struct circle *place)
{
	return place->next != NULL;
}

static inline void circle_insert_after(struct circle *before, struct circle *place)
{
	place->before = before;
	place->next = before->next;
	before->next->before = place;
	before->next = place;
}

static inline void circle_append(struct circle *head, struct circle *place)
{
	circle_insert_after(head->before, place);
}

static inline void circle_prepend(struct circle *head, struct circle *place)
{
	circle_insert_after(head, place);
}

static inline void circle_remove(struct circle *place)
{
	place->before->next = place->next;
	place->next->before = place->before;
	place->next = NULL;
}

#endif
