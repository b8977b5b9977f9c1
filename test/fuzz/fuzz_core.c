/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the regions of ring memory from run to run: making 2 MiB anew takes longer than a run. What is cut from a region is cleared by the core, so that a run does not see what the one before left. */
#include "fuzz_core.h"

#include <stdlib.h>

#include "direct_hooks.h"

#define KEPT_BYTES (2u << 20)
#define KEPT_MAX 4u

static uint8_t *kept[KEPT_MAX];
static unsigned kept_n;

static int region_new(void *arg, uint64_t bytes, void **base, int *fd)
{
	if (bytes != KEPT_BYTES || !kept_n)
		return direct_hooks.region_new(arg, bytes, base, fd);
	*base = kept[--kept_n];
	*fd = -1;
	return 0;
}

static void region_free(void *arg, void *base, uint64_t bytes, int fd)
{
	if (bytes == KEPT_BYTES && kept_n < KEPT_MAX)
		kept[kept_n++] = base;
	else
		direct_hooks.region_free(arg, base, bytes, fd);
}

struct core *fuzz_core_new(uint32_t window_packets, uint64_t now_ns)
{
	static struct core_hooks hooks;
	struct core_config c = {
		.name = "fuzz", .addr = { .mode = ADDR_OWN, .mac = { 2, 0, 0, 0, 0, 1 } }, .max_frame = 4300, .max_qp = 32, .max_cq = 32, .max_mr = 64, .window_packets = window_packets, .seed = 1, .hooks = &hooks,
	};
	struct core *core;
	struct gid own;
	uint32_t index;
	hooks = direct_hooks;
	hooks.region_new = region_new;
	hooks.region_free = region_free;
	if (gid_parse("10.0.0.1", &own) || core_new(&core, &c, now_ns) || addr_gid_add(core_addr(core), &own, VLAN_NONE, 24, &index))
		abort();
	return core;
}
