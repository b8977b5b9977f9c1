/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of options: parsing and help. What they mean together is options_settle.c's. Looks at nothing but its arguments. */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "operation.h"
#include "option_table.h"

#define SIZE_LARGEST (UINT64_C(64) << 20)

static bool take_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
	uint64_t v;
	if (!number_take_all(text, min, max, &v))
		return false;
	*out = (uint32_t)v;
	return true;
}

static bool take_device(struct options *o, const char *v)
{
	if (o->device[1])
		return false;
	o->device[o->device[0] != NULL] = v;
	return true;
}

static bool take_listen(struct options *o, const char *v)
{
	o->listen = v ? v : "";
	return !o->connect;
}

static bool take_connect(struct options *o, const char *v)
{
	o->connect = v;
	return !o->listen;
}

static bool take_self(struct options *o, const char *v)
{
	return true;
}

static bool take_tcp(struct options *o, const char *v)
{
	o->is_tcp = true;
	return true;
}

static bool take_peer(struct options *o, const char *v)
{
	o->is_pingpong = !strcmp(v, "pingpong");
	return o->is_pingpong;
}

static bool take_service(struct options *o, const char *v)
{
	return service_find(v, &o->service);
}

static bool take_srq(struct options *o, const char *v)
{
	return o->has_srq = true;
}

static bool take_op(struct options *o, const char *v)
{
	o->ops = 0;
	if (!strcmp(v, "all"))
		o->ops = OPTIONS_OPS_ALL;
	for (size_t len; *v && o->ops != OPTIONS_OPS_ALL; v += len, v += *v == ',') {
		unsigned i = 0;
		len = strcspn(v, ",");
		while (operation_at(i) && operation_at(i) != operation_find(v, len))
			i++;
		if (!operation_at(i))
			return false;
		o->ops |= 1u << i;
	}
	return o->ops != 0;
}

static bool take_sizes(struct options *o, const char *v)
{
	return number_take_sizes(v, SIZE_LARGEST, o->sizes, OPTIONS_SIZES, &o->size_count);
}

static bool take_all(struct options *o, const char *v)
{
	o->is_all = true;
	o->size_count = 0;
	return take_op(o, "all");
}

static bool take_test(struct options *o, const char *v)
{
	static const struct {
		const char *name;
		unsigned tests;
	} names[] = {
		{ "rate", 1u << TEST_STREAM }, { "bandwidth", 1u << TEST_STREAM }, { "latency", 1u << TEST_LATENCY }, { "verify", 1u << TEST_VERIFY },
		{ "all", 1u << TEST_STREAM | 1u << TEST_LATENCY },
	};
	for (size_t len; *v; v += len, v += *v == ',') {
		unsigned i = 0, count = sizeof(names) / sizeof(names[0]);
		len = strcspn(v, ",");
		while (i < count && (strlen(names[i].name) != len || memcmp(names[i].name, v, len)))
			i++;
		if (i == count)
			return false;
		o->tests |= names[i].tests;
	}
	return o->tests != 0;
}

static bool take_stream(struct options *o, const char *v)
{
	return take_test(o, "bandwidth");
}

static bool take_latency(struct options *o, const char *v)
{
	return take_test(o, "latency");
}

static bool take_verify(struct options *o, const char *v)
{
	o->is_verify = true;
	return true;
}

static bool take_qps(struct options *o, const char *v)
{
	return take_u32(v, 1, 65536, &o->qps);
}

static bool take_depth(struct options *o, const char *v)
{
	return take_u32(v, 1, 65536, &o->depth);
}

static bool take_batch(struct options *o, const char *v)
{
	return take_u32(v, 1, 65536, &o->batch);
}

static bool take_inline(struct options *o, const char *v)
{
	return take_u32(v, 0, 65536, &o->inline_bytes);
}

static bool take_mtu(struct options *o, const char *v)
{
	return take_u32(v, 256, 4096, &o->mtu) && !(o->mtu & (o->mtu - 1));
}

static bool take_gid_index(struct options *o, const char *v)
{
	return take_u32(v, 0, 65535, &o->gid_index);
}

