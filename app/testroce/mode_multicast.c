/* SPDX-License-Identifier: BSD-3-Clause */
/* UD to a group: one QP of the client's sends, and each QP of the server's gets a copy of its own. What others send to the group is passed over. */
#include "one_way.h"

static int step(struct end *e)
{
	return one_way_step_lane(e, &e->lane[0]);
}

static int on_received(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	if (wc->src_qpn != e->lane[0].remote.qpn)
		return end_receive_again(e, wc);
	return one_way_on_received_some(e, l, slot, wc);
}

const struct mode mode_multicast = {
	.name = "multicast", .help = "datagrams of one QP to a group that all QPs of the server are in", .service = UROCE_UD, .opcode = UROCE_OP_SEND_WITH_IMM, .is_receiving = true, .may_lose = true, .is_multicast = true, .least_qps = 4,
	.client = { .step = step, .on_sent = one_way_on_sent },
	.server = { .begin = end_receive_all, .on_received = on_received },
};
