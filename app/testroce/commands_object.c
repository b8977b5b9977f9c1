/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that make, connect, show and destroy single objects, all but memory's: a program's control path, call by call. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "lab.h"
#include "names.h"
#include "objects.h"

#define DEPTH 64u
#define QKEY 0x11111111u /* of UD QPs, unless traffic of other programs is to be met */

/* ---- made ---- */

static int create_pd(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *at = objects_place(&lab->objects, OBJECT_PD);
	struct object o = { .port = (unsigned)v[0].number, .ctx = lab->station[v[0].number].ctx };
	return at ? objects_put(&lab->objects, OBJECT_PD, at, &o, uroce_pd_create(o.ctx, &o.pd)) : -ENOSPC;
}

static int create_cq(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *at = objects_place(&lab->objects, OBJECT_CQ);
	struct object o = { .port = (unsigned)v[0].number, .ctx = lab->station[v[0].number].ctx };
	return at ? objects_put(&lab->objects, OBJECT_CQ, at, &o, uroce_cq_create(o.ctx, (uint32_t)v[1].number, NULL, NULL, &o.cq)) : -ENOSPC;
}

static int create_srq(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *pd = objects_get(&lab->objects, OBJECT_PD, v[0].number), *at = pd ? objects_place(&lab->objects, OBJECT_SRQ) : NULL;
	struct uroce_srq_init init = { .attr = { .max_wr = (uint32_t)v[1].number } };
	if (!at)
		return -ENOENT;
	struct object o = { .port = pd->port, .ctx = pd->ctx, .of = (unsigned)v[0].number };
	return objects_put(&lab->objects, OBJECT_SRQ, at, &o, uroce_srq_create(pd->pd, &init, &o.srq));
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
	return objects_put(&lab->objects, OBJECT_QP, at, &o, err);
}

static int create_ah(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *pd = objects_get(&lab->objects, OBJECT_PD, v[0].number), *at = pd ? objects_place(&lab->objects, OBJECT_AH) : NULL;
	struct uroce_av av = { .hop_limit = 0 };
	if (!at || station_gid_index(&lab->station[pd->port], &av.sgid_index))
		return -ENOENT;
	struct object o = { .port = pd->port, .ctx = pd->ctx, .of = (unsigned)v[0].number };
	memcpy(o.gid.raw, v[1].gid.b, sizeof(o.gid.raw));
	av.dgid = o.gid;
	return objects_put(&lab->objects, OBJECT_AH, at, &o, uroce_ah_create(pd->pd, &av, &o.ah));
}

static int destroy_pd(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_destroy(&lab->objects, OBJECT_PD, v[0].number);
}

static int destroy_cq(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_destroy(&lab->objects, OBJECT_CQ, v[0].number);
}

static int destroy_srq(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_destroy(&lab->objects, OBJECT_SRQ, v[0].number);
}

static int destroy_ah(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_destroy(&lab->objects, OBJECT_AH, v[0].number);
}

static int destroy_qp(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_destroy(&lab->objects, OBJECT_QP, v[0].number);
}

/* ---- connected ---- */

