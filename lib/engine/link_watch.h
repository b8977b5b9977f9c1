/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a kernel interface is up and has a carrier, as rtnetlink tells it. */
#ifndef UROCE_LINK_WATCH_H
#define UROCE_LINK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct link_watch;

/* 0 or a negative errno. */
int link_watch_open(struct link_watch **out, uint32_t interface_index);
/* Takes what has been told; does not block. One thread at a time. */
bool link_watch_is_up(struct link_watch *w);
/* NULL is fine. */
void link_watch_close(struct link_watch *w);

#endif
