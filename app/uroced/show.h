/* SPDX-License-Identifier: BSD-3-Clause */
/* What the daemon says of itself when it has come up. */
#ifndef UROCED_SHOW_H
#define UROCED_SHOW_H

#include <stdio.h>

#include "engine.h"
#include "settings.h"

/* One block of lines: device, addresses, what a frame may carry, cores, socket, memory. The engine runs. */
void show_device(FILE *out, struct engine *e, const struct settings *s);

#endif
