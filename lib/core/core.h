/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole stack as a machine. Frames and the time come in, frames and the next deadline go out; there is no I/O, no clock and no thread in here. One
 * core is driven by one thread at a time: an engine's poll core, an inline program, a simulator, a fuzzer.
 *
 *     for (;;) {
 *         now = clock();
 *         core_scan(core);                              doorbells
 *         n = core_tx(core, now, empty frames, room);   WQEs; send the first n
 *         core_rx(core, now, frames that came, n);
 *         core_run(core, now);                          packets to ourselves, timers
 *         sleep until core_next(core) if nothing happened
 *     }
 */
#ifndef UROCE_CORE_H
#define UROCE_CORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "addr.h"
#include "drop.h"
#include "log.h"
#include "msg.h"
#include "usage.h"

struct core;
struct core_client;

#define CORE_FRAME_MAX 4226u /* largest frame the core builds: HEADERS_MAX + 4096 + pad + ICRC, without FCS */

struct core_frame {
	uint8_t *data;
	uint32_t len;      /* bytes of the frame (rx: that came; tx: that core_tx wrote) */
	uint32_t room;     /* tx: bytes available at data */
	uint16_t vlan_tci; /* rx: tag that the port stripped, VLAN_NONE else */
	uint8_t to_core;   /* tx: CORE_TO_WIRE, CORE_TO_GROUP, or the core of this engine that gets it with is_looped set */
	bool is_looped;    /* rx: from another core of this engine, to one of our own addresses: what the wire would do to it, it does not need */
	bool is_copy;      /* rx: came at another core of this engine, which counts it: an address packet (ARP, ND) is learnt from, not answered; a datagram to a group is for the members here */
	void *cookie;      /* the caller's */
};
#define CORE_TO_WIRE 0xffu
#define CORE_TO_GROUP 0xfeu /* to the wire, and a copy with is_looped set to each other core that core_mcast_cores names; what they have no room for is lost */

/* Which core of an engine of `cores` takes a frame: an index; CORE_ALL: every one, all but the one on which it came with is_copy; CORE_ANY: the one on which it came;
 * CORE_GROUP: those that core_mcast_cores names for *group, all but one with is_copy, or if there are none as CORE_ANY. Reads no byte beyond len. */
#define CORE_ALL (-1)
#define CORE_ANY (-2)
#define CORE_GROUP (-3)
int core_frame_owner(const uint8_t *frame, uint32_t len, unsigned cores, struct gid *group);

/* Which cores of an engine may have members of a multicast group, by a hash of its GID. Made with zeroes by the engine; each core writes its own bits. */
#define CORE_MCAST_SLOTS 1024u
struct core_mcast_map {
	_Atomic uint16_t cores[CORE_MCAST_SLOTS];
};
/* A bit for each. Any thread. */
uint32_t core_mcast_cores(const struct core_mcast_map *map, const struct gid *group);

/* What the outside does for the core: the few system calls that the slow path and events need. host.c has some: memory of this process and socket pairs. */
struct core_hooks {
	/* A region that both engine and client can map, zeroed, page aligned; *fd its memfd or -1. 0 or a negative errno. */
	int (*region_new)(void *arg, uint64_t bytes, void **base, int *fd);
	void (*region_free)(void *arg, void *base, uint64_t bytes, int fd);
	/* For events: what is written at one end comes out at the other, a record by each read. The reading end is the client's; nothing that it does there holds up the writing end. */
	int (*channel_new)(void *arg, int *read_fd, int *write_fd);
	void (*channel_free)(void *arg, int read_fd, int write_fd);
	/* Puts one record into it, whole. 0; -EAGAIN: full; -EPIPE: the reading end takes no more, ever. */
	int (*channel_write)(void *arg, int write_fd, const void *record, uint32_t len);
	void *arg;
};
extern const struct core_hooks core_host_hooks;

