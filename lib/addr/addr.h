/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of one poll core and the way to others: GID table, routes, neighbours, and the small packets (ARP, ND, echo) that
 * go with them. Pure state: frames come in by addr_rx, frames to be sent are pulled by addr_tx, time is an argument, deadlines are
 * timers in the core's wheel. One thread: the core's.
 *
 * Two ways to own an address (DESIGN section 8): ADDR_OWN: this core answers ARP/ND/echo and resolves by itself. ADDR_SHARED: the
 * kernel does all that; the core asks by addr_next_question and is told by addr_learn. */
#ifndef UROCE_ADDR_H
#define UROCE_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#include "drop.h"
#include "build.h"
#include "gid.h"
#include "packet.h"
#include "wheel.h"

struct addr;
struct neigh;

enum addr_mode { ADDR_OWN, ADDR_SHARED };

struct addr_config {
	enum addr_mode mode;
	uint8_t mac[6];
	uint32_t max_gids;        /* 0: 64 */
	uint32_t max_neighbours;  /* 0: 4096; beyond it the least recently used without a user goes, else -ENOBUFS */
	uint32_t max_pending;     /* 0: 256: most neighbours being resolved at one time */
	uint32_t max_replies;     /* 0: 64: queue of ARP/ND/echo replies waiting for addr_tx */
	uint64_t ask_interval_ns; /* 0: 100 ms between questions; ADDR_SHARED: 1 s, the kernel's own rhythm */
	uint32_t ask_tries;       /* 0: 5 questions, then failed */
	uint64_t fresh_ns;        /* 0: 30 s until a neighbour in use is asked again (unicast first); failed after as long again */
	uint32_t max_groups;      /* 0: 1024 of each family that are reported */
	uint64_t failed_ns;       /* 0: 1 s until a failed neighbour may be asked again; in use: by itself, twice as late each time, to 32 times */
	/* An address begins to be ours, or it is ours no more: that is when the last AH lets go of a removed one. What it answers to the first (0 or a negative errno) is what addr_gid_add does. Or NULL. */
	int (*on_address)(void *arg, const struct gid *gid, bool is_ours);
	void *on_address_arg;
};

int addr_new(struct addr **out, const struct addr_config *config, struct wheel *wheel, uint64_t now_ns);
void addr_free(struct addr *a);

/* ---- GIDs: an index never shifts; a removed GID stays, unusable for new AHs, while anything refers to it. ---- */
/* prefix_len: bits of the on-link network (of the IPv4 address: 0..32). 0 and *index; -EEXIST, -ENOSPC, -EINVAL (multicast, zero,
 * prefix), or what on_address answers. */
int addr_gid_add(struct addr *a, const struct gid *gid, uint16_t vlan, unsigned prefix_len, uint32_t *index);
/* The same in two steps, for who has several tables that are to be alike. Raises *index to the lowest slot from there on that the GID can have; a removed one that is still held has none but its own. -EEXIST, -ENOSPC; -EBUSY: its own is below. */
int addr_gid_choose(const struct addr *a, const struct gid *gid, uint16_t vlan, uint32_t *index);
/* As addr_gid_add, in that slot; -EBUSY: not this one. */
int addr_gid_add_at(struct addr *a, uint32_t index, const struct gid *gid, uint16_t vlan, unsigned prefix_len);
/* Open AHs keep it, its network and the way that they have; it is answered for until the last of them is closed. -ENOENT. */
int addr_gid_remove(struct addr *a, uint32_t index);
/* false when the slot is empty or its GID was removed. */
bool addr_gid_get(const struct addr *a, uint32_t index, struct gid *gid, uint16_t *vlan);
uint32_t addr_gid_slots(const struct addr *a);
/* on_changed is called after each GID that is added or removed. */
void addr_watch_gids(struct addr *a, void (*on_changed)(void *arg), void *arg);
/* Whether a packet to gid on vlan is for us; a removed GID is ours while an AH holds it. Hot path: called for each packet. */
bool addr_is_ours(const struct addr *a, const struct gid *gid, uint16_t vlan);
/* Whether we have an address of the group's family on vlan, and so take what comes there for a group. Looks through the table. */
bool addr_hears_group(const struct addr *a, const struct gid *group, uint16_t vlan);

/* ---- Routes: longest prefix first; gateway zero: on link. On-link networks of the GIDs need no route. ---- */
/* One table for all VLANs. Open AHs follow every change. */
/* 0; -EEXIST, -EINVAL, -ENOMEM. */
int addr_route_add(struct addr *a, const struct gid *network, unsigned prefix_len, const struct gid *gateway);
/* 0; -ENOENT, -EINVAL. */
int addr_route_remove(struct addr *a, const struct gid *network, unsigned prefix_len);

/* ---- Multicast groups: reported to routers and switches by IGMP and MLD on the VLAN of the family's first address. ADDR_SHARED: the kernel does that, and there is nothing to tell. ---- */
/* 0; -EINVAL (no group), -EEXIST, -ENOSPC, -ENOMEM. */
int addr_group_join(struct addr *a, const struct gid *group, uint64_t now_ns);
/* 0; -ENOENT. */
int addr_group_leave(struct addr *a, const struct gid *group, uint64_t now_ns);
/* The port's link is there again: its groups are told again. */
void addr_on_link_up(struct addr *a);

