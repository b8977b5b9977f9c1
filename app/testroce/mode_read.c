/* SPDX-License-Identifier: BSD-3-Clause */
/* READ: the client fetches what is in the server's memory, which is there from the beginning. */
#include <string.h>

#include "one_way.h"

static int fill_memory(struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++)
		for (uint32_t slot = 0; slot < e->slots_in; slot++)
			end_fill(e, &e->lane[i], slot, end_in(e, &e->lane[i], slot), e->config.size);
	return 0;
}

static int step(struct end *e)
{
	for (uint32_t i = 0; i < e->config.qps; i++) {
		struct lane *l = &e->lane[i];
		while (end_has_room(e, l)) {
			uint32_t slot = (uint32_t)(l->posted % e->config.depth);
			struct uroce_sge sge = { (uintptr_t)end_in(e, l, slot), (uint32_t)e->config.size, uroce_mr_lkey(l->home->mr) };
			struct uroce_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = UROCE_OP_READ, .remote_addr = end_remote(e, l, (uint32_t)(l->posted % e->slots_in)), .rkey = e->remote_rkey };
			if (e->config.is_verified)
				memset(end_in(e, l, slot), 0, e->config.size);
			l->posted++;
			if (end_send(e, l, slot, &wr))
				return -1;
		}
	}
	return 0;
}

static int on_sent(struct end *e, struct lane *l, uint32_t slot, const struct uroce_wc *wc)
{
	const uint8_t *data = end_in(e, l, slot);
	if (wc->byte_len != e->config.size)
		return end_fail(e, "WRONG DATA: QP 0x%x: a READ of %u bytes instead of %llu", wc->qpn, wc->byte_len, (unsigned long long)e->config.size);
	if (end_check(e, l, l->done % e->slots_in, data, e->config.size) || end_check_guard(e, l, data, e->config.size))
		return -1;
	end_done(e, l, e->config.size);
	return 0;
}

const struct mode mode_read = {
	.name = "read", .help = "READ from the server's memory", .service = UROCE_RC, .opcode = UROCE_OP_READ,
	.client = { .step = step, .on_sent = on_sent },
	.server = { .begin = fill_memory },
};
