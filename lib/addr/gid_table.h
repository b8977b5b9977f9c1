/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside addr/: the GID table (IBA vol. 1, 4.1.1; annex A17.4.1). A slot's index never changes while it is used; a removed GID
 * stays until the last that holds it lets go. */
#ifndef UROCE_GID_TABLE_H
#define UROCE_GID_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "gid.h"
#include "packet.h"

enum gid_state {
	GID_EMPTY,
	GID_LIVE,
	GID_REMOVED, /* still ours, with its network, for those that hold it; nothing new may use it */
};

struct gid_entry {
	struct gid gid;
	uint16_t vlan;
	uint8_t bits;  /* of the on-link network, counted in the whole GID */
	uint8_t state; /* enum gid_state */
	uint32_t refs;
};

struct gid_table {
	struct gid_entry *v;
	uint32_t max, slots;  /* slots: one more than the highest index ever used */
	uint32_t *hash;       /* open addressing, slot + 1 or 0; at most half full */
	uint32_t hash_mask;
	int (*on_address)(void *arg, const struct gid *gid, bool is_ours); /* as in struct addr_config, or NULL */
	void *on_address_arg;
};

/* The prefix of an address as its user counts it (IPv4: 0..32), in bits of the whole GID; -EINVAL when it is too long. */
int gid_prefix_bits(const struct gid *gid, unsigned prefix_len);
/* Whether the first bits of both are the same and both are of one family. */
bool gid_is_within(const struct gid *gid, const struct gid *network, unsigned bits);
/* An address that one host can have: neither multicast, unspecified nor broadcast. */
bool gid_is_host(const struct gid *gid);

int gid_table_init(struct gid_table *t, uint32_t max);
void gid_table_free(struct gid_table *t);
/* Raises *index to the lowest slot from there on in which the GID can be: an empty one; the one that it has, if it was removed and is still held. -EEXIST: it is live; -ENOSPC; -EBUSY: it has one below. */
int gid_table_choose(const struct gid_table *t, const struct gid *gid, uint16_t vlan, uint32_t *index);
/* There, or not at all. A removed GID that is still held comes back to life. -EBUSY: it cannot be in this slot; -EEXIST, -ENOSPC, -EINVAL, or what on_address answers. */
int gid_table_add_at(struct gid_table *t, uint32_t index, const struct gid *gid, uint16_t vlan, unsigned prefix_len);
/* In the lowest slot that it can have. */
int gid_table_add(struct gid_table *t, const struct gid *gid, uint16_t vlan, unsigned prefix_len, uint32_t *index);
/* -ENOENT: not live. */
int gid_table_remove(struct gid_table *t, uint32_t index);
/* NULL unless live. */
const struct gid_entry *gid_table_get(const struct gid_table *t, uint32_t index);
void gid_table_hold(struct gid_table *t, uint32_t index);
/* Whether the GID is ours no more. */
bool gid_table_release(struct gid_table *t, uint32_t index);
/* Live, or removed and held. */
bool gid_table_has(const struct gid_table *t, const struct gid *gid, uint16_t vlan);
/* The latter: other cores may not have it any more. */
bool gid_table_is_leaving(const struct gid_table *t, const struct gid *gid, uint16_t vlan);
/* Bits of the longest on-link network of a GID of this VLAN that holds the address; -1: it is not on link. IPv6 link-local is
 * on link (0 bits) wherever there is IPv6. */
int gid_table_on_link(const struct gid_table *t, const struct gid *gid, uint16_t vlan);

#endif
