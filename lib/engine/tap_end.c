/* SPDX-License-Identifier: BSD-3-Clause */
/* See tap_end.h. Owns the interface's MTU and hardware address, and what makes the driver carry frames as long as that MTU. Invariant: the interface's address differs from the port's; with the same one on
 * both ends, as the driver would have it, a bridge would keep our frames for itself, and an engine on the kernel's end would take them for its own. */
#include "tap_end.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dpdk_compat.h"

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

static int ask(const char *name, unsigned long request, struct ifreq *r)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	memmove(r->ifr_name, name, IF_NAMESIZE);
	int err = ioctl(fd, request, r) ? -errno : 0;
	close(fd);
	return err;
}

/* Whether the kernel gives us this tap and lets us change it: the driver would answer only -22. What is made here vanishes with the descriptor. */
static int try_tap(const struct tap_end *t)
{
	struct ifreq r = { .ifr_flags = IFF_TAP | IFF_MULTI_QUEUE };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? -EPERM : -ENODEV;
	memcpy(r.ifr_name, t->name, IF_NAMESIZE);
	int err = ioctl(fd, TUNSETIFF, &r) ? -errno : 0;
	if (!err) {
		r.ifr_mtu = (int)t->mtu;
		err = ask(r.ifr_name, SIOCSIFMTU, &r);
	}
	close(fd);
	return err;
}

static int look_at_existing(struct tap_end *t, const struct log *log)
{
	struct ifreq r = { 0 };
	struct ethtool_value link = { .cmd = ETHTOOL_GLINK };
	if (ask(t->name, SIOCGIFMTU, &r))
		return 0; /* it is not there */
	t->mtu = (uint32_t)r.ifr_mtu;
	if (!ask(t->name, SIOCGIFHWADDR, &r) && r.ifr_hwaddr.sa_family == ARPHRD_ETHER)
		memcpy(t->mac, r.ifr_hwaddr.sa_data, sizeof(t->mac));
	/* A tap has a carrier while some program holds it. A second one would get every other frame. */
	r.ifr_data = (char *)&link;
	if (ask(t->name, SIOCETHTOOL, &r) || !link.data)
		return 0;
	log_write(log, LOG_ERROR, "%s: interface %s is in use: another program is its other end, or it is no tap", t->text, t->name);
	return -EBUSY;
}

int tap_end_look(struct tap_end *t, const char *text, const char *name, uint32_t mtu, const struct log *log)
{
	t->text = text;
	t->mtu = mtu;
	if (strlen(name) >= sizeof(t->name)) {
		log_write(log, LOG_ERROR, "%s: iface=%s: longer than %zu characters", text, name, sizeof(t->name) - 1);
		return -EINVAL;
	}
	strcpy(t->name, name);
	int err = name[0] ? look_at_existing(t, log) : 0;
	if (err)
		return err;
	err = try_tap(t);
	if (err == -EPERM)
		log_write(log, LOG_ERROR, "%s: may not make a tap: it needs CAP_NET_ADMIN, and /dev/net/tun", text);
	else if (err == -ENODEV)
		log_write(log, LOG_ERROR, "%s: there is no /dev/net/tun: load module tun, or give it to this container", text);
	else if (err)
		log_write(log, LOG_ERROR, "%s: iface=%s: %s; an interface made beforehand must be a tap of several queues: ip tuntap add dev %s mode tap multi_queue", text, name, strerror(-err), name);
	return err;
}

/* The driver of DPDK 22.11 sends no frame whose pkt_len is beyond its MTU, and ethdev lets nobody raise that beyond 1504; what it writes is data_len. */
static uint16_t shorten(uint16_t port_id, uint16_t queue, struct rte_mbuf *frames[], uint16_t n, void *arg)
{
	for (uint16_t i = 0; i < n; i++)
		if (frames[i]->pkt_len > RTE_ETHER_MAX_LEN)
			frames[i]->pkt_len = RTE_ETHER_MAX_LEN;
	return n;
}

int tap_end_restore(struct tap_end *t, uint16_t port_id, const struct log *log)
{
	struct rte_eth_dev_info info;
	struct ifreq r = { .ifr_mtu = (int)t->mtu };
	int err = rte_eth_dev_info_get(port_id, &info);
	t->index = err ? 0 : info.if_index;
	if (!err && !if_indextoname(t->index, t->name))
		err = -errno;
	if (!err)
		err = ask(t->name, SIOCSIFMTU, &r);
	if (err)
		log_write(log, LOG_ERROR, "%s: cannot give interface %s an MTU of %u: %s", t->text, t->name, t->mtu, strerror(-err));
	return err;
}

int tap_end_settle(struct tap_end *t, uint16_t port_id, uint16_t queues, const struct log *log)
{
	struct rte_eth_dev_info info;
	t->queues = queues;
	int err = rte_eth_dev_info_get(port_id, &info);
	if (!err && info.max_rx_pktlen >= t->mtu + RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN) /* 23.11 and later */
		err = rte_eth_dev_set_mtu(port_id, (uint16_t)t->mtu);
	else
		for (uint16_t q = 0; q < queues && !err; q++)
			if (!(t->shortened[q] = rte_eth_add_tx_callback(port_id, q, shorten, NULL)))
				err = -ENOMEM;
	if (err)
		log_write(log, LOG_ERROR, "%s: DPDK cannot send frames of %u bytes: %s", t->text, t->mtu + RTE_ETHER_HDR_LEN, strerror(-err));
	else
		log_write(log, LOG_WARN, "%s: net_tap is told of frames by a real-time signal: calls of this program that wait (poll, sleep) may end early, with EINTR", t->text);
	return err;
}

void tap_end_let_through(sigset_t *blocked)
{
	struct sigaction a;
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
		if (!sigaction(s, NULL, &a) && a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN)
			sigdelset(blocked, s);
}

void tap_end_leave(struct tap_end *t, uint16_t port_id)
{
	for (uint16_t q = 0; t && q < t->queues; q++)
		if (t->shortened[q] && !rte_eth_remove_tx_callback(port_id, q, t->shortened[q]))
			rte_free((void *)(uintptr_t)t->shortened[q]);
}
