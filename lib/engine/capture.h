/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes every frame that a core takes or builds to a pcapng file, with the reason if it was dropped. */
#ifndef UROCE_CAPTURE_H
#define UROCE_CAPTURE_H

#include <stdint.h>

#include "core.h"
#include "log.h"

struct capture;

/* Truncates the file. now_ns: the engine's clock now, so that times in the file are those of the day. 0, or a negative errno after one log line. */
int capture_open(struct capture **out, const char *path, const char *interface, struct core *core, uint64_t now_ns, const struct log *log);
void capture_flush(struct capture *c);
/* NULL is fine. Before core_free. */
void capture_close(struct capture *c);

#endif
