/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the objects. */
#include "objects.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lab.h"

static int destroy_pd(struct object *o)
{
	return uroce_pd_destroy(o->pd);
}

static int destroy_mr(struct object *o)
{
	int err = uroce_mr_deregister(o->mr);
	return err ? err : uroce_free(o->ctx, o->memory);
}

static int destroy_cq(struct object *o)
{
	return uroce_cq_destroy(o->cq);
}

static int destroy_srq(struct object *o)
{
	return uroce_srq_destroy(o->srq);
}

static int destroy_mw(struct object *o)
{
	return uroce_mw_destroy(o->mw);
}

static int destroy_ah(struct object *o)
{
	return uroce_ah_destroy(o->ah);
}

static int destroy_qp(struct object *o)
{
	return uroce_qp_destroy(o->qp);
}

static const struct {
	const char *name;
	int (*destroy)(struct object *o);
} rows[OBJECT_KINDS] = {
	[OBJECT_PD] = { "pd", destroy_pd }, [OBJECT_MR] = { "mr", destroy_mr }, [OBJECT_CQ] = { "cq", destroy_cq }, [OBJECT_SRQ] = { "srq", destroy_srq }, [OBJECT_MW] = { "mw", destroy_mw },
	[OBJECT_AH] = { "ah", destroy_ah }, [OBJECT_QP] = { "qp", destroy_qp },
};

const char *objects_kind_name(enum object_kind kind)
{
	return rows[kind].name;
}

struct object *objects_get(struct objects *o, enum object_kind kind, uint64_t number)
{
	if (number < OBJECTS_MAX && o->v[kind][number].is_there)
		return &o->v[kind][number];
	lab_fail("there is no %s %llu: expected one that show %s lists", rows[kind].name, (unsigned long long)number, rows[kind].name);
	return NULL;
}

struct object *objects_place(struct objects *o, enum object_kind kind)
{
	for (unsigned i = 0; i < OBJECTS_MAX; i++)
		if (!o->v[kind][i].is_there)
			return &o->v[kind][i];
	lab_fail("there are %u of %s already: expected some to be destroyed first", OBJECTS_MAX, rows[kind].name);
	return NULL;
}

unsigned objects_number(const struct objects *o, enum object_kind kind, const struct object *object)
{
	return (unsigned)(object - o->v[kind]);
}

int objects_put(struct objects *o, enum object_kind kind, struct object *at, const struct object *made, int err)
{
	if (err)
		return lab_fail("cannot make the %s: %s", objects_kind_name(kind), strerror(-err));
	*at = *made;
	at->is_there = true;
	printf("%s %u\n", objects_kind_name(kind), objects_number(o, kind, at));
	return 0;
}

int objects_show(struct objects *o, enum object_kind kind, void (*show)(unsigned i, const struct object *object), const uint64_t *number)
{
	struct object *one = number ? objects_get(o, kind, *number) : NULL;
	unsigned n = 0;
	if (one)
		show((unsigned)*number, one);
	if (number)
		return one ? 0 : -ENOENT;
	for (unsigned i = 0; i < OBJECTS_MAX; i++)
		if (o->v[kind][i].is_there && ++n)
			show(i, &o->v[kind][i]);
	if (!n)
		printf("no %s\n", objects_kind_name(kind));
	return 0;
}

int objects_destroy(struct objects *o, enum object_kind kind, uint64_t number)
{
	struct object *object = objects_get(o, kind, number);
	if (!object)
		return -ENOENT;
	int err = rows[kind].destroy(object);
	if (err)
		return lab_fail("%s %llu: %s%s", rows[kind].name, (unsigned long long)number, strerror(-err), err == -EBUSY ? ": expected what uses it to be destroyed first" : "");
	*object = (struct object){ .is_there = false };
	return 0;
}
