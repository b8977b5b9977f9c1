/* SPDX-License-Identifier: BSD-3-Clause */
/* What the service is about: values by key, in this process's memory. Knows nothing of RDMA. */
#ifndef KV_STORE_H
#define KV_STORE_H

#include <stddef.h>
#include <stdbool.h>

struct store {
	void *root; /* of tsearch(3) */
	size_t items;
};

/* Copies both. false: no memory. */
bool store_put(struct store *s, const char *key, size_t key_len, const char *value, size_t value_len);
/* The value and its length; NULL: no such key. Until the next put or delete. */
const char *store_get(const struct store *s, const char *key, size_t key_len, size_t *value_len);
/* false: there was none. */
bool store_delete(struct store *s, const char *key, size_t key_len);
void store_clear(struct store *s);

#endif
