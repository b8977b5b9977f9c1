/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines of this process as DPDK's telemetry shows them (dpdk-telemetry.py, or any client of its socket): the rows of report.h under /uroce/... Lists name rows, a row is shown by its name:
 *
 *     /uroce/list                  the engines that show themselves, by a number; the others take it as their last parameter, else show the first one
 *     /uroce/port  /uroce/device   one row
 *     /uroce/drops  /uroce/gids    what there is of each
 *     /uroce/cores, clients, qps, cqs, mrs, neighs   names;   /uroce/qp,QPN and so on: that row
 *
 * DPDK carries no more than 512 names of a list, and no null: what a row has not is left out. */
#ifndef UROCE_TELEMETRY_H
#define UROCE_TELEMETRY_H

struct engine;

/* From now on it is shown. The commands are registered with the first one, and stay: DPDK knows no way back. 0; -ENOSPC: too many engines; or as rte_telemetry_register_cmd. Any thread. */
int telemetry_add(struct engine *e);
/* Waits for whoever looks at it now; nobody does afterwards. Fine for one that was not added. Any thread but those that drive engines. */
void telemetry_remove(struct engine *e);

#endif
