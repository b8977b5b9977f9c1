/* SPDX-License-Identifier: BSD-3-Clause */
/* Engine-side bytes of an idle QP in RTS, its rings apart, with max_dest_rd_atomic 1: what a core itself counts, and what malloc says over 10,000 of them. One line "qp_memory VALUE", the larger. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "modify.h"

enum { QPS = 10000 };

static struct abi_rep rep;

static void ask(struct core_client *k, const struct abi_req *req)
{
	core_control(k, 1, req, &rep);
	if (rep.status < 0) {
		fprintf(stderr, "request %u: %s\n", req->type, rep.text);
		exit(1);
	}
}

static void make_qp(struct core_client *k, uint32_t pd, uint32_t cq)
{
	struct abi_req create = { .type = ABI_CREATE_QP, .create_qp = { .pd = pd, .send_cq = cq, .recv_cq = cq } };
	ask(k, &create);
	struct abi_req modify = { .type = ABI_MODIFY_QP, .modify_qp = { .qp = rep.handle } };
	struct gid peer;
	gid_parse("10.0.0.2", &peer);
	modify.modify_qp.attr = (struct abi_qp_attr){ .port_num = 1, .path_mtu = ABI_MTU_4096, .dest_qpn = 77, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1, .max_dest_rd_atomic = 1 };
	memcpy(modify.modify_qp.attr.av.dgid, peer.b, 16);
	for (uint32_t from = ABI_QP_RESET; from < ABI_QP_RTS; from++) {
		modify.modify_qp.mask = ABI_QP_STATE | qp_transitions[ABI_SERVICE_RC][from][from + 1].required;
		modify.modify_qp.attr.state = (uint8_t)(from + 1);
		ask(k, &modify);
	}
}

int main(void)
{
	struct core *c;
	struct core_client *k;
	struct core_stats s;
	struct gid gid;
	uint32_t index;
	struct core_config config = { .name = "memory", .max_frame = 4300, .addr = { .mac = { 2 } } };
	gid_parse("10.0.0.1", &gid);
	if (core_new(&c, &config, 0) || addr_gid_add(core_addr(c), &gid, VLAN_NONE, 24, &index) || core_client_new(c, &k))
		return 1;
	core_client_attach(k);
	ask(k, &(struct abi_req){ .type = ABI_CREATE_PD });
	uint32_t pd = rep.handle;
	ask(k, &(struct abi_req){ .type = ABI_CREATE_CQ, .create_cq = { .entries = 16 } });
	uint32_t cq = rep.handle;
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
	for (unsigned i = 0; i < QPS; i++)
		make_qp(k, pd, cq);
	double by_malloc = (double)(mallinfo2().uordblks + mallinfo2().hblkhd - before) / QPS;
	core_stats(c, &s);
	double by_core = (double)s.qp_bytes / QPS;
	printf("qp_memory %.0f\n", by_malloc > by_core ? by_malloc : by_core);
	core_free(c);
	return 0;
}
