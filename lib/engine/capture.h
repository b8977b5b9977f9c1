/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the frames that a core takes or builds to a pcapng file, each with a comment: which way, of which QP in which state, and why it was dropped if it was. */
#ifndef UROCE_CAPTURE_H
#define UROCE_CAPTURE_H

#include <stdint.h>

#include "core.h"
#include "log.h"

struct capture;

/* Makes the file, or truncates it. The descriptor, or a negative errno. Any thread. */
int capture_create(const char *path);
/* Whether a file of somebody else's is one that a core may write to: an ordinary file, open for writing, in a local file system; a pipe, a network or a user's file system could hold the core up for as long as it likes. NULL: it is; else what was expected. */
const char *capture_check_file(int fd);
/* Captures into fd, which stays the caller's; any thread. qpn: frames of this QP only; 0: all. log: for what goes wrong later. Several captures may share an open file: each writes whole blocks; `interface` names the port in the file's head, and is
 * NULL for all but the first. 0 or a negative errno. */
int capture_open(struct capture **out, int fd, const char *interface, uint32_t qpn, const struct log *log);
/* From now on the core's frames go there: one capture at a time. now_ns: the engine's clock now, so that times in the file are those of the day. Driving thread, or before there is one. */
void capture_begin(struct capture *c, struct core *core, uint64_t now_ns);
/* No more. The same threads. */
void capture_end(struct capture *c);
/* What it holds goes to the file; if it does not, the capture has ended. The same threads, or afterwards any. */
void capture_flush(struct capture *c);
/* Frames written so far, and whether writing has failed. */
uint64_t capture_frames(const struct capture *c);
bool capture_has_failed(const struct capture *c);
/* Ended, or never begun. NULL is fine. Any thread. */
void capture_close(struct capture *c);

#endif
