/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients and their objects in a report: fetched piece by piece from each core (look.h), put row by row. Invariant: a client's counters are those of one and the same set of QPs, unless its QPs go so fast that they were never the same twice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "engine_look.h"
#include "error_sentence.h"
#include "modify.h"
#include "report_row.h"
#include "uroce.h"

#define TRIES 4u /* to add up a client's QPs while some of them go */

static void put_counters(struct report_rows *r, const uint64_t *counter)
{
	for (unsigned i = 0; i < QP_COUNTER_COUNT; i++)
		report_put_number(r, uroce_qp_counter_name(i), counter[i]);
}

/* ---- a row each ---- */

static void put_qp(struct report_rows *r, const struct look_row *row)
{
	const struct look_qp *q = &row->qp;
	char text[256];
	report_put_text(r, "service", qp_service_name(q->service));
	report_put_text(r, "state", qp_state_name(q->state));
	if (q->has_peer) {
		report_put_gid(r, "peer_gid", &q->peer);
		report_put_number(r, "peer_qpn", q->peer_qpn);
	} else {
		report_put_null(r, "peer_gid");
		report_put_null(r, "peer_qpn");
	}
	report_put_number(r, "path_mtu", q->path_mtu);
	report_put_number(r, "srtt_ns", q->srtt_ns);
	report_put_number(r, "rttvar_ns", q->rttvar_ns);
	report_put_number(r, "rto_ns", q->rto_ns);
	report_put_number(r, "window_packets", q->window_packets);
	report_put_number(r, "in_flight_packets", q->in_flight_packets);
	report_put_number(r, "sq_size", q->sq_size);
	report_put_number(r, "sq_used", q->sq_used);
	report_put_number(r, "rq_size", q->rq_size);
	report_put_number(r, "rq_used", q->rq_used);
	report_put_truth(r, "srq", q->has_srq);
	report_put_number(r, "send_cq", q->send_cq);
	report_put_number(r, "recv_cq", q->recv_cq);
	if (q->state == ABI_QP_ERR || q->state == ABI_QP_SQE)
		error_sentence(text, sizeof(text), q->qpn, &q->error);
	report_put_text(r, "last_error", q->state == ABI_QP_ERR || q->state == ABI_QP_SQE ? text : NULL);
	put_counters(r, q->counter);
}

static void put_cq(struct report_rows *r, const struct look_row *row)
{
	static const char *const arms[] = { [ABI_ARM_NONE] = "no", [ABI_ARM_SOLICITED] = "solicited", [ABI_ARM_ANY] = "any" };
	const struct look_cq *q = &row->cq;
	report_put_number(r, "entries", q->entries);
	report_put_number(r, "used", q->used);
	report_put_truth(r, "overrun", q->is_overrun);
	report_put_text(r, "armed", arms[q->armed <= ABI_ARM_ANY ? q->armed : ABI_ARM_ANY]); /* the word is the client's; what it may not be counts as any */
	report_put_truth(r, "channel", q->has_channel);
	report_put_number(r, "qps", q->qps);
}

static void put_mr(struct report_rows *r, const struct look_row *row)
{
	static const char *const kinds[MR_KINDS] = { [MR_POOL] = "pool", [MR_DIRECT] = "direct", [MR_FAST] = "fast", [MW_TYPE_1] = "mw1", [MW_TYPE_2] = "mw2" };
	const struct look_mr *m = &row->mr;
	report_put_text(r, "kind", kinds[m->kind]);
	report_put_number(r, "iova", m->iova);
	report_put_number(r, "length", m->len);
	report_put_number(r, "access", m->access);
	report_put_number(r, "pd", m->pd);
	report_put_number(r, "bound", m->bound);
}

/* ---- all of a kind ---- */

static uint64_t qp_name(const struct look_row *row)
{
	return row->qp.qpn;
}

static uint64_t cq_name(const struct look_row *row)
{
	return row->cq.id;
}

static uint64_t mr_name(const struct look_row *row)
{
	return row->mr.key;
}

static const struct report_kind {
	enum look_kind look;
	const char *key;
	uint64_t (*name)(const struct look_row *row);
	void (*put)(struct report_rows *r, const struct look_row *row);
} qps = { LOOK_QP, "qpn", qp_name, put_qp }, cqs = { LOOK_CQ, "id", cq_name, put_cq }, mrs = { LOOK_MR, "key", mr_name, put_mr };

