/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's knowledge of an interface, for an engine that shares its addresses. Owns two rtnetlink sockets (one for requests, answered while we wait; one for notifications, never waited for) and the
 * sockets on UDP 4791. Decides nothing: what the kernel says is handed to addr, and what addr wants to know becomes a neighbour that the kernel is told to use.
 * Invariant: after a lost notification everything is read anew, so addr never stays behind the kernel. */
#include "kernel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_addr.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/neighbour.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel_route.h"
#include "packet.h"

#define QUESTIONS_A_POLL 16u /* each is a system call or three on the poll core */
#define READ_PAUSE_NS 100000000u
#define NUD_USABLE (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_NOARP | NUD_PERMANENT)

struct kernel {
	int interface_index;
	struct addr *addr;
	struct gid_index *index;
	unsigned core;         /* others than the first see the same and say nothing of it */
	const struct log *log;
	struct nl_sock *ask, *told;
	int udp[2];            /* IPv4, IPv6: bound to 4791, never read */
	uint64_t now_ns;       /* of the call that is being carried out, for the callbacks */
	struct kernel_routes routes;
	bool is_behind;        /* news of addresses and neighbours may have been lost */
	bool are_routes_old;
	uint64_t next_read_ns;
	bool cannot_use;       /* no CAP_NET_ADMIN: a datagram makes the kernel resolve instead */
	struct log_limit limit;
};

/* ---- what the kernel says ---- */

static void take_neighbour(struct kernel *k, struct rtnl_neigh *n)
{
	struct gid gid;
	int state = rtnl_neigh_get_state(n);
	struct nl_addr *mac = rtnl_neigh_get_lladdr(n);
	if (rtnl_neigh_get_ifindex(n) != k->interface_index || !kernel_read_gid(rtnl_neigh_get_dst(n), &gid) || gid_is_multicast(&gid))
		return;
	if (state > 0 && (state & NUD_USABLE) && mac && nl_addr_get_len(mac) == 6)
		addr_learn(k->addr, &gid, VLAN_NONE, nl_addr_get_binary_addr(mac), false, k->now_ns);
	else if (state > 0 && (state & NUD_FAILED))
		addr_learn(k->addr, &gid, VLAN_NONE, NULL, false, k->now_ns);
}

static bool find_gid(struct kernel *k, const struct gid *gid, uint32_t *index)
{
	struct gid had;
	uint16_t vlan;
	for (*index = 0; *index < addr_gid_slots(k->addr); ++*index)
		if (addr_gid_get(k->addr, *index, &had, &vlan) && gid_is_equal(&had, gid))
			return true;
	return false;
}

/* Where the other cores have it. */
static int add_address(struct kernel *k, const struct gid *gid, unsigned prefix_len)
{
	uint32_t index;
	int err = gid_index_take(k->index, k->core, gid, &index);
	if (err)
		return err;
	err = addr_gid_add_at(k->addr, index, gid, VLAN_NONE, prefix_len);
	if (err)
		gid_index_leave(k->index, k->core, gid);
	return err;
}

/* index: of one that goes. */
static void change_address(struct kernel *k, const struct gid *gid, bool is_gone, uint32_t index, unsigned prefix_len)
{
	char text[GID_TEXT_MAX];
	int err = is_gone ? addr_gid_remove(k->addr, index) : add_address(k, gid, prefix_len);
	if (err || !k->core)
		log_limited(k->log, &k->limit, k->now_ns, err ? LOG_WARN : LOG_INFO, "interface address %s %s%s%s", gid_format(gid, text), is_gone ? "goes" : "comes",
			err ? ": " : "", err ? strerror(-err) : "");
}

static bool is_here(const struct kernel *k, struct rtnl_addr *a, struct gid *gid)
{
	return rtnl_addr_get_ifindex(a) == k->interface_index && kernel_read_gid(rtnl_addr_get_local(a), gid);
}

