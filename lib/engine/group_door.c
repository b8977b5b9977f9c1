/* SPDX-License-Identifier: BSD-3-Clause */
/* One table of ways to let multicast groups in, and which port has which (port_row.h). Owns sockets and the list of MAC addresses; does not know who is in a group, nor report it: where the kernel shares the interface, its own membership
 * does that too (DESIGN section 8).
 *
 *     shared       sockets that are in the group: the kernel passes it, tells its NIC, reports and answers
 *     packet       a packet socket that wants the MAC address: the kernel's NIC passes it, and addr/membership.c reports
 *     ethdev       the list of MAC addresses, or all multicast, or all frames: what the driver has
 *     everything   nothing is filtered in the first place
 *     foreign      the program's own port: its filters are the program's business
 *
 * Invariant: a group that was let in is on exactly one socket, or its MAC address counts in the list. */
#include "group_door.h"

#include <errno.h>
#include <netinet/in.h>
#include <net/ethernet.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dpdk_compat.h"

#include <rte_ethdev.h>

#include "port.h"

#define SOCKETS_MAX 128u /* for 20 groups each (net.ipv4.igmp_max_memberships), or more */
#define MACS_MAX 2048u

struct way {
	int (*open)(struct group_door *g);
	int (*let_in)(struct group_door *g, const struct gid *group);
	void (*shut_out)(struct group_door *g, const struct gid *group);
};

struct counted_mac {
	struct rte_ether_addr mac;
	uint32_t groups;
};

struct group_door {
	const struct way *way;
	const struct port *port;
	const struct log *log;
	int packet;                      /* socket, or -1 */
	int joined[2][SOCKETS_MAX];      /* of each family; -1 beyond the last */
	unsigned sockets[2];
	struct counted_mac *macs;
	unsigned n_macs;
	bool is_wide;                    /* all multicast, or everything, is let in */
};

/* ---- shared with the kernel ---- */

static int set_membership(const struct group_door *g, int fd, const struct gid *group, bool is_joined)
{
	struct ip_mreqn m4 = { .imr_ifindex = (int)g->port->interface_index };
	struct ipv6_mreq m6 = { .ipv6mr_interface = g->port->interface_index };
	memcpy(&m4.imr_multiaddr, group->b + 12, 4);
	memcpy(&m6.ipv6mr_multiaddr, group->b, 16);
	int rc = gid_is_ip4(group) ? setsockopt(fd, IPPROTO_IP, is_joined ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &m4, sizeof(m4))
				   : setsockopt(fd, IPPROTO_IPV6, is_joined ? IPV6_ADD_MEMBERSHIP : IPV6_DROP_MEMBERSHIP, &m6, sizeof(m6));
	return rc ? -errno : 0;
}