static struct look_row *take_memory(struct report_rows *r)
{
	struct look_row *rows = calloc(LOOK_OBJECTS, sizeof(*rows));
	r->is_short |= !rows;
	return rows;
}

static void report_core(struct engine_core *ec, const struct report_kind *kind, struct look_row *rows, struct report_rows *r)
{
	struct look_place at = { 0 };
	while (!at.is_over && !r->is_short) {
		unsigned n = engine_look_objects(ec, kind->look, &at, rows);
		for (unsigned i = 0; i < n; i++) {
			report_row_begin(r);
			report_put_number(r, kind->key, kind->name(&rows[i]));
			report_put_number(r, "client", rows[i].client);
			report_put_number(r, "core", engine_core_index(ec));
			kind->put(r, &rows[i]);
		}
	}
}

static void report_kind(struct engine *e, const struct report_kind *kind, struct report_rows *r)
{
	struct look_row *rows = take_memory(r);
	for (unsigned i = 0; i < engine_cores(e) && rows; i++)
		report_core(engine_core_at(e, i), kind, rows, r);
	free(rows);
}

void report_qps(struct engine *e, struct report_rows *r)
{
	report_kind(e, &qps, r);
}

void report_cqs(struct engine *e, struct report_rows *r)
{
	report_kind(e, &cqs, r);
}

void report_mrs(struct engine *e, struct report_rows *r)
{
	report_kind(e, &mrs, r);
}

/* ---- clients ---- */

static void put_client(struct report_rows *r, const struct engine_core *ec, const struct look_row *row)
{
	const struct look_client *c = &row->of_client;
	char key[48];
	report_row_begin(r);
	report_put_number(r, "id", row->client);
	report_put_number(r, "pid", (uint64_t)c->who.pid);
	report_put_number(r, "uid", c->who.uid);
	report_put_text(r, "program", c->who.program);
	report_put_number(r, "core", engine_core_index(ec));
	report_put_number(r, "age_ns", clock_monotonic() - c->who.since_ns);
	for (unsigned i = 0; i < USAGE_ROWS; i++)
		report_put_number(r, usage_row_key(i), usage_row_value(&c->used, i));
	for (unsigned i = 0; i < USAGE_ROWS; i++) {
		snprintf(key, sizeof(key), "max_%s", usage_row_key(i));
		if (c->has_quota)
			report_put_number(r, key, usage_row_value(&c->most, i));
		else
			report_put_null(r, key);
	}
	put_counters(r, c->counter);
}

struct adding {
	struct look_row sum; /* of the client that is being added up; client 0: of none */
	unsigned tries;
};

static void finish_client(struct adding *a, const struct engine_core *ec, struct report_rows *r)
{
	if (!a->sum.client)
		return;
	put_client(r, ec, &a->sum);
	*a = (struct adding){ 0 };
}

/* false: QPs of the client went meanwhile, and it has to be begun anew. */
static bool add_part(struct adding *a, const struct engine_core *ec, const struct look_row *row, struct report_rows *r)
{
	if (row->client != a->sum.client) {
		finish_client(a, ec, r);
		a->sum = *row;
		return true;
	}
	if (row->of_client.qps_gone != a->sum.of_client.qps_gone && ++a->tries < TRIES)
		return false;
	for (unsigned i = 0; i < QP_COUNTER_COUNT; i++)
		a->sum.of_client.counter[i] += row->of_client.counter[i];
	return true;
}

static void report_clients_of(struct engine_core *ec, struct look_row *rows, struct report_rows *r)
{
	struct look_place at = { 0 };
	struct adding a = { 0 };
	while (!at.is_over && !r->is_short) {
		unsigned n = engine_look_objects(ec, LOOK_CLIENT, &at, rows);
		for (unsigned i = 0; i < n; i++) {
			if (add_part(&a, ec, &rows[i], r))
				continue;
			at = (struct look_place){ .client = rows[i].client }; /* what else is in this piece comes again */
			a.sum.client = 0;
			break;
		}
	}
	finish_client(&a, ec, r);
}

void report_clients(struct engine *e, struct report_rows *r)
{
	struct look_row *rows = take_memory(r);
	for (unsigned i = 0; i < engine_cores(e) && rows; i++)
		report_clients_of(engine_core_at(e, i), rows, r);
	free(rows);
}
