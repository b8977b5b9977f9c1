/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: each call is a letter to the driving thread, which copies what is asked for. */
#include "engine_look.h"

#include <string.h>

struct look_mail {
	struct mail mail;
	struct engine_core *ec;
	struct engine_look *look;
	struct addr_neighbour *list;
	uint32_t room, count;
};

static void run_look(struct mail *mail, uint64_t now_ns)
{
	struct look_mail *m = (struct look_mail *)mail;
	const struct core *core = engine_core_stack(m->ec);
	core_stats(core, &m->look->core);
	m->look->drops = *core_drops(core);
	engine_core_stats(m->ec, &m->look->loop);
	memcpy(m->look->qp, core_qp_counters(core), sizeof(m->look->qp));
}

void engine_look(struct engine_core *ec, struct engine_look *look)
{
	struct look_mail m = { .mail.run = run_look, .ec = ec, .look = look };
	engine_carry_out(ec, &m.mail);
}

static void run_neighbours(struct mail *mail, uint64_t now_ns)
{
	struct look_mail *m = (struct look_mail *)mail;
	m->count = addr_neighbours(core_addr(engine_core_stack(m->ec)), m->list, m->room);
}

uint32_t engine_neighbours(struct engine_core *ec, struct addr_neighbour *list, uint32_t room)
{
	struct look_mail m = { .mail.run = run_neighbours, .ec = ec, .list = list, .room = room };
	engine_carry_out(ec, &m.mail);
	return m.count;
}
