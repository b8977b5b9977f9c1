/* SPDX-License-Identifier: BSD-3-Clause */
/* A tree of libc's. Invariant: `items` nodes are in it, each with key and value behind it in one piece. */
#include "store.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

struct item {
	const char *key; /* of an item in the tree: bytes; of one that is looked for: the caller's */
	size_t key_len, value_len;
	char bytes[];
};

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	if (x->key_len != y->key_len)
		return x->key_len < y->key_len ? -1 : 1;
	return memcmp(x->key, y->key, x->key_len);
}

static struct item **find(const struct store *s, const char *key, size_t key_len)
{
	struct item wanted = { .key = key, .key_len = key_len };
	return tfind(&wanted, &s->root, compare);
}

bool store_put(struct store *s, const char *key, size_t key_len, const char *value, size_t value_len)
{
	struct item *item = malloc(sizeof(*item) + key_len + value_len);
	if (!item)
		return false;
	*item = (struct item){ .key = item->bytes, .key_len = key_len, .value_len = value_len };
	memcpy(item->bytes, key, key_len);
	memcpy(item->bytes + key_len, value, value_len);
	struct item **place = tsearch(item, &s->root, compare);
	if (!place) {
		free(item);
		return false;
	}
	if (*place == item) {
		s->items++;
	} else {
		free(*place);
		*place = item;
	}
	return true;
}

const char *store_get(const struct store *s, const char *key, size_t key_len, size_t *value_len)
{
	struct item **place = find(s, key, key_len);
	if (!place)
		return NULL;
	*value_len = (*place)->value_len;
	return (*place)->bytes + key_len;
}

bool store_delete(struct store *s, const char *key, size_t key_len)
{
	struct item **place = find(s, key, key_len), *item = place ? *place : NULL;
	if (!item)
		return false;
	tdelete(item, &s->root, compare);
	free(item);
	s->items--;
	return true;
}

void store_clear(struct store *s)
{
	tdestroy(s->root, free);
	*s = (struct store){ .root = NULL };
}
