/* SPDX-License-Identifier: BSD-3-Clause */
/* Bringing up ports and closing them. What is peculiar to a virtual driver is in port_row.c; of NICs on the PCI bus, and of running ports of the program's, ethdev is believed. */
#include "port.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpdk_compat.h"

#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>

#include "core.h"
#include "link_watch.h"
#include "memif_link.h"
#include "port_row.h"
#include "quiet_start.h"
#include "ring_link.h"
#include "tap_end.h"

#define DESCRIPTORS 1024u
#define POOL_MBUFS 4096u  /* for each queue */
#define AWAY_MBUFS 1024u  /* more for each where there are several: what waits in a ring between cores */
#define CACHE_MBUFS 256u
#define NIC_LOOK_NS 100000000u /* between two questions for the link of a NIC */

static int make_pool(struct port *p, const struct port_plan *plan, const struct log *log)
{
	static _Atomic unsigned serial;
	char name[RTE_MEMPOOL_NAMESIZE];
	uint32_t mbufs = p->queues * (plan->mbufs + (p->queues > 1 ? AWAY_MBUFS : 0));
	if (p->link) {
		p->pool = ring_link_pool(p->link);
	} else {
		snprintf(name, sizeof(name), "uroce_p%u", atomic_fetch_add(&serial, 1));
		p->pool = rte_pktmbuf_pool_create(name, mbufs, CACHE_MBUFS, 0, (uint16_t)(RTE_PKTMBUF_HEADROOM + plan->room), SOCKET_ID_ANY);
	}
	p->frame_room = plan->room;
	if (p->pool)
		return 0;
	log_write(log, LOG_ERROR, "%s: no memory for %u mbufs: %s (see memory=)", p->text, mbufs, rte_strerror(rte_errno));
	return -ENOMEM;
}

/* Makes the device and says which ethdev port it is. */
static int make_device(struct port *p, const struct device_string *d, const struct port_plan *plan, const struct port_row *row, const struct log *log)
{
	static _Atomic unsigned serial;
	if (row && row->is_ring) {
		p->side = d->side;
		int err = ring_link_join(d->link, d->side, d->cores, d->ring, plan->room, log, &p->link, &p->id);
		if (err)
			return err;
		return rte_eth_dev_get_name_by_port(p->id, p->vdev) ? -ENODEV : 0;
	}
	snprintf(p->vdev, sizeof(p->vdev), "%s_u%u", d->vdev, atomic_fetch_add(&serial, 1));
	int err = rte_vdev_init(p->vdev, plan->devargs);
	if (!err)
		err = rte_eth_dev_get_port_by_name(p->vdev, &p->id);
	if (!err)
		return 0;
	/* The bus answers -1 when no driver claims the name. */
	log_write(log, LOG_ERROR, "%s: DPDK cannot make it with \"%s\": %s", p->text, plan->devargs, err == -1 ? "no driver of that name is installed" : strerror(-err));
	p->vdev[0] = 0;
	return -ENODEV;
}

static int check_queues(const struct port *p, unsigned most, const struct log *log)
{
	if (p->queues <= most)
		return 0;
	log_write(log, LOG_ERROR, "%s: cores=%u: the device has at most %u pairs of queues", p->text, p->queues, most);
	return -EINVAL;
}

static int start_device(struct port *p, const struct rte_eth_conf *conf, const struct log *log)
{
	uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;
	int err = rte_eth_dev_configure(p->id, p->queues, p->queues, conf);
	if (!err)
		err = rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &rx, &tx);
	for (uint16_t q = 0; q < p->queues && !err; q++) {
		err = rte_eth_rx_queue_setup(p->id, q, rx, SOCKET_ID_ANY, NULL, p->pool);
		if (!err)
			err = rte_eth_tx_queue_setup(p->id, q, tx, SOCKET_ID_ANY, NULL);
	}
	if (!err)
		err = p->interface[0] ? quiet_start(p->id) : rte_eth_dev_start(p->id);
	if (err)
		log_write(log, LOG_ERROR, "%s: DPDK cannot start the port: %s", p->text, strerror(-err));
	return err;
}

/* The ring driver's ports have no address of their own: a locally administered one from the port's name. */
static void make_mac(struct port *p)
{
	uint32_t h = 2166136261u; /* FNV-1a */
	for (const char *at = p->text; *at; at++)
		h = (h ^ (uint8_t)*at) * 16777619u;
	const uint8_t mac[6] = { 0x02, 0x75, (uint8_t)(h >> 24), (uint8_t)(h >> 16), (uint8_t)(h >> 8), (uint8_t)h };
	memcpy(p->mac, mac, sizeof(mac));
}