static bool take_iters(struct options *o, const char *v)
{
	return number_take_all(v, 1, UINT64_C(1) << 40, &o->iters);
}

static bool take_bytes(struct options *o, const char *v)
{
	return number_take_all(v, 1, UINT64_C(1) << 50, &o->bytes);
}

static bool take_seconds(struct options *o, const char *v)
{
	char *end;
	o->seconds = strtod(v, &end);
	return end != v && !*end && o->seconds >= 0.001 && o->seconds <= 86400;
}

static bool take_cores(struct options *o, const char *v)
{
	for (o->core_count = 0; *v; v += *v == ',') {
		uint64_t cpu;
		if (o->core_count == OPTIONS_CORES || !number_take(v, 1023, &v, &cpu) || (*v && *v != ','))
			return false;
		o->cores[o->core_count++] = (unsigned)cpu;
	}
	return o->core_count > 0;
}

static bool take_fault(struct options *o, const char *v)
{
	o->fault = v;
	return true;
}

static bool take_json(struct options *o, const char *v)
{
	o->json = v ? v : "-";
	return true;
}

static bool take_progress(struct options *o, const char *v)
{
	return o->is_progress = true;
}

/* Situations, in which some options would say nothing. */
enum { APART = 1, SERVER = 2, PINGPONG = 4, TCP = 8 };

static const struct option_row rows[] = {
	{ "device", NEEDS_VALUE, take_device, "DEVICE, at most twice", "or -d, as of uroce_open: inline:net_af_packet0,iface=eth0, unix:/run/uroce/uroce0.sock (else UROCE_DEVICE of the environment). Given twice: of both ends", 'd', .idle = TCP },
	{ "listen", MAY_HAVE_VALUE, take_listen, "[HOST:]PORT, and no --connect", "be the server of one client (port 7471)" },
	{ "connect", NEEDS_VALUE, take_connect, "HOST[:PORT], and no --listen", "be the client of a server; it is told what to do" },
	{ "self", NO_VALUE, take_self, "", "both ends in this process, over a ring pair (default)", .idle = APART },
	{ "tcp", NO_VALUE, take_tcp, "", "kernel TCP instead, as a baseline (at both ends)", .idle = PINGPONG },
	{ "peer", NEEDS_VALUE, take_peer, "pingpong",
		"the other end is ibv_rc_pingpong, or by --service and --srq ibv_uc_, ibv_ud_ or ibv_srq_pingpong (port 18515): SENDs go to and fro. "
		"Its -s, -m, -n, -q, -g are here --sizes, --mtu, --iters, --qps, --gid-index, with its defaults" },
	{ "service", NEEDS_VALUE, take_service, "rc, uc or ud",
		"reliable or unreliable connections, or datagrams (rc). How many messages of the latter two got lost is told, and the rates are of those that arrived; of WRITEs that only --verify sees", .idle = SERVER | TCP },
	{ "srq", NO_VALUE, take_srq, "", "the QPs of an end share one receive queue", .idle = SERVER | TCP },
	{ "op", NEEDS_VALUE, take_op, "a list of send, send-imm, write, write-imm, read, cas, fadd, atomic-write; or all", "operations (all that the service has)", .idle = SERVER | PINGPONG | TCP },
	{ "sizes", NEEDS_VALUE, take_sizes, "a list of SIZE and FROM:TO (powers of two), K M, up to 64M", "bytes of a message (8,4K,64K,1M; ud: 8,64,1K)", .idle = SERVER },
	{ "all", NO_VALUE, take_all, "", "all operations that the service has, 0 bytes to 64 MiB (ud: to 1K)", .idle = SERVER | PINGPONG },
	{ "test", NEEDS_VALUE, take_test, "a list of bandwidth, rate, latency, verify; or all", "what is done. Bandwidth and rate come from one stream; all: these and latency (all)", .idle = SERVER | PINGPONG },
	{ "bandwidth", NO_VALUE, take_stream, "", "--test bandwidth", .idle = SERVER | PINGPONG },
	{ "rate", NO_VALUE, take_stream, "", "--test rate", .idle = SERVER | PINGPONG },
	{ "latency", NO_VALUE, take_latency, "", "--test latency", .idle = SERVER | PINGPONG },
	{ "verify", NO_VALUE, take_verify, "", "before what is measured, look at every byte of every message, at both ends", .idle = SERVER },
	{ "qps", NEEDS_VALUE, take_qps, "1..65536", "QPs (1)", .idle = SERVER | TCP },
	{ "depth", NEEDS_VALUE, take_depth, "1..65536", "messages of a QP outstanding (128); fewer, and fewer QPs, where their bytes would be more than 256 MiB", .idle = SERVER | PINGPONG | TCP },
	{ "batch", NEEDS_VALUE, take_batch, "1..65536, not more than --depth", "messages of one post, the last signaled (16)", .idle = SERVER | PINGPONG | TCP },
	{ "inline", NEEDS_VALUE, take_inline, "bytes, as many as the device takes", "messages up to this travel inline (32)", .idle = SERVER | TCP },
	{ "mtu", NEEDS_VALUE, take_mtu, "256, 512, 1024, 2048 or 4096", "path MTU of rc and uc (the largest that both ends carry)", .idle = SERVER | TCP },
	{ "gid-index", NEEDS_VALUE, take_gid_index, "0..65535", "which of this end's GIDs (0)", .idle = TCP },
	{ "seconds", NEEDS_VALUE, take_seconds, "0.001..86400", "of each measurement (0.5)", .idle = SERVER | PINGPONG },
	{ "iters", NEEDS_VALUE, take_iters, "1 or more", "messages of a QP in each measurement, instead of a time", .idle = SERVER },
	{ "bytes", NEEDS_VALUE, take_bytes, "1 or more, K M G", "end a measurement after so many, too, though not before two messages", .idle = SERVER | PINGPONG },
	{ "cores", NEEDS_VALUE, take_cores, "a list of CPUs", "of each end: the program, and the poll core if embedded (--self, not embedded: the first two)" },
	{ "fault", NEEDS_VALUE, take_fault, "faults, as of the device key", "drop:1%/seed:7: a worse link", .idle = TCP },
	{ "json", MAY_HAVE_VALUE, take_json, "a file name, or nothing", "write the results as a JSON list; without a file name, instead of the table", .idle = SERVER },
	{ "progress", NO_VALUE, take_progress, "", "a line on what is going on, also when standard error is no terminal", .idle = SERVER | PINGPONG },
};

