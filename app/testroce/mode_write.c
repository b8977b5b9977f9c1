/* SPDX-License-Identifier: BSD-3-Clause */
/* WRITE: the client says where the bytes go, and the server's program takes no part. To be verified a message is READ back by the next WR, which sees it since both are executed in order. */
#include <string.h>

#include "one_way.h"

int write_step(struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++) {
		struct lane *l = &e->lane[i];
		while (end_has_room(e, l)) {
			uint32_t slot = (uint32_t)(l->posted % e->config.depth);
			struct uroce_sge sge = { (uintptr_t)end_out(e, l, slot), (uint32_t)e->config.size, uroce_mr_lkey(l->home->mr) };
			struct uroce_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_WRITE, .remote_addr = end_remote(e, l, slot), .rkey = e->remote_rkey };
			end_fill(e, l, l->posted, end_out(e, l, slot), e->config.size);
			l->posted++;
			if (end_send(e, l, slot, &wr))
				return -1;
			if (!e->config.is_verified)
				continue;
			sge.addr = (uintptr_t)end_in(e, l, slot);
			wr.opcode = UROCE_OP_READ;
			if (end_send(e, l, slot, &wr))
				return -1;
		}
	}
	return 0;
}

int write_on_sent(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	if (!e->config.is_verified) {
		end_done(e, l, e->config.size);
		return 0;
	}
	if (wc->opcode != UROCE_WC_READ)
		return 0;
	if (end_check(e, l, l->done, end_in(e, l, slot), e->config.size) || end_check_guard(e, l, end_in(e, l, slot), e->config.size))
		return -1;
	end_done(e, l, e->config.size);
	return 0;
}

const struct mode mode_write = {
	.name = "write", .help = "WRITE into the server's memory, READ back to be verified", .service = UROCE_RC, .opcode = UROCE_OP_WRITE, .wrs = 2,
	.client = { .step = write_step, .on_sent = write_on_sent },
};
