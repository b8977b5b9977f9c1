/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the objects of one end and the first reason why a trial failed; decides nothing about what is sent when. Invariant: both ends compute the same stride, slots and regions from the same trial, so that only an
 * address and a key have to be told. */
#include "end.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint_json.h"
#include "reason.h"

#define GUARD_BYTES 64u
#define MEMORY_STREAM (1u << 20)   /* of the messages of a QP, when nobody looks at them: what a program's own buffers would be in the cache */
#define MEMORY_VERIFY (128u << 20) /* of all QPs, when every byte is looked at */
#define SLOTS_LATENCY 4u
#define SIZE_ONE_SLOT (1u << 20) /* above it messages of a ping-pong share their memory */
#define LOOK_EVERY 4096u
#define STUCK_NS UINT64_C(20000000000)

int end_fail(struct end *e, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int err = reason_keep(e->error, sizeof(e->error), format, args);
	va_end(args);
	return err;
}

int end_open(struct end *e, const char *device, uint32_t gid_index)
{
	int err = uroce_open(device, NULL, &e->ctx); /* says itself what is wrong */
	if (!err)
		err = uroce_query_device(e->ctx, &e->device);
	if (err) {
		fprintf(stderr, "%s: cannot use device %s: %s\n", program_invocation_short_name, device, strerror(-err));
		return err;
	}
	e->gid_index = gid_index;
	e->is_inline = e->device.mode == 1;
	return 0;
}

void end_close(struct end *e)
{
	if (e->ctx)
		uroce_close(e->ctx);
	e->ctx = NULL;
}

static void plan_memory(struct end *e)
{
	const struct trial *t = &e->trial;
	e->headroom = t->service == UROCE_UD ? END_HEADERS : 0;
	e->stride = (e->headroom + t->size + 63) / 64 * 64 + GUARD_BYTES;
	const uint64_t fits[TESTS] = { [TEST_STREAM] = MEMORY_STREAM / e->stride, [TEST_LATENCY] = t->size > SIZE_ONE_SLOT ? 1 : SLOTS_LATENCY,
		[TEST_VERIFY] = MEMORY_VERIFY / t->qps / e->stride };
	uint64_t fit = fits[t->test], least = t->test == TEST_VERIFY ? 2 : 1;
	if (fit < least)
		fit = least;
	e->slots = fit < t->depth ? (uint32_t)fit : t->depth;
	e->in_offset = t->test == TEST_LATENCY ? (uint64_t)t->qps * e->slots * e->stride : 0;
	e->recv_depth = t->op->takes_recv ? 2 * t->depth : 0;
}

static int make_memory(struct end *e)
{
	size_t region = (size_t)e->trial.qps * e->slots * e->stride, all = region + e->in_offset;
	void *memory;
	int err = uroce_alloc(e->ctx, all, &memory);
	if (err)
		return end_fail(e, "%zu bytes of memory for messages: %s", all, strerror(-err));
	e->memory = memory;
	err = uroce_mr_register(e->pd, memory, all,
		UROCE_ACCESS_LOCAL_WRITE | UROCE_ACCESS_REMOTE_WRITE | UROCE_ACCESS_REMOTE_READ | UROCE_ACCESS_REMOTE_ATOMIC, &e->mr);
	return err ? end_fail(e, "memory region: %s", strerror(-err)) : 0;
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = ((const struct end_number *)a)->qpn, y = ((const struct end_number *)b)->qpn;
	return x < y ? -1 : x > y;
}

int end_find_qp(const struct end *e, uint32_t qpn)
{
	struct end_number key = { qpn, 0 }, *n = bsearch(&key, e->numbers, e->trial.qps, sizeof(key), compare_numbers);
	return n ? (int)n->index : -1;
}

static int make_qps(struct end *e)
{
	const struct trial *t = &e->trial;
	struct uroce_qp_init init = { .service = t->service, .send_cq = e->cq, .recv_cq = e->cq, .srq = e->srq,
		.cap = { .max_send_wr = t->depth, .max_recv_wr = e->recv_depth, .max_inline = t->inline_bytes } };
	e->qp = calloc(t->qps, sizeof(*e->qp));
	e->local = calloc(t->qps, sizeof(*e->local));
	e->remote = calloc(t->qps, sizeof(*e->remote));
	e->numbers = calloc(t->qps, sizeof(*e->numbers));
	if (!e->qp || !e->local || !e->remote || !e->numbers)
		return end_fail(e, "no memory");
	for (uint32_t i = 0; i < t->qps; i++) {
		int err = uroce_qp_create(e->pd, &init, &e->qp[i]);
		if (err)
			return end_fail(e, "QP %u of %u: %s", i + 1, t->qps, strerror(-err));
		err = uroce_qp_endpoint(e->qp[i], e->gid_index, &e->local[i]);
		if (err)
			return end_fail(e, "GID %u: %s", e->gid_index, strerror(-err));
		e->numbers[i] = (struct end_number){ e->local[i].qpn, i };
	}
	qsort(e->numbers, t->qps, sizeof(*e->numbers), compare_numbers);
	return 0;
}

