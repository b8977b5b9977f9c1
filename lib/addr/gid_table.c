/* SPDX-License-Identifier: BSD-3-Clause */
/* The GIDs of a port. Owns slots, their life after removal, and the hash that answers "is this packet for us?"; does not know who
 * holds a slot or what is sent from it.
 *
 * Invariant: the hash holds exactly the slots that are not empty, and at most half of its places are used, so a search ends soon.
 * Its contents are our own addresses, so nobody outside can make it slow.
 *
 * IBA vol. 1, 4.1.1 and annex A17.4.1 (GIDs are IP addresses); RFC 4291, 2.5.6 (link-local is always on link). */
#include "gid_table.h"

#include <errno.h>
#include <stdlib.h>

#include "bytes.h"

int gid_prefix_bits(const struct gid *gid, unsigned prefix_len)
{
	bool is_ip4 = gid_is_ip4(gid);
	if (prefix_len > (is_ip4 ? 32u : 128u))
		return -EINVAL;
	return (int)(is_ip4 ? 96 + prefix_len : prefix_len);
}

bool gid_is_within(const struct gid *gid, const struct gid *network, unsigned bits)
{
	unsigned bytes = bits / 8, rest = bits % 8;
	/* ::/0 holds no IPv4 address, mapped or not. */
	if (gid_is_ip4(gid) != gid_is_ip4(network) || memcmp(gid->b, network->b, bytes))
		return false;
	return !rest || ((gid->b[bytes] ^ network->b[bytes]) >> (8 - rest)) == 0;
}

bool gid_is_host(const struct gid *gid)
{
	if (gid_is_zero(gid) || gid_is_multicast(gid))
		return false;
	return !gid_is_ip4(gid) || (gid->b[12] != 0 && get_be32(gid->b + 12) != 0xffffffff);
}

int gid_table_init(struct gid_table *t, uint32_t max)
{
	uint32_t places = 8;
	while (places < 2 * (uint64_t)max)
		places *= 2;
	*t = (struct gid_table){ .max = max, .hash_mask = places - 1 };
	t->v = calloc(max, sizeof(*t->v));
	t->hash = calloc(places, sizeof(*t->hash));
	return t->v && t->hash ? 0 : -ENOMEM;
}

void gid_table_free(struct gid_table *t)
{
	free(t->v);
	free(t->hash);
}

static bool is_same(const struct gid_entry *e, const struct gid *gid, uint16_t vlan)
{
	return gid_is_equal(&e->gid, gid) && e->vlan == vlan;
}

/* Slot + 1; 0: none. */
static uint32_t find(const struct gid_table *t, const struct gid *gid, uint16_t vlan)
{
	for (uint32_t at = gid_hash(gid, vlan);; at++) {
		uint32_t slot = t->hash[at & t->hash_mask];
		if (!slot || is_same(&t->v[slot - 1], gid, vlan))
			return slot;
	}
}

/* Rare, so the simple way: no marks for deleted places. */
static void rebuild_hash(struct gid_table *t)
{
	memset(t->hash, 0, (t->hash_mask + 1) * sizeof(*t->hash));
	for (uint32_t i = 0; i < t->slots; i++) {
		if (t->v[i].state == GID_EMPTY)
			continue;
		uint32_t at = gid_hash(&t->v[i].gid, t->v[i].vlan) & t->hash_mask;
		while (t->hash[at])
			at = (at + 1) & t->hash_mask;
		t->hash[at] = i + 1;
	}
}

static bool is_vlan(uint16_t vlan)
{
	return vlan == VLAN_NONE || (vlan >= 1 && vlan <= 4094);
}

int gid_table_choose(const struct gid_table *t, const struct gid *gid, uint16_t vlan, uint32_t *index)
{
	uint32_t slot = find(t, gid, vlan), i = *index;
	if (slot && t->v[slot - 1].state == GID_LIVE)
		return -EEXIST;
	if (slot) {
		if (slot - 1 < i)
			return -EBUSY;
		i = slot - 1;
	} else {
		while (i < t->max && t->v[i].state != GID_EMPTY)
			i++;
		if (i >= t->max)
			return -ENOSPC;
	}
	*index = i;
	return 0;
}

int gid_table_add_at(struct gid_table *t, uint32_t index, const struct gid *gid, uint16_t vlan, unsigned prefix_len)
{
	int bits = gid_prefix_bits(gid, prefix_len);
	uint32_t i = index;
	if (bits < 0 || !gid_is_host(gid) || !is_vlan(vlan))
		return -EINVAL;
	int err = gid_table_choose(t, gid, vlan, &i);
	if (!err && i != index)
		err = -EBUSY;
	if (!err && t->v[i].state == GID_EMPTY && t->on_address)
		err = t->on_address(t->on_address_arg, gid, true);
	if (err)
		return err;
	t->v[i] = (struct gid_entry){ .gid = *gid, .vlan = vlan, .state = GID_LIVE, .bits = (uint8_t)bits, .refs = t->v[i].refs };
	if (i >= t->slots)
		t->slots = i + 1;
	rebuild_hash(t);
	return 0;
}

int gid_table_add(struct gid_table *t, const struct gid *gid, uint16_t vlan, unsigned prefix_len, uint32_t *index)
{
	uint32_t i = 0;
	int err = gid_table_choose(t, gid, vlan, &i);
	if (!err)
		err = gid_table_add_at(t, i, gid, vlan, prefix_len);
	if (!err)
		*index = i;
	return err;
}

/* Whether it is ours no more. */
static bool settle(struct gid_table *t, uint32_t index)
{
	struct gid_entry *e = &t->v[index];
	if (e->state != GID_REMOVED || e->refs)
		return false;
	e->state = GID_EMPTY;
	rebuild_hash(t);
	if (t->on_address)
		t->on_address(t->on_address_arg, &e->gid, false);
	return true;
}

int gid_table_remove(struct gid_table *t, uint32_t index)
{
	if (!gid_table_get(t, index))
		return -ENOENT;
	t->v[index].state = GID_REMOVED;
	settle(t, index);
	return 0;
}

const struct gid_entry *gid_table_get(const struct gid_table *t, uint32_t index)
{
	return index < t->slots && t->v[index].state == GID_LIVE ? &t->v[index] : NULL;
}

void gid_table_hold(struct gid_table *t, uint32_t index)
{
	t->v[index].refs++;
}

bool gid_table_release(struct gid_table *t, uint32_t index)
{
	t->v[index].refs--;
	return settle(t, index);
}

bool gid_table_has(const struct gid_table *t, const struct gid *gid, uint16_t vlan)
{
	return find(t, gid, vlan) != 0;
}

bool gid_table_is_leaving(const struct gid_table *t, const struct gid *gid, uint16_t vlan)
{
	uint32_t slot = find(t, gid, vlan);
	return slot && t->v[slot - 1].state == GID_REMOVED;
}

int gid_table_on_link(const struct gid_table *t, const struct gid *gid, uint16_t vlan)
{
	int longest = -1;
	bool is_link_local = gid_is_link_local(gid);
	for (uint32_t i = 0; i < t->slots; i++) {
		const struct gid_entry *e = &t->v[i];
		if (e->state == GID_EMPTY || e->vlan != vlan)
			continue;
		if (is_link_local && !gid_is_ip4(&e->gid) && longest < 0)
			longest = 0;
		if (e->bits > longest && gid_is_within(gid, &e->gid, e->bits))
			longest = e->bits;
	}
	return longest;
}
