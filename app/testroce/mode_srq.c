/* SPDX-License-Identifier: BSD-3-Clause */
/* SENDs of several QPs into one shared receive queue: a message takes the next receive, whichever QP it comes by. */
#include "one_way.h"

const struct mode mode_srq = {
	.name = "srq", .help = "SENDs of several QPs into one shared receive queue", .service = UROCE_RC, .opcode = UROCE_OP_SEND_WITH_IMM, .is_receiving = true, .has_srq = true, .least_qps = 4,
	.client = { .step = one_way_step, .on_sent = one_way_on_sent },
	.server = { .begin = end_receive_all, .on_received = one_way_on_received },
};