static const struct option_table table = {
	"uroce-perf: bandwidth, message rate and latency of every operation. Without options: both ends here.\n"
	"Exit code: 0, all completed and what was verified was right; 1, not so; 2, options that make no sense.\n"
	"  uroce-perf --listen --device inline:net_af_packet0,iface=eth0\n"
	"  uroce-perf --connect HOST --device inline:net_af_packet0,iface=eth0\n"
	"  uroce-perf --connect HOST -d unix:/run/uroce/uroce0.sock\n\n",
	rows, sizeof(rows) / sizeof(rows[0]),
};

static bool check(const struct options *o, uint64_t given)
{
	const struct option_situation situations[] = {
		{ o->listen || o->connect, "--listen or --connect", "one or the other" },
		{ o->listen && !o->is_pingpong, "--listen", "it at the client, which tells the server what to do" },
		{ o->is_pingpong, "--peer pingpong", "only what ibv_rc_pingpong and the like can do" },
		{ o->is_tcp, "--tcp", "one or the other: it is of RDMA" },
	};
	return option_table_check(&table, given, situations, sizeof(situations) / sizeof(situations[0]));
}

bool options_take(struct options *o, const char *name, const char *value)
{
	return option_table_take(&table, o, name, value);
}

bool options_parse(int argc, char **argv, struct options *o, bool *is_done)
{
	*o = (struct options){ .depth = 128, .inline_bytes = 32, .seconds = 0.5 };
	uint64_t given;
	if (!option_table_parse(&table, argc, argv, o, is_done, &given) || (!*is_done && !check(o, given)))
		return false;
	const char *wrong = *is_done ? NULL : options_settle(o);
	if (wrong)
		fprintf(stderr, "uroce-perf: %s\n", wrong);
	return !wrong;
}
