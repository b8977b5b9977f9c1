/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the list. An event is acknowledged as soon as it has become text, by the thread that destroys objects, so that none of them ever waits for it. */
#include "events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "lab.h"
#include "names.h"

/* The number of an object that was made by hand; what it is otherwise. */
static void name_object(const struct lab *lab, enum object_kind kind, const void *handle, char *to, size_t room)
{
	for (unsigned i = 0; i < OBJECTS_MAX; i++)
		if (lab->objects.v[kind][i].is_there && lab->objects.v[kind][i].handle == handle) {
			snprintf(to, room, ", %s %u", objects_kind_name(kind), i);
			return;
		}
	snprintf(to, room, ", %s of the traffic", objects_kind_name(kind));
}

static void keep(struct lab *lab, const struct station *s, const struct uroce_async_event *event)
{
	struct events *e = &lab->events;
	char of[64] = "";
	if (event->qp)
		name_object(lab, OBJECT_QP, event->qp, of, sizeof(of));
	else if (event->cq)
		name_object(lab, OBJECT_CQ, event->cq, of, sizeof(of));
	else if (event->srq)
		name_object(lab, OBJECT_SRQ, event->srq, of, sizeof(of));
	snprintf(e->text[e->n % EVENTS_MAX], sizeof(e->text[0]), "port %u%s: %s: %s", s->number, of, name_event(event->type), name_event_text(event->type));
	e->ns[e->n++ % EVENTS_MAX] = end_now();
}

/* Whether there was one. */
static bool take(struct lab *lab, struct station *s)
{
	struct uroce_async_event event;
	int err = uroce_async_get_event(s->ctx, &event);
	if (!err) {
		keep(lab, s, &event);
		uroce_async_ack_event(&event);
	} else if (err != -EAGAIN && err != -EINTR) {
		s->has_events = false; /* the engine is gone, which was the last one */
	}
	return !err;
}

bool events_look(struct lab *lab, bool is_said)
{
	uint64_t before = lab->events.n;
	for (unsigned i = 0; i < lab->stations; i++)
		while (lab->station[i].has_events && take(lab, &lab->station[i]))
			if (is_said) {
				lab_interject(lab);
				printf("event: %s\n", lab->events.text[(lab->events.n - 1) % EVENTS_MAX]);
			}
	return is_said && lab->events.n != before;
}

void events_print(const struct events *e)
{
	uint64_t first = e->n > EVENTS_MAX ? e->n - EVENTS_MAX : 0, now_ns = end_now();
	for (uint64_t i = first; i < e->n; i++)
		printf("%8.1f s ago  %s\n", (double)(now_ns - e->ns[i % EVENTS_MAX]) * 1e-9, e->text[i % EVENTS_MAX]);
	if (!e->n)
		printf("no events\n");
}

void events_clear(struct events *e)
{
	e->n = 0;
}