static int read_mac(struct port *p, const struct log *log)
{
	static const uint8_t none[6];
	struct rte_ether_addr mac;
	if (memcmp(p->mac, none, sizeof(none)))
		return 0; /* the row has chosen it */
	int err = rte_eth_macaddr_get(p->id, &mac);
	if (err)
		return err;
	memcpy(p->mac, mac.addr_bytes, sizeof(p->mac));
	if (!rte_is_zero_ether_addr(&mac))
		return 0;
	if (p->interface[0]) {
		log_write(log, LOG_ERROR, "%s: has no Ethernet address (the loopback interface cannot be used)", p->text);
		return -EINVAL;
	}
	make_mac(p);
	return 0;
}

static int open_virtual(struct port *p, const struct device_string *d, const struct log *log)
{
	const struct port_row *row = p->row = port_row_find(d->vdev);
	struct port_plan plan = { .max_frame = 1500 + PORT_ETH_LEN, .room = PORT_ROOM_DEFAULT, .mbufs = POOL_MBUFS };
	struct rte_eth_dev_info info;
	const struct rte_eth_conf conf = { 0 };
	snprintf(plan.devargs, sizeof(plan.devargs), "%s", d->devargs);
	int err = row ? port_row_check(p, row, d->devargs, log) : 0;
	if (row && row->log_name && !rte_log_can_log((uint32_t)rte_log_register(row->log_name), RTE_LOG_INFO)) /* DPDK's lines are not wanted (eal.c) */
		rte_log_set_level_pattern(row->log_name, RTE_LOG_CRIT);
	if (!err && row)
		err = check_queues(p, row->queues, log);
	if (!err && row)
		err = row->plan(p, d, &plan, log);
	if (!err)
		err = make_device(p, d, &plan, row, log);
	if (!err && row && row->made)
		err = row->made(p, log);
	if (!err)
		err = rte_eth_dev_info_get(p->id, &info);
	if (!err)
		err = check_queues(p, RTE_MIN(info.max_rx_queues, info.max_tx_queues), log);
	if (!err)
		err = make_pool(p, &plan, log);
	if (!err)
		err = start_device(p, &conf, log);
	if (!err && row && row->settle)
		err = row->settle(p, log);
	p->max_frame = plan.max_frame;
	p->groups = row ? row->groups : PORT_GROUPS_LISTED;
	p->window_max = p->link ? ring_link_slots(p->link) / 2 : plan.window_max;
	return err;
}

/* Rules by QPN come later, if the NIC takes them (steer.c); without, its hash at least spreads the QPs, which have UDP source ports of their own, so that not one core receives for all. */
static int start_nic(struct port *p, const struct rte_eth_dev_info *info, const struct log *log)
{
	const uint32_t wanted = CORE_FRAME_MAX - PORT_ETH_LEN;
	struct rte_eth_conf conf = { .rxmode.mtu = wanted < info->max_mtu ? wanted : info->max_mtu };
	if (p->queues > 1) {
		conf.rx_adv_conf.rss_conf.rss_hf = info->flow_type_rss_offloads & (RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP);
		conf.rxmode.mq_mode = conf.rx_adv_conf.rss_conf.rss_hf ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE;
	}
	int err = check_queues(p, RTE_MIN(info->max_rx_queues, info->max_tx_queues), log);
	return err ? err : start_device(p, &conf, log);
}

static int check_foreign_queues(const struct port *p, const struct rte_eth_dev_info *info, const struct log *log)
{
	uint32_t last = p->queue + p->queues - 1u;
	if (last < info->nb_rx_queues && last < info->nb_tx_queues)
		return 0;
	log_write(log, LOG_ERROR, "%s: the port has %u RX and %u TX queues, so there is no queue=%u", p->text, info->nb_rx_queues, info->nb_tx_queues, last);
	return -EINVAL;
}

