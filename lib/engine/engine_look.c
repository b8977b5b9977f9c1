/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: each call is a letter to the driving thread, which copies what is asked for. */
#include "engine_look.h"

#include <string.h>

#define NEIGHBOURS_A_LETTER 64u

struct look_mail {
	struct mail mail;
	struct engine_core *ec;
	union {
		struct engine_look *look;
		struct abi_device *device;
		struct look_row *rows;
		struct addr_neighbour *neighbours;
		struct engine_gid *gids;
	};
	uint32_t from, room, count;
	enum look_kind kind;
	struct look_place *at;
};

static void carry_out(struct look_mail *m, void (*run)(struct mail *mail, uint64_t now_ns))
{
	m->mail.run = run;
	engine_carry_out(m->ec, &m->mail);
}

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
	struct look_mail m = { .ec = ec, .look = look };
	carry_out(&m, run_look);
}

static void run_neighbours(struct mail *mail, uint64_t now_ns)
{
	struct look_mail *m = (struct look_mail *)mail;
	m->count = addr_neighbours(core_addr(engine_core_stack(m->ec)), m->from, m->neighbours, m->room);
}

uint32_t engine_neighbours(struct engine_core *ec, struct addr_neighbour *list, uint32_t room)
{
	struct look_mail m = { .ec = ec };
	do {
		m.neighbours = list + m.from;
		m.room = room - m.from < NEIGHBOURS_A_LETTER ? room - m.from : NEIGHBOURS_A_LETTER;
		carry_out(&m, run_neighbours);
		m.from += m.room;
	} while (m.from < room && m.from < m.count);
	return m.count;
}

static void run_gids(struct mail *mail, uint64_t now_ns)
{
	struct look_mail *m = (struct look_mail *)mail;
	const struct addr *a = core_addr(engine_core_stack(m->ec));
	struct engine_gid g;
	for (g.index = 0; g.index < addr_gid_slots(a); g.index++) {
		if (!addr_gid_get(a, g.index, &g.gid, &g.vlan))
			continue;
		if (m->count < m->room)
			m->gids[m->count] = g;
		m->count++;
	}
}

uint32_t engine_gids(struct engine *e, struct engine_gid *list, uint32_t room)
{
	struct look_mail m = { .ec = engine_core_at(e, 0), .gids = list, .room = room };
	carry_out(&m, run_gids);
	return m.count;
}

static void run_describe(struct mail *mail, uint64_t now_ns)
{
	struct look_mail *m = (struct look_mail *)mail;
	core_describe(engine_core_stack(m->ec), m->device);
}

void engine_describe(struct engine *e, struct abi_device *device)
{
	struct look_mail m = { .ec = engine_core_at(e, 0), .device = device };
	carry_out(&m, run_describe);
}

static void run_objects(struct mail *mail, uint64_t now_ns)
{
	struct look_mail *m = (struct look_mail *)mail;
	m->count = core_look(engine_core_stack(m->ec), m->kind, m->at, m->rows);
}

unsigned engine_look_objects(struct engine_core *ec, enum look_kind kind, struct look_place *at, struct look_row rows[LOOK_OBJECTS])
{
	struct look_mail m = { .ec = ec, .kind = kind, .at = at, .rows = rows };
	carry_out(&m, run_objects);
	return m.count;
}
