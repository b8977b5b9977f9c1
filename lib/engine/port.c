/* SPDX-License-Identifier: BSD-3-Clause */
/* Bringing up ports. Owns what DPDK 22.11's drivers do not say of themselves: default devargs, and the largest frame, in one table (rows). ethdev's own answer (max_rx_pktlen, about 1,520 on
 * af_packet, tap and memif) is wrong there and set_mtu beyond it fails although the frames pass; so no MTU is ever passed to a virtual device.
 * Invariant: a frame of max_frame bytes fits one mbuf of the pool and one slot of the device, so that the driver can neither overflow nor chain. */
#include "port.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dpdk_compat.h"

#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "core.h"
#include "quiet_start.h"
#include "ring_link.h"

#define ETH_LEN 14u
#define VLAN_LEN 4u
#define DESCRIPTORS 1024u
#define POOL_MBUFS 4096u     /* for each queue */
#define AWAY_MBUFS 1024u     /* more for each where there are several: what waits in a ring between cores */
#define CACHE_MBUFS 256u
#define ROOM_DEFAULT 4352u   /* CORE_FRAME_MAX, to whole cache lines */
#define PACKET_FRAMES_MIN 64u
#define PACKET_OVERHEAD 80u  /* of a TPACKET_V2 slot: its header, sockaddr_ll and alignment before the network header */

/* What a row decides before the device is made. */
struct plan {
	char devargs[640];
	uint32_t max_frame, room, window_max;
	uint32_t mbufs; /* for each queue */
};

struct row {
	const char *driver;
	const char *devargs; /* the keys it takes; NULL: not checked */
	unsigned queues;     /* most pairs */
	int (*plan)(struct port *p, const struct device_string *d, struct plan *plan, const struct log *log);
};

static bool find_devarg(const char *devargs, const char *key, char *value, size_t room)
{
	size_t len = strlen(key);
	for (const char *p = devargs; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
		if (strncmp(p, key, len) || p[len] != '=')
			continue;
		snprintf(value, room, "%.*s", (int)strcspn(p + len + 1, ","), p + len + 1);
		return true;
	}
	return false;
}

static uint32_t get_number(const char *devargs, const char *key, uint32_t otherwise)
{
	char value[16];
	return find_devarg(devargs, key, value, sizeof(value)) ? (uint32_t)strtoul(value, NULL, 0) : otherwise;
}

static void add_devarg(struct plan *plan, const char *key, uint32_t value)
{
	char had[16];
	size_t len = strlen(plan->devargs);
	if (!find_devarg(plan->devargs, key, had, sizeof(had)))
		snprintf(plan->devargs + len, sizeof(plan->devargs) - len, "%s%s=%u", len ? "," : "", key, value);
}

static int read_interface(struct port *p, const char *name, const struct log *log)
{
	struct ifreq r = { 0 };
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	snprintf(p->interface, sizeof(p->interface), "%s", r.ifr_name);
	p->interface_index = if_nametoindex(name);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err = fd < 0 || ioctl(fd, SIOCGIFMTU, &r) ? -errno : 0;
	if (!err)
		p->interface_mtu = (uint32_t)r.ifr_mtu;
	if (!err && !ioctl(fd, SIOCGIFFLAGS, &r) && !(r.ifr_flags & IFF_UP)) {
		log_write(log, LOG_ERROR, "%s: interface %s is down: ip link set %s up", p->text, name, name);
		err = -ENETDOWN;
	} else if (err) {
		log_write(log, LOG_ERROR, "%s: no interface iface=%s: %s", p->text, name, strerror(-err));
	}
	if (fd >= 0)
		close(fd);
	return err;
}

/* The driver locks both rings of each queue into memory, which the limit of a container without CAP_IPC_LOCK may not allow: fewer frames then, as many as fit. */
static uint32_t fit_locked(const struct port *p, uint32_t slot, uint32_t count, const struct log *log)
{
	uint32_t fits = count;
	for (; fits >= PACKET_FRAMES_MIN; fits /= 2) {
		size_t bytes = 2 * (size_t)slot * fits * p->queues;
		void *probe = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0);
		if (probe == MAP_FAILED)
			continue;
		munmap(probe, bytes);
		if (fits < count)
			log_write(log, LOG_WARN, "%s: the limit on locked memory (ulimit -l) leaves %u of %u frames; bursts may be lost", p->text, fits, count);
		return fits;
	}
	log_write(log, LOG_ERROR, "%s: the limit on locked memory is too small for %u frames: raise it (ulimit -l) or give CAP_IPC_LOCK", p->text, PACKET_FRAMES_MIN);
	return 0;
}