static void take_address(struct kernel *k, struct rtnl_addr *a, bool is_gone)
{
	struct gid gid;
	uint32_t index;
	if (!is_here(k, a, &gid))
		return;
	k->are_routes_old |= is_gone; /* its routes may go without a word */
	if (!is_gone && (rtnl_addr_get_flags(a) & (IFA_F_TENTATIVE | IFA_F_DADFAILED))) /* told again when duplicate address detection is over */
		return;
	if (find_gid(k, &gid, &index) == is_gone)
		change_address(k, &gid, is_gone, index, (unsigned)rtnl_addr_get_prefixlen(a));
}

static void on_object(struct nl_object *o, void *arg)
{
	struct kernel *k = arg;
	switch (nl_object_get_msgtype(o)) {
	case RTM_NEWNEIGH:
		take_neighbour(k, (struct rtnl_neigh *)o);
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		take_address(k, (struct rtnl_addr *)o, nl_object_get_msgtype(o) == RTM_DELADDR);
		break;
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		k->are_routes_old |= kernel_routes_concern(&k->routes, (struct rtnl_route *)o);
		break;
	}
}

static int on_message(struct nl_msg *m, void *arg)
{
	struct kernel *k = arg;
	struct nlmsghdr *h = nlmsg_hdr(m);
	if (h->nlmsg_type != RTM_NEWLINK && h->nlmsg_type != RTM_DELLINK)
		nl_msg_parse(m, on_object, k);
	else if (nlmsg_valid_hdr(h, sizeof(struct ifinfomsg))) /* routes that go with a link go without a word */
		k->are_routes_old |= ((struct ifinfomsg *)nlmsg_data(h))->ifi_index == k->interface_index;
	return NL_OK;
}

/* ---- reading everything ---- */

static bool cache_has(const struct kernel *k, struct nl_cache *cache, const struct gid *gid)
{
	struct gid is;
	for (struct nl_object *o = nl_cache_get_first(cache); o; o = nl_cache_get_next(o))
		if (is_here(k, (struct rtnl_addr *)o, &is) && gid_is_equal(&is, gid))
			return true;
	return false;
}

static void drop_addresses(struct kernel *k, struct nl_cache *cache)
{
	struct gid gid;
	uint16_t vlan;
	for (uint32_t i = 0; i < addr_gid_slots(k->addr); i++)
		if (addr_gid_get(k->addr, i, &gid, &vlan) && !cache_has(k, cache, &gid))
			change_address(k, &gid, true, i, 0);
}

static void take_addresses(struct kernel *k, struct nl_cache *cache)
{
	/* Routable ones first: what most programs want is index 0. */
	for (int is_local = 0; is_local < 2; is_local++) {
		for (struct nl_object *o = nl_cache_get_first(cache); o; o = nl_cache_get_next(o)) {
			struct gid gid;
			if (kernel_read_gid(rtnl_addr_get_local((struct rtnl_addr *)o), &gid) && gid_is_link_local(&gid) == is_local)
				take_address(k, (struct rtnl_addr *)o, false);
		}
	}
}

static int read_neighbours(struct kernel *k)
{
	struct nl_cache *cache;
	int err = rtnl_neigh_alloc_cache(k->ask, &cache);
	if (err < 0)
		return err;
	for (struct nl_object *o = nl_cache_get_first(cache); o; o = nl_cache_get_next(o))
		take_neighbour(k, (struct rtnl_neigh *)o);
	nl_cache_free(cache);
	return 0;
}

static int read_addresses(struct kernel *k)
{
	struct nl_cache *cache;
	int err = rtnl_addr_alloc_cache(k->ask, &cache);
	if (err < 0)
		return err;
	drop_addresses(k, cache); /* first, for their place */
	take_addresses(k, cache);
	nl_cache_free(cache);
	return 0;
}

static int read_routes(struct kernel *k)
{
	bool were_too_many = k->routes.are_too_many;
	int err = kernel_routes_read(&k->routes, k->ask);
	if (k->routes.are_too_many && !were_too_many && !k->core)
		log_limited(k->log, &k->limit, k->now_ns, LOG_WARN, "the interface has more than %u routes: the rest is not used", KERNEL_ROUTES_MAX);
	return err;
}

