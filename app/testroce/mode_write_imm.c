/* SPDX-License-Identifier: BSD-3-Clause */
/* WRITE with immediate: the client says where the bytes go, and the server learns of it by a WC. A message may be overwritten only when the server has looked at it: the receives that it posts again afterwards are what lets a later one
 * through, and there are fewer of them than slots. */
#include "one_way.h"

static int post_receives(struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++)
		for (uint32_t slot = 0; slot < e->recv_depth; slot++)
			if (end_receive_nothing(e, &e->lane[i], slot))
				return -1;
	return 0;
}

const struct mode mode_write_imm = {
	.name = "write-imm", .help = "WRITE with an immediate, which takes a receive", .service = UROCE_RC, .opcode = UROCE_OP_WRITE_WITH_IMM, .is_receiving = true,
	.client = { .step = one_way_step, .on_sent = one_way_on_sent },
	.server = { .begin = post_receives, .on_received = one_way_on_received },
};
