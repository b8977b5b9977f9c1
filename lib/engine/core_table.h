/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of one core of an engine: what it has, what its loop counts, and what belongs to no counter of the port (counter_table.h has those). One list for every program that shows them. */
#ifndef UROCE_CORE_TABLE_H
#define UROCE_CORE_TABLE_H

#include <stdint.h>

#include "engine_look.h"

/* Of the i-th one; NULL beyond the last. Names stay, new ones come in any place. */
const char *core_table_name(unsigned i);
uint64_t core_table_value(unsigned i, const struct engine_look *look);

#endif
