/* SPDX-License-Identifier: BSD-3-Clause */
/* The soak test: one run for each seed. A failure prints the seed and the command that replays it, to the same packet. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcapng.h"
#include "run.h"

struct options {
	uint64_t first, runs, keep_going;
	bool is_verbose, is_twice;
	const char *capture;
	struct plan_fixed fixed;
};

static const struct option long_options[] = {
	{ "seed", required_argument, NULL, 's' }, { "qps", required_argument, NULL, 'q' }, { "mtu", required_argument, NULL, 'm' }, { "fault", required_argument, NULL, 'f' }, { "pcap", required_argument, NULL, 'p' },
	{ "verbose", no_argument, NULL, 'v' }, { "twice", no_argument, NULL, 't' }, { "keep-going", required_argument, NULL, 'k' }, { "no-mistakes", no_argument, NULL, 'g' }, { "help", no_argument, NULL, 'h' }, { 0 },
};

static void print_usage(FILE *to)
{
	fprintf(to, "usage: soak [-n RUNS] [--seed FIRST] [options]\n"
		"  -n RUNS           runs, with seeds from FIRST on (default 200)\n"
		"  --seed FIRST      (default 1)\n"
		"  --qps N           so many connections instead of 1 to 8\n"
		"  --mtu BYTES       of the ports: 256, 512, 1024, 2048 or 4096\n"
		"  --fault SPEC      on every cable instead of the seed's own; none: no faults\n"
		"  --no-mistakes     no deliberate errors\n"
		"  --pcap FILE       writes every frame of the last run\n"
		"  --verbose         prints the plan, every frame and the stack's log lines\n"
		"  --twice           runs every seed twice and compares all frames\n"
		"  --keep-going N    ends after N failures instead of one\n");
}

static bool parse_number(const char *text, uint64_t max, uint64_t *out)
{
	char *end;
	errno = 0;
	*out = strtoull(text, &end, 0);
	return !errno && end != text && !*end && *out <= max;
}

/* 0; 2: what was given makes no sense; 1: only help was asked for. */
static int parse_options(struct options *o, int argc, char **argv)
{
	uint64_t n;
	int c;
	*o = (struct options){ .first = 1, .runs = 200, .keep_going = 1 };
	while ((c = getopt_long(argc, argv, "n:vh", long_options, NULL)) != -1) {
		bool is_right = true;
		switch (c) {
		case 'n': is_right = parse_number(optarg, UINT32_MAX, &o->runs) && o->runs; break;
		case 's': is_right = parse_number(optarg, UINT64_MAX, &o->first); break;
		case 'k': is_right = parse_number(optarg, UINT32_MAX, &o->keep_going) && o->keep_going; break;
		case 'q': is_right = parse_number(optarg, PLAN_PAIRS_MAX, &n) && n; o->fixed.qps = (unsigned)n; break;
		case 'm': is_right = parse_number(optarg, 4096, &n) && n >= 256 && !(n & (n - 1)); o->fixed.mtu = (uint32_t)n; break;
		case 'f': o->fixed.fault = optarg; break;
		case 'g': o->fixed.no_mistakes = true; break;
		case 'p': o->capture = optarg; break;
		case 'v': o->is_verbose = true; break;
		case 't': o->is_twice = true; break;
		case 'h': print_usage(stdout); return 1;
		default: is_right = false;
		}
		if (!is_right) {
			print_usage(stderr);
			return 2;
		}
	}
	return 0;
}

static FILE *open_capture(const struct options *o)
{
	if (!o->capture)
		return NULL;
	FILE *f = fopen(o->capture, "we");
	if (f && !pcapng_begin(f, "soak"))
		return f;
	fprintf(stderr, "%s: %s\n", o->capture, strerror(errno));
	exit(2);
}

static void print_replay(const struct options *o, const char *program, uint64_t seed)
{
	printf("replay: %s -n 1 --seed %" PRIu64, program, seed);
	if (o->fixed.qps)
		printf(" --qps %u", o->fixed.qps);
	if (o->fixed.mtu)
		printf(" --mtu %u", o->fixed.mtu);
	if (o->fixed.fault)
		printf(" --fault %s", o->fixed.fault);
	if (o->fixed.no_mistakes)
		printf(" --no-mistakes");
	printf(" --verbose --pcap soak.pcapng\n");
}

static bool run_seed(const struct options *o, const char *program, uint64_t seed, struct run_result *sum)
{
	struct run_result result, again;
	struct run_config config = { .is_talkative = o->is_verbose, .trace = o->is_verbose ? stdout : NULL };
	struct plan *p = plan_new(seed, &o->fixed);
	if (o->is_verbose)
		plan_print(p, true);
	config.capture = open_capture(o);
	bool is_good = run_plan(p, &config, &result);
	if (config.capture)
		fclose(config.capture);
	config = (struct run_config){ NULL };
	if (is_good && o->is_twice && (!run_plan(p, &config, &again) || again.world.digest != result.world.digest || again.virtual_ns != result.virtual_ns)) {
		snprintf(result.failure, sizeof(result.failure), "a second run is not the same as the first: digests %016" PRIx64 " and %016" PRIx64, result.world.digest, again.world.digest);
		is_good = false;
	}
	plan_free(p);
	if (!is_good) {
		printf("seed %" PRIu64 " failed: %s\n", seed, result.failure);
		print_replay(o, program, seed);
	} else if (o->is_verbose) {
		printf("seed %" PRIu64 ": good; %" PRIu64 " WRs, %" PRIu64 " frames, %" PRIu64 " ns, digest %016" PRIx64 "\n", seed, result.wrs, result.world.frames, result.virtual_ns, result.world.digest);
	}
	fflush(stdout);
	sum->wrs += result.wrs;
	sum->virtual_ns += result.virtual_ns;
	sum->world.frames += result.world.frames;
	return is_good;
}

int main(int argc, char **argv)
{
	struct options o;
	struct run_result sum = { .failure = "" };
	uint64_t failures = 0, done = 0;
	int rc = parse_options(&o, argc, argv);
	if (rc)
		return rc == 1 ? 0 : rc;
	/* memory of one run serves the next: half of the time would go into page faults */
	mallopt(M_MMAP_THRESHOLD, 1 << 28);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	for (; done < o.runs && failures < o.keep_going; done++)
		failures += !run_seed(&o, argv[0], o.first + done, &sum);
	printf("%" PRIu64 " runs, %" PRIu64 " failed; %" PRIu64 " WRs, %" PRIu64 " frames, %.1f virtual seconds\n", done, failures, sum.wrs, sum.world.frames, (double)sum.virtual_ns / 1e9);
	return failures ? 1 : 0;
}
