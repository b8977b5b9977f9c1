/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that make, connect, show and destroy single objects: a program's control path, call by call. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "lab.h"
#include "names.h"
#include "objects.h"

#define DEPTH 64u
#define ANY_ACCESS (UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC | UROCE_ACCESS_MW_BIND)

/* ---- made ---- */

/* Puts an object that was made into its place and says its number; err: how it went. */
static int put(struct lab *lab, enum object_kind kind, struct object *at, const struct object *made, int err)
{
	if (err)
		return lab_fail("cannot make the %s: %s", objects_kind_name(kind), strerror(-err));
	*at = *made;
	at->is_there = true;
	printf("%s %u\n", objects_kind_name(kind), objects_number(&lab->objects, kind, at));
	return 0;
}

static int create_pd(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *at = objects_place(&lab->objects, OBJECT_PD);
	struct object o = { .port = (unsigned)v[0].number, .ctx = lab->station[v[0].number].ctx };
	return at ? put(lab, OBJECT_PD, at, &o, uroce_pd_create(o.ctx, &o.pd)) : -ENOSPC;
}

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
		err = uroce_mr_register(pd->pd, memory, o.bytes, ANY_ACCESS, &o.mr);
		if (err)
			uroce_free(pd->ctx, memory);
	}
	return put(lab, OBJECT_MR, at, &o, err);
}

static int create_cq(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *at = objects_place(&lab->objects, OBJECT_CQ);
	struct object o = { .port = (unsigned)v[0].number, .ctx = lab->station[v[0].number].ctx };
	return at ? put(lab, OBJECT_CQ, at, &o, uroce_cq_create(o.ctx, (uint32_t)v[1].number, NULL, NULL, &o.cq)) : -ENOSPC;
}

static int create_srq(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *pd = objects_get(&lab->objects, OBJECT_PD, v[0].number), *at = pd ? objects_place(&lab->objects, OBJECT_SRQ) : NULL;
	struct uroce_srq_init init = { .attr = { .max_wr = (uint32_t)v[1].number } };
	if (!at)
		return -ENOENT;
	struct object o = { .port = pd->port, .ctx = pd->ctx, .of = (unsigned)v[0].number };
	return put(lab, OBJECT_SRQ, at, &o, uroce_srq_create(pd->pd, &init, &o.srq));
}

static int create_mw(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *pd = objects_get(&lab->objects, OBJECT_PD, v[0].number), *at = pd ? objects_place(&lab->objects, OBJECT_MW) : NULL;
	if (!at)
		return -ENOENT;
	struct object o = { .port = pd->port, .ctx = pd->ctx, .of = (unsigned)v[0].number };
	return put(lab, OBJECT_MW, at, &o, uroce_mw_create(pd->pd, UROCE_MW_TYPE_1, &o.mw));
}

static int create_qp(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *pd = objects_get(&lab->objects, OBJECT_PD, v[0].number), *cq = pd ? objects_get(&lab->objects, OBJECT_CQ, v[1].number) : NULL;
	struct object *srq = given > 3 ? objects_get(&lab->objects, OBJECT_SRQ, v[3].number) : NULL, *at = cq ? objects_place(&lab->objects, OBJECT_QP) : NULL;
	uint32_t gid;
	if (!at || (given > 3 && !srq) || station_gid_index(&lab->station[pd->port], &gid))
		return -ENOENT;
	struct object o = { .port = pd->port, .ctx = pd->ctx, .of = (unsigned)v[0].number, .with = (unsigned)v[1].number, .service = (enum uroce_service)v[2].number };
	struct uroce_qp_init init = { .service = o.service, .send_cq = cq->cq, .recv_cq = cq->cq, .cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH }, .signal_all = true, .srq = srq ? srq->srq : NULL };
	int err = uroce_qp_create(pd->pd, &init, &o.qp);
	if (!err)
		err = uroce_qp_endpoint(o.qp, gid, &o.local);
	return put(lab, OBJECT_QP, at, &o, err);
}

static int destroy_pd(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_destroy(&lab->objects, OBJECT_PD, v[0].number);
}

static int destroy_mr(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_destroy(&lab->objects, OBJECT_MR, v[0].number);
}

static int destroy_cq(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_destroy(&lab->objects, OBJECT_CQ, v[0].number);
}

