/* SPDX-License-Identifier: BSD-3-Clause */
/* RX/TX queue pairs of an Ethernet port, one for each core of an engine, ready for bursts: made out of a device string, never stopped and started again (af_packet's stop closes its sockets), never reused. */
#ifndef UROCE_PORT_H
#define UROCE_PORT_H

#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "device_string.h"

struct link_watch;
struct port_row;
struct ring_link;
struct rte_mempool;
struct tap_end;
struct memif_link;

/* What has to be done so that multicast groups come in (group_door.c). */
enum port_groups {
	PORT_GROUPS_LISTED, /* the driver is given their MAC addresses */
	PORT_GROUPS_ALL,    /* nothing: it filters nothing */
	PORT_GROUPS_PACKET, /* the kernel, whose interface it is, is asked to */
};

struct port {
	uint16_t id;
	uint16_t queue, queues;      /* ours: queues of them from queue on */
	bool is_foreign;             /* the program's own: not closed by us */
	uint8_t groups;              /* enum port_groups */
	uint8_t mac[6];
	uint32_t max_frame;          /* bytes of the largest frame it carries both ways, without FCS */
	uint32_t frame_room;         /* bytes for a frame in each mbuf of pool */
	uint32_t window_max;         /* packets that one queue of a peer's surely holds; 0: not known */
	int node;                    /* NUMA node it is attached to, -1: none in particular */
	struct rte_mempool *pool;
	char interface[IF_NAMESIZE]; /* kernel interface behind it, or "" */
	uint32_t interface_index, interface_mtu;
	struct tap_end *tap;         /* or NULL */
	struct memif_link *memif;    /* or NULL */
	struct link_watch *watch;    /* of the interface, or NULL */
	struct ring_link *link;
	unsigned side;
	const struct port_row *row;  /* of its driver; NULL: ethdev is believed */
	uint64_t look_at_ns;         /* when it is next asked for its link */
	_Atomic bool is_up;          /* as of the last look */
	char vdev[96];               /* name given to DPDK, or "" */
	char text[160];              /* for log lines: what the user called it */
};

/* The EAL runs (eal_get). 0; -EINVAL, -ENODEV, -ENOMEM, -EBUSY, each after one log line. */
int port_open(struct port **out, const struct device_string *d, const struct log *log);
/* By the thread of the first core, between two bursts of it, every millisecond or so: looks after what the driver does not, and at the link. */
void port_tick(struct port *p, uint64_t now_ns);
/* Whether it is known that nothing can be sent: the interface is down or has no carrier, or nobody is at the other end. Any thread. */
bool port_is_down(const struct port *p);
/* Takes out of the signals that a thread of the engine's is to block what the driver needs. */
void port_let_through(const struct port *p, sigset_t *blocked);
/* p may be NULL. No thread is in a burst on it. */
void port_close(struct port *p);

#endif