struct core_config {
	char name[ABI_NAME_MAX];
	uint8_t mode;             /* as in struct abi_device */
	struct addr_config addr;
	uint32_t core_index;      /* in the low CORE_INDEX_BITS bits of each QPN */
	uint32_t cores;           /* of this engine; 0: 1 */
	bool is_grown_outside;    /* a request that needs a new region is answered -ENOBUFS, see core_client_grow; else the core makes it at once */
	uint32_t max_frame;       /* bytes of the largest frame the port carries, without FCS */
	uint32_t max_qp, max_cq, max_srq, max_ah, max_mr, max_mw; /* 0: 65536 each; MRs and MWs at most 2^20 together */
	uint32_t max_groups, max_group_qps; /* multicast groups, and QPs in one of them; 0: 1024, 240 */
	struct core_mcast_map *mcast_map; /* shared by the cores of an engine; NULL: it has one */
	/* A multicast group has its first member on this core (is_joined; a negative errno: it is not to be) or has lost its last. Driving thread. NULL: addr reports it, and nobody else need know. */
	int (*on_group)(void *arg, const struct gid *group, bool is_joined);
	void *on_group_arg;
	uint32_t window_packets;  /* most unacknowledged packets of a QP in flight; 0: 256 */
	uint64_t seed;            /* 0: unpredictable; else everything random in the core follows from it (tests) */
	const struct log *log;
	const struct core_hooks *hooks; /* NULL: core_host_hooks */
};
#define CORE_INDEX_BITS 4u

/* 0; -EINVAL with a log line: max_frame cannot carry a path MTU of 256, or more cores than CORE_INDEX_BITS can number; -ENOMEM. */
int core_new(struct core **out, const struct core_config *config, uint64_t now_ns);
void core_free(struct core *c);
struct addr *core_addr(struct core *c);

/* ---- data path ---- */
/* Takes n frames, in order; the buffers are the caller's again afterwards. */
void core_rx(struct core *c, uint64_t now_ns, const struct core_frame *frames, unsigned n);
/* Packets to ourselves, timers. Behind core_rx: no timer must fire for want of a packet that has come. */
void core_run(struct core *c, uint64_t now_ns);
/* For who has been away: as long as there may be more packets that came meanwhile. */
void core_run_without_timers(struct core *c, uint64_t now_ns);
/* Looks at the doorbells. Whether there is anything to send: so a driver that reads its clock seldom knows when to. */
bool core_scan(struct core *c);
/* To be sent, or to ourselves. */
bool core_has_packets(const struct core *c);
/* Fills up to n frames (each with room for CORE_FRAME_MAX or the port's max_frame, whichever is less) and returns how many. Fewer than n: nothing more to send now. */
unsigned core_tx(struct core *c, uint64_t now_ns, struct core_frame *frames, unsigned n);
/* When core_run has to be called at the latest: now_ns or less when there is work at once, WHEEL_NEVER when only a packet or a doorbell can bring some. */
uint64_t core_next(const struct core *c);
/* Going to sleep: set before the last look at the doorbells, clear after waking; clients then call the wake-up of their session after ringing. */
void core_set_sleeping(struct core *c, bool sleeping);
/* Whether the port has a link, as far as is known: its clients are told of each change. At first it is taken to have one. Driving thread. */
void core_set_port_up(struct core *c, uint64_t now_ns, bool is_up);

/* ---- clients and control ----
 * A client is made and at last freed by any thread, one at a time; between core_client_attach and core_client_detach it belongs to the thread that drives the core. */
