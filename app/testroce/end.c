/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the objects of an end and the first reason why it failed; decides nothing about what is sent. Invariant: both ends compute strides, slots and regions from the same configuration, so that only an address and a key have to be told. */
#include "end.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint_json.h"
#include "pattern.h"
#include "reason.h"

#define MEMORY_MAX (64u << 20) /* of an end's messages */
#define MAX_SGE 2u

int end_fail(struct end *e, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int err = reason_keep(e->error, sizeof(e->error), format, args);
	va_end(args);
	return err;
}

/* ---- made ---- */

/* What is asked for, within what mode and device allow. Both ends come to the same. */
static int settle_config(struct end *e)
{
	struct flow_config *c = &e->config;
	const struct mode *m = e->mode;
	uint64_t header = m->service == UROCE_UD ? END_GRH_BYTES : 0;
	if (m->fixed_size)
		c->size = m->fixed_size;
	if (m->least_qps > c->qps)
		c->qps = m->least_qps;
	if (m->most_depth && c->depth > m->most_depth)
		c->depth = m->most_depth;
	if (m->service == UROCE_UD && c->size > e->station->attr.active_mtu)
		return end_fail(e, "a datagram of %llu bytes: expected at most %u, the path MTU of port %u", (unsigned long long)c->size, e->station->attr.active_mtu, e->station->number);
	e->stride = (c->size + header + 63) / 64 * 64 + END_GUARD_BYTES;
	while (c->depth > 1 && (uint64_t)c->qps * c->depth * 4 * e->stride > MEMORY_MAX)
		c->depth /= 2;
	e->recv_depth = 2 * c->depth;
	e->slots_out = e->recv_depth;
	e->slots_in = e->recv_depth + 1;
	e->lane_bytes = (uint64_t)(e->slots_in + e->slots_out) * e->stride;
	return 0;
}

static int make_home(struct end *e, struct home *h, uint32_t lanes)
{
	uint32_t wrs = (e->mode->wrs ? e->mode->wrs : 1) * e->config.depth, receives = e->recv_depth * lanes;
	struct uroce_srq_init srq = { .attr = { .max_wr = receives, .max_sge = 1 } };
	void *memory;
	int err = 0;
	h->is_own = e->mode->has_many_clients && e->is_client;
	if (h->is_own)
		err = station_open_context(e->station, &h->ctx);
	else
		h->ctx = e->station->ctx;
	if (!err)
		err = uroce_pd_create(h->ctx, &h->pd);
	if (!err)
		err = uroce_cq_create(h->ctx, lanes * (wrs + 2 * e->recv_depth), NULL, NULL, &h->cq);
	if (!err)
		err = uroce_alloc(h->ctx, e->lane_bytes * lanes, &memory);
	if (err)
		return end_fail(e, "cannot make the objects of mode %s: %s", e->mode->name, strerror(-err));
	h->memory = memory;
	memset(memory, PATTERN_GUARD, e->lane_bytes * lanes);
	err = uroce_mr_register(h->pd, memory, e->lane_bytes * lanes, station_access(e->station), &h->mr);
	if (!err && e->mode->has_srq && !e->is_client)
		err = uroce_srq_create(h->pd, &srq, &h->srq);
	return err ? end_fail(e, "cannot register %llu bytes: %s", (unsigned long long)e->lane_bytes * lanes, strerror(-err)) : 0;
}

static int make_lane(struct end *e, struct lane *l, uint32_t gid_index)
{
	struct home *h = l->home;
	bool is_receiving = e->mode->is_receiving && (!e->is_client || e->mode->is_answering);
	uint32_t wrs = (e->mode->wrs ? e->mode->wrs : 1) * e->config.depth;
	struct uroce_qp_init init = { .service = e->mode->service, .send_cq = h->cq, .recv_cq = h->cq, .srq = h->srq,
		.cap = { .max_send_wr = wrs > e->recv_depth ? wrs : e->recv_depth, .max_recv_wr = is_receiving && !h->srq ? e->recv_depth : 0, .max_send_sge = MAX_SGE, .max_recv_sge = 1 } };
	uint64_t offset = e->homes > 1 ? 0 : l->number * e->lane_bytes;
	l->in = h->memory + offset;
	l->out = l->in + e->slots_in * e->stride;
	l->state = e->mode->state_bytes ? calloc(1, e->mode->state_bytes) : NULL;
	if (e->mode->state_bytes && !l->state)
		return end_fail(e, "no memory");
	int err = uroce_qp_create(h->pd, &init, &l->qp);
	if (!err)
		err = uroce_qp_endpoint(l->qp, gid_index, &l->local);
	return err ? end_fail(e, "QP %u of %u: %s", l->number + 1, e->config.qps, strerror(-err)) : 0;
}

