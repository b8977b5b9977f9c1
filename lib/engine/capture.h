/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the frames that a core takes or builds to a pcapng file, each with a comment: which way, of which QP in which state, and why it was dropped if it was. */
#ifndef UROCE_CAPTURE_H
#define UROCE_CAPTURE_H

#include <stdint.h>

#include "core.h"
#include "log.h"

struct capture;

/* Makes the file, or truncates it; any thread. qpn: frames of this QP only; 0: all. log: for what goes wrong later. 0 or a negative errno. */
int capture_open(struct capture **out, const char *path, const char *interface, uint32_t qpn, const struct log *log);
/* From now on the core's frames go there: one capture at a time. now_ns: the engine's clock now, so that times in the file are those of the day. Driving thread, or before there is one. */
void capture_begin(struct capture *c, struct core *core, uint64_t now_ns);
/* No more. The same threads. */
void capture_end(struct capture *c);
void capture_flush(struct capture *c);
/* Frames written so far, and whether writing has failed. */
uint64_t capture_frames(const struct capture *c);
bool capture_has_failed(const struct capture *c);
/* Ended, or never begun. NULL is fine. Any thread. */
void capture_close(struct capture *c);

#endif
