/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the table, which is rdma-core's as of release 44. */
#include "program.h"

#include <stddef.h>

static const struct program programs[] = {
	{ "ibv_rc_pingpong", UROCE_RC, false, 4096, 1, 1 },
	{ "ibv_srq_pingpong", UROCE_RC, true, 4096, 16, 256 },
	{ "ibv_uc_pingpong", UROCE_UC, false, 4096, 1, 1 },
	{ "ibv_ud_pingpong", UROCE_UD, false, 1024, 1, 1 },
};

const struct program *program_find(enum uroce_service service, bool has_srq)
{
	for (unsigned i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (programs[i].service == service && programs[i].has_srq == has_srq)
			return &programs[i];
	return NULL;
}
