/* SPDX-License-Identifier: BSD-3-Clause */
/* Two sides in two processes that do every operation to each other at the same time, and look at every byte. */
#ifndef UROCE_TEST_OPERATIONS_H
#define UROCE_TEST_OPERATIONS_H

#include <stdint.h>

#include "side.h"

/* Connects s, whose process is number `me` of the two, with the side at the other end of fd, and does each operation with messages of 1 byte, around the path MTU, and of `most` bytes (up to SIDE_BYTES / 4). The
 * sides are embedded: an inline one would not be driven while it waits at fd. The other one's card. */
struct side_card operations_run(struct side *s, int fd, unsigned me, uint32_t path_mtu, uint32_t most);
/* A new QP in place of s's, to be connected anew. */
void operations_renew(struct side *s);
/* The largest frame that a capture has, of those sent or of those received and not dropped. */
uint32_t operations_largest_frame(const char *capture, bool is_tx);

#endif