/* A NIC on the PCI bus, or a running port of the program's: ethdev is believed. */
static int open_ethdev(struct port *p, const struct device_string *d, const struct log *log)
{
	struct port_plan plan = { .room = PORT_ROOM_DEFAULT, .mbufs = POOL_MBUFS };
	struct rte_eth_dev_info info;
	uint16_t mtu;
	p->is_foreign = d->port != DEVICE_PORT_NONE;
	p->queue = d->queue;
	if (p->is_foreign)
		p->id = (uint16_t)d->port;
	if (p->is_foreign ? !rte_eth_dev_is_valid_port(p->id) : rte_eth_dev_get_port_by_name(d->vdev, &p->id)) {
		log_write(log, LOG_ERROR, "%s: DPDK has no such port (is the NIC bound to vfio-pci?)", p->text);
		return -ENODEV;
	}
	int err = rte_eth_dev_info_get(p->id, &info);
	if (!err && p->is_foreign)
		err = check_foreign_queues(p, &info, log);
	if (!p->is_foreign)
		snprintf(p->vdev, sizeof(p->vdev), "%s", d->vdev);
	if (!err)
		err = make_pool(p, &plan, log);
	if (!err && !p->is_foreign)
		err = start_nic(p, &info, log);
	if (!err)
		err = rte_eth_dev_get_mtu(p->id, &mtu);
	if (!err)
		p->max_frame = mtu + PORT_ETH_LEN + (d->vlan != VLAN_NONE ? PORT_VLAN_LEN : 0);
	return err;
}

/* ---- the link ---- */

static int watch_interface(struct port *p, const struct log *log)
{
	int err = link_watch_open(&p->watch, p->interface_index);
	if (err)
		log_write(log, LOG_ERROR, "%s: rtnetlink does not tell of interface %s: %s", p->text, p->interface, strerror(-err));
	return err;
}

static bool nic_has_link(struct port *p)
{
	struct rte_eth_link link;
	return rte_eth_link_get_nowait(p->id, &link) || link.link_status == RTE_ETH_LINK_UP; /* one that does not say is taken to have one */
}

static void look_at_link(struct port *p, uint64_t now_ns)
{
	if (now_ns < p->look_at_ns)
		return;
	if (!p->row)
		p->look_at_ns = now_ns + NIC_LOOK_NS;
	atomic_store_explicit(&p->is_up, p->row ? p->row->has_link(p) : nic_has_link(p), memory_order_relaxed);
}

int port_open(struct port **out, const struct device_string *d, const struct log *log)
{
	struct port *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->queues = (uint16_t)d->cores;
	if (d->port != DEVICE_PORT_NONE)
		snprintf(p->text, sizeof(p->text), "port=%d", d->port);
	else if (d->link[0])
		snprintf(p->text, sizeof(p->text), "%s,link=%s,side=%u", d->vdev, d->link, d->side);
	else
		snprintf(p->text, sizeof(p->text), "%s", d->vdev);
	bool is_virtual = d->port == DEVICE_PORT_NONE && !strchr(d->vdev, ':');
	int err = is_virtual ? open_virtual(p, d, log) : open_ethdev(p, d, log);
	if (!err)
		err = read_mac(p, log);
	if (!err && p->interface_index)
		err = watch_interface(p, log);
	p->node = err ? -1 : rte_eth_dev_socket_id(p->id);
	if (!err)
		look_at_link(p, 0);
	if (err) {
		port_close(p);
		return err;
	}
	*out = p;
	return 0;
}

void port_tick(struct port *p, uint64_t now_ns)
{
	if (p->memif)
		memif_link_poll(p->memif, now_ns);
	look_at_link(p, now_ns);
}

bool port_is_down(const struct port *p)
{
	return !atomic_load_explicit(&p->is_up, memory_order_relaxed);
}

void port_let_through(const struct port *p, sigset_t *blocked)
{
	if (p->tap)
		tap_end_let_through(blocked);
}

void port_close(struct port *p)
{
	if (!p)
		return;
	tap_end_leave(p->tap, p->id);
	memif_link_close(p->memif);
	link_watch_close(p->watch);
	if (p->vdev[0]) {
		rte_eth_dev_stop(p->id);
		rte_eth_dev_close(p->id);
		rte_vdev_uninit(p->vdev); /* the bus would remember the name; refuses what is not its own */
	}
	for (uint16_t q = 0; p->is_foreign && p->pool && q < p->queues; q++)
		rte_eth_tx_done_cleanup(p->id, (uint16_t)(p->queue + q), 0);
	/* A running NIC may still hold frames of ours: better to lose a pool than to free it under its DMA. */
	if (p->link)
		ring_link_leave(p->link, p->side);
	else if (p->pool && (!p->is_foreign || !rte_mempool_in_use_count(p->pool)))
		rte_mempool_free(p->pool);
	free(p->tap);
	free(p);
}
