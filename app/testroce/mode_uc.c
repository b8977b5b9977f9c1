/* SPDX-License-Identifier: BSD-3-Clause */
/* UC: SENDs that nobody acknowledges. A message comes whole and in order, or not at all; what is missing is counted. */
#include "one_way.h"

const struct mode mode_uc = {
	.name = "uc", .help = "SEND with immediate over UC: what is lost is counted", .service = UROCE_UC, .opcode = UROCE_OP_SEND_WITH_IMM, .is_receiving = true, .may_lose = true,
	.client = { .step = one_way_step, .on_sent = one_way_on_sent },
	.server = { .begin = end_receive_all, .on_received = one_way_on_received_some },
};