/* What became old is read anew, at once and then not too often: it takes time on the poll core. What could not be read stays old. */
static void catch_up(struct kernel *k)
{
	if ((!k->is_behind && !k->are_routes_old) || k->now_ns < k->next_read_ns)
		return;
	k->next_read_ns = k->now_ns + READ_PAUSE_NS;
	if (k->is_behind)
		k->is_behind = read_addresses(k) || read_neighbours(k);
	if (k->are_routes_old)
		k->are_routes_old = read_routes(k);
}

/* ---- what we ask ---- */

/* A request about one neighbour, answered by exactly one message. */
static int request_neighbour(struct kernel *k, int type, int flags, uint8_t ntf, const struct gid *gid)
{
	bool is_ip4 = gid_is_ip4(gid);
	struct ndmsg nd = { .ndm_family = is_ip4 ? AF_INET : AF_INET6, .ndm_ifindex = k->interface_index, .ndm_flags = ntf };
	struct nl_msg *m = nlmsg_alloc_simple(type, flags);
	if (!m)
		return -NLE_NOMEM;
	int err = nlmsg_append(m, &nd, sizeof(nd), NLMSG_ALIGNTO);
	if (!err)
		err = nla_put(m, NDA_DST, is_ip4 ? 4 : 16, is_ip4 ? gid->b + 12 : gid->b);
	if (!err)
		err = nl_send_auto(k->ask, m);
	nlmsg_free(m);
	return err < 0 ? err : nl_recvmsgs_default(k->ask);
}

/* An empty datagram with TTL 1 to the neighbour: the kernel has to resolve it first. The fallback of a process that may not touch the neighbour table. */
static void send_datagram(struct kernel *k, const struct gid *gid)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT) };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons(ROCE_UDP_PORT), .sin6_scope_id = (uint32_t)k->interface_index };
	bool is_ip4 = gid_is_ip4(gid);
	memcpy(&a4.sin_addr, gid->b + 12, 4);
	memcpy(&a6.sin6_addr, gid->b, 16);
	int fd = socket(is_ip4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
	if (fd < 0)
		return;
	setsockopt(fd, is_ip4 ? IPPROTO_IP : IPPROTO_IPV6, is_ip4 ? IP_TTL : IPV6_UNICAST_HOPS, &one, sizeof(one));
	sendto(fd, "", 0, MSG_DONTWAIT, is_ip4 ? (void *)&a4 : (void *)&a6, is_ip4 ? sizeof(a4) : sizeof(a6));
	close(fd);
}

static bool has_link_local(const struct kernel *k)
{
	struct gid gid;
	uint16_t vlan;
	for (uint32_t i = 0; i < addr_gid_slots(k->addr); i++)
		if (addr_gid_get(k->addr, i, &gid, &vlan) && gid_is_link_local(&gid))
			return true;
	return false;
}

/* NTF_USE is what the kernel's own senders do to a neighbour: resolve it if it is unknown, probe it if it is stale. Without a packet to send the kernel solicits an IPv6 neighbour from its link-local address
 * only, and not at all while there is none. The look-up afterwards answers at once for one that was known. */
static void ask_kernel(struct kernel *k, const struct gid *next_hop)
{
	bool can_use = !k->cannot_use && (gid_is_ip4(next_hop) || has_link_local(k));
	if (can_use) {
		int err = request_neighbour(k, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_ACK, NTF_USE, next_hop);
		k->cannot_use = err == -NLE_PERM || err == -NLE_NOACCESS;
	}
	if (!can_use || k->cannot_use)
		send_datagram(k, next_hop);
	request_neighbour(k, RTM_GETNEIGH, 0, 0, next_hop);
}

void kernel_poll(struct kernel *k, uint64_t now_ns)
{
	struct gid next_hop, source;
	int err;
	k->now_ns = now_ns;
	while (!(err = nl_recvmsgs_default(k->told)))
		;
	if (err == -NLE_NOMEM) /* more came than the socket holds */
		k->is_behind = k->are_routes_old = true;
	catch_up(k);
	for (unsigned i = 0; i < QUESTIONS_A_POLL && addr_next_question(k->addr, &next_hop, &source); i++)
		ask_kernel(k, &next_hop);
}

/* ---- sockets ---- */

