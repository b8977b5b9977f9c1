/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared-memory and control contract, frozen: offset and size of every member of every struct of lib/abi, and the value
 * of every enum and limit, against layout.golden. A difference means that clients and engines of two builds no longer
 * understand each other. If that is meant: test_layout --print > layout.golden, and say so in the commit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cause.h"
#include "counters.h"
#include "cqe.h"
#include "msg.h"
#include "ring.h"
#include "wqe.h"

#define SIZE(type) fprintf(out, "%s %zu align %zu\n", #type, sizeof(struct type), _Alignof(struct type))
#define AT(type, member) \
	fprintf(out, "\t%s %zu %zu\n", #member, offsetof(struct type, member), sizeof(((struct type *)0)->member))
#define VALUE(name) fprintf(out, "%s %lld\n", #name, (long long)(name))

static void print_rings(FILE *out)
{
	SIZE(abi_ring);
	AT(abi_ring, client_index);
	AT(abi_ring, arm);
	AT(abi_ring, engine_index);
	AT(abi_ring, looking);
	SIZE(abi_ring_place);
	AT(abi_ring_place, arena);
	AT(abi_ring_place, slots);
	AT(abi_ring_place, slot_bytes);
	AT(abi_ring_place, control_offset);
	AT(abi_ring_place, slots_offset);
	SIZE(abi_doorbells);
	AT(abi_doorbells, top);
	AT(abi_doorbells, word);
	SIZE(abi_engine_page);
	AT(abi_engine_page, sleeping);
	AT(abi_engine_page, dead);
}

static void print_elements(FILE *out)
{
	SIZE(abi_sge);
	AT(abi_sge, addr);
	AT(abi_sge, len);
	AT(abi_sge, lkey);
	SIZE(abi_send_wqe);
	AT(abi_send_wqe, wr_id);
	AT(abi_send_wqe, opcode);
	AT(abi_send_wqe, flags);
	AT(abi_send_wqe, num_sge);
	AT(abi_send_wqe, imm);
	AT(abi_send_wqe, remote_addr);
	AT(abi_send_wqe, rkey);
	AT(abi_send_wqe, inline_len);
	AT(abi_send_wqe, sge);
	AT(abi_send_wqe, inline_data);
	AT(abi_send_wqe, atomic.compare);
	AT(abi_send_wqe, atomic.swap_or_add);
	AT(abi_send_wqe, atomic.sge);
	SIZE(abi_recv_wqe);
	AT(abi_recv_wqe, wr_id);
	AT(abi_recv_wqe, num_sge);
	AT(abi_recv_wqe, sge);
	SIZE(abi_cqe);
	AT(abi_cqe, wr_id);
	AT(abi_cqe, status);
	AT(abi_cqe, opcode);
	AT(abi_cqe, flags);
	AT(abi_cqe, byte_len);
	AT(abi_cqe, qpn);
	AT(abi_cqe, src_qpn);
	AT(abi_cqe, imm);
	AT(abi_cqe, vendor_error);
	AT(abi_cqe, pkey_index);
	AT(abi_cqe, vlan);
	AT(abi_cqe, sl);
	AT(abi_cqe, phase);
}

static void print_qp_messages(FILE *out)
{
	SIZE(abi_av);
	AT(abi_av, dgid);
	AT(abi_av, sgid_index);
	AT(abi_av, flow_label);
	AT(abi_av, traffic_class);
	AT(abi_av, hop_limit);
	AT(abi_av, sl);
	SIZE(abi_qp_attr);
	AT(abi_qp_attr, state);
	AT(abi_qp_attr, cur_state);
	AT(abi_qp_attr, path_mtu);
	AT(abi_qp_attr, timeout);
	AT(abi_qp_attr, retry_cnt);
	AT(abi_qp_attr, rnr_retry);
	AT(abi_qp_attr, min_rnr_timer);
	AT(abi_qp_attr, max_rd_atomic);
	AT(abi_qp_attr, max_dest_rd_atomic);
	AT(abi_qp_attr, sqd_async_notify);
	AT(abi_qp_attr, port_num);
	AT(abi_qp_attr, path_mig_state);
	AT(abi_qp_attr, pkey_index);
	AT(abi_qp_attr, access);
	AT(abi_qp_attr, qkey);
	AT(abi_qp_attr, dest_qpn);
	AT(abi_qp_attr, rq_psn);
	AT(abi_qp_attr, sq_psn);
	AT(abi_qp_attr, av);
	SIZE(abi_qp_cap);
	AT(abi_qp_cap, max_send_wr);
	AT(abi_qp_cap, max_recv_wr);
	AT(abi_qp_cap, max_send_sge);
	AT(abi_qp_cap, max_recv_sge);
	AT(abi_qp_cap, max_inline);
	SIZE(abi_qp_error);
	AT(abi_qp_error, cause);
	AT(abi_qp_error, status);
	AT(abi_qp_error, wr_id);
	AT(abi_qp_error, peer);
	AT(abi_qp_error, peer_qpn);
	AT(abi_qp_error, last_psn_sent);
	AT(abi_qp_error, last_psn_acked);
	AT(abi_qp_error, retries);
	AT(abi_qp_error, rnr_retries);
	SIZE(abi_async_event);
	AT(abi_async_event, cookie);
	AT(abi_async_event, type);
}

static void print_messages(FILE *out)
{
	SIZE(abi_device);
	AT(abi_device, name);
	AT(abi_device, mac);
	AT(abi_device, mode);
	AT(abi_device, port_up);
	AT(abi_device, active_mtu);
	AT(abi_device, gid_slots);
	AT(abi_device, max_qp);
	AT(abi_device, max_cq);
	AT(abi_device, max_mr);
	AT(abi_device, max_pd);
	AT(abi_device, max_qp_wr);
	AT(abi_device, max_cqe);
	AT(abi_device, max_sge);
	AT(abi_device, max_inline);
	AT(abi_device, max_rd_atomic);
	AT(abi_device, max_msg_bytes);
	SIZE(abi_req);
	AT(abi_req, type);
	AT(abi_req, sequence);
	AT(abi_req, handle);
	AT(abi_req, alloc_memory.bytes);
	AT(abi_req, reg_mr.pd);
	AT(abi_req, reg_mr.access);
	AT(abi_req, reg_mr.addr);
	AT(abi_req, reg_mr.len);
	AT(abi_req, reg_mr.iova);
	AT(abi_req, reg_mr.memory);
	AT(abi_req, create_cq.entries);
	AT(abi_req, create_cq.channel);
	AT(abi_req, create_cq.cookie);
	AT(abi_req, create_qp.pd);
	AT(abi_req, create_qp.send_cq);
	AT(abi_req, create_qp.recv_cq);
	AT(abi_req, create_qp.service);
	AT(abi_req, create_qp.cap);
	AT(abi_req, create_qp.signal_all);
	AT(abi_req, create_qp.cookie);
	AT(abi_req, modify_qp.qp);
	AT(abi_req, modify_qp.mask);
	AT(abi_req, modify_qp.attr);
	SIZE(abi_rep);
	AT(abi_rep, type);
	AT(abi_rep, sequence);
	AT(abi_rep, status);
	AT(abi_rep, handle);
	AT(abi_rep, device);
	AT(abi_rep, gid.gid);
	AT(abi_rep, gid.vlan);
	AT(abi_rep, gid.present);
	AT(abi_rep, memory.arena);
	AT(abi_rep, memory.offset);
	AT(abi_rep, memory.bytes);
	AT(abi_rep, mr.lkey);
	AT(abi_rep, mr.rkey);
	AT(abi_rep, channel.fd);
	AT(abi_rep, cq.ring);
	AT(abi_rep, cq.entries);
	AT(abi_rep, qp.sq);
	AT(abi_rep, qp.rq);
	AT(abi_rep, qp.cap);
	AT(abi_rep, qp.qpn);
	AT(abi_rep, qp.doorbell);
	AT(abi_rep, query_qp.attr);
	AT(abi_rep, query_qp.cap);
	AT(abi_rep, query_qp.sq_draining);
	AT(abi_rep, query_qp.error);
	AT(abi_rep, counters.value);
	AT(abi_rep, text);
}

static void print_ring_values(FILE *out)
{
	VALUE(ABI_ARM_NONE);
	VALUE(ABI_ARM_SOLICITED);
	VALUE(ABI_ARM_ANY);
	VALUE(ABI_DOORBELL_TOP);
	VALUE(ABI_DOORBELLS);
	VALUE(ABI_MAX_SGE);
	VALUE(ABI_MAX_INLINE);
	VALUE(ABI_WQE_BODY);
	VALUE(ABI_WQE_ATOMIC_BODY);
	VALUE(ABI_OP_SEND);
	VALUE(ABI_OP_SEND_WITH_IMM);
	VALUE(ABI_OP_WRITE);
	VALUE(ABI_OP_WRITE_WITH_IMM);
	VALUE(ABI_OP_READ);
	VALUE(ABI_OP_COMPARE_SWAP);
	VALUE(ABI_OP_FETCH_ADD);
	VALUE(ABI_OP_COUNT);
	VALUE(ABI_SEND_SIGNALED);
	VALUE(ABI_SEND_SOLICITED);
	VALUE(ABI_SEND_INLINE);
	VALUE(ABI_SEND_FENCE);
	VALUE(ABI_WC_SUCCESS);
	VALUE(ABI_WC_LOC_LEN_ERR);
	VALUE(ABI_WC_LOC_QP_OP_ERR);
	VALUE(ABI_WC_LOC_EEC_OP_ERR);
	VALUE(ABI_WC_LOC_PROT_ERR);
	VALUE(ABI_WC_WR_FLUSH_ERR);
	VALUE(ABI_WC_MW_BIND_ERR);
	VALUE(ABI_WC_BAD_RESP_ERR);
	VALUE(ABI_WC_LOC_ACCESS_ERR);
	VALUE(ABI_WC_REM_INV_REQ_ERR);
	VALUE(ABI_WC_REM_ACCESS_ERR);
	VALUE(ABI_WC_REM_OP_ERR);
	VALUE(ABI_WC_RETRY_EXC_ERR);
	VALUE(ABI_WC_RNR_RETRY_EXC_ERR);
	VALUE(ABI_WC_FATAL_ERR);
	VALUE(ABI_WC_RESP_TIMEOUT_ERR);
	VALUE(ABI_WC_GENERAL_ERR);
	VALUE(ABI_WC_SEND);
	VALUE(ABI_WC_WRITE);
	VALUE(ABI_WC_READ);
	VALUE(ABI_WC_COMPARE_SWAP);
	VALUE(ABI_WC_FETCH_ADD);
	VALUE(ABI_WC_RECV);
	VALUE(ABI_WC_RECV_WRITE_WITH_IMM);
	VALUE(ABI_WC_HAS_GRH);
	VALUE(ABI_WC_HAS_IMM);
	VALUE(ABI_WC_HAS_INVALIDATE);
}

static void print_message_values(FILE *out)
{
	VALUE(ABI_QUERY_DEVICE);
	VALUE(ABI_QUERY_GID);
	VALUE(ABI_CREATE_PD);
	VALUE(ABI_DESTROY_PD);
	VALUE(ABI_ALLOC_MEMORY);
	VALUE(ABI_FREE_MEMORY);
	VALUE(ABI_REG_MR);
	VALUE(ABI_DEREG_MR);
	VALUE(ABI_CREATE_CHANNEL);
	VALUE(ABI_DESTROY_CHANNEL);
	VALUE(ABI_CREATE_CQ);
	VALUE(ABI_DESTROY_CQ);
	VALUE(ABI_CREATE_QP);
	VALUE(ABI_MODIFY_QP);
	VALUE(ABI_QUERY_QP);
	VALUE(ABI_DESTROY_QP);
	VALUE(ABI_QUERY_COUNTERS);
	VALUE(ABI_MSG_COUNT);
	VALUE(ABI_SERVICE_RC);
	VALUE(ABI_SERVICE_UC);
	VALUE(ABI_SERVICE_UD);
	VALUE(ABI_QP_RESET);
	VALUE(ABI_QP_INIT);
	VALUE(ABI_QP_RTR);
	VALUE(ABI_QP_RTS);
	VALUE(ABI_QP_SQD);
	VALUE(ABI_QP_SQE);
	VALUE(ABI_QP_ERR);
	VALUE(ABI_MTU_256);
	VALUE(ABI_MTU_4096);
	VALUE(ABI_QP_STATE);
	VALUE(ABI_QP_CUR_STATE);
	VALUE(ABI_QP_EN_SQD_ASYNC_NOTIFY);
	VALUE(ABI_QP_ACCESS_FLAGS);
	VALUE(ABI_QP_PKEY_INDEX);
	VALUE(ABI_QP_PORT);
	VALUE(ABI_QP_QKEY);
	VALUE(ABI_QP_AV);
	VALUE(ABI_QP_PATH_MTU);
	VALUE(ABI_QP_TIMEOUT);
	VALUE(ABI_QP_RETRY_CNT);
	VALUE(ABI_QP_RNR_RETRY);
	VALUE(ABI_QP_RQ_PSN);
	VALUE(ABI_QP_MAX_QP_RD_ATOMIC);
	VALUE(ABI_QP_ALT_PATH);
	VALUE(ABI_QP_MIN_RNR_TIMER);
	VALUE(ABI_QP_SQ_PSN);
	VALUE(ABI_QP_MAX_DEST_RD_ATOMIC);
	VALUE(ABI_QP_PATH_MIG_STATE);
	VALUE(ABI_QP_CAP);
	VALUE(ABI_QP_DEST_QPN);
	VALUE(ABI_EVENT_CQ_ERR);
	VALUE(ABI_EVENT_QP_FATAL);
	VALUE(ABI_EVENT_QP_REQ_ERR);
	VALUE(ABI_EVENT_QP_ACCESS_ERR);
	VALUE(ABI_EVENT_COMM_EST);
	VALUE(ABI_EVENT_SQ_DRAINED);
	VALUE(ABI_EVENT_DEVICE_FATAL);
	VALUE(ABI_EVENT_PORT_ACTIVE);
	VALUE(ABI_EVENT_PORT_ERR);
	VALUE(ABI_EVENT_GID_CHANGE);
	VALUE(ABI_QP_COUNTERS);
	VALUE(ABI_TEXT_MAX);
	VALUE(ABI_NAME_MAX);
}

static void print_causes_and_counters(FILE *out)
{
	VALUE(CAUSE_NONE);
	VALUE(CAUSE_FLUSHED);
	VALUE(CAUSE_ACK_TIMEOUT);
	VALUE(CAUSE_SEQUENCE_NAKS);
	VALUE(CAUSE_IMPLIED_NAKS);
	VALUE(CAUSE_NEIGHBOUR);
	VALUE(CAUSE_NO_ROUTE);
	VALUE(CAUSE_RNR);
	VALUE(CAUSE_NAK_INVALID_REQUEST);
	VALUE(CAUSE_NAK_REMOTE_ACCESS);
	VALUE(CAUSE_NAK_REMOTE_OPERATION);
	VALUE(CAUSE_NAK_RESERVED);
	VALUE(CAUSE_BAD_RESPONSE);
	VALUE(CAUSE_LOCAL_KEY);
	VALUE(CAUSE_LOCAL_RANGE);
	VALUE(CAUSE_LOCAL_RIGHTS);
	VALUE(CAUSE_WQE_OPCODE);
	VALUE(CAUSE_WQE_SGE_COUNT);
	VALUE(CAUSE_WQE_INLINE);
	VALUE(CAUSE_WQE_LENGTH);
	VALUE(CAUSE_WQE_ALIGNMENT);
	VALUE(CAUSE_WQE_RD_ATOMIC);
	VALUE(CAUSE_RECEIVE_TOO_SHORT);
	VALUE(CAUSE_PEER_REQUEST);
	VALUE(CAUSE_CQ_OVERRUN);
	VALUE(CAUSE_RING_INDEX);
	VALUE(QP_TX_PACKETS);
	VALUE(QP_TX_BYTES);
	VALUE(QP_RX_PACKETS);
	VALUE(QP_RX_BYTES);
	VALUE(QP_RETRANSMITTED_PACKETS);
	VALUE(QP_LOCAL_ACK_TIMEOUT_ERR);
	VALUE(QP_PACKET_SEQ_ERR);
	VALUE(QP_IMPLIED_NAK_SEQ_ERR);
	VALUE(QP_RNR_NAK_RETRY_ERR);
	VALUE(QP_OUT_OF_SEQUENCE);
	VALUE(QP_DUPLICATE_REQUEST);
	VALUE(QP_RNR_NAK_SENT);
	VALUE(QP_TAIL_PROBES);
	VALUE(QP_ACKS_SENT);
	VALUE(QP_NAKS_SENT);
	VALUE(QP_ACKS_RECEIVED);
	VALUE(QP_COMPLETED_REQUESTS);
	VALUE(QP_COMPLETED_RECEIVES);
	VALUE(QP_DROPPED_PACKETS);
}

static void print_slot_sizes(FILE *out)
{
	static const uint32_t inlines[] = { 0, 32, 33, 64, 96, 97, ABI_MAX_INLINE };
	for (uint32_t sge = 1; sge <= ABI_MAX_SGE; sge++)
		fprintf(out, "slots of %u SGEs: send %u recv %u\n", sge, abi_send_slot_bytes(sge, 0), abi_recv_slot_bytes(sge));
	for (unsigned i = 0; i < sizeof(inlines) / sizeof(inlines[0]); i++)
		fprintf(out, "slots of %u bytes inline: send %u\n", inlines[i], abi_send_slot_bytes(1, inlines[i]));
}

static void print_all(FILE *out)
{
	print_rings(out);
	print_elements(out);
	print_qp_messages(out);
	print_messages(out);
	print_ring_values(out);
	print_message_values(out);
	print_causes_and_counters(out);
	print_slot_sizes(out);
}

static void test_layout_is_golden(void **state)
{
	char *text = NULL, *line, *rest;
	size_t len = 0;
	char golden[256];
	unsigned number = 0;
	FILE *file = fopen(SOURCE_ROOT "/test/abi/layout.golden", "r");
	FILE *out = open_memstream(&text, &len);
	assert_non_null(file);
	assert_non_null(out);
	print_all(out);
	fclose(out);
	rest = text;
	while (fgets(golden, sizeof(golden), file)) {
		number++;
		golden[strcspn(golden, "\n")] = '\0';
		line = strsep(&rest, "\n");
		if (!line || strcmp(line, golden))
			fail_msg("layout.golden:%u says \"%s\", this build has \"%s\"", number, golden, line ? line : "nothing");
	}
	fclose(file);
	if (rest && *rest)
		fail_msg("layout.golden ends at line %u, this build goes on with \"%s\"", number, strsep(&rest, "\n"));
	free(text);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout_is_golden),
	};
	if (argc > 1 && !strcmp(argv[1], "--print")) {
		print_all(stdout);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
