/* SPDX-License-Identifier: BSD-3-Clause */
/* The only place that knows DPDK's version. Built against 22.11 (Debian 12) and 24.11 (Debian 13). Included before any rte_*.h. */
#ifndef UROCE_DPDK_COMPAT_H
#define UROCE_DPDK_COMPAT_H

#include <rte_version.h>

#if RTE_VERSION < RTE_VERSION_NUM(22, 11, 0, 0)
#error "uroce needs DPDK 22.11 or later"
#endif

#include <rte_flow.h>
#include <rte_telemetry.h>

/* Unsigned numbers of telemetry. */
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define COMPAT_TEL_UINT RTE_TEL_UINT_VAL
#define compat_tel_dict_uint rte_tel_data_add_dict_uint
#define compat_tel_array_uint rte_tel_data_add_array_uint
#else
#define COMPAT_TEL_UINT RTE_TEL_U64_VAL
#define compat_tel_dict_uint rte_tel_data_add_dict_u64
#define compat_tel_array_uint rte_tel_data_add_array_u64
#endif

/* A flow item for a BTH whose destination QPN has these low bits, behind the item for UDP. */
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
struct compat_bth {
	struct rte_flow_item_ib_bth spec, mask;
};

static inline struct rte_flow_item compat_bth_item(struct compat_bth *b, uint8_t qpn_low, uint8_t mask)
{
	b->spec = (struct rte_flow_item_ib_bth){ .hdr.dst_qp[2] = qpn_low };
	b->mask = (struct rte_flow_item_ib_bth){ .hdr.dst_qp[2] = mask };
	return (struct rte_flow_item){ .type = RTE_FLOW_ITEM_TYPE_IB_BTH, .spec = &b->spec, .mask = &b->mask };
}
#else
struct compat_bth {
	uint8_t bytes[8], bits[8]; /* up to the destination QPN */
	struct rte_flow_item_raw spec, mask;
};

static inline struct rte_flow_item compat_bth_item(struct compat_bth *b, uint8_t qpn_low, uint8_t mask)
{
	*b = (struct compat_bth){ .bytes[7] = qpn_low, .bits[7] = mask };
	b->spec = (struct rte_flow_item_raw){ .relative = 1, .length = sizeof(b->bytes), .pattern = b->bytes };
	b->mask = (struct rte_flow_item_raw){ .relative = 1, .search = 1, .offset = -1, .limit = 0xffff, .length = 0xffff, .pattern = b->bits };
	return (struct rte_flow_item){ .type = RTE_FLOW_ITEM_TYPE_RAW, .spec = &b->spec, .mask = &b->mask };
}
#endif

#endif