/* Makes the first region and the event channel (system calls). 0 or a negative errno. */
int core_client_new(struct core *c, struct core_client **out);
/* From now on its doorbells are looked at. Driving thread. */
void core_client_attach(struct core_client *k);
/* Who it is, for those who look at it (look.h) and for nothing else. Before it is attached. */
struct core_who {
	int64_t pid;
	uint32_t uid;
	char program[32];  /* terminated */
	uint64_t since_ns; /* by a clock of the introducer's */
};
void core_client_introduce(struct core_client *k, const struct core_who *who);
/* Its number among all clients that the engine has had: on core i of n, one of i + n, i + 2n and so on. 0: it was never attached. */
uint32_t core_client_id(const struct core_client *k);
/* Lets go of up to `budget` of its objects; true: all are gone, and nothing in the core knows the client any more. Flushes nothing: the client is gone. Driving thread. A client that was never attached is detached. */
bool core_client_detach(struct core_client *k, unsigned budget);
/* Unmaps its regions and closes its channels (system calls). A client that is still attached is detached first, and this is then for the driving thread. */
void core_client_free(struct core_client *k);
/* Carries out one request; always fills rep. Driving thread. With is_grown_outside, status -ENOBUFS can mean that nothing was done and a new region is needed first: core_client_grow tells. */
void core_control(struct core_client *k, uint64_t now_ns, const struct abi_req *req, struct abi_rep *rep);
/* Makes the region that the last request lacked (system calls). By the one thread that has this client's requests carried out, while none is. 0 and its number: the request may be repeated; -ENOENT: it did not fail for that; or another negative errno. */
int core_client_grow(struct core_client *k, uint32_t *arena);
/* The same in two steps, for who makes the region in the background: how many bytes the region must have (0: the request did not fail for that, or there are too many), and taking it over, which region_free of the hooks ends. 0 and its number, or -ENOMEM: it stays the caller's. */
uint64_t core_client_lacks(const struct core_client *k);
int core_client_add_region(struct core_client *k, void *base, uint64_t bytes, int fd, uint32_t *arena);
/* Region behind an arena number of this client: *base is the core's mapping. -ENOENT. Arena 0 holds struct abi_engine_page at offset 0 and struct abi_doorbells at 4096. */
int core_client_region(const struct core_client *k, uint32_t arena, void **base, uint64_t *bytes, int *fd);
/* The region's fd has been closed by the caller; the mapping stays. */
void core_client_forget_fd(struct core_client *k, uint32_t arena);
/* Reading end of the channel of the client's asynchronous events. */
int core_client_async_fd(const struct core_client *k);
/* The same for a completion channel by its handle; -ENOENT. Driving thread. */
int core_client_channel_fd(const struct core_client *k, uint32_t channel);
/* Every later request is refused with -ENODEV and the client's page says so: the engine ends, or the client was thrown out. Driving thread, or before or after any. */
void core_client_mark_dead(struct core_client *k);

void core_client_usage(const struct core_client *k, struct core_usage *u);
/* A request that would go beyond it is refused with -EDQUOT. Until the first call nothing is limited but by the core itself. Driving thread. */
void core_client_set_quota(struct core_client *k, const struct core_usage *most);

/* ---- counters ---- */
struct core_stats {
	uint64_t rx_packets, tx_packets, rx_bytes, tx_bytes;
	uint64_t loopback_packets;
	uint64_t group_queries, group_reports; /* IGMP and MLD: queries taken, frames with reports sent */
	uint64_t group_copies, group_copies_dropped; /* of multicast datagrams, one for each member: delivered, and refused by the QP */
	uint64_t wqes, cqes, events;
	uint64_t doorbells;
	/* what was refused, and what came of it */
	uint64_t bad_wqes;         /* opcode, SGEs or length that cannot be */
	uint64_t bad_indices;      /* looks at an SQ or RQ whose index cannot be */
	uint64_t bad_doorbells;    /* rung numbers that no QP has */
	uint64_t cq_overruns;      /* a CQ index that cannot be is one */
	uint64_t lost_events;      /* asynchronous ones for which there was no room any more, and any whose client had closed its end */
	uint64_t refused_requests;
	uint32_t qps, cqs, mrs, mws, clients;
	uint64_t qp_bytes;      /* engine-side memory of all QPs, without rings */
	uint64_t raised[ABI_EVENT_TYPES]; /* asynchronous events by type, the lost ones too; one of the device counts for each client */
};
/* For people; NULL: the core raises none of this type. */
const char *core_event_name(unsigned type);
/* What a client is told of its device. Driving thread, or before or after any. */
void core_describe(const struct core *c, struct abi_device *d);
const struct drop_counters *core_drops(const struct core *c);
/* Costs the same however many objects there are. Driving thread. */
void core_stats(const struct core *c, struct core_stats *s);
/* What all QPs that there are or were have counted of what is out of the ordinary, by enum qp_counter: those that count every packet or WR are 0. Driving thread. */
const uint64_t *core_qp_counters(const struct core *c);
/* A frame that the core has accepted, dropped or built. */
struct core_seen {
	uint64_t now_ns;
	const uint8_t *frame;
	uint32_t len;
	bool is_tx;
	enum drop why;     /* rx: DROP_NONE: accepted */
	uint32_t qpn;      /* of our QP that it came to or from; 0: it is of none */
	uint8_t qp_state;  /* enum abi_qp_state, after it */
};
/* Called with each of them; NULL: off. For captures and tests. Driving thread. */
void core_set_tap(struct core *c, void (*tap)(void *arg, const struct core_seen *seen), void *arg);

#endif
