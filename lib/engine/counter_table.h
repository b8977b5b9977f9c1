/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters of a port, by the names that users of rdma-core know from /sys/class/infiniband/DEVICE/ports/1/hw_counters and ethtool -S where those have one of the same meaning: the one list for every program that shows them. */
#ifndef UROCE_COUNTER_TABLE_H
#define UROCE_COUNTER_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine_look.h"

/* The i-th one; false beyond the last. Names stay, new ones come in any place. text: one sentence. */
bool counter_describe(unsigned i, const char **name, const char **text);
/* Its value in what was looked at. The counter of a port is the sum over its cores. */
uint64_t counter_value(unsigned i, const struct engine_look *look);

#endif