static int destroy_srq(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_destroy(&lab->objects, OBJECT_SRQ, v[0].number);
}

static int destroy_mw(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_destroy(&lab->objects, OBJECT_MW, v[0].number);
}

static int destroy_qp(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_destroy(&lab->objects, OBJECT_QP, v[0].number);
}

/* ---- connected ---- */

static int connect_to(struct object *qp, const struct uroce_endpoint *remote)
{
	int err = uroce_qp_connect(qp->qp, &qp->local, remote, NULL, 0);
	return err ? lab_fail("cannot connect QP 0x%x: %s", uroce_qp_num(qp->qp), strerror(-err)) : 0;
}

static int join_qps(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *a = objects_get(&lab->objects, OBJECT_QP, v[0].number), *b = a ? objects_get(&lab->objects, OBJECT_QP, v[1].number) : NULL;
	if (!b)
		return -ENOENT;
	int err = connect_to(a, &b->local);
	return err || a == b ? err : connect_to(b, &a->local);
}

static int connect_qp(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *qp = objects_get(&lab->objects, OBJECT_QP, v[0].number);
	if (!qp)
		return -ENOENT;
	struct uroce_endpoint remote = { .qpn = (uint32_t)v[2].number, .psn = (uint32_t)v[3].number, .mtu = qp->local.mtu < 1024 ? qp->local.mtu : 1024, .rd_atomic = 1 };
	memcpy(remote.gid.raw, v[1].gid.b, sizeof(remote.gid.raw));
	return connect_to(qp, &remote);
}

static int move_qp(struct lab *lab, const struct value *v, enum uroce_qp_state state)
{
	struct object *qp = objects_get(&lab->objects, OBJECT_QP, v[0].number);
	struct uroce_qp_attr attr = { .state = state };
	if (!qp)
		return -ENOENT;
	int err = uroce_qp_modify(qp->qp, &attr, UROCE_QP_STATE);
	return err ? lab_fail("QP 0x%x does not go there: %s", uroce_qp_num(qp->qp), strerror(-err)) : 0;
}

static int reset_qp(struct lab *lab, const struct value *v, unsigned given)
{
	return move_qp(lab, v, UROCE_QP_RESET);
}

static int break_qp(struct lab *lab, const struct value *v, unsigned given)
{
	return move_qp(lab, v, UROCE_QP_ERR);
}

/* ---- shown ---- */

static void show_pd(unsigned i, const struct object *o)
{
	printf("pd %u: port %u\n", i, o->port);
}

static void show_mr(unsigned i, const struct object *o)
{
	printf("mr %u: port %u, pd %u, %zu bytes at 0x%" PRIxPTR ", lkey 0x%x, rkey 0x%x\n", i, o->port, o->of, o->bytes, (uintptr_t)o->memory, uroce_mr_lkey(o->mr), uroce_mr_rkey(o->mr));
}

static void show_cq(unsigned i, const struct object *o)
{
	printf("cq %u: port %u\n", i, o->port);
}

static void show_srq(unsigned i, const struct object *o)
{
	struct uroce_srq_attr a;
	if (!uroce_srq_query(o->srq, &a))
		printf("srq %u: port %u, pd %u, WRs %u, limit %u\n", i, o->port, o->of, a.max_wr, a.limit);
}

static void show_mw(unsigned i, const struct object *o)
{
	printf("mw %u: port %u, pd %u, rkey 0x%x\n", i, o->port, o->of, uroce_mw_rkey(o->mw));
}

static void show_qp(unsigned i, const struct object *o)
{
	struct uroce_qp_attr a;
	struct gid gid;
	char text[GID_TEXT_MAX], why[256];
	if (uroce_qp_query(o->qp, &a))
		return;
	memcpy(gid.b, o->local.gid.raw, sizeof(gid.b));
	printf("qp %u: port %u, pd %u, cq %u, %s, %s, GID %s, QPN 0x%x, PSN 0x%06x, next 0x%06x\n", i, o->port, o->of, o->with, name_service(o->service), name_qp_state(a.state), gid_format(&gid, text), uroce_qp_num(o->qp), o->local.psn,
		a.sq_psn);
	if (uroce_qp_error_text(o->qp, why, sizeof(why)) > 0)
		printf("      %s\n", why);
}

