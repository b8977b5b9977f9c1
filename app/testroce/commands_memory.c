/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands about memory: MRs with memory of their own, those that REG_MR gives memory to, windows, and what lies in them. What is posted to bind them is commands_wr.c's. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "lab.h"
#include "objects.h"

#define DUMP_BYTES 64u

/* ---- made ---- */

static int create_mr(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *pd = objects_get(&lab->objects, OBJECT_PD, v[0].number), *at = pd ? objects_place(&lab->objects, OBJECT_MR) : NULL;
	void *memory;
	if (!at)
		return -ENOENT;
	struct object o = { .port = pd->port, .ctx = pd->ctx, .of = (unsigned)v[0].number, .bytes = v[1].number };
	int err = uroce_alloc(pd->ctx, o.bytes, &memory);
	if (!err) {
		o.memory = memory;
		err = uroce_mr_register(pd->pd, memory, o.bytes, station_access(&lab->station[pd->port]), &o.mr);
		if (err)
			uroce_free(pd->ctx, memory);
	}
	return objects_put(&lab->objects, OBJECT_MR, at, &o, err);
}

static int alloc_mr(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *pd = objects_get(&lab->objects, OBJECT_PD, v[0].number), *at = pd ? objects_place(&lab->objects, OBJECT_MR) : NULL;
	if (!at)
		return -ENOENT;
	struct object o = { .port = pd->port, .ctx = pd->ctx, .of = (unsigned)v[0].number };
	int err = uroce_mr_alloc(pd->pd, &o.mr);
	o.key = err ? 0 : uroce_mr_rkey(o.mr);
	return objects_put(&lab->objects, OBJECT_MR, at, &o, err);
}

static int create_mw(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *pd = objects_get(&lab->objects, OBJECT_PD, v[0].number), *at = pd ? objects_place(&lab->objects, OBJECT_MW) : NULL;
	if (!at)
		return -ENOENT;
	struct object o = { .port = pd->port, .ctx = pd->ctx, .of = (unsigned)v[0].number, .type = given > 1 ? (uint32_t)v[1].number : UROCE_MW_TYPE_1 };
	int err = uroce_mw_create(pd->pd, (enum uroce_mw_type)o.type, &o.mw);
	o.key = err ? 0 : uroce_mw_rkey(o.mw);
	return objects_put(&lab->objects, OBJECT_MW, at, &o, err);
}

static int destroy_mr(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_destroy(&lab->objects, OBJECT_MR, v[0].number);
}

static int destroy_mw(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_destroy(&lab->objects, OBJECT_MW, v[0].number);
}

/* ---- looked at ---- */

static void show_mr(unsigned i, const struct object *o)
{
	printf("mr %u: port %u, pd %u, ", i, o->port, o->of);
	if (o->memory)
		printf("%zu bytes at 0x%" PRIxPTR ", lkey 0x%x, rkey 0x%x\n", o->bytes, (uintptr_t)o->memory, uroce_mr_lkey(o->mr), uroce_mr_rkey(o->mr));
	else
		printf("for REG_MR, last key 0x%x\n", o->key);
}

static void show_mw(unsigned i, const struct object *o)
{
	printf("mw %u: port %u, pd %u, type %u, rkey 0x%x\n", i, o->port, o->of, o->type, o->key);
}

static int show_mrs(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_show(&lab->objects, OBJECT_MR, show_mr, given ? &v[0].number : NULL);
}

static int show_mws(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_show(&lab->objects, OBJECT_MW, show_mw, given ? &v[0].number : NULL);
}

/* One that has memory of its own; NULL after a line on standard error. */
static struct object *find_memory(struct lab *lab, uint64_t number)
{
	struct object *mr = objects_get(&lab->objects, OBJECT_MR, number);
	if (!mr || mr->memory)
		return mr;
	lab_fail("mr %" PRIu64 " is for REG_MR: expected one of mr create, which has memory of its own", number);
	return NULL;
}

static int fill_mr(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *mr = find_memory(lab, v[0].number);
	if (!mr)
		return -ENOENT;
	memset(mr->memory, 0, mr->bytes);
	size_t len = strlen(v[1].text);
	memcpy(mr->memory, v[1].text, len < mr->bytes ? len : mr->bytes);
	return 0;
}

static void dump(const uint8_t *memory, size_t at, size_t n)
{
	printf("%04zx ", at);
	for (size_t i = 0; i < n; i++)
		printf(" %02x", memory[at + i]);
	printf("%*s", (int)(3 * (16 - n) + 2), "");
	for (size_t i = 0; i < n; i++)
		putchar(memory[at + i] >= 32 && memory[at + i] < 127 ? memory[at + i] : '.');
	putchar('\n');
}

static int dump_mr(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *mr = find_memory(lab, v[0].number);
	if (!mr)
		return -ENOENT;
	for (size_t at = 0; at < mr->bytes && at < DUMP_BYTES; at += 16)
		dump(mr->memory, at, mr->bytes - at < 16 ? mr->bytes - at : 16);
	return 0;
}

const struct command commands_memory[] = {
	{ "mr create <pd> <bytes>", create_mr, "memory, registered with every right" },
	{ "mr alloc <pd>", alloc_mr, "an MR without memory, which qp reg gives it" },
	{ "mr fill <mr> <text>", fill_mr, "put a word at its beginning, zeroes behind" },
	{ "mr dump <mr>", dump_mr, "its first bytes" },
	{ "mr destroy <mr>", destroy_mr, "" },
	{ "mw create <pd> [<type>]", create_mw, "a memory window of type 1 or 2, which qp bind binds" },
	{ "mw destroy <mw>", destroy_mw, "" },
	{ "show mr [<mr|all>]", show_mrs, "with address and keys" },
	{ "show mw [<mw|all>]", show_mws, "with the rkey that was bound last" },
	{ .pattern = NULL },
};
