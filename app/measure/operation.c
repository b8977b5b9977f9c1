/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the table of operations and the form in which a trial travels. Invariant: a trial that was unpacked is in range, so that a peer can make this end wait but not allocate without bound. */
#include "operation.h"

#include <string.h>

#define QPS_MAX 65536u
#define DEPTH_MAX 65536u
#define BYTES_MAX (UINT64_C(256) << 20) /* of the messages of all QPs outstanding */
#define LATENCY_DEPTH 4u
#define VERIFY_SLOTS 2u /* at least, of a QP */

enum { RC = 1 << UROCE_RC, CONNECTED = RC | 1 << UROCE_UC, EACH = CONNECTED | 1 << UROCE_UD };
static const struct operation operations[] = {
	{ "send", UROCE_OP_SEND, EACH, .takes_recv = true },
	{ "send-imm", UROCE_OP_SEND_WITH_IMM, EACH, .takes_recv = true, .has_imm = true },
	{ "write", UROCE_OP_WRITE, CONNECTED },
	{ "write-imm", UROCE_OP_WRITE_WITH_IMM, CONNECTED, .takes_recv = true, .has_imm = true },
	{ "read", UROCE_OP_READ, RC, .is_fetching = true },
	{ "cas", UROCE_OP_COMPARE_SWAP, RC, .is_fetching = true, .is_atomic = true, .size = 8 },
	{ "fadd", UROCE_OP_FETCH_ADD, RC, .is_fetching = true, .is_atomic = true, .size = 8 },
	{ "atomic-write", UROCE_OP_ATOMIC_WRITE, RC, .size = 8 },
};
static const char *const services[] = { [UROCE_RC] = "rc", [UROCE_UC] = "uc", [UROCE_UD] = "ud" };

const struct operation *operation_at(unsigned i)
{
	return i < sizeof(operations) / sizeof(operations[0]) ? &operations[i] : NULL;
}

const struct operation *operation_find(const char *name, size_t len)
{
	const struct operation *o;
	for (unsigned i = 0; (o = operation_at(i)); i++)
		if (strlen(o->name) == len && !memcmp(o->name, name, len))
			return o;
	return NULL;
}

const char *trial_name(const struct trial *t)
{
	return t->op ? t->op->name : "tcp";
}

const char *service_name(enum uroce_service service)
{
	return services[service];
}

bool service_find(const char *name, enum uroce_service *service)
{
	for (unsigned i = 0; i < sizeof(services) / sizeof(services[0]); i++) {
		if (strcmp(services[i], name))
			continue;
		*service = (enum uroce_service)i;
		return true;
	}
	return false;
}

static uint32_t at_most(uint32_t value, uint64_t limit)
{
	return value <= limit ? value : limit ? (uint32_t)limit : 1;
}

void trial_fit(struct trial *t)
{
	uint64_t size = t->size ? t->size : 1;
	if (t->test == TEST_LATENCY) {
		t->qps = t->batch = 1;
		t->depth = at_most(t->depth, LATENCY_DEPTH);
		return;
	}
	t->qps = at_most(t->qps, BYTES_MAX / size / (t->test == TEST_VERIFY ? VERIFY_SLOTS : 1));
	t->depth = at_most(t->depth, t->test == TEST_STREAM ? BYTES_MAX / size / t->qps : DEPTH_MAX);
	t->batch = at_most(t->batch, t->depth);
	while (t->iters && t->iters % t->batch)
		t->batch--;
	t->depth -= t->depth % t->batch;
}

json_t *trial_pack(const struct trial *t)
{
	return json_pack("{s:s, s:s, s:b, s:i, s:I, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:f}", "op", trial_name(t), "service", service_name(t->service), "srq", t->has_srq,
		"test", (int)t->test, "size", (json_int_t)t->size, "qps", (int)t->qps, "depth", (int)t->depth, "batch", (int)t->batch, "inline", (int)t->inline_bytes, "mtu", (int)t->mtu,
		"iters", (json_int_t)t->iters, "bytes", (json_int_t)t->bytes, "seconds", t->seconds);
}

bool trial_unpack(json_t *message, struct trial *t)
{
	const char *name, *service;
	int has_srq, test, qps, depth, batch, inline_bytes, mtu;
	json_int_t size, iters, bytes;
	if (json_unpack(message, "{s:s, s:s, s:b, s:i, s:I, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:F}", "op", &name, "service", &service, "srq", &has_srq,
		    "test", &test, "size", &size, "qps", &qps, "depth", &depth, "batch", &batch, "inline", &inline_bytes, "mtu", &mtu, "iters", &iters, "bytes", &bytes, "seconds", &t->seconds))
		return false;
	t->op = operation_find(name, strlen(name));
	if (!t->op && (strcmp(name, "tcp") || !size))
		return false;
	if (!service_find(service, &t->service) || (t->op && !(t->op->services & 1u << t->service)))
		return false;
	if (test < 0 || test >= TESTS || size < 0 || size > (json_int_t)1 << 31 || qps < 1 || qps > (int)QPS_MAX || depth < 1 || depth > (int)DEPTH_MAX)
		return false;
	if (batch < 1 || batch > depth || inline_bytes < 0 || mtu < 0 || iters < 0 || bytes < 0)
		return false;
	t->has_srq = has_srq;
	t->test = (enum test)test;
	t->size = (uint64_t)size;
	t->qps = (uint32_t)qps;
	t->depth = (uint32_t)depth;
	t->batch = (uint32_t)batch;
	t->inline_bytes = (uint32_t)inline_bytes;
	t->mtu = (uint32_t)mtu;
	t->iters = (uint64_t)iters;
	t->bytes = (uint64_t)bytes;
	return true;
}
