/* SPDX-License-Identifier: BSD-3-Clause */
/* See port_row.h. Owns what DPDK 22.11's drivers do not say of themselves: default devargs, how many pairs of queues, and the largest frame. ethdev's own answer (max_rx_pktlen, about 1,520 on af_packet, tap and
 * memif) is wrong there and set_mtu beyond it fails although the frames pass; so no MTU is ever passed to a virtual device, but to a tap that takes it (tap_end.c).
 * Invariant: a frame of max_frame bytes fits one mbuf of the pool and one slot of the device, so that the driver can neither overflow nor chain. */
#include "port_row.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core.h"
#include "link_watch.h"
#include "memif_link.h"
#include "random.h"
#include "ring_link.h"
#include "tap_end.h"

#define PACKET_FRAMES_MIN 64u
#define PACKET_OVERHEAD 80u /* of a TPACKET_V2 slot: its header, sockaddr_ll and alignment before the network header */
#define TAP_QUEUE 1000u     /* frames, of an interface that the kernel makes */
#define MTU_HEADERS 104u    /* room in an MTU for all that stands around the payload of a packet */

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

static void add_text_devarg(struct port_plan *plan, const char *key, const char *value)
{
	size_t len = strlen(plan->devargs);
	snprintf(plan->devargs + len, sizeof(plan->devargs) - len, "%s%s=%s", len ? "," : "", key, value);
}

static void drop_devarg(struct port_plan *plan, const char *key)
{
	size_t len = strlen(key);
	for (char *p = plan->devargs; *p;) {
		char *next = p + strcspn(p, ",");
		next += *next == ',';
		if (!strncmp(p, key, len) && p[len] == '=')
			memmove(p, next, strlen(next) + 1);
		else
			p = next;
	}
}

static void add_devarg(struct port_plan *plan, const char *key, uint32_t value)
{
	char had[16];
	size_t len = strlen(plan->devargs);
	if (!find_devarg(plan->devargs, key, had, sizeof(had)))
		snprintf(plan->devargs + len, sizeof(plan->devargs) - len, "%s%s=%u", len ? "," : "", key, value);
}

/* One station's, locally administered. Not from DPDK's generator, which a forked process has in the same state as its parent. */
static int choose_mac(uint8_t mac[6])
{
	int err = random_bytes(mac, 6);
	mac[0] = (uint8_t)((mac[0] & 0xfc) | 2);
	return err;
}

static void set_mac(struct port_plan *plan, const uint8_t mac[6])
{
	char text[18];
	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	drop_devarg(plan, "mac");
	add_text_devarg(plan, "mac", text);
}

/* The port's own: what the user says, or one that nobody else has. */
static int take_mac(struct port *p, const struct device_string *d, const struct log *log)
{
	char text[32];
	unsigned b[6], end = 0;
	if (!find_devarg(d->devargs, "mac", text, sizeof(text)))
		return choose_mac(p->mac);
	bool is_whole = sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &end) == 6 && end == strlen(text);
	for (unsigned i = 0; i < 6 && is_whole; i++)
		p->mac[i] = (uint8_t)b[i];
	if (is_whole && !(b[0] & 1) && (b[0] | b[1] | b[2] | b[3] | b[4] | b[5]))
		return 0;
	log_write(log, LOG_ERROR, "%s: mac=%s: takes the address of one station, as 02:00:00:00:00:01", p->text, text);
	return -EINVAL;
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
static int plan_packet(struct port *p, const struct device_string *d, struct port_plan *plan, const struct log *log)
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
	uint32_t frame = p->interface_mtu + PORT_ETH_LEN + (d->vlan != VLAN_NONE ? PORT_VLAN_LEN : 0);
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
	plan->room = slot > PORT_ROOM_DEFAULT ? slot : PORT_ROOM_DEFAULT;
	plan->mbufs = 2048; /* the driver copies both ways: only bursts are in flight */
	plan->window_max = count / 2;
	return 0;
}

static int plan_ring(struct port *p, const struct device_string *d, struct port_plan *plan, const struct log *log)
{
	plan->max_frame = plan->room = PORT_ROOM_DEFAULT;
	plan->window_max = (d->ring ? d->ring : RING_LINK_SLOTS) / 2;
	return 0;
}