static int make_srq(struct end *e)
{
	const struct trial *t = &e->trial;
	struct uroce_srq_init init = { .attr.max_wr = t->qps * e->recv_depth };
	if (!t->has_srq || !e->recv_depth)
		return 0;
	if (init.attr.max_wr > e->device.max_qp_wr)
		return end_fail(e, "%u QPs of depth %u need an SRQ of %u, the device has %u: fewer, please", t->qps, t->depth, init.attr.max_wr,
			e->device.max_qp_wr);
	int err = uroce_srq_create(e->pd, &init, &e->srq);
	return err ? end_fail(e, "SRQ of %u: %s", init.attr.max_wr, strerror(-err)) : 0;
}

int end_prepare(struct end *e)
{
	e->error[0] = 0;
	e->empty = 0;
	e->received = 0;
	if (e->trial.service == UROCE_UD && e->trial.size > e->device.active_mtu)
		return end_fail(e, "a datagram carries at most the path MTU, which is %u", e->device.active_mtu);
	if (e->trial.inline_bytes > e->device.max_inline)
		return end_fail(e, "%u bytes inline: the device takes at most %u", e->trial.inline_bytes, e->device.max_inline);
	plan_memory(e);
	int err = uroce_pd_create(e->ctx, &e->pd);
	if (err)
		return end_fail(e, "PD: %s", strerror(-err));
	uint64_t cqes = (uint64_t)e->trial.qps * (e->trial.depth + e->recv_depth);
	if (cqes > e->device.max_cqe)
		return end_fail(e, "%u QPs of depth %u need a CQ of %llu, the device has %u: fewer, please", e->trial.qps, e->trial.depth, (unsigned long long)cqes, e->device.max_cqe);
	err = uroce_cq_create(e->ctx, (uint32_t)cqes, NULL, NULL, &e->cq);
	if (err)
		return end_fail(e, "CQ of %u: %s", (unsigned)cqes, strerror(-err));
	err = make_memory(e);
	if (!err)
		err = make_srq(e);
	return err ? err : make_qps(e);
}

void end_release(struct end *e)
{
	for (uint32_t i = 0; e->qp && i < e->trial.qps; i++)
		uroce_qp_destroy(e->qp[i]);
	uroce_srq_destroy(e->srq);
	uroce_ah_destroy(e->ah);
	uroce_cq_destroy(e->cq);
	uroce_mr_deregister(e->mr);
	if (e->memory)
		uroce_free(e->ctx, e->memory);
	uroce_pd_destroy(e->pd);
	free(e->qp);
	free(e->local);
	free(e->remote);
	free(e->numbers);
	e->qp = NULL;
	e->local = e->remote = NULL;
	e->numbers = NULL;
	e->srq = NULL;
	e->ah = NULL;
	e->cq = NULL;
	e->mr = NULL;
	e->memory = NULL;
	e->pd = NULL;
}

json_t *end_pack(struct end *e)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < e->trial.qps; i++)
		json_array_append_new(list, endpoint_pack(&e->local[i]));
	return json_pack("{s:I, s:I, s:o}", "addr", (json_int_t)(uintptr_t)(e->memory + e->in_offset), "rkey", (json_int_t)uroce_mr_rkey(e->mr), "qps", list);
}

static int connect_qp(struct end *e, uint32_t qp)
{
	const struct trial *t = &e->trial;
	/* With more spinning threads than CPUs the peer's may not get one for half a second, which is all that the default timeout allows: four times as long. */
	struct uroce_qp_attr attr = { .path_mtu = t->mtu, .min_rnr_timer = 1, .timeout = 16, .qkey = END_QKEY };
	uint32_t mtu = t->mtu ? UROCE_QP_PATH_MTU : 0u, timeout = e->is_crowded ? UROCE_QP_TIMEOUT : 0u;
	const uint32_t masks[] = { [UROCE_RC] = UROCE_QP_MIN_RNR_TIMER | timeout | mtu, [UROCE_UC] = mtu, [UROCE_UD] = UROCE_QP_QKEY };
	int err = uroce_qp_connect(e->qp[qp], &e->local[qp], &e->remote[qp], &attr, masks[t->service]);
	return err ? end_fail(e, "cannot connect QP %u: %s", qp, strerror(-err)) : 0;
}

/* All QPs of the peer are at one address. */
static int make_ah(struct end *e)
{
	struct uroce_av av = { .dgid = e->remote[0].gid, .sgid_index = e->gid_index };
	int err = e->trial.service == UROCE_UD ? uroce_ah_create(e->pd, &av, &e->ah) : 0;
	return err ? end_fail(e, "address handle: %s", strerror(-err)) : 0;
}

int end_join(struct end *e)
{
	int err = 0;
	for (uint32_t i = 0; i < e->trial.qps && !err; i++)
		err = connect_qp(e, i);
	return err ? err : make_ah(e);
}

