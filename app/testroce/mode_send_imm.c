/* SPDX-License-Identifier: BSD-3-Clause */
/* SEND with immediate: four more bytes, which appear in the server's WC. */
#include "one_way.h"

const struct mode mode_send_imm = {
	.name = "send-imm", .help = "SEND with an immediate, the number of the message", .service = UROCE_RC, .opcode = UROCE_OP_SEND_WITH_IMM, .is_receiving = true,
	.client = { .step = one_way_step, .on_sent = one_way_on_sent },
	.server = { .begin = end_receive_all, .on_received = one_way_on_received },
};
