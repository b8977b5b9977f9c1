/* SPDX-License-Identifier: BSD-3-Clause */
/* See kernel_route.h. Owns the list of routes that addr was given. They are always read as a whole: the kernel says nothing of those that went with a link or an address, or that another one replaced.
 * Invariant: no network twice; of several routes to one the kernel's first counts, the one that it prefers. */
#include "kernel_route.h"

#include <netlink/cache.h>
#include <netlink/errno.h>
#include <netlink/route/nexthop.h>
#include <stdlib.h>
#include <string.h>

struct kernel_route {
	struct gid network, gateway; /* gateway zero: on link */
	unsigned prefix_len;
};

bool kernel_read_gid(const struct nl_addr *a, struct gid *gid)
{
	if (!a || nl_addr_get_len(a) != (nl_addr_get_family(a) == AF_INET ? 4u : 16u))
		return false;
	if (nl_addr_get_family(a) == AF_INET)
		*gid = gid_from_ip4(nl_addr_get_binary_addr(a));
	else if (nl_addr_get_family(a) == AF_INET6)
		memcpy(gid->b, nl_addr_get_binary_addr(a), 16);
	else
		return false;
	return true;
}

/* A route of the main table; false: out of another interface, or one that leads nowhere or to several places. The network is there either way. */
static bool read_route(const struct kernel_routes *r, struct rtnl_route *from, struct kernel_route *to)
{
	static const uint8_t any4[4];
	struct nl_addr *dst = rtnl_route_get_dst(from);
	struct rtnl_nexthop *hop = rtnl_route_get_nnexthops(from) == 1 ? rtnl_route_nexthop_n(from, 0) : NULL;
	memset(to, 0, sizeof(*to));
	if (!kernel_read_gid(dst, &to->network) && rtnl_route_get_family(from) == AF_INET)
		to->network = gid_from_ip4(any4);
	to->prefix_len = dst ? nl_addr_get_prefixlen(dst) : 0;
	if (rtnl_route_get_type(from) != RTN_UNICAST || !hop || rtnl_route_nh_get_ifindex(hop) != r->interface_index)
		return false;
	kernel_read_gid(rtnl_route_nh_get_gateway(hop), &to->gateway);
	return true;
}

static const struct kernel_route *find(const struct kernel_routes *r, const struct kernel_route *to)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->v[i].prefix_len == to->prefix_len && gid_is_equal(&r->v[i].network, &to->network))
			return &r->v[i];
	return NULL;
}

static bool has(const struct kernel_routes *r, const struct kernel_route *route)
{
	const struct kernel_route *found = find(r, route);
	return found && gid_is_equal(&found->gateway, &route->gateway);
}

bool kernel_routes_concern(const struct kernel_routes *r, struct rtnl_route *route)
{
	struct kernel_route read;
	return rtnl_route_get_table(route) == RT_TABLE_MAIN && (read_route(r, route, &read) || find(r, &read));
}

static int gather(struct kernel_routes *r, struct nl_cache *cache)
{
	r->v = calloc(KERNEL_ROUTES_MAX + 1, sizeof(*r->v));
	if (!r->v)
		return -NLE_NOMEM;
	for (struct nl_object *o = nl_cache_get_first(cache); o && r->n <= KERNEL_ROUTES_MAX; o = nl_cache_get_next(o)) {
		struct rtnl_route *route = (struct rtnl_route *)o;
		if (rtnl_route_get_table(route) == RT_TABLE_MAIN && read_route(r, route, &r->v[r->n]) && !find(r, &r->v[r->n]))
			r->n++;
	}
	r->are_too_many = r->n > KERNEL_ROUTES_MAX;
	r->n -= r->are_too_many;
	return 0;
}

/* Those that addr cannot have are tried again the next time. */
static void replace(struct kernel_routes *r, struct kernel_routes *fresh)
{
	unsigned n = 0;
	for (unsigned i = 0; i < r->n; i++)
		if (!has(fresh, &r->v[i]))
			addr_route_remove(r->addr, &r->v[i].network, r->v[i].prefix_len);
	for (unsigned i = 0; i < fresh->n; i++)
		if (has(r, &fresh->v[i]) || !addr_route_add(r->addr, &fresh->v[i].network, fresh->v[i].prefix_len, &fresh->v[i].gateway))
			fresh->v[n++] = fresh->v[i];
	fresh->n = n;
	kernel_routes_free(r);
	*r = *fresh;
}

int kernel_routes_read(struct kernel_routes *r, struct nl_sock *ask)
{
	struct kernel_routes fresh = { .interface_index = r->interface_index, .addr = r->addr };
	struct nl_cache *cache;
	int err = rtnl_route_alloc_cache(ask, AF_UNSPEC, 0, &cache);
	if (err < 0)
		return err;
	err = gather(&fresh, cache);
	nl_cache_free(cache);
	if (!err)
		replace(r, &fresh);
	return err;
}

void kernel_routes_free(struct kernel_routes *r)
{
	free(r->v);
	r->v = NULL;
	r->n = 0;
}