static int check_packet_socket(struct port *p, const struct log *log)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	int err = fd < 0 ? -errno : 0;
	if (err)
		log_write(log, LOG_ERROR, "%s: no packet socket: %s (it needs CAP_NET_RAW)", p->text, strerror(-err));
	else
		close(fd);
	return err;
}

/* af_packet carries what both a ring slot and the interface carry. 512 frames, its default, lose half of a burst of 1,024; slots bigger than mbufs would overflow them. */
static int plan_packet(struct port *p, const struct device_string *d, struct plan *plan, const struct log *log)
{
	char iface[IF_NAMESIZE];
	if (!find_devarg(d->devargs, "iface", iface, sizeof(iface))) {
		log_write(log, LOG_ERROR, "%s: needs iface=INTERFACE", p->text);
		return -EINVAL;
	}
	int err = check_packet_socket(p, log);
	if (!err)
		err = read_interface(p, iface, log);
	if (err)
		return err;
	if (get_number(d->devargs, "qpairs", d->cores) != d->cores) {
		log_write(log, LOG_ERROR, "%s: qpairs= would have to be %u: there is one pair of queues for each of cores=%u", p->text, d->cores, d->cores);
		return -EINVAL;
	}
	add_devarg(plan, "qpairs", d->cores);
	uint32_t frame = p->interface_mtu + ETH_LEN + (d->vlan != VLAN_NONE ? VLAN_LEN : 0);
	uint32_t slot = 2048;
	while (slot < 8192 && slot < frame + PACKET_OVERHEAD)
		slot *= 2;
	slot = get_number(d->devargs, "framesz", slot);
	uint32_t count = get_number(d->devargs, "framecnt", 2048);
	if (slot < 512 || slot > 32768 || count < 2 || count > 1 << 20) {
		log_write(log, LOG_ERROR, "%s: framesz=%u,framecnt=%u: framesz from 512 to 32768, framecnt from 2", p->text, slot, count);
		return -EINVAL;
	}
	char given[16];
	if (!find_devarg(d->devargs, "framecnt", given, sizeof(given)) && !(count = fit_locked(p, slot, count, log)))
		return -ENOMEM;
	add_devarg(plan, "framesz", slot);
	add_devarg(plan, "framecnt", count);
	uint32_t block = slot > 65536 ? slot : 65536;
	while (block > slot && block / slot > count)
		block /= 2;
	add_devarg(plan, "blocksz", block < 4096 ? 4096 : block);
	plan->max_frame = frame < slot - PACKET_OVERHEAD ? frame : slot - PACKET_OVERHEAD;
	plan->room = slot > ROOM_DEFAULT ? slot : ROOM_DEFAULT;
	plan->mbufs = 2048; /* the driver copies both ways: only bursts are in flight */
	plan->window_max = count / 2;
	return 0;
}

static int plan_ring(struct port *p, const struct device_string *d, struct plan *plan, const struct log *log)
{
	plan->max_frame = plan->room = ROOM_DEFAULT;
	plan->window_max = (d->ring ? d->ring : RING_LINK_SLOTS) / 2;
	return 0;
}

/* The server takes the client's bsize; both ends have to be given the same if it is not the default. */
static int plan_memif(struct port *p, const struct device_string *d, struct plan *plan, const struct log *log)
{
	uint32_t size = get_number(d->devargs, "bsize", 8192);
	add_devarg(plan, "bsize", size);
	plan->max_frame = size;
	plan->room = size > ROOM_DEFAULT ? size : ROOM_DEFAULT;
	plan->window_max = (1u << get_number(d->devargs, "rsize", 10)) / 2;
	return 0;
}

