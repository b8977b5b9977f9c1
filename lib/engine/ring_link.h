/* SPDX-License-Identifier: BSD-3-Clause */
/* In-process pairs of net_ring ports, by name: what side 0 sends side 1 receives, and the other way. Both sides share one mbuf pool, since the ring driver hands the very same mbuf over. */
#ifndef UROCE_RING_LINK_H
#define UROCE_RING_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "log.h"

struct ring_link;
struct rte_mempool;

#define RING_LINK_SLOTS 1024u

/* Takes a side of the link, which is made if no such link exists. queues: RX and TX, in pairs. slots 0: as the other side made it, or the default. room: bytes of frame data in each mbuf.
 * 0; -EBUSY (side taken), -EINVAL (other number of queues or slots), -ENOMEM, each with a log line. *port_id: an ethdev port, not configured yet. */
int ring_link_join(const char *name, unsigned side, unsigned queues, uint32_t slots, uint32_t room, const struct log *log, struct ring_link **out, uint16_t *port_id);
/* Gives the side back after its port was closed; frames in flight towards it are lost. The link goes with its last side. */
void ring_link_leave(struct ring_link *l, unsigned side);
/* Whether that side is taken now. Any thread. */
bool ring_link_has_side(const struct ring_link *l, unsigned side);
struct rte_mempool *ring_link_pool(const struct ring_link *l);
uint32_t ring_link_slots(const struct ring_link *l);

#endif
