/* SPDX-License-Identifier: BSD-3-Clause */
/* SEND: the server says where messages land, by receives; the client does not know. */
#include "one_way.h"

const struct mode mode_send = {
	.name = "send", .help = "SEND into receives of the server", .service = UROCE_RC, .opcode = UROCE_OP_SEND, .is_receiving = true,
	.client = { .step = one_way_step, .on_sent = one_way_on_sent },
	.server = { .begin = end_receive_all, .on_received = one_way_on_received },
};