/* A socket without a port: nothing comes to it. */
static int add_socket(struct group_door *g, unsigned family)
{
	if (g->sockets[family] == SOCKETS_MAX)
		return -ENOSPC;
	int fd = socket(family ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	g->joined[family][g->sockets[family]++] = fd;
	return 0;
}

/* The kernel bounds the groups of a socket; then the next one. */
static int join_on_socket(struct group_door *g, const struct gid *group)
{
	unsigned family = !gid_is_ip4(group);
	for (unsigned i = 0;; i++) {
		int err = i < g->sockets[family] ? 0 : add_socket(g, family);
		if (err)
			return err;
		err = set_membership(g, g->joined[family][i], group, true);
		if (err != -ENOBUFS && err != -ENOMEM)
			return err;
		if (i + 1 == SOCKETS_MAX)
			return -ENOSPC;
	}
}

static void leave_on_socket(struct group_door *g, const struct gid *group)
{
	unsigned family = !gid_is_ip4(group), i = 0;
	while (i < g->sockets[family] && set_membership(g, g->joined[family][i], group, false))
		i++;
}

/* ---- a packet socket ---- */

static int want_mac(struct group_door *g, const struct gid *group, int option)
{
	struct packet_mreq m = { .mr_ifindex = (int)g->port->interface_index, .mr_type = PACKET_MR_MULTICAST, .mr_alen = 6 };
	gid_group_mac(group, m.mr_address);
	return setsockopt(g->packet, SOL_PACKET, option, &m, sizeof(m)) ? -errno : 0;
}

static int open_packet(struct group_door *g)
{
	g->packet = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	return g->packet < 0 ? -errno : 0;
}

static int let_in_packet(struct group_door *g, const struct gid *group)
{
	return want_mac(g, group, PACKET_ADD_MEMBERSHIP);
}

static void shut_out_packet(struct group_door *g, const struct gid *group)
{
	want_mac(g, group, PACKET_DROP_MEMBERSHIP);
}

/* ---- ethdev ---- */

static int set_list(const struct group_door *g)
{
	struct rte_ether_addr *list = calloc(g->n_macs + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (unsigned i = 0; i < g->n_macs; i++)
		list[i] = g->macs[i].mac;
	int err = rte_eth_dev_set_mc_addr_list(g->port->id, list, g->n_macs);
	free(list);
	return err;
}

/* What a driver does not have, or has no room for, the next one is for. */
static int apply_list(struct group_door *g)
{
	if (g->is_wide || !set_list(g))
		return 0;
	int err = rte_eth_allmulticast_enable(g->port->id);
	if (err)
		err = rte_eth_promiscuous_enable(g->port->id);
	if (!err)
		log_write(g->log, LOG_INFO, "%s: the driver has no list of multicast addresses: it lets in more, and the rest is dropped here", g->port->text);
	if (err == -ENOTSUP) { /* those drivers pass everything, as far as is known */
		log_write(g->log, LOG_WARN, "%s: the driver has no say about multicast: what it lets in is what comes", g->port->text);
		err = 0;
	}
	g->is_wide = !err;
	return err;
}

static struct counted_mac *find_mac(struct group_door *g, const struct gid *group)
{
	struct rte_ether_addr mac;
	gid_group_mac(group, mac.addr_bytes);
	for (unsigned i = 0; i < g->n_macs; i++)
		if (rte_is_same_ether_addr(&g->macs[i].mac, &mac))
			return &g->macs[i];
	if (g->n_macs == MACS_MAX)
		return NULL;
	g->macs[g->n_macs] = (struct counted_mac){ .mac = mac };
	return &g->macs[g->n_macs++];
}

static int open_list(struct group_door *g)
{
	g->macs = calloc(MACS_MAX, sizeof(*g->macs));
	return g->macs ? 0 : -ENOMEM;
}

static void forget_mac(struct group_door *g, struct counted_mac *m)
{
	if (!--m->groups)
		*m = g->macs[--g->n_macs];
}

static int let_in_listed(struct group_door *g, const struct gid *group)
{
	struct counted_mac *m = find_mac(g, group);
	if (!m)
		return -ENOSPC;
	int err = m->groups++ ? 0 : apply_list(g);
	if (err)
		forget_mac(g, m);
	return err;
}

static void shut_out_listed(struct group_door *g, const struct gid *group)
{
	struct counted_mac *m = find_mac(g, group);
	if (!m)
		return;
	m->groups += !m->groups; /* it was not there */
	forget_mac(g, m);
	apply_list(g);
}

/* ---- nothing to do ---- */

static int open_nothing(struct group_door *g)
{
	return 0;
}

static int let_in_anyway(struct group_door *g, const struct gid *group)
{
	return 0;
}

static void shut_out_nothing(struct group_door *g, const struct gid *group)
{
}

/* ---- choice ---- */

static const struct way ways[] = {
	[PORT_GROUPS_LISTED] = { open_list, let_in_listed, shut_out_listed },
	[PORT_GROUPS_ALL] = { open_nothing, let_in_anyway, shut_out_nothing },
	[PORT_GROUPS_PACKET] = { open_packet, let_in_packet, shut_out_packet },
};
static const struct way shared = { open_nothing, join_on_socket, leave_on_socket };

int group_door_open(struct group_door **out, const struct port *p, const struct device_string *d, const struct log *log)
{
	struct group_door *g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	*g = (struct group_door){ .port = p, .log = log, .packet = -1 };
	g->way = d->ip_from_kernel ? &shared : &ways[p->is_foreign ? PORT_GROUPS_ALL : p->groups];
	int err = g->way->open(g);
	if (err) {
		log_write(log, LOG_ERROR, "%s: cannot let multicast groups in: %s", p->text, strerror(-err));
		group_door_close(g);
		return err;
	}
	*out = g;
	return 0;
}

int group_door_let_in(struct group_door *g, const struct gid *group)
{
	return g->way->let_in(g, group);
}

void group_door_shut_out(struct group_door *g, const struct gid *group)
{
	g->way->shut_out(g, group);
}

void group_door_close(struct group_door *g)
{
	if (!g)
		return;
	if (g->packet >= 0)
		close(g->packet);
	for (unsigned family = 0; family < 2; family++)
		while (g->sockets[family])
			close(g->joined[family][--g->sockets[family]]);
	free(g->macs);
	free(g);
}