/* ---- Address handles ---- */
enum ah_state {
	AH_RESOLVING, /* wait: nothing can be sent yet */
	AH_READY,
	AH_UNREACHABLE, /* no answer to the last round of questions; becomes ready if one comes */
	AH_NO_ROUTE,
};

struct ah_fields {
	uint32_t sgid_index;
	struct gid dgid;
	uint8_t traffic_class, hop_limit; /* hop_limit 0: 64 */
	uint32_t flow_label;              /* 20 bits; IPv4: it only feeds the UDP source port, which the caller computes */
	uint8_t priority;                 /* SL, becomes the 802.1Q PCP */
	uint16_t udp_src_port;
};

/* Embedded in its owner (a QP, later a UD WR's destination). Holds a reference to its GID and neighbour until ah_close. */
struct ah {
	struct template template; /* complete once the state has been AH_READY */
	struct gid sgid, dgid;
	uint16_t vlan;
	uint8_t state;       /* enum ah_state; read it before each packet */
	bool is_local;       /* dgid is one of ours: loop back, never onto the wire */
	bool is_group;       /* dgid is a multicast group: onto the wire, and to members here */
	uint32_t sgid_index;
	struct neigh *neigh;
	struct ah *next, **at;                 /* among the AHs of its neighbour */
	void (*on_changed)(struct ah *ah);     /* state changed; may be NULL; may open and close any AH */
	uint32_t (*progress)(const struct ah *ah); /* differs whenever something that was sent has arrived; NULL: nobody tells */
	uint32_t progress_seen;
	struct addr *addr;
};

/* Starts resolution if needed. 0 (look at ah->state), -EINVAL (no such GID, address families differ, multicast dgid), -ENETUNREACH
 * (no route), -ENOBUFS (too many pending). */
int ah_open(struct ah *ah, struct addr *a, const struct ah_fields *f, void (*on_changed)(struct ah *), uint64_t now_ns);
/* The same to a multicast group: ready at once. 0; -EINVAL (no such GID index, address families differ, no group). */
int ah_open_group(struct ah *ah, struct addr *a, const struct ah_fields *f);
/* For an owner that gets word of what arrives: from then on its neighbour need not be asked while that goes on (RFC 4861, 7.3.1). */
void ah_watch_progress(struct ah *ah, uint32_t (*progress)(const struct ah *ah));
/* An owner has something to send by an AH that is AH_UNREACHABLE: its neighbour is asked again, now or as soon as there is room, unless that was just now. Whether there will be an answer. */
bool ah_ask_again(struct ah *ah, uint64_t now_ns);
/* The same for an owner that waits for the answer: if there will be one, the AH is AH_RESOLVING until then. */
bool ah_resolve_again(struct ah *ah, uint64_t now_ns);
void ah_close(struct ah *ah);

/* ---- Packets ---- */
/* p->kind is not PACKET_ROCE. Learns and answers as the mode wants. */
enum drop addr_rx(struct addr *a, uint64_t now_ns, const struct packet *p);
/* The same for a packet that another holder of our addresses answers: learns from it, and answers nothing. */
enum drop addr_rx_copy(struct addr *a, uint64_t now_ns, const struct packet *p);
/* Writes the next frame that waits (replies, questions and reports in turn, so that none starves the others) into frame; 0 when none
 * waits. room: at least NEIGHBOUR_FRAME_MAX; an echo that is longer than room (or than 2,044 bytes) is given up. */
uint32_t addr_tx(struct addr *a, uint64_t now_ns, uint8_t *frame, uint32_t room);
bool addr_has_tx(const struct addr *a);

/* ---- ADDR_SHARED ---- */
/* The next address the kernel should resolve, and on which GID's link; false when there is none. */
bool addr_next_question(struct addr *a, struct gid *next_hop, struct gid *source);
/* The kernel knows (mac) or knows that it is not reachable (mac NULL). Also usable in ADDR_OWN for static neighbours (is_static:
 * never asked again). */
int addr_learn(struct addr *a, const struct gid *next_hop, uint16_t vlan, const uint8_t *mac, bool is_static, uint64_t now_ns);

/* One next hop, as it is known now. */
struct addr_neighbour {
	struct gid gid;
	uint16_t vlan;
	uint8_t mac[6];       /* when it is known */
	bool is_known, is_static;
	const char *state;    /* "known", "asking", "failed" or "unknown" */
	uint32_t users;       /* AHs */
};
/* Up to `room` of them, without the first `from`, the oldest first; how many there are. */
uint32_t addr_neighbours(const struct addr *a, uint32_t from, struct addr_neighbour *list, uint32_t room);

/* Counters for show and tests. */
struct addr_stats {
	uint64_t asked, told, learned, failed, pending_refused, reply_full;
	uint64_t group_queries, group_reports, group_records; /* of IGMP and MLD: heard; frames sent, and records in them */
	uint32_t neighbours, pending;
};
void addr_stats(const struct addr *a, struct addr_stats *s);

#endif
