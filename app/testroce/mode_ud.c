/* SPDX-License-Identifier: BSD-3-Clause */
/* UD: datagrams, each to an address handle. They may be lost, come late, or twice. */
#include "one_way.h"

const struct mode mode_ud = {
	.name = "ud", .help = "datagrams over UD: what is lost or late is counted", .service = UROCE_UD, .opcode = UROCE_OP_SEND_WITH_IMM, .is_receiving = true, .may_lose = true,
	.client = { .step = one_way_step, .on_sent = one_way_on_sent },
	.server = { .begin = end_receive_all, .on_received = one_way_on_received_some },
};