static int connect_to(struct object *qp, const struct uroce_endpoint *remote)
{
	struct uroce_qp_attr attr = { .qkey = QKEY };
	int err = uroce_qp_connect(qp->qp, &qp->local, remote, &attr, qp->service == UROCE_UD ? UROCE_QP_QKEY : 0);
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

static int move_qp(struct lab *lab, const struct value *v, enum uroce_qp_state state, uint32_t more)
{
	struct object *qp = objects_get(&lab->objects, OBJECT_QP, v[0].number);
	struct uroce_qp_attr attr = { .state = state, .sqd_async_notify = true };
	if (!qp)
		return -ENOENT;
	int err = uroce_qp_modify(qp->qp, &attr, UROCE_QP_STATE | more);
	return err ? lab_fail("QP 0x%x does not go there: %s", uroce_qp_num(qp->qp), strerror(-err)) : 0;
}

static int reset_qp(struct lab *lab, const struct value *v, unsigned given)
{
	return move_qp(lab, v, UROCE_QP_RESET, 0);
}

static int break_qp(struct lab *lab, const struct value *v, unsigned given)
{
	return move_qp(lab, v, UROCE_QP_ERR, 0);
}

static int drain_qp(struct lab *lab, const struct value *v, unsigned given)
{
	return move_qp(lab, v, UROCE_QP_SQD, UROCE_QP_EN_SQD_ASYNC_NOTIFY);
}

static int resume_qp(struct lab *lab, const struct value *v, unsigned given)
{
	return move_qp(lab, v, UROCE_QP_RTS, 0);
}

static int open_qp(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *qp = objects_get(&lab->objects, OBJECT_QP, v[0].number);
	if (!qp)
		return -ENOENT;
	if (qp->service != UROCE_UD)
		return lab_fail("qp %" PRIu64 " is of %s: expected one of UD; the others have a peer, and qp join or qp connect", v[0].number, name_service(qp->service));
	return connect_to(qp, &qp->local);
}

/* ---- groups and limits ---- */

static int change_group(struct lab *lab, const struct value *v, int (*change)(struct uroce_qp *qp, const struct uroce_gid *group))
{
	struct object *qp = objects_get(&lab->objects, OBJECT_QP, v[0].number);
	struct uroce_gid group;
	if (!qp)
		return -ENOENT;
	memcpy(group.raw, v[1].gid.b, sizeof(group.raw));
	int err = change(qp->qp, &group);
	return err == -EINVAL ? lab_fail("cannot do that with %s: expected a multicast group, such as 239.1.2.3, and a QP of UD (to be detached: one that is attached)", v[1].text)
		: err         ? lab_fail("cannot do that with %s: %s", v[1].text, strerror(-err))
			      : 0;
}

static int attach_qp(struct lab *lab, const struct value *v, unsigned given)
{
	return change_group(lab, v, uroce_qp_attach_multicast);
}

static int detach_qp(struct lab *lab, const struct value *v, unsigned given)
{
	return change_group(lab, v, uroce_qp_detach_multicast);
}

static int limit_srq(struct lab *lab, const struct value *v, unsigned given)
{
	struct object *srq = objects_get(&lab->objects, OBJECT_SRQ, v[0].number);
	struct uroce_srq_attr attr = { .limit = (uint32_t)v[1].number };
	int err = srq ? uroce_srq_modify(srq->srq, &attr, UROCE_SRQ_LIMIT) : -ENOENT;
	return srq && err ? lab_fail("no such limit: expected at most the WRs that the SRQ holds (%s)", strerror(-err)) : err;
}

/* ---- shown ---- */

static void show_pd(unsigned i, const struct object *o)
{
	printf("pd %u: port %u\n", i, o->port);
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

static void show_ah(unsigned i, const struct object *o)
{
	struct gid gid;
	char text[GID_TEXT_MAX];
	memcpy(gid.b, o->gid.raw, sizeof(gid.b));
	printf("ah %u: port %u, pd %u, to %s\n", i, o->port, o->of, gid_format(&gid, text));
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

static int show_pds(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_show(&lab->objects, OBJECT_PD, show_pd, given ? &v[0].number : NULL);
}

static int show_cqs(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_show(&lab->objects, OBJECT_CQ, show_cq, given ? &v[0].number : NULL);
}

static int show_srqs(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_show(&lab->objects, OBJECT_SRQ, show_srq, given ? &v[0].number : NULL);
}

static int show_ahs(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_show(&lab->objects, OBJECT_AH, show_ah, given ? &v[0].number : NULL);
}

static int show_qps(struct lab *lab, const struct value *v, unsigned given)
{
	return objects_show(&lab->objects, OBJECT_QP, show_qp, given ? &v[0].number : NULL);
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
	{ "cq create <port> <count>", create_cq, "a completion queue of so many CQEs" },
	{ "cq destroy <cq>", destroy_cq, "" },
	{ "srq create <pd> <count>", create_srq, "a shared receive queue of so many WRs" },
	{ "srq limit <srq> <wrs>", limit_srq, "an event when fewer receives are left; 0: none" },
	{ "srq destroy <srq>", destroy_srq, "" },
	{ "ah create <pd> <address>", create_ah, "the way to a host, or to a multicast group" },
	{ "ah destroy <ah>", destroy_ah, "" },
	{ "qp create <pd> <cq> <service> [<srq>]", create_qp, "a queue pair; show qp says what a peer must know" },
	{ "qp join <qp> <qp>", join_qps, "connect two of ours" },
	{ "qp connect <qp> <address> <qpn> <psn>", connect_qp, "connect to a peer's" },
	{ "qp open <qp>", open_qp, "UD, which has no peer: to RTS, with the Q_Key 0x11111111" },
	{ "qp attach <qp> <address>", attach_qp, "UD: datagrams to a multicast group come to it" },
	{ "qp detach <qp> <address>", detach_qp, "and no more" },
	{ "qp drain <qp>", drain_qp, "to SQD: what was begun ends, and an event says when" },
	{ "qp resume <qp>", resume_qp, "from SQD or SQE to RTS" },
	{ "qp reset <qp>", reset_qp, "to RESET" },
	{ "qp error <qp>", break_qp, "to ERR: what is posted is flushed" },
	{ "qp destroy <qp>", destroy_qp, "" },
	{ "show pd [<pd|all>]", show_pds, "" },
	{ "show cq [<cq|all>]", show_cqs, "" },
	{ "show srq [<srq|all>]", show_srqs, "" },
	{ "show ah [<ah|all>]", show_ahs, "" },
	{ "show qp [<qp|all>]", show_qps, "with address, QPN, PSN, and why it is in ERR" },
	{ "show qp counters <qp>", show_qp_counters, "what it has counted" },
	{ .pattern = NULL },
};
