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
