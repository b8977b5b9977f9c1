/* SPDX-License-Identifier: BSD-3-Clause */
/* What TCP and UDP have in common. */
#ifndef COMPARE_SOCKETS_H
#define COMPARE_SOCKETS_H

#include <sys/types.h>

#include "link.h"

#define SOCKETS_PATIENCE_MS 100u /* of a call that sleeps */

/* One call, repeated when a signal broke it off: bytes; 0: no room, or nothing there; negative: link_fail, or the peer has closed. */
ssize_t sockets_send(struct link *l, const uint8_t *data, size_t len);
ssize_t sockets_receive(struct link *l, uint8_t *data, size_t len);
/* Memory, and that calls do not sleep for longer than the patience. */
int sockets_prepare(struct link *l, size_t in_bytes);
void sockets_close(struct link *l);

#endif
