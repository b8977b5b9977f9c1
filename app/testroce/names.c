/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tables. */
#include "names.h"

#include <stddef.h>

#include "uroce.h"

static const char *const opcodes[] = {
	[UROCE_OP_SEND] = "SEND", [UROCE_OP_SEND_WITH_IMM] = "SEND with immediate", [UROCE_OP_WRITE] = "WRITE", [UROCE_OP_WRITE_WITH_IMM] = "WRITE with immediate", [UROCE_OP_READ] = "READ",
	[UROCE_OP_COMPARE_SWAP] = "COMPARE_SWAP", [UROCE_OP_FETCH_ADD] = "FETCH_ADD", [UROCE_OP_ATOMIC_WRITE] = "ATOMIC WRITE", [UROCE_OP_FLUSH] = "FLUSH",
	[UROCE_OP_SEND_WITH_INV] = "SEND with invalidate", [UROCE_OP_BIND_MW] = "BIND_MW", [UROCE_OP_LOCAL_INV] = "LOCAL_INV", [UROCE_OP_REG_MR] = "REG_MR",
};
static const char *const wc_opcodes[] = {
	[UROCE_WC_SEND] = "SEND", [UROCE_WC_WRITE] = "WRITE", [UROCE_WC_READ] = "READ", [UROCE_WC_COMPARE_SWAP] = "COMPARE_SWAP", [UROCE_WC_FETCH_ADD] = "FETCH_ADD", [UROCE_WC_ATOMIC_WRITE] = "ATOMIC WRITE",
	[UROCE_WC_FLUSH] = "FLUSH", [UROCE_WC_BIND_MW] = "BIND_MW", [UROCE_WC_LOCAL_INV] = "LOCAL_INV", [UROCE_WC_REG_MR] = "REG_MR", [UROCE_WC_RECV] = "RECV", [UROCE_WC_RECV_WRITE_WITH_IMM] = "RECV of WRITE with immediate",
};
static const char *const services[] = { [UROCE_RC] = "RC", [UROCE_UC] = "UC", [UROCE_UD] = "UD" };
static const char *const states[] = {
	[UROCE_QP_RESET] = "RESET", [UROCE_QP_INIT] = "INIT", [UROCE_QP_RTR] = "RTR", [UROCE_QP_RTS] = "RTS", [UROCE_QP_SQD] = "SQD", [UROCE_QP_SQE] = "SQE", [UROCE_QP_ERR] = "ERR",
};

static const char *const events[] = {
	[UROCE_EVENT_CQ_ERR] = "CQ_ERR", [UROCE_EVENT_QP_FATAL] = "QP_FATAL", [UROCE_EVENT_QP_REQ_ERR] = "QP_REQ_ERR", [UROCE_EVENT_QP_ACCESS_ERR] = "QP_ACCESS_ERR", [UROCE_EVENT_COMM_EST] = "COMM_EST",
	[UROCE_EVENT_SQ_DRAINED] = "SQ_DRAINED", [UROCE_EVENT_DEVICE_FATAL] = "DEVICE_FATAL", [UROCE_EVENT_PORT_ACTIVE] = "PORT_ACTIVE", [UROCE_EVENT_PORT_ERR] = "PORT_ERR", [UROCE_EVENT_SRQ_ERR] = "SRQ_ERR",
	[UROCE_EVENT_SRQ_LIMIT_REACHED] = "SRQ_LIMIT_REACHED", [UROCE_EVENT_QP_LAST_WQE_REACHED] = "QP_LAST_WQE_REACHED", [UROCE_EVENT_GID_CHANGE] = "GID_CHANGE",
};
static const char *const event_texts[] = {
	[UROCE_EVENT_CQ_ERR] = "it overran, and its QPs go to ERR", [UROCE_EVENT_QP_FATAL] = "it is in ERR by its own fault", [UROCE_EVENT_QP_REQ_ERR] = "it is in ERR: the peer sent an invalid request",
	[UROCE_EVENT_QP_ACCESS_ERR] = "it is in ERR: the peer asked for what it may not have", [UROCE_EVENT_COMM_EST] = "the first packet came while in RTR", [UROCE_EVENT_SQ_DRAINED] = "what was begun has completed",
	[UROCE_EVENT_DEVICE_FATAL] = "the engine is gone", [UROCE_EVENT_PORT_ACTIVE] = "it has a link", [UROCE_EVENT_PORT_ERR] = "it has no link", [UROCE_EVENT_SRQ_ERR] = "its ring was overwritten",
	[UROCE_EVENT_SRQ_LIMIT_REACHED] = "fewer receives are left than its limit", [UROCE_EVENT_QP_LAST_WQE_REACHED] = "it is in ERR, and takes nothing more from its SRQ", [UROCE_EVENT_GID_CHANGE] = "an address came or went",
};

static const char *find(const char *const *table, size_t n, unsigned i)
{
	return i < n && table[i] ? table[i] : "another";
}
#define FIND(table, i) find(table, sizeof(table) / sizeof((table)[0]), i)

const char *name_opcode(unsigned opcode)
{
	return FIND(opcodes, opcode);
}

const char *name_wc_opcode(unsigned opcode)
{
	return FIND(wc_opcodes, opcode);
}

const char *name_service(unsigned service)
{
	return FIND(services, service);
}

const char *name_qp_state(unsigned state)
{
	return FIND(states, state);
}

const char *name_event(unsigned type)
{
	return FIND(events, type);
}

const char *name_event_text(unsigned type)
{
	return FIND(event_texts, type);
}
