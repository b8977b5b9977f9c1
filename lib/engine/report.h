/* SPDX-License-Identifier: BSD-3-Clause */
/* What a running engine shows of itself to an operator, as JSON: one function for the daemon's operators, DPDK's telemetry and tests. Each noun is an array of flat objects, whose values are texts, whole numbers, truth values, or null where there
 * is none. Keys are only ever added; counters have the names of counter_table.h.
 *
 *   device  one row: name, mode, mac, interface (null: none of the kernel's), node (of NUMA, null: none in particular), cores, path_mtu, max_frame, gid_slots, most of each kind of object of a core (max_qp, max_cq, ...)
 *   port    one row: name, state (up, down), interface, rx_missed, rx_errors, rx_no_mbuf, tx_errors (of the driver), tx_dropped, rx_unusable, handed_over_dropped (core_table.h), then every counter of counter_table.h, each the sum over the cores
 *   gid     index, gid, vlan (null: untagged), kind (ip4, ip6, link-local)
 *   neigh   gid, vlan, mac (null: not known), state, static, users, core; each core knows its own
 *   client  id, pid, uid, program, core, age_ns, what it has (usage.h: pds, qps, ... pool_bytes) and the most it may have (max_pds, ...; null: no quota), then the counters of its QPs, the sum over those that are and those that were
 *   qp      qpn, client, core, service, state, peer_gid, peer_qpn (null: none), path_mtu, srtt_ns, rttvar_ns, rto_ns (0: none, as yet), window_packets, in_flight_packets, sq_size, sq_used, rq_size, rq_used, srq (whether its receives come
 *           from one), send_cq, recv_cq, last_error (null, or a sentence), then the counters of a QP
 *   cq      id, client, core, entries, used, overrun, armed (no, solicited, any), channel, qps
 *   mr      key (the upper 24 bits of lkey and rkey, which name it; the lower 8 are nobody's business; 0: a window that is bound to nothing), client, core, kind (pool, direct, fast, mw1, mw2), iova, length, access, pd, bound (windows that are bound to it)
 *   drops   name, text, count, core0, core1, ... ; a row for each reason
 *   cores   core, the numbers of core_table.h, busy_percent of the rounds since the start, mbufs_available and mbufs_in_use of the pool that all cores share, then every counter of
 *           counter_table.h, this core's share of the port's
 *
 * Clients, and what they have, come by their cores, and of a core the last client to come first. */
#ifndef UROCE_REPORT_H
#define UROCE_REPORT_H

#include <jansson.h>

struct engine;

enum report_noun { REPORT_DEVICE, REPORT_PORT, REPORT_GID, REPORT_NEIGH, REPORT_CLIENT, REPORT_QP, REPORT_CQ, REPORT_MR, REPORT_DROPS, REPORT_CORES, REPORT_NOUNS };

/* "device", "port" and so on, as above; NULL: there is no such noun. */
const char *report_noun_name(enum report_noun noun);
/* The caller's to json_decref. NULL with errno ENOMEM, or EINVAL: there is no such noun. Any thread but those that drive the engine, while it is held open (engine_open).
 *
 * What belongs to a core is copied by the thread that drives it, 64 objects between two of its rounds at most (look.h), which takes some microseconds: a row is of one moment, and rows of different pieces of different ones. An object that comes or goes
 * meanwhile may be missing; none comes twice. */
json_t *report(struct engine *e, enum report_noun noun);

#endif
