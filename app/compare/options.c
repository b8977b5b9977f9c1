/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of options and what they mean together. Looks at nothing but its arguments and UROCE_DEVICE. */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "option_table.h"
#include "work.h"

#define SIZE_LARGEST (UINT64_C(16) << 20)
#define USUAL_SIZES "8,64,1K,4K,64K,1M,16M"
#define USUAL_TRANSPORTS "tcp,tcp-spin,udp,uroce"

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

/* A list of names: the bits of their numbers. */
static bool take_names(const char *v, int (*find)(const char *name, size_t len), unsigned *bits)
{
	*bits = 0;
	for (size_t len; *v; v += len, v += *v == ',') {
		len = strcspn(v, ",");
		int i = find(v, len);
		if (i < 0)
			return false;
		*bits |= 1u << i;
	}
	return *bits != 0;
}

static bool take_transports(struct options *o, const char *v)
{
	return take_names(v, transport_find, &o->transports);
}

static bool take_works(struct options *o, const char *v)
{
	return take_names(v, work_find, &o->works);
}

static bool take_sizes(struct options *o, const char *v)
{
	bool is_fine = number_take_sizes(v, SIZE_LARGEST, o->sizes, OPTIONS_SIZES, &o->size_count);
	for (unsigned i = 0; i < o->size_count; i++)
		is_fine = is_fine && o->sizes[i] >= MARK_BYTES;
	return is_fine;
}

static bool take_seconds(struct options *o, const char *v)
{
	char *end;
	o->seconds = strtod(v, &end);
	return end != v && !*end && o->seconds >= 0.001 && o->seconds <= 3600;
}

static bool take_cores(struct options *o, const char *v)
{
	uint64_t cpu;
	for (unsigned n = 0; n < 2; n++) {
		if (!number_take(v, 1023, &v, &cpu))
			return false;
		o->cpu[n] = (int)cpu;
		if (!*v)
			return true;
		if (*v++ != ',')
			return false;
	}
	return false;
}

static bool take_gid_index(struct options *o, const char *v)
{
	uint64_t index;
	if (!number_take_all(v, 0, 65535, &index))
		return false;
	o->gid_index = (uint32_t)index;
	return true;
}

static bool take_no_count(struct options *o, const char *v)
{
	return o->is_uncounted = true;
}

static bool take_json(struct options *o, const char *v)
{
	o->json = v;
	return v[0] != 0;
}

static bool take_html(struct options *o, const char *v)
{
	o->html = v;
	return v[0] && strcmp(v, "-") != 0;
}

/* A situation, in which some options would say nothing. */
enum { SERVER = 1 };

static const struct option_row rows[] = {
	{ "listen", MAY_HAVE_VALUE, take_listen, "[HOST:]PORT, and no --connect", "be the server of one client (port 7471); it is told what to do" },
	{ "connect", NEEDS_VALUE, take_connect, "HOST[:PORT], and no --listen", "compare between this host and a server's. Without either: between two processes on this machine" },
	{ "device", NEEDS_VALUE, take_device, "DEVICE, at most twice",
		"or -d, of uroce, as of uroce_open: inline:net_af_packet0,iface=eth0, unix:/run/uroce/uroce0.sock (else UROCE_DEVICE of the environment; else, on one machine, memory shared by the two processes). Given twice: of both ends", 'd' },
	{ "transports", NEEDS_VALUE, take_transports, "a list of tcp, tcp-spin, udp, udp-spin, uroce", "what is compared (" USUAL_TRANSPORTS "). tcp and udp sleep until something comes, -spin and uroce ask all the time" },
	{ "works", NEEDS_VALUE, take_works, "a list of pingpong, stream, small", "what is done (all): one message at a time to and fro; a stream of large messages, of 4K and more; of small ones", .idle = SERVER },
	{ "sizes", NEEDS_VALUE, take_sizes, "a list of SIZE and FROM:TO (powers of two), K M, 8 to 16M", "bytes of a message (" USUAL_SIZES ")", .idle = SERVER },
	{ "seconds", NEEDS_VALUE, take_seconds, "0.001..3600", "of each measurement (0.3)", .idle = SERVER },
	{ "cores", NEEDS_VALUE, take_cores, "a CPU, or two with a comma", "of the program at this end, or at both when they are here (then the first two)" },
	{ "gid-index", NEEDS_VALUE, take_gid_index, "0..65535", "which of this end's GIDs (0)" },
	{ "no-count", NO_VALUE, take_no_count, "", "leave out the runs in which a tracer counts system calls and copies" },
	{ "json", NEEDS_VALUE, take_json, "a file name, or -", "write all results as JSON; -: to standard output, instead of the table", .idle = SERVER },
	{ "html", NEEDS_VALUE, take_html, "a file name", "write a page with plots, complete in one file", .idle = SERVER },
};

static const struct option_table table = {
	"uroce-compare: the same work over kernel TCP, kernel UDP and uroce, between the same two ends, in one run: throughput, latency, CPU time,\n"
	"and, counted, system calls, context switches and copies of each message. Without options: two processes on this machine; for anyone.\n"
	"Exit code: 0, all was done; 1, something failed; 2, options that make no sense.\n"
	"  uroce-compare --html compare.html\n"
	"  uroce-compare --listen --device inline:net_af_packet0,iface=eth0\n"
	"  uroce-compare --connect HOST --device inline:net_af_packet0,iface=eth0\n\n",
	rows, sizeof(rows) / sizeof(rows[0]),
};

static bool has_device(unsigned transports)
{
	for (unsigned i = 0; transport_at(i); i++)
		if (transports & 1u << i && transport_at(i)->has_device)
			return true;
	return false;
}

static const char *settle(struct options *o)
{
	const char *usual = getenv("UROCE_DEVICE");
	bool is_self = !o->listen && !o->connect;
	if (!o->transports)
		take_transports(o, USUAL_TRANSPORTS);
	if (!o->works)
		take_works(o, "pingpong,stream,small");
	if (!o->size_count)
		take_sizes(o, USUAL_SIZES);
	if (!o->device[0] && usual && *usual)
		o->device[0] = usual;
	if (!is_self && !o->device[0] && has_device(o->transports))
		return "no --device: expected one, such as --device inline:net_af_packet0,iface=eth0 (only both ends on one machine have a default)";
	if (!is_self && o->device[1])
		return "two --device: expected one, when the other end is another process";
	return NULL;
}

bool options_parse(int argc, char **argv, struct options *o, bool *is_done)
{
	*o = (struct options){ .seconds = 0.3, .cpu = { -1, -1 } };
	uint64_t given;
	if (!option_table_parse(&table, argc, argv, o, is_done, &given))
		return false;
	const struct option_situation server = { o->listen, "--listen", "it at the client, which tells the server what to do and has the results" };
	if (!*is_done && !option_table_check(&table, given, &server, 1))
		return false;
	const char *wrong = *is_done ? NULL : settle(o);
	if (wrong)
		fprintf(stderr, "uroce-compare: %s\n", wrong);
	return !wrong;
}