/* Its netdev does not exist yet; it is made with 1500. */
static int plan_tap(struct port *p, const struct device_string *d, struct plan *plan, const struct log *log)
{
	plan->max_frame = 1500 + ETH_LEN;
	return 0;
}

static const struct row rows[] = {
	{ "net_ring", "", 16, plan_ring },
	{ "net_af_packet", "iface qpairs blocksz framesz framecnt qdisc_bypass", 16, plan_packet },
	{ "net_memif", "role bsize rsize id socket socket-abstract owner-uid owner-gid mac secret zero-copy", 255, plan_memif },
	{ "net_tap", "iface remote mac persist", 8, plan_tap }, /* says 16, and with more than 8 its start overruns the stack */
};

static const struct row *find_row(const char *vdev)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strncmp(rows[i].driver, vdev, strlen(rows[i].driver)))
			return &rows[i];
	return NULL;
}

static int check_devargs(const struct port *p, const struct row *row, const char *devargs, const struct log *log)
{
	for (const char *at = devargs; row->devargs && *at; at += strcspn(at, ","), at += *at == ',') {
		size_t len = strcspn(at, "=");
		bool is_known = false;
		for (const char *k = row->devargs; *k; k += strcspn(k, " "), k += *k == ' ')
			is_known |= strcspn(k, " ") == len && !strncmp(k, at, len);
		if (is_known)
			continue;
		log_write(log, LOG_ERROR, "%s: \"%.*s\" is neither a key of uroce nor of %s, which takes: %s", p->text, (int)len, at, row->driver,
			row->devargs[0] ? row->devargs : "none");
		return -EINVAL;
	}
	return 0;
}

static int check_queues(const struct port *p, unsigned most, const struct log *log)
{
	if (p->queues <= most)
		return 0;
	log_write(log, LOG_ERROR, "%s: cores=%u: the device has at most %u pairs of queues", p->text, p->queues, most);
	return -EINVAL;
}

static int make_pool(struct port *p, const struct plan *plan, const struct log *log)
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
static int make_device(struct port *p, const struct device_string *d, const struct plan *plan, const struct row *row, const struct log *log)
{
	static _Atomic unsigned serial;
	if (row && row->plan == plan_ring) {
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
	struct rte_ether_addr mac;
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
	const struct row *row = find_row(d->vdev);
	struct plan plan = { .max_frame = 1500 + ETH_LEN, .room = ROOM_DEFAULT, .mbufs = POOL_MBUFS };
	struct rte_eth_dev_info info;
	const struct rte_eth_conf conf = { 0 };
	snprintf(plan.devargs, sizeof(plan.devargs), "%s", d->devargs);
	int err = row ? check_devargs(p, row, d->devargs, log) : 0;
	if (!err && row)
		err = check_queues(p, row->queues, log);
	if (!err && row)
		err = row->plan(p, d, &plan, log);
	if (!err)
		err = make_device(p, d, &plan, row, log);
	if (!err)
		err = rte_eth_dev_info_get(p->id, &info);
	if (!err)
		err = check_queues(p, RTE_MIN(info.max_rx_queues, info.max_tx_queues), log);
	if (!err)
		err = make_pool(p, &plan, log);
	if (!err)
		err = start_device(p, &conf, log);
	p->max_frame = plan.max_frame;
	p->window_max = p->link ? ring_link_slots(p->link) / 2 : plan.window_max;
	return err;
}

/* Rules by QPN come later, if the NIC takes them (steer.c); without, its hash at least spreads the QPs, which have UDP source ports of their own, so that not one core receives for all. */
static int start_nic(struct port *p, const struct rte_eth_dev_info *info, const struct log *log)
{
	const uint32_t wanted = CORE_FRAME_MAX - ETH_LEN;
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
	struct plan plan = { .room = ROOM_DEFAULT, .mbufs = POOL_MBUFS };
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
		p->max_frame = mtu + ETH_LEN + (d->vlan != VLAN_NONE ? VLAN_LEN : 0);
	return err;
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
	p->node = err ? -1 : rte_eth_dev_socket_id(p->id);
	if (err) {
		port_close(p);
		return err;
	}
	*out = p;
	return 0;
}

void port_close(struct port *p)
{
	if (!p)
		return;
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
	free(p);
}
