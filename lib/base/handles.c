/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles. Invariant: object[i] is NULL exactly where slot i is free; generation[i] is that of the object there, or of the next. */
#include "handles.h"

#define GENERATION_MAX ((1u << (32 - HANDLE_INDEX_BITS)) - 1)

static int grow(struct handles *h)
{
	uint32_t room = h->room ? h->room * 2 : 16;
	if (room > 1u << HANDLE_INDEX_BITS)
		return -1;
	void **object = realloc(h->object, room * sizeof(*object));
	if (object)
		h->object = object;
	uint32_t *generation = realloc(h->generation, room * sizeof(*generation));
	if (generation)
		h->generation = generation;
	if (!object || !generation)
		return -1;
	for (uint32_t i = h->room; i < room; i++) {
		h->object[i] = NULL;
		h->generation[i] = 1;
	}
	h->room = room;
	return 0;
}

uint32_t handles_add(struct handles *h, void *object)
{
	uint32_t i = h->hint;
	while (i < h->room && h->object[i])
		i++;
	if (i == h->room && grow(h))
		return 0;
	h->object[i] = object;
	h->hint = i + 1;
	h->count++;
	return h->generation[i] << HANDLE_INDEX_BITS | i;
}

void handles_remove(struct handles *h, uint32_t handle)
{
	uint32_t i = handle & ((1u << HANDLE_INDEX_BITS) - 1);
	if (!handles_get(h, handle))
		return;
	h->object[i] = NULL;
	h->generation[i] = h->generation[i] == GENERATION_MAX ? 1 : h->generation[i] + 1;
	h->count--;
	if (i < h->hint)
		h->hint = i;
}

void handles_free(struct handles *h)
{
	free(h->object);
	free(h->generation);
	*h = (struct handles){ 0 };
}
