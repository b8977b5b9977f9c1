/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the table. A row says where in a look its number is. Invariant: names are unique and have no space in them. */
#include "core_table.h"

#include <stddef.h>

#define OF_CORE(name) { #name, offsetof(struct engine_look, core.name), sizeof(((struct engine_look *)0)->core.name) }
#define OF_LOOP(name) { #name, offsetof(struct engine_look, loop.name), sizeof(((struct engine_look *)0)->loop.name) }

static const struct {
	const char *name;
	size_t at, bytes; /* of a uint32_t or a uint64_t */
} rows[] = {
	OF_CORE(clients),
	OF_CORE(qps),
	OF_CORE(cqs),
	OF_CORE(mrs),
	OF_CORE(mws),
	OF_LOOP(age_ns),
	OF_LOOP(rounds),
	OF_LOOP(idle_rounds),
	OF_LOOP(longest_round_ns),
	OF_LOOP(sleeps),
	OF_LOOP(slept_ns),
	OF_LOOP(rx_frames),
	OF_LOOP(tx_frames),
	OF_LOOP(tx_partial),
	OF_LOOP(tx_dropped),
	OF_LOOP(tx_no_mbuf),
	OF_LOOP(rx_unusable),
	OF_LOOP(handed_over_tx),
	OF_LOOP(handed_over_rx),
	OF_LOOP(handed_over_dropped),
	OF_CORE(rx_packets),
	OF_CORE(tx_packets),
	OF_CORE(rx_bytes),
	OF_CORE(tx_bytes),
	OF_CORE(loopback_packets),
	OF_CORE(group_copies),
	OF_CORE(group_copies_dropped),
	OF_CORE(group_queries),
	OF_CORE(group_reports),
	OF_CORE(wqes),
	OF_CORE(cqes),
	OF_CORE(events),
	OF_CORE(doorbells),
	OF_CORE(bad_wqes),
	OF_CORE(bad_indices),
	OF_CORE(bad_doorbells),
	OF_CORE(cq_overruns),
	OF_CORE(lost_events),
	OF_CORE(refused_requests),
	OF_CORE(qp_bytes),
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

const char *core_table_name(unsigned i)
{
	return i < ROWS ? rows[i].name : NULL;
}

uint64_t core_table_value(unsigned i, const struct engine_look *look)
{
	const void *at = (const uint8_t *)look + rows[i].at;
	return rows[i].bytes == sizeof(uint64_t) ? *(const uint64_t *)at : *(const uint32_t *)at;
}
