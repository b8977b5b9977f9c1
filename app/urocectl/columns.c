/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the choice of columns. What they mean is in lib/engine/report.h, whose nouns these are. */
#include "columns.h"

#include <string.h>

const struct noun nouns[] = {
	{ "device", NULL, { { 0 } } },
	{ "port", NULL, { { 0 } } },
	{ "gid", NULL, { { "index" }, { "gid" }, { "vlan" }, { "kind" } } },
	{ "neigh", NULL, { { "gid" }, { "vlan" }, { "mac" }, { "state" }, { "static" }, { "users" }, { "core" } } },
	{ "client", NULL, { { "id" }, { "pid" }, { "uid" }, { "program" }, { "core" }, { "age_ns", "age", COLUMN_TIME }, { "qps" }, { "cqs" }, { "mrs" }, { "registered_bytes", "registered", COLUMN_SCALED },
		{ "pool_bytes", "pool", COLUMN_SCALED }, { "tx_bytes", NULL, COLUMN_SCALED }, { "rx_bytes", NULL, COLUMN_SCALED }, { "retransmitted_packets", "resent" }, { "dropped_packets", "dropped" } } },
	{ "qp", NULL, { { "qpn", NULL, COLUMN_HEX }, { "client" }, { "core" }, { "service" }, { "state" }, { "peer_gid" }, { "peer_qpn", NULL, COLUMN_HEX }, { "path_mtu", "mtu" }, { "srtt_ns", "rtt", COLUMN_TIME },
		{ "in_flight_packets", "in_flight" }, { "window_packets", "window" }, { "sq_used" }, { "sq_size" }, { "rq_used" }, { "rq_size" }, { "tx_bytes", NULL, COLUMN_SCALED }, { "rx_bytes", NULL, COLUMN_SCALED },
		{ "retransmitted_packets", "resent" }, { "dropped_packets", "dropped" }, { "last_error" } } },
	{ "cq", NULL, { { "id" }, { "client" }, { "core" }, { "entries" }, { "used" }, { "overrun" }, { "armed" }, { "channel" }, { "qps" } } },
	{ "mr", NULL, { { "key", NULL, COLUMN_HEX }, { "client" }, { "core" }, { "kind" }, { "iova", NULL, COLUMN_HEX }, { "length" }, { "access" }, { "pd" }, { "bound" } } },
	{ "drops", "count", { { "name" }, { "count" }, { "text" } } },
	{ "cores", NULL, { { "core" }, { "clients" }, { "qps" }, { "cqs" }, { "mrs" }, { "mws" }, { "age_ns", "age", COLUMN_TIME }, { "rounds", NULL, COLUMN_SCALED }, { "idle_rounds", NULL, COLUMN_SCALED },
		{ "busy_percent", "busy%" }, { "sleeps" }, { "rx_packets" }, { "tx_packets" }, { "mbufs_available" }, { "mbufs_in_use" } } },
	{ NULL, NULL, { { 0 } } },
};

const struct noun *noun_find(const char *name)
{
	for (const struct noun *n = nouns; n->name; n++)
		if (!strcmp(n->name, name))
			return n;
	return NULL;
}