static int make_parts(struct end *e)
{
	uint32_t gid_index;
	int err = settle_config(e);
	if (!err && station_gid_index(e->station, &gid_index))
		err = end_fail(e, "port %u has no address", e->station->number);
	if (err)
		return err;
	e->homes = e->mode->has_many_clients && e->is_client ? e->config.qps : 1;
	e->home = calloc(e->homes, sizeof(*e->home));
	e->lane = calloc(e->config.qps, sizeof(*e->lane));
	if (!e->home || !e->lane)
		return end_fail(e, "no memory");
	for (uint32_t i = 0; i < e->homes && !err; i++)
		err = make_home(e, &e->home[i], e->config.qps / e->homes);
	for (uint32_t i = 0; i < e->config.qps && !err; i++) {
		e->lane[i].number = i;
		e->lane[i].home = &e->home[i % e->homes];
		err = make_lane(e, &e->lane[i], gid_index);
	}
	return err;
}

int end_open(struct end *e, const struct station *s, const struct flow_config *config, bool is_client)
{
	*e = (struct end){ .mode = config->mode, .role = is_client ? &config->mode->client : &config->mode->server, .station = s, .config = *config, .is_client = is_client };
	return make_parts(e);
}

static void free_home(struct home *h)
{
	uroce_cq_destroy(h->cq);
	uroce_srq_destroy(h->srq);
	uroce_mr_deregister(h->mr);
	if (h->memory)
		uroce_free(h->ctx, h->memory);
	uroce_pd_destroy(h->pd);
	if (h->is_own && h->ctx)
		uroce_close(h->ctx);
}

void end_close(struct end *e)
{
	for (uint32_t i = 0; e->lane && i < e->config.qps; i++) {
		uroce_qp_destroy(e->lane[i].qp);
		uroce_ah_destroy(e->lane[i].ah);
		if (e->role->end && e->lane[i].state)
			e->role->end(&e->lane[i]);
		free(e->lane[i].state);
	}
	for (uint32_t i = 0; e->home && i < e->homes; i++)
		free_home(&e->home[i]);
	free(e->lane);
	free(e->home);
	e->lane = NULL;
	e->home = NULL;
}

/* ---- connected ---- */

json_t *end_pack(const struct end *e)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < e->config.qps; i++)
		json_array_append_new(list, endpoint_pack(&e->lane[i].local));
	return json_pack("{s:I, s:I, s:I, s:I, s:o}", "caps", (json_int_t)e->station->attr.caps, "addr", (json_int_t)(uintptr_t)e->home[0].memory, "rkey", (json_int_t)uroce_mr_rkey(e->home[0].mr), "stride", (json_int_t)e->stride, "qps", list);
}

/* Of the traffic: of the family that the ends have, and another one for each seed. */
static struct uroce_gid find_group(const struct end *e, const struct lane *l)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t high = (uint8_t)(e->config.seed >> 8), low = (uint8_t)e->config.seed;
	if (!memcmp(l->remote.gid.raw, mapped, sizeof(mapped)))
		return (struct uroce_gid){ .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 192, [14] = high, [15] = low } };
	return (struct uroce_gid){ .raw = { [0] = 0xff, [1] = 0x15, [14] = high, [15] = low } };
}

static int connect_lane(struct end *e, struct lane *l)
{
	/* A link may lose, and more threads may spin than there are CPUs: the default timeout would give up after half a second. */
	struct uroce_qp_attr attr = { .path_mtu = e->config.mtu, .timeout = 16, .min_rnr_timer = 1, .qkey = END_QKEY };
	uint32_t mask = e->config.mtu ? UROCE_QP_PATH_MTU : 0;
	if (e->mode->service == UROCE_RC)
		mask |= UROCE_QP_TIMEOUT | UROCE_QP_MIN_RNR_TIMER;
	else if (e->mode->service == UROCE_UD)
		mask = UROCE_QP_QKEY;
	int err = uroce_qp_connect(l->qp, &l->local, &l->remote, &attr, mask);
	if (err || e->mode->service != UROCE_UD)
		return err;
	struct uroce_av av = { .dgid = e->mode->is_multicast ? find_group(e, l) : l->remote.gid };
	err = station_gid_index(e->station, &av.sgid_index);
	if (!err && e->mode->is_multicast && !e->is_client)
		err = uroce_qp_attach_multicast(l->qp, &av.dgid);
	return err ? err : uroce_ah_create(l->home->pd, &av, &l->ah);
}

int end_connect(struct end *e, json_t *peer)
{
	json_int_t caps, addr, rkey, stride;
	json_t *list;
	if (json_unpack(peer, "{s:I, s:I, s:I, s:I, s:o}", "caps", &caps, "addr", &addr, "rkey", &rkey, "stride", &stride, "qps", &list) || json_array_size(list) != e->config.qps || (uint64_t)stride != e->stride)
		return end_fail(e, "the peer's QPs make no sense");
	e->caps = e->station->attr.caps & (uint32_t)caps;
	e->remote_rkey = (uint32_t)rkey;
	for (uint32_t i = 0; i < e->config.qps; i++) {
		struct lane *l = &e->lane[i];
		if (!endpoint_unpack(json_array_get(list, i), &l->remote))
			return end_fail(e, "the peer's QP %u makes no sense", i);
		l->remote_addr = (uint64_t)addr + i * e->lane_bytes;
		int err = connect_lane(e, l);
		if (err)
			return end_fail(e, "cannot connect QP %u: %s", i, strerror(-err));
	}
	return 0;
}