int end_connect(struct end *e, json_t *peer)
{
	json_int_t addr, rkey;
	json_t *list;
	if (json_unpack(peer, "{s:I, s:I, s:o}", "addr", &addr, "rkey", &rkey, "qps", &list) || json_array_size(list) != e->trial.qps)
		return end_fail(e, "the peer's QPs make no sense");
	e->remote_addr = (uint64_t)addr;
	e->remote_rkey = (uint32_t)rkey;
	for (uint32_t i = 0; i < e->trial.qps; i++)
		if (!endpoint_unpack(json_array_get(list, i), &e->remote[i]))
			return end_fail(e, "the peer's QP %u makes no sense", i);
	return end_join(e);
}

int end_pump(void *end)
{
	struct end *e = end;
	if (!e->is_inline)
		return -1;
	int n = uroce_engine_poll(e->ctx);
	if (!n && e->is_crowded)
		sched_yield();
	return n > 0 ? n : 0; /* busy: another thread drives it */
}

static int fail_completion(struct end *e, const struct uroce_wc *wc)
{
	char why[512] = "";
	int q = end_find_qp(e, wc->qpn);
	if (q >= 0)
		uroce_qp_error_text(e->qp[q], why, sizeof(why));
	return end_fail(e, "%s%s (%s)%s%s", wc->wr_id & END_RECV ? "receive: " : "", uroce_wc_status_str(wc->status), uroce_wc_cause_str(wc->vendor_error), why[0] ? ": " : "", why);
}

/* The peer says nothing while a trial runs, unless it has failed. */
static int look_around(struct end *e, bool is_waiting)
{
	uint64_t now_ns = end_now();
	if (e->empty == LOOK_EVERY)
		e->stuck_since_ns = now_ns;
	if (!is_waiting)
		return 0;
	if (e->is_client && exchange_is_ready(e->exchange))
		return end_fail(e, "the peer gave up");
	if (now_ns - e->stuck_since_ns > STUCK_NS)
		return end_fail(e, "nothing has completed or arrived for %llu s", (unsigned long long)(STUCK_NS / 1000000000));
	return 0;
}

int end_take(struct end *e, struct uroce_wc *wc, unsigned n, bool is_waiting)
{
	if (e->is_inline)
		uroce_engine_poll(e->ctx);
	int got = uroce_cq_poll(e->cq, wc, n);
	if (!got) {
		if (e->is_crowded)
			sched_yield();
		if (++e->empty % LOOK_EVERY == 0)
			return look_around(e, is_waiting);
		return 0;
	}
	if (got < 0)
		return end_fail(e, "CQ: %s", strerror(-got));
	e->empty = 0;
	for (int i = 0; i < got; i++)
		if (wc[i].status != UROCE_WC_SUCCESS)
			return fail_completion(e, &wc[i]);
	return got;
}

int end_post_send(struct end *e, uint32_t qp, const struct uroce_send_wr *wr, unsigned n)
{
	int posted = uroce_post_send(e->qp[qp], wr, n);
	if (posted == (int)n)
		return 0;
	return end_fail(e, "QP %u took %d of %u WRs", qp, posted, n);
}

int end_post_recv(struct end *e, uint32_t qp, const struct uroce_recv_wr *wr, unsigned n)
{
	int posted = e->srq ? uroce_post_srq_recv(e->srq, wr, n) : uroce_post_recv(e->qp[qp], wr, n);
	if (posted == (int)n)
		return 0;
	return end_fail(e, "QP %u took %d of %u receives", qp, posted, n);
}

struct uroce_send_wr end_send_wr(const struct end *e, uint32_t qp, uint32_t slot, struct uroce_sge *sge)
{
	const struct trial *t = &e->trial;
	const struct operation *o = t->op;
	uint64_t offset = (uint64_t)(end_slot(e, qp, slot) - e->memory);
	*sge = (struct uroce_sge){ (uintptr_t)e->memory + offset + (o->is_fetching ? e->in_offset : 0), (uint32_t)t->size, uroce_mr_lkey(e->mr) };
	bool is_inline = !o->is_fetching && t->size <= t->inline_bytes;
	return (struct uroce_send_wr){ .wr_id = qp, .sg_list = sge, .num_sge = 1, .opcode = o->opcode, .flags = UROCE_SEND_SIGNALED | (is_inline ? UROCE_SEND_INLINE : 0u),
		.remote_addr = e->remote_addr + offset, .rkey = e->remote_rkey, .compare_add = o->opcode == UROCE_OP_FETCH_ADD,
		.ah = e->ah, .remote_qpn = e->remote[qp].qpn, .remote_qkey = END_QKEY };
}

struct uroce_recv_wr end_recv_wr(const struct end *e, uint32_t qp, uint32_t slot, struct uroce_sge *sge)
{
	*sge = (struct uroce_sge){ (uintptr_t)end_slot(e, qp, slot) + e->in_offset, e->headroom + (uint32_t)e->trial.size, uroce_mr_lkey(e->mr) };
	return (struct uroce_recv_wr){ .wr_id = END_RECV | qp, .sg_list = sge, .num_sge = e->trial.op->opcode == UROCE_OP_WRITE_WITH_IMM ? 0 : 1 };
}
