/* SPDX-License-Identifier: BSD-3-Clause */
/* One round of the engine, and what to do when a round found nothing. Driven by one thread at a time: the poll core, or in inline mode whoever took the ownership. */
#ifndef UROCE_POLLER_H
#define UROCE_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "core.h"
#include "device_string.h"
#include "engine_stats.h"
#include "mailbox.h"
#include "port.h"
#include "wakeup.h"

#define POLLER_BURST 32u
#define POLLER_TICK_NS 1000000u

struct handover;
struct rte_mbuf;

struct poller_config {
	struct core *core;
	const struct port *port;
	uint16_t queue;                    /* RX and TX, of the port */
	unsigned index, cores;             /* which of how many cores this is */
	struct handover *handover;         /* between them; NULL: it is the only one */
	const struct core_mcast_map *mcast_map; /* and which of them have members of a group */
	struct mailbox *mailbox;
	enum device_idle idle;
	uint32_t sleep_us;
	struct wakeup *wakeup;
	struct clock clock;
	void (*on_tick)(void *arg, uint64_t now_ns); /* about every POLLER_TICK_NS */
	void *arg;
};

struct poller {
	struct poller_config config;
	uint64_t now_ns, last_work_ns, tick_at_ns, start_ns, taken_ns;
	unsigned since_stamp; /* rounds and frames since the clock was read */
	unsigned late_rounds; /* to come, without timers: the driver was away */
	bool has_slept;
	/* Frames being sent: [0, sent) are gone and have no mbuf, [sent, built) wait for room in the port, [built, BURST) are empty mbufs. */
	unsigned sent, built;
	struct rte_mbuf *tx[POLLER_BURST];
	struct core_frame tx_frame[POLLER_BURST];
	struct engine_stats stats;
};

int poller_start(struct poller *p, const struct poller_config *config);
/* Gives the prepared mbufs back. */
void poller_stop(struct poller *p);
/* Frames received and sent, and mail served. */
unsigned poller_round(struct poller *p);
/* After a round that answered 0, on a thread that has nothing else to do. */
void poller_idle(struct poller *p);

#endif
