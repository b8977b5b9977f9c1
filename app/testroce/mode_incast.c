/* SPDX-License-Identifier: BSD-3-Clause */
/* Many clients WRITE to one server at once, each over a context of its own: what the engine shares out among them is seen by how much each has done. */
#include "one_way.h"

const struct mode mode_incast = {
	.name = "incast", .help = "WRITEs of many clients to one server at once", .service = UROCE_RC, .opcode = UROCE_OP_WRITE, .wrs = 2, .has_many_clients = true, .least_qps = 8,
	.client = { .step = write_step, .on_sent = write_on_sent },
};
