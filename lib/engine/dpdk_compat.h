/* SPDX-License-Identifier: BSD-3-Clause */
/* The only place that knows DPDK's version. Built against 22.11 (Debian 12) and 24.11 (Debian 13). Included before any rte_*.h. */
#ifndef UROCE_DPDK_COMPAT_H
#define UROCE_DPDK_COMPAT_H

#include <rte_version.h>

#if RTE_VERSION < RTE_VERSION_NUM(22, 11, 0, 0)
#error "uroce needs DPDK 22.11 or later"
#endif

#endif
