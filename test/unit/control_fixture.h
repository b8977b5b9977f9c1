/* SPDX-License-Identifier: BSD-3-Clause */
/* A core with one client, a PD, a CQ and a QP, for tests of requests. */
#ifndef UROCE_CONTROL_FIXTURE_H
#define UROCE_CONTROL_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core.h"
#include "machine.h"

struct fixture {
	struct core *core;
	struct core_client *client;
	uint32_t pd, cq, qp;
	enum abi_service service; /* of the QP */
	struct abi_rep rep;
};

static inline int ask(struct fixture *x, const struct abi_req *req)
{
	core_control(x->client, 1000, req, &x->rep);
	assert_int_equal(x->rep.type, req->type);
	assert_int_equal(x->rep.sequence, req->sequence);
	if (x->rep.status < 0)
		assert_int_not_equal(strnlen(x->rep.text, ABI_TEXT_MAX), ABI_TEXT_MAX);
	return x->rep.status;
}

static inline int ask_handle(struct fixture *x, enum abi_msg type, uint32_t handle)
{
	struct abi_req req = { .type = type, .sequence = 7, .handle = handle };
	return ask(x, &req);
}

static inline void create_qp(struct fixture *x)
{
	struct abi_req req = { .type = ABI_CREATE_QP, .create_qp = { .pd = x->pd, .send_cq = x->cq, .recv_cq = x->cq, .service = x->service, .cap = { 4, 4, 2, 2, 64 } } };
	assert_int_equal(ask(x, &req), 0);
	x->qp = x->rep.handle;
}

static inline struct fixture open_core_with(enum abi_service service, uint32_t max_qp)
{
	struct fixture x = { .service = service };
	struct gid gid;
	uint32_t index;
	struct core_config config = { .name = "test", .max_frame = 4300, .seed = 1, .max_qp = max_qp, .addr = { .mode = ADDR_OWN, .mac = { 2, 0, 0, 0, 0, 1 } } };
	assert_int_equal(core_new(&x.core, &config, 0), 0);
	assert_int_equal(gid_parse("10.0.0.1", &gid), 0);
	assert_int_equal(addr_gid_add(core_addr(x.core), &gid, VLAN_NONE, 24, &index), 0);
	assert_int_equal(core_client_new(x.core, &x.client), 0);
	core_client_attach(x.client);
	assert_int_equal(ask_handle(&x, ABI_CREATE_PD, 0), 0);
	x.pd = x.rep.handle;
	struct abi_req cq = { .type = ABI_CREATE_CQ, .create_cq = { .entries = 16 } };
	assert_int_equal(ask(&x, &cq), 0);
	x.cq = x.rep.handle;
	create_qp(&x);
	return x;
}

static inline struct fixture open_core(uint32_t max_qp)
{
	return open_core_with(ABI_SERVICE_RC, max_qp);
}

static inline struct abi_qp_attr usual(void)
{
	struct abi_qp_attr a = { .path_mtu = ABI_MTU_1024, .timeout = 14, .retry_cnt = 7, .rnr_retry = 6, .min_rnr_timer = 12, .max_rd_atomic = 4, .max_dest_rd_atomic = 4, .port_num = 1,
		.access = MEM_ACCESS_ALL, .dest_qpn = 0x1234, .rq_psn = 1, .sq_psn = 2 };
	struct gid peer;
	gid_parse("10.0.0.2", &peer);
	memcpy(a.av.dgid, peer.b, 16);
	return a;
}

static inline int modify(struct fixture *x, uint32_t state, uint32_t mask, const struct abi_qp_attr *attr)
{
	struct abi_req req = { .type = ABI_MODIFY_QP, .modify_qp = { .qp = x->qp, .mask = mask | ABI_QP_STATE, .attr = *attr } };
	req.modify_qp.attr.state = (uint8_t)state;
	return ask(x, &req);
}

static inline uint32_t state_of(struct fixture *x)
{
	assert_int_equal(ask_handle(x, ABI_QUERY_QP, x->qp), 0);
	return x->rep.query_qp.attr.state;
}

static inline struct qp *qp_of(const struct fixture *x)
{
	return ((struct queue_pair *)handles_get(&x->client->qps, x->qp))->qp;
}

/* Brings the QP into a state by the shortest way. */
static inline void go(struct fixture *x, uint32_t state)
{
	static const uint32_t way[] = { ABI_QP_INIT, ABI_QP_RTR, ABI_QP_RTS, ABI_QP_SQD };
	struct abi_qp_attr a = usual();
	uint32_t last = state == ABI_QP_SQE ? ABI_QP_RTS : state;
	assert_int_equal(modify(x, ABI_QP_RESET, 0, &a), 0);
	if (state == ABI_QP_ERR)
		assert_int_equal(modify(x, ABI_QP_ERR, 0, &a), 0);
	for (unsigned i = 0, from = ABI_QP_RESET; i < 4 && last != ABI_QP_ERR && from != last; from = way[i++])
		assert_int_equal(modify(x, way[i], qp_transitions[x->service][from][way[i]].required, &a), 0);
	if (state == ABI_QP_SQE)
		qp_fail_send(qp_of(x), (struct failure){ ABI_WC_LOC_PROT_ERR, CAUSE_LOCAL_KEY });
	assert_int_equal(state_of(x), state);
}

#endif