/* A server takes the client's bsize and rsize; memif_link.c turns away clients whose buffers are too small. */
static int plan_memif(struct port *p, const struct device_string *d, struct port_plan *plan, const struct log *log)
{
	char role[16] = "client", path[128] = "/run/memif.sock", abstract[8] = "yes";
	uint32_t size = get_number(d->devargs, "bsize", PORT_ROOM_DEFAULT), log2_slots = get_number(d->devargs, "rsize", 10), wanted = (d->mtu ? d->mtu : 4096) + CORE_FRAME_MAX - 4096;
	find_devarg(d->devargs, "role", role, sizeof(role));
	find_devarg(d->devargs, "socket", path, sizeof(path));
	find_devarg(d->devargs, "socket-abstract", abstract, sizeof(abstract));
	bool is_server = !strcmp(role, "server"), is_abstract = !strcmp(abstract, "yes");
	if ((!is_server && strcmp(role, "client")) || (!is_abstract && strcmp(abstract, "no")) || size < 512 || size > 65535 || log2_slots < 4 || log2_slots > 14) {
		log_write(log, LOG_ERROR, "%s: role=%s,socket-abstract=%s,bsize=%u,rsize=%u: role is server or client, socket-abstract yes or no, bsize from 512 to 65535, rsize from 4 to 14", p->text, role, abstract, size, log2_slots);
		return -EINVAL;
	}
	int err = take_mac(p, d, log);
	if (err)
		return err;
	struct memif_link_config config = { .text = p->text, .path = path, .is_abstract = is_abstract, .is_server = is_server, .frame_max = size < wanted ? size : wanted, .log = log };
	err = memif_link_open(&p->memif, &config);
	if (err)
		return err;
	drop_devarg(plan, "socket");
	drop_devarg(plan, "socket-abstract");
	add_text_devarg(plan, "socket", memif_link_inner(p->memif));
	add_text_devarg(plan, "socket-abstract", memif_link_is_abstract(p->memif) ? "yes" : "no");
	add_devarg(plan, "bsize", size);
	plan->max_frame = size < PORT_ROOM_DEFAULT ? size : PORT_ROOM_DEFAULT;
	plan->window_max = (1u << log2_slots) / 2;
	set_mac(plan, p->mac);
	return 0;
}

static int settle_memif(struct port *p, const struct log *log)
{
	memif_link_begin(p->memif, p->id);
	return 0;
}

/* What the interface carries, the driver does; one that is made is given the MTU that mtu= needs, else 1500. */
static int plan_tap(struct port *p, const struct device_string *d, struct port_plan *plan, const struct log *log)
{
	char iface[64] = "";
	p->tap = calloc(1, sizeof(*p->tap));
	if (!p->tap)
		return -ENOMEM;
	find_devarg(d->devargs, "iface", iface, sizeof(iface));
	int err = take_mac(p, d, log);
	if (!err)
		err = choose_mac(p->tap->mac);
	if (!err)
		err = tap_end_look(p->tap, p->text, iface, d->mtu > 1024 ? d->mtu + MTU_HEADERS : 1500, log);
	if (err)
		return err;
	set_mac(plan, p->tap->mac);
	plan->max_frame = p->tap->mtu + PORT_ETH_LEN + (d->vlan != VLAN_NONE ? PORT_VLAN_LEN : 0);
	plan->window_max = TAP_QUEUE / 2;
	return 0;
}

static int find_tap(struct port *p, const struct log *log)
{
	return tap_end_restore(p->tap, p->id, log);
}

static int settle_tap(struct port *p, const struct log *log)
{
	memcpy(p->interface, p->tap->name, sizeof(p->interface)); /* not before: the start then leaves the interface alone */
	p->interface_index = p->tap->index;
	p->interface_mtu = p->tap->mtu;
	return tap_end_settle(p->tap, p->id, p->queues, log);
}

static bool has_ring_peer(struct port *p)
{
	return ring_link_has_side(p->link, !p->side);
}

static bool has_memif_peer(struct port *p)
{
	return memif_link_is_connected(p->memif);
}

static bool has_carrier(struct port *p)
{
	return link_watch_is_up(p->watch);
}

static const struct port_row rows[] = {
	{ "net_ring", "", 16, plan_ring, NULL, NULL, has_ring_peer, NULL, true, PORT_GROUPS_ALL },
	{ "net_af_packet", "iface qpairs blocksz framesz framecnt qdisc_bypass", 16, plan_packet, NULL, NULL, has_carrier, NULL, false, PORT_GROUPS_PACKET },
	{ "net_memif", "role socket socket-abstract id secret bsize rsize mac", 1, plan_memif, NULL, settle_memif, has_memif_peer, "pmd.net.memif", false, PORT_GROUPS_ALL },
	{ "net_tap", "iface mac persist", 8, plan_tap, find_tap, settle_tap, has_carrier, "pmd.net.tap", false, PORT_GROUPS_ALL }, /* says 16, and with more than 8 its start overruns the stack */
};

const struct port_row *port_row_find(const char *vdev)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strncmp(rows[i].driver, vdev, strlen(rows[i].driver)))
			return &rows[i];
	return NULL;
}

int port_row_check(const struct port *p, const struct port_row *row, const char *devargs, const struct log *log)
{
	for (const char *at = devargs; *at; at += strcspn(at, ","), at += *at == ',') {
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
