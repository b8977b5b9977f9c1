/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes. Owns the list of them; the on-link networks of our own GIDs come from the GID table. Looked at when an address handle is
 * opened or routes change, never for a packet, so a sorted array will do.
 *
 * Invariant: sorted by length of the prefix, longest first; no network twice; bits behind the prefix are zero.
 * RFC 1812, 5.2.4.3 (longest match); RFC 4291, 2.5.6 (link-local addresses are never routed). */
#include "route.h"

#include <errno.h>
#include <stdlib.h>

void route_table_free(struct route_table *t)
{
	free(t->v);
}

static struct gid mask(const struct gid *gid, unsigned bits)
{
	struct gid g = *gid;
	for (unsigned i = 0; i < 16; i++) {
		unsigned keep = bits >= 8 * (i + 1) ? 8 : bits > 8 * i ? bits - 8 * i : 0;
		g.b[i] &= (uint8_t)(0xff00 >> keep);
	}
	return g;
}

/* Index of the route to exactly this network, or of the place where it belongs. */
static bool find_place(const struct route_table *t, const struct gid *network, unsigned bits, uint32_t *index)
{
	uint32_t i = 0;
	while (i < t->n && t->v[i].bits > bits)
		i++;
	*index = i;
	for (; i < t->n && t->v[i].bits == bits; i++)
		if (gid_is_equal(&t->v[i].network, network) && gid_is_ip4(&t->v[i].network) == gid_is_ip4(network)) {
			*index = i;
			return true;
		}
	return false;
}

static int make_room(struct route_table *t)
{
	if (t->n < t->room)
		return 0;
	uint32_t room = t->room ? 2 * t->room : 8;
	struct route *v = realloc(t->v, room * sizeof(*v));
	if (!v)
		return -ENOMEM;
	t->v = v;
	t->room = room;
	return 0;
}

static bool is_unspecified(const struct gid *g)
{
	static const uint8_t any4[4];
	return gid_is_zero(g) || (gid_is_ip4(g) && !memcmp(g->b + 12, any4, 4));
}

int route_add(struct route_table *t, const struct gid *network, unsigned prefix_len, const struct gid *gateway)
{
	uint32_t at;
	int bits = gid_prefix_bits(network, prefix_len);
	bool has_gateway = !is_unspecified(gateway);
	if (bits < 0 || gid_is_multicast(network))
		return -EINVAL;
	if (has_gateway && (!gid_is_host(gateway) || gid_is_ip4(gateway) != gid_is_ip4(network)))
		return -EINVAL;
	struct route r = { .network = mask(network, (unsigned)bits), .bits = (uint8_t)bits, .has_gateway = has_gateway };
	if (has_gateway)
		r.gateway = *gateway;
	if (find_place(t, &r.network, r.bits, &at))
		return -EEXIST;
	if (make_room(t))
		return -ENOMEM;
	memmove(&t->v[at + 1], &t->v[at], (t->n - at) * sizeof(*t->v));
	t->v[at] = r;
	t->n++;
	return 0;
}

int route_remove(struct route_table *t, const struct gid *network, unsigned prefix_len)
{
	uint32_t at;
	int bits = gid_prefix_bits(network, prefix_len);
	if (bits < 0)
		return -EINVAL;
	struct gid masked = mask(network, (unsigned)bits);
	if (!find_place(t, &masked, (unsigned)bits, &at))
		return -ENOENT;
	t->n--;
	memmove(&t->v[at], &t->v[at + 1], (t->n - at) * sizeof(*t->v));
	return 0;
}

bool route_find(const struct route_table *t, const struct gid_table *gids, const struct gid *dgid, uint16_t vlan, struct gid *next_hop)
{
	int on_link = gid_table_on_link(gids, dgid, vlan);
	*next_hop = *dgid;
	if (gid_is_link_local(dgid))
		return on_link >= 0;
	for (uint32_t i = 0; i < t->n && t->v[i].bits > on_link; i++) {
		const struct route *r = &t->v[i];
		if (!gid_is_within(dgid, &r->network, r->bits))
			continue;
		if (r->has_gateway)
			*next_hop = r->gateway;
		return true;
	}
	return on_link >= 0;
}