static int show_all(struct lab *lab, enum object_kind kind, void (*show)(unsigned i, const struct object *o), unsigned given, const struct value *v)
{
	unsigned n = 0;
	if (given) {
		struct object *o = objects_get(&lab->objects, kind, v[0].number);
		if (o)
			show((unsigned)v[0].number, o);
		return o ? 0 : -ENOENT;
	}
	for (unsigned i = 0; i < OBJECTS_MAX; i++)
		if (lab->objects.v[kind][i].is_there && ++n)
			show(i, &lab->objects.v[kind][i]);
	if (!n)
		printf("no %s\n", objects_kind_name(kind));
	return 0;
}

static int show_pds(struct lab *lab, const struct value *v, unsigned given)
{
	return show_all(lab, OBJECT_PD, show_pd, given, v);
}

static int show_mrs(struct lab *lab, const struct value *v, unsigned given)
{
	return show_all(lab, OBJECT_MR, show_mr, given, v);
}

static int show_cqs(struct lab *lab, const struct value *v, unsigned given)
{
	return show_all(lab, OBJECT_CQ, show_cq, given, v);
}

static int show_srqs(struct lab *lab, const struct value *v, unsigned given)
{
	return show_all(lab, OBJECT_SRQ, show_srq, given, v);
}

static int show_mws(struct lab *lab, const struct value *v, unsigned given)
{
	return show_all(lab, OBJECT_MW, show_mw, given, v);
}

static int show_qps(struct lab *lab, const struct value *v, unsigned given)
{
	return show_all(lab, OBJECT_QP, show_qp, given, v);
}

static int show_qp_counters(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *qp = objects_get(&lab->objects, OBJECT_QP, v[0].number);
	uint64_t value[64];
	if (!qp)
		return -ENOENT;
	int n = uroce_qp_counters(qp->qp, value, 64);
	for (int i = 0; i < n && i < 64; i++)
		if (value[i])
			printf("  %-24s %" PRIu64 "\n", uroce_qp_counter_name((unsigned)i), value[i]);
	return 0;
}

const struct command commands_object[] = {
	{ "pd create <port>", create_pd, "a protection domain" },
	{ "pd destroy <pd>", destroy_pd, "" },
	{ "mr create <pd> <bytes>", create_mr, "memory, registered with every right" },
	{ "mr destroy <mr>", destroy_mr, "" },
	{ "cq create <port> <count>", create_cq, "a completion queue of so many CQEs" },
	{ "cq destroy <cq>", destroy_cq, "" },
	{ "srq create <pd> <count>", create_srq, "a shared receive queue of so many WRs" },
	{ "srq destroy <srq>", destroy_srq, "" },
	{ "mw create <pd>", create_mw, "a memory window of type 1, bound to nothing" },
	{ "mw destroy <mw>", destroy_mw, "" },
	{ "qp create <pd> <cq> <service> [<srq>]", create_qp, "a queue pair; show qp says what a peer must know" },
	{ "qp join <qp> <qp>", join_qps, "connect two of ours" },
	{ "qp connect <qp> <address> <number> <number>", connect_qp, "connect to a peer's address, QPN and first PSN" },
	{ "qp reset <qp>", reset_qp, "to RESET" },
	{ "qp error <qp>", break_qp, "to ERR: what is posted is flushed" },
	{ "qp destroy <qp>", destroy_qp, "" },
	{ "show pd all", show_pds, "" },
	{ "show pd [<pd>]", show_pds, "" },
	{ "show mr all", show_mrs, "" },
	{ "show mr [<mr>]", show_mrs, "with address and rkey" },
	{ "show cq all", show_cqs, "" },
	{ "show cq [<cq>]", show_cqs, "" },
	{ "show srq all", show_srqs, "" },
	{ "show srq [<srq>]", show_srqs, "" },
	{ "show mw all", show_mws, "" },
	{ "show mw [<mw>]", show_mws, "with its rkey" },
	{ "show qp all", show_qps, "" },
	{ "show qp [<qp>]", show_qps, "with address, QPN, PSN, and why it is in ERR" },
	{ "show qp counters <qp>", show_qp_counters, "what it has counted" },
	{ .pattern = NULL },
};