/* A bound socket keeps the kernel from answering RoCE packets with ICMP port unreachable. All that comes is dropped by a filter. In use: somebody else keeps the port quiet. */
static int open_udp(struct kernel *k, int family)
{
	struct sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = { .len = 1, .filter = &drop_all };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons(ROCE_UDP_PORT) };
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT) };
	char name[IF_NAMESIZE] = "";
	int one = 1, fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &one, sizeof(one)); /* the kernel's least */
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	/* Only our interface; ignored where it is not allowed: then the socket stands for all. */
	if (if_indextoname((unsigned)k->interface_index, name))
		setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, (socklen_t)strlen(name) + 1);
	if (!bind(fd, family == AF_INET ? (void *)&a4 : (void *)&a6, family == AF_INET ? sizeof(a4) : sizeof(a6)))
		return fd;
	if (errno != EADDRINUSE)
		log_write(k->log, LOG_WARN, "UDP port %u: %s; the kernel may answer RoCE packets with ICMP errors", ROCE_UDP_PORT, strerror(errno));
	close(fd);
	return -1;
}

static struct nl_sock *open_netlink(struct kernel *k)
{
	struct nl_sock *s = nl_socket_alloc();
	if (!s)
		return NULL;
	nl_socket_modify_cb(s, NL_CB_VALID, NL_CB_CUSTOM, on_message, k);
	nl_socket_disable_auto_ack(s);
	if (!nl_connect(s, NETLINK_ROUTE))
		return s;
	nl_socket_free(s);
	return NULL;
}

static int open_sockets(struct kernel *k)
{
	struct timeval patience = { .tv_usec = 100000 };
	k->ask = open_netlink(k);
	k->told = open_netlink(k);
	if (!k->ask || !k->told)
		return -EPROTONOSUPPORT;
	setsockopt(nl_socket_get_fd(k->ask), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	nl_socket_disable_seq_check(k->told);
	/* Before the first dump, so that nothing that changes meanwhile is missed. */
	if (nl_socket_set_nonblocking(k->told) || nl_socket_add_memberships(k->told, RTNLGRP_LINK, RTNLGRP_NEIGH, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE, 0))
		return -EPROTONOSUPPORT;
	return 0;
}

static bool has_gid(const struct addr *a)
{
	struct gid gid;
	uint16_t vlan;
	for (uint32_t i = 0; i < addr_gid_slots(a); i++)
		if (addr_gid_get(a, i, &gid, &vlan))
			return true;
	return false;
}

int kernel_open(struct kernel **out, const struct kernel_config *config, uint64_t now_ns)
{
	struct kernel *k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->interface_index = (int)config->interface_index;
	k->addr = config->addr;
	k->index = config->index;
	k->core = config->core;
	k->routes = (struct kernel_routes){ .interface_index = k->interface_index, .addr = k->addr };
	k->log = config->log;
	k->now_ns = now_ns;
	k->limit.burst = 32;
	k->udp[0] = k->udp[1] = -1;
	int err = open_sockets(k);
	if (err) {
		log_write(k->log, LOG_ERROR, "rtnetlink: %s", strerror(-err));
	} else {
		int failed = read_addresses(k) || read_routes(k) || read_neighbours(k);
		if (failed || !has_gid(k->addr)) {
			log_write(k->log, LOG_ERROR, failed ? "rtnetlink: the kernel does not tell addresses, routes and neighbours"
				: "the interface has no address: give it one, or give uroce its own with ip=ADDRESS/PREFIX");
			err = -EADDRNOTAVAIL;
		}
	}
	if (err) {
		kernel_close(k);
		return err;
	}
	if (!k->core) {
		k->udp[0] = open_udp(k, AF_INET);
		k->udp[1] = open_udp(k, AF_INET6);
	}
	*out = k;
	return 0;
}

void kernel_close(struct kernel *k)
{
	if (!k)
		return;
	for (int i = 0; i < 2; i++)
		if (k->udp[i] >= 0)
			close(k->udp[i]);
	nl_socket_free(k->ask);
	nl_socket_free(k->told);
	kernel_routes_free(&k->routes);
	free(k);
}
